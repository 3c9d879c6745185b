"""The shortest bot with approvals that anybody would write: a View, a dict of futures, `agent.run`, nothing stored.

It is what Signoff is measured against, so it shows people the same things: it opens a thread for a mention, shows that
it is typing while it works, posts a card with two buttons, edits the card when somebody clicks, and replies. It forgets
everything when it stops, checks nobody's permission, has no deadline and no record, and runs what the model sent
last. BENCH_WAITING makes it begin with that many runs that wait for a click.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import discord
import discord.gateway
import discord.http
import yarl
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.messages import ToolCallPart
from scripted import agent

discord.http.Route.BASE = os.environ["DISCORD_API_URL"]
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(os.environ["DISCORD_GATEWAY_URL"])

OUTPUT: Any = [str, DeferredToolRequests]
decisions: dict[int, asyncio.Future[bool]] = {}
"""Message that asked -> whether its calls were accepted."""
histories: dict[int, Any] = {}
"""Thread -> the messages of its conversation."""


class ApprovalView(discord.ui.View):
    def __init__(self, key: int, text: str) -> None:
        super().__init__(timeout=None)
        self.key, self.text = key, text

    @discord.ui.button(label="Accept", style=discord.ButtonStyle.success)
    async def accept(self, interaction: discord.Interaction, button: Any) -> None:
        await self.decide(interaction, True)

    @discord.ui.button(label="Reject", style=discord.ButtonStyle.danger)
    async def reject(self, interaction: discord.Interaction, button: Any) -> None:
        await self.decide(interaction, False)

    async def decide(self, interaction: discord.Interaction, accepted: bool) -> None:
        word = "Approved" if accepted else "Rejected"
        await interaction.response.edit_message(content=f"{self.text}\n{word} by {interaction.user}", view=None)
        self.stop()
        decisions.pop(self.key).set_result(accepted)


def written(calls: list[ToolCallPart]) -> str:
    return "\n".join(f"**{call.tool_name}** `{call.args_as_json_str()[:1500]}`" for call in calls)


async def decision(key: int, requests: DeferredToolRequests, thread: discord.Thread | None) -> DeferredToolResults:
    calls = requests.approvals
    text = written(calls)
    decisions[key] = asyncio.get_running_loop().create_future()
    view = ApprovalView(key, text)
    if thread:
        await thread.send(text, view=view)
    accepted = await decisions[key]
    return DeferredToolResults(approvals={call.tool_call_id: accepted or ToolDenied("rejected") for call in calls})


async def work(message: discord.Message) -> None:
    thread = message.channel
    if not isinstance(thread, discord.Thread):
        thread = await message.create_thread(name=message.clean_content[:80])
    async with thread.typing():
        result = await agent.run(message.content, message_history=histories.get(thread.id), output_type=OUTPUT)
    while isinstance(result.output, DeferredToolRequests):
        decided = await decision(message.id, result.output, thread)
        async with thread.typing():
            result = await agent.run(
                message_history=result.all_messages(), deferred_tool_results=decided, output_type=OUTPUT
            )
    histories[thread.id] = result.all_messages()
    await thread.send(result.output)


async def wait(key: int) -> None:
    """A run that waits for a click, and has no thread."""
    result = await agent.run("restart web", output_type=OUTPUT)
    assert isinstance(result.output, DeferredToolRequests)
    await decision(key, result.output, None)
    print(result.all_messages())  # the run would go on with them, so they are kept


class Bot(discord.Client):
    async def setup_hook(self) -> None:
        self.waiting: list[asyncio.Task[None]] = []
        for key in range(int(os.environ.get("BENCH_WAITING", "0"))):
            self.waiting.append(asyncio.create_task(wait(key)))
            while key not in decisions:  # noqa: ASYNC110 - nothing tells when it waits
                await asyncio.sleep(0)

    async def on_message(self, message: discord.Message) -> None:
        if self.user in message.mentions and not message.author.bot:
            await work(message)


if __name__ == "__main__":
    Bot(intents=discord.Intents(guilds=True, guild_messages=True)).run(os.environ["DISCORD_TOKEN"])

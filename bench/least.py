"""The in-memory bot with the least that Signoff's promises need: a bot that keeps them is hardly faster than this one.

BENCH_PROMISES names what is added:

- `hooks`: a capability of PydanticAI that sees each response and each call. Without one, there is no gate.
- `stream`: the model's words arrive one by one, so that people can read a long reply while it is written.
- `commits`: the mention, the question, the decision, the start, the result and the reply are each durable before the
  next step. Each is one small row in a table without any index; the store's own thread writes them.
- `card`: a box with a title, the call, a footer and the buttons, in place of a line of text.
- `kept`: the run waits inside PydanticAI for the decision, instead of beginning anew after it.
- `ahead`: the run begins while the thread is opened, and waits with its first response.
- `frame`: as many commits, hooks and requests as Signoff has, with nothing in them. The response, the posted card, the
  posted reply and the last edit of the card are durable as well: one small row each. The capability has all hooks of
  Signoff's gate, and lets everything pass. The run goes on while the response to the click is sent. A second after its
  click, the row of the card is read and the card is edited once more.

The last three need `hooks`. `kept` and `ahead` are no promises, but Signoff does them too.

It still checks nobody's permission, has no rules and no record, masks no secret, and does not find its rows again.
Unlike the in-memory bot it shows no typing, since Signoff shows none in so short a step.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import bare
import discord
from pydantic_ai import CallToolsNode, DeferredToolRequests, DeferredToolResults
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from scripted import agent

from signoff.store.database import Database
from signoff.store.sqlite import open_sqlite
from signoff.store.writer import Writer

PROMISES = frozenset(os.environ.get("BENCH_PROMISES", "").split())
CREATE = "CREATE TABLE rows (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL)"
ADD = "INSERT INTO rows (kind, text) VALUES (?, ?)"
READ = "SELECT kind, text FROM rows ORDER BY id DESC LIMIT 1"
SENT = 3
"""Turns of the event loop after which a response is on its way to Discord."""
TEXT = "x" * 300
"""About as much as a stored request has."""
ASKED, DECIDED, ENDED = "Approval needed", "Decided", "Decided, and done"
COLOURS = {ASKED: 0x5865F2, DECIDED: 0x248046, ENDED: 0x248046}


class Hooks(AbstractCapability[Any]):
    def __init__(self, bot: Bot, key: int, thread: asyncio.Future[discord.Thread]) -> None:
        self.bot, self.key, self.thread = bot, key, thread

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        await self.thread
        return response

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        await self.bot.keep(self.key, "started")
        result = await handler(args)
        await self.bot.keep(self.key, "ended")
        return result

    async def handle_deferred_tool_calls(
        self, ctx: Any, *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        return await self.bot.decision(self.key, requests, await self.thread) if "kept" in PROMISES else None


class Passing(WrapperToolset[Any]):
    """A toolset around the tools that changes nothing, as Signoff's gate has two."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, tool_args, ctx, tool)


class Gate(Hooks):
    """The hooks of Signoff's gate, which is saver and seal as well. A response with calls is durable first."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return Passing(Passing(toolset))

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        return request_context

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)

    async def after_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args

    async def wrap_output_process(self, ctx: Any, *, output_context: Any, output: Any, handler: Any) -> Any:
        return await handler(output)

    async def before_node_run(self, ctx: Any, *, node: Any) -> Any:
        if isinstance(node, CallToolsNode) and node.model_response.tool_calls:
            await self.bot.keep(self.key, "response")
        return node

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> Any:
        raise error

    def wrap_run_event_stream(self, ctx: Any, *, stream: AsyncIterable[Any]) -> AsyncIterable[Any]:
        return stream


class ApprovalView(bare.ApprovalView):
    bot: Bot

    async def decide(self, interaction: discord.Interaction, accepted: bool) -> None:
        await self.bot.keep(self.key, "decided")
        if "card" not in PROMISES:
            await super().decide(interaction, accepted)
            return
        self.stop()
        responding = asyncio.create_task(interaction.response.edit_message(view=self.bot.card(self, DECIDED)))
        if "frame" in PROMISES:
            for _ in range(SENT):
                await asyncio.sleep(0)
        else:
            await responding
        bare.decisions.pop(self.key).set_result(accepted)
        await responding


class Card(discord.ui.LayoutView):
    def __init__(self, view: ApprovalView, title: str) -> None:
        super().__init__(timeout=None)
        box = discord.ui.Container[Any](accent_colour=COLOURS[title])
        for text in (f"### {title}", view.text, "-# asked by Ada, expires in five minutes"):
            box.add_item(discord.ui.TextDisplay[Any](text))
        if not view.is_finished():
            box.add_item(discord.ui.ActionRow[Any](*view.children))
        self.add_item(box)


async def read(ctx: Any, events: AsyncIterable[Any]) -> None:
    async for _ in events:
        pass


class Jobs(Protocol):
    """Where the bot's work on the database is done, such as a writer."""

    async def submit(self, work: Callable[[Database], object], /) -> object: ...


class Bot(bare.Bot):
    gate: ClassVar[type[Hooks]] = Gate if "frame" in PROMISES else Hooks
    writer: Jobs

    async def setup_hook(self) -> None:
        self.late: set[asyncio.Task[None]] = set()
        self.writer = await Writer.start(lambda: open_sqlite(Path("least.db")))
        await self.writer.submit(lambda db: db.change(CREATE))

    async def keep(self, key: int, kind: str) -> None:
        """Return when a row is on the disk."""
        if "commits" in PROMISES:
            await self.writer.submit(lambda db: db.change(ADD, kind, TEXT))

    async def look(self, key: int) -> None:
        await self.writer.submit(lambda db: db.one(READ))

    def card(self, view: ApprovalView, title: str) -> discord.ui.LayoutView:
        return Card(view, title)

    async def run_ahead(self, key: int, thread: asyncio.Future[discord.Thread], prompt: str) -> Any:
        for _ in range(3):
            await asyncio.sleep(0)  # the thread is asked for first
        return await self.run_agent(key, thread, prompt)

    async def run_agent(
        self, key: int, thread: asyncio.Future[discord.Thread], prompt: str | None, **given: Any
    ) -> Any:
        if "stream" in PROMISES:
            given["event_stream_handler"] = read
        if "hooks" in PROMISES:
            given["capabilities"] = [self.gate(self, key, thread)]
        return await agent.run(prompt, output_type=bare.OUTPUT, **given)

    async def on_message(self, message: discord.Message) -> None:
        if self.user not in message.mentions or message.author.bot:
            return
        await self.keep(message.id, "mention")
        opened: asyncio.Future[discord.Thread] = asyncio.get_running_loop().create_future()
        begun = None
        if "ahead" in PROMISES:
            begun = asyncio.create_task(self.run_ahead(message.id, opened, message.content))
        thread = await message.create_thread(name=message.clean_content[:80])
        opened.set_result(thread)
        result = await (begun or self.run_agent(message.id, opened, message.content))
        while isinstance(result.output, DeferredToolRequests):
            decided, history = await self.decision(message.id, result.output, thread), result.all_messages()
            result = await self.run_agent(
                message.id, opened, None, message_history=history, deferred_tool_results=decided
            )
        await self.keep(message.id, "reply")
        await thread.send(result.output)
        if "frame" in PROMISES:
            await self.keep(message.id, "replied")

    async def decision(self, key: int, requests: DeferredToolRequests, thread: discord.Thread) -> DeferredToolResults:
        await self.keep(key, "asked")
        calls = requests.approvals
        view = ApprovalView(
            key, "\n".join(f"**{call.tool_name}** `{call.args_as_json_str()[:1500]}`" for call in calls)
        )
        view.bot = self
        bare.decisions[key] = asyncio.get_running_loop().create_future()
        if "card" in PROMISES:
            card = await thread.send(view=self.card(view, ASKED))
        else:
            card = await thread.send(view.text, view=view)
        if "frame" in PROMISES:
            await self.keep(key, "posted")
        accepted = await bare.decisions[key]
        if "frame" in PROMISES:
            later = asyncio.create_task(self.show_end(card, view))
            self.late.add(later)
            later.add_done_callback(self.late.discard)
        return requests.build_results(approvals=dict.fromkeys((call.tool_call_id for call in calls), accepted))

    async def show_end(self, card: discord.Message, view: ApprovalView) -> None:
        """Show how the calls of a card ended, a second after its click."""
        await asyncio.sleep(1)
        await self.look(view.key)
        await card.edit(view=self.card(view, ENDED))
        await self.keep(view.key, "shown")


if __name__ == "__main__":
    Bot(intents=discord.Intents(guilds=True, guild_messages=True)).run(os.environ["DISCORD_TOKEN"])

"""A busy thread for a test and a benchmark: two hundred messages and fifty open cards."""

from __future__ import annotations

from typing import Any

import discord
from discord import ui

from discord_sandbox import SandboxClient
from tests.rigs.page_bot import FixtureBot

MESSAGES = 200
CARDS = 50


class Card(ui.LayoutView):
    def __init__(self, number: int, status: str = "") -> None:
        super().__init__(timeout=None)
        box = ui.Container[Any](accent_colour=0x5865F2)
        box.add_item(
            ui.TextDisplay[Any](f"## Tool Approval Required\nAsked by <@1>\nRejected <t:1999999999:R> {status}")
        )
        box.add_item(ui.Separator[Any]())
        box.add_item(
            ui.TextDisplay[Any](f"### `tool_{number}`\n**path**\n```\n/srv/files/{number}.txt\n```" + "x " * 200)
        )
        accept: ui.Button[Any] = ui.Button(label="Accept", style=discord.ButtonStyle.success, custom_id=f"a{number}")
        accept.callback = self.accept
        self.number = number
        box.add_item(ui.ActionRow[Any](accept, ui.Button(label="Reject", custom_id=f"r{number}")))
        self.add_item(box)

    async def accept(self, interaction: discord.Interaction[Any]) -> None:
        await interaction.response.edit_message(view=Card(self.number, "APPROVED"))


async def fill_thread(sandbox: SandboxClient, bot: FixtureBot, name: str, messages: int, cards: int) -> int:
    """Make a thread with this many messages and, spread evenly among them, this many cards; return its id."""
    ada = await sandbox.person("Ada")
    start = await ada.say("general", f"the thread {name}")
    thread = await ada.open_thread("general", name, start)
    place = bot.get_partial_messageable(thread.id, guild_id=await sandbox.guild_id())
    shown = 0
    for number in range(messages):
        await ada.say(str(thread.id), f"message {number} with **some** `markdown` and <@{ada.id}>\n- and\n- a list")
        while (shown + 1) * messages <= cards * (number + 1):
            await place.send(view=Card(shown))
            shown += 1
    return thread.id


CLICK_LAST_CARD = """async () => {
  const start = performance.now();
  const button = [...document.querySelectorAll('button.success')].at(-1);
  const card = button.closest('.message').dataset.id;
  button.click();
  while (!document.querySelector(`.message[data-id="${card}"]`).textContent.includes('APPROVED'))
    await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""
"""A script that returns the milliseconds from the press to the changed card."""

SCROLL_TO_TOP = """async () => {
  const scroller = document.getElementById('scroller');
  let worst = 0, last = performance.now();
  for (let n = 0; n < 60 || scroller.scrollTop > 0; n++) {
    scroller.scrollTop -= 300;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    worst = Math.max(worst, now - last);
    last = now;
  }
  return worst;
}"""
"""A script that returns the milliseconds of the longest of at least sixty frames while scrolling."""

PAINTED = """Math.max(performance.getEntriesByName('first-contentful-paint')[0].startTime,
  performance.getEntriesByName('ready')[0].startTime)"""
"""The milliseconds from the start of the load until everything is there."""

"""Actions of people beyond a card's buttons: commands, panels and forms. Each waits for the whole response."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from discord_sandbox.seen import Outcome, SeenMessage
from tests.rigs.live_bot import DEFERRED, PATIENCE, AnyRig, CrashingRig, Rig, patient, rig

PEOPLE = """
[approvals]
remember = "always"
approvers = ["manage_server", "role:{approvers}"]
"""
"""Admins and approvers decide, and decisions may be remembered with the scope "always"."""


@asynccontextmanager
async def staffed(
    folder: Path, config: str = PEOPLE, *, kind: type[AnyRig] = CrashingRig, start: bool = True
) -> AsyncGenerator[AnyRig]:
    """Run a bot with both approvers. `{approvers}`, `{server}`, `{ops}` and `{max}` in the configuration become ids.

    The bot runs in its own process as always, but this one starts fast.
    """
    async with rig(folder, start=False, kind=kind) as live:
        live.people["Nina"] = patient(await live.sandbox.person("Nina"))
        ids = {
            "approvers": await live.sandbox.role_id("Approvers"),
            "server": await live.sandbox.guild_id(),
            "ops": (await live.sandbox.channel("ops")).id,
            "max": live.people["Max"].id,
        }
        for name, found in ids.items():
            config = config.replace(f"{{{name}}}", str(found))
        live.configure(config)
        if start:
            await live.start()
            await commands_known(live)
        yield live


async def commands_known(live: Rig) -> None:
    """Wait until Discord has the bot's commands; the bot registers them in parallel with its start."""
    end = time.monotonic() + PATIENCE
    while not await live.people["Ada"].commands("general"):
        assert time.monotonic() < end, "Discord never heard of the commands"
        await asyncio.sleep(0.02)


async def order(live: Rig, line: str, who: str = "Ada", where: str | int = "general", **options: Any) -> Outcome:
    """Run `/signoff LINE` and wait for the whole private response."""
    answer = await whole(live, await live.people[who].run(where, f"signoff {line}", **options))
    assert not answer.failed, answer.error
    assert all(message.ephemeral for message in answer.messages)
    return answer


async def submit(live: Rig, opened: Outcome, who: str, **values: str) -> Outcome:
    """Submit the form that a press opened; `arguments_0` is the field `arguments-0`."""
    assert opened.modal is not None, opened.text
    typed = {name.replace("_", "-"): value for name, value in values.items()}
    return await whole(live, await live.people[who].submit(opened, typed))


async def press(live: Rig, message: SeenMessage, label: str, who: str = "Ada", *, number: int = 0) -> Outcome:
    """Press the n-th button with that label."""
    found = [button.custom_id for button in message.buttons if button.label == label]
    assert len(found) > number, f"no {label} among {[button.label for button in message.buttons]}"
    answer = await live.people[who].click(message, str(found[number]))
    assert not answer.failed, answer.error
    return answer


async def further(live: Rig, card: SeenMessage, label: str, who: str = "Ada") -> Outcome:
    """Press a button of the private panel behind the card's "More…"."""
    panel = await press(live, card, "More…", who)
    assert panel.reply is not None
    return await press(live, panel.reply, label, who)


async def whole(live: Rig, answer: Outcome) -> Outcome:
    end = time.monotonic() + PATIENCE
    while answer.callback_type in DEFERRED and not (answer.updated or any(not m.loading for m in answer.messages)):
        assert time.monotonic() < end, "an answer was put off and never came"
        await asyncio.sleep(0.05)
        answer = await live.sandbox.interaction(answer)
    return answer


async def protect(live: Rig, **options: Any) -> str:
    """Add a rule as Ada and return its id."""
    answer = await order(live, "protect", **options)
    found = re.search(r"Rule `(\w+)`", answer.text)
    assert found, answer.text
    return found[1]


async def asks(live: Rig, text: str, who: str = "Max", where: str = "general") -> tuple[SeenMessage, SeenMessage]:
    """Ask for something that leads to a card; return the mention and the card."""
    asked = await live.ask(text, who=who, where=where)
    thread = asked.id if where == "general" else int(where)
    return asked, await live.card(thread, after=asked.id)


async def shows(live: Rig, card: SeenMessage, *words: str) -> SeenMessage:
    """Wait until the card has all the words."""
    return await live.people["Ada"].wait_for_change(
        card, lambda seen: all(word in seen.text for word in words), timeout=PATIENCE
    )

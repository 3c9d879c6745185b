"""The turn is stored before its thread is opened: a crash in between loses nothing."""

from __future__ import annotations

import pytest

from discord_sandbox import Person
from signoff.turns.model import Admission, Turn
from tests.rigs.bot import Rig


async def test_the_thread_is_not_there_before_the_turn_is_stored(
    rig: Rig, max_: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[list[str]] = []
    submit = rig.driver.submit

    async def looking(turn: Turn) -> Admission:
        found = [guild["threads"] for guild in (await rig.sandbox.world())["guilds"]]
        threads.append([thread["id"] for those in found for thread in those])
        return await submit(turn)

    monkeypatch.setattr(rig.driver, "submit", looking)
    said = await max_.say("general", f"{rig.sandbox.mention} tidy up")
    await rig.hears()
    assert threads == [[]]
    assert (await rig.sandbox.channel(said.id)).id == said.id

"""The real bot says at its start what is wrong with its set-up, and under each reply that a mode decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.live_bot import rig

MISSING = "123456789012345678"


@pytest.mark.slow
async def test_a_bot_with_mistakes_in_its_set_up_names_them_and_works(tmp_path: Path) -> None:
    config = (
        f'[approvals]\nmode = "auto_approve"\napprovers = ["manage_server", "role:{MISSING}"]\n'
        '[[rules]]\ntool = "recrod"\nverdict = "deny"\n'
    )
    async with rig(tmp_path, config) as live:
        asked = await live.ask('call record {"value": "hello"}')
        reply = await live.sees(asked.id, "record: done")
        assert reply.text.endswith("\n-# Mode auto_approve: calls that ask run without a person.")
        await live.until(lambda: f"role {MISSING} is missing" in live.output, "the servers are checked")
        lines = [line.partition(" signoff.check: ") for line in live.output.splitlines() if "signoff.check" in line]
    said = [(before.split()[-1], text.split()[:4]) for before, _, text in lines if "SIGNOFF_TEST" not in text]
    assert said == [
        ("WARNING", ["signoff.toml:4:", "mode", "is", '"auto_approve":']),
        ("ERROR", ["signoff.toml:7:", "[[rules]]", "number", "1:"]),
        ("ERROR", ["signoff.toml:5:", "role", MISSING, "is"]),
    ]

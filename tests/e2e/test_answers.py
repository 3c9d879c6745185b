"""A tool asks people: the form in parts, with a kill between the parts, and what the record says afterwards."""

from __future__ import annotations

from pathlib import Path

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, CrashingRig
from tests.rigs.office import commands_known, order, press, staffed, submit

PLUGIN = """
from pydantic_ai import CallDeferred, Tool

FIELDS = {f"f{n}": {"type": "string", "title": f"Field {n}"} for n in range(6)} | {"token": {"type": "string"}}


def ask_form(topic: str) -> dict[str, str]:
    schema = {"properties": FIELDS, "required": list(FIELDS)}
    raise CallDeferred(metadata={"question": f"What about {topic}?", "schema": schema})


tools = [Tool(ask_form)]
"""
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


async def question(live: CrashingRig) -> SeenMessage:
    asked = await live.ask('call ask_form {"topic": "ships"}')
    return await live.people["Ada"].wait_for_message(
        asked.id, lambda m: "Answer…" in [b.label for b in m.buttons], timeout=PATIENCE
    )


async def test_parts_survive_a_kill_and_the_record_has_the_masked_answer(tmp_path: Path) -> None:
    async with staffed(tmp_path, start=False) as live:
        (tmp_path / "forms.py").write_text(PLUGIN, encoding="utf-8")
        (tmp_path / "signoff.toml").write_text('[tools]\nplugins = ["forms.py"]\n', encoding="utf-8")
        await live.start()
        await commands_known(live)
        card = await question(live)
        assert "**Warning:** don't enter a password or key" in card.text
        opened = await press(live, card, "Answer…")
        kept = await submit(live, opened, "Ada", **{f"answer_{n}": f"value {n}" for n in range(5)})
        assert kept.reply is not None
        assert "Part 1 of 2 is kept" in kept.reply.text
        await live.kill()
        await live.start()
        second = await press(live, kept.reply, "Next part…")
        await submit(live, second, "Ada", answer_5="value 5", answer_6=SECRET)
        await live.closed(card, f"ANSWERED by {live.people['Ada'].mention}", "Answer to token", "masked")
        await live.sees(card.channel_id, '"f0":"value 0"')
        row = (await order(live, "audit", where=card.channel_id)).text
        assert "**Answered** by" in row
        assert "**Asked for an answer** for" in row
        assert SECRET not in row
        assert SECRET not in (await live.people["Ada"].see(card)).text  # type: ignore[union-attr]

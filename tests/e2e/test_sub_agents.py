"""Sub-agents of a real bot that is killed: one card for all of them, right results, each tool once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.rigs import delegating_tools
from tests.rigs.live_bot import CrashingRig, rig

JOURNAL = "signoff.gate.journal:Journal"
CONFIG = f"""
[tools]
plugins = ["{delegating_tools.__file__}"]
"""


async def test_two_sub_agents_with_two_rounds_and_a_bot_that_is_killed_three_times(tmp_path: Path) -> None:
    """Acceptance: two delegates in parallel, each with two rounds, one leaf rejected, killed in the middle."""
    async with rig(tmp_path, start=False, kind=CrashingRig) as live:
        (tmp_path / "signoff.toml").write_text(CONFIG, encoding="utf-8")
        await live.start()
        ada = live.people["Ada"]
        asked = await live.ask('call research {"topic": "t"}; call review {"topic": "t"}')
        card = await live.card(asked.id)
        assert "Tool Approval Required" in card.text
        for words in ("researcher › leaf", "research 1", "reviewer › leaf", "review 1"):
            assert words in card.text

        await live.kill()
        await live.start()
        # Each call has its own pair of buttons.
        accept, _, _, reject = [str(one.custom_id) for one in card.buttons if one.label in ("Accept", "Reject")][:4]
        await ada.click(card, accept)
        live.arm(f"{JOURNAL}.done:after")
        await ada.click(card, reject, wait=0)
        await live.dies()
        await live.start()

        second = await live.card(asked.id, after=card.id)
        assert "research 2" in second.text
        assert "review 2" in second.text
        await live.closed(card, "APPROVED by", "REJECTED by")
        live.arm(f"{JOURNAL}.enter:before:2")
        (both,) = [one.label for one in second.buttons if one.label.startswith("Accept ")]
        await ada.click(second, both, wait=0)
        await live.dies()
        await live.start()

        reply = await live.sees(asked.id, "The offline demo model reports")
        assert "researcher: did research 1; did research 2" in reply.text
        assert "reviewer: Rejected by user Ada" in reply.text
        assert "did review 2" in reply.text
        await live.ended(asked)
        await live.closed(second, "APPROVED by")
        count = Counter(live.trace)
        models = {name: count.pop(name) for name in ("model of researcher", "model of reviewer")}
        assert count == {"leaf research 1": 1, "leaf research 2": 1, "leaf review 2": 1}
        # The first kill hits a bot that waits. Each of the others may cost a response that was not stored yet.
        assert all(3 <= asked <= 5 for asked in models.values()), models

"""Authority is checked at every click, also for somebody who could decide a moment ago."""

from __future__ import annotations

from tests.rigs.bot import Rig, show
from tests.rigs.bot_fakes import make_batch, make_request


async def test_a_role_that_was_lost_since_an_earlier_click_no_longer_counts(rig: Rig) -> None:
    role = await rig.sandbox.role_id("Approvers")
    olga = await rig.sandbox.person("Olga")
    request = make_request({"path": "a"}, approvers=(f"role:{role}",), quorum=2)
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    voted = await olga.click(seen, "Accept")
    assert voted.updated is not None
    assert "Accepted by 1 of 2" in voted.updated.text
    await rig.sandbox.revoke(olga, role)
    refused = await olga.click(voted.updated, "Reject")
    assert refused.updated is None
    assert "You may not decide this" in refused.text

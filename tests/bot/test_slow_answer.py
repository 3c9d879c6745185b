"""Two people at once: a response that Discord receives late must not replace the drawing of a later decision."""

from __future__ import annotations

import asyncio
import time

from discord_sandbox import Person
from signoff.approvals.model import RequestState
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import make_batch, make_request


async def test_an_answer_that_is_on_its_way_for_long_does_not_undo_a_later_one(rig: Rig, ada: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    first, second = (make_request({"n": str(n)}, approvers=("manage_server", f"user:{olga.id}")) for n in range(2))
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), first, second))
    await rig.sandbox.fault("POST", r"/callback", delay=1.0, times=1)
    slow = asyncio.ensure_future(ada.click(card, f"signoff:accept:{first.id}:0:0", forged=True))
    await until(lambda: rig.desk.batches[batch.id].requests[0].state is RequestState.APPROVED)
    await asyncio.gather(slow, olga.click(card, f"signoff:reject:{second.id}:0:0", forged=True))
    await until(lambda: rig.desk.final == [batch.id])
    final = await ada.see(card)
    assert final is not None
    assert f"APPROVED by <@{ada.id}>" in final.text
    assert f"REJECTED by <@{olga.id}>" in final.text
    assert not final.buttons


async def test_a_decision_that_asked_for_more_time_does_not_undo_one_that_was_drawn_meanwhile(
    rig: Rig, ada: Person
) -> None:
    olga = await rig.sandbox.person("Olga")
    first, second = (make_request({"n": str(n)}, approvers=("manage_server", f"user:{olga.id}")) for n in range(2))
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), first, second))
    rig.bot.clicks.responses.patience = 0.05
    rig.desk.delay = 0.2
    await rig.sandbox.fault("POST", r"/callback", delay=2.0, times=1)  # asking for more time takes this long
    slow = asyncio.ensure_future(ada.click(card, f"signoff:accept:{first.id}:0:0", forged=True))
    await until(lambda: rig.desk.batches[batch.id].requests[0].state is RequestState.APPROVED)
    rig.bot.clicks.responses.patience = 5.0
    rig.desk.delay = 0.0
    await olga.click(card, f"signoff:reject:{second.id}:0:0", forged=True)
    drawn = await ada.see(card)
    assert drawn is not None
    assert f"REJECTED by <@{olga.id}>" in drawn.text
    assert not slow.done()
    pressed, end = await slow, time.monotonic() + 60
    while not (await rig.sandbox.interaction(pressed)).updated:
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    final = await ada.see(card)
    assert final is not None
    assert f"APPROVED by <@{ada.id}>" in final.text
    assert f"REJECTED by <@{olga.id}>" in final.text
    assert not final.buttons

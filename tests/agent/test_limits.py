"""The limit of model requests holds for a whole turn, no matter how often it was resumed."""

from __future__ import annotations

import pytest

from signoff.agent.runner import Limits
from signoff.approvals.automatic import Modes
from signoff.approvals.desk import Desk
from signoff.approvals.model import Choice
from signoff.errors import TurnFailed
from signoff.store import Store
from signoff.turns.model import Step
from tests.conftest import HandClock
from tests.rigs.gate_bench import Bench, protected
from tests.rigs.scripted import calls

LIMIT = 3
ROUNDS = 10
"""Far more rounds than the limit allows."""


async def loop_forever(bench: Bench) -> Step:
    """Run a model that makes the same protected call in every response."""
    return await bench.start(
        [calls(("danger", {"value": "again"}))], [protected(bench.box)], limits=Limits(model_requests=LIMIT)
    )


async def test_each_approval_does_not_grant_another_model_request(bench: Bench) -> None:
    step = await loop_forever(bench)

    async def accept_everything(step: Step) -> None:
        for _ in range(ROUNDS):
            step = await bench.decide(step, Choice.ACCEPT)

    with pytest.raises(TurnFailed, match=f"for {LIMIT} requests"):
        await accept_everything(step)
    assert len(bench.script.asked) == LIMIT
    assert len(bench.box.ran) == LIMIT, "what people accepted ran, and nothing more"


async def test_auto_approve_does_not_grant_another_model_request(store: Store, clock: HandClock) -> None:
    bench = Bench(store, clock, Desk(store, clock, Modes("auto_approve")))
    await loop_forever(bench)

    async def go_on() -> None:
        for _ in range(ROUNDS):
            await bench.advance()

    with pytest.raises(TurnFailed, match=f"for {LIMIT} requests"):
        await go_on()
    assert len(bench.script.asked) == LIMIT
    assert len(bench.box.ran) == LIMIT


async def test_the_last_request_may_still_end_the_turn(bench: Bench) -> None:
    step = await bench.start(
        [calls(("danger", {})), calls(("danger", {})), "done"],
        [protected(bench.box)],
        limits=Limits(model_requests=LIMIT),
    )
    for _ in range(2):
        step = await bench.decide(step, Choice.ACCEPT)
    assert step.text.strip() == "done"  # type: ignore[union-attr]

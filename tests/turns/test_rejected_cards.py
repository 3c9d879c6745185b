"""A turn ends after some cards in a row of which nothing was accepted: the model must not ask again and again."""

from __future__ import annotations

import pytest

from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.model import Batch, Choice
from signoff.store import Store
from signoff.turns.model import Turn, TurnState, Waiting
from tests.conftest import ADA, HandClock
from tests.rigs.driver_office import Office, batch_of, in_thread


async def has_card(office: Office, batch: Batch) -> None:
    async def check() -> bool:
        current = await office.store.run(lambda tx: tx.batch(batch.id))
        return current is not None and current.card_message is not None

    await office.until_true(check)


async def decide(office: Office, turn: Turn, *choices: Choice | None) -> None:
    """Take a turn whose steps each open a card, and decide one card after the other; None lets it expire."""
    batches = [batch_of(turn, deadline=office.clock.at + 500 * number) for number in range(1, len(choices) + 1)]
    office.runner.script(turn, *map(Waiting, batches))
    await office.take(turn)
    for batch, choice in zip(batches, choices, strict=True):
        await has_card(office, batch)
        if choice:
            await office.desk.decide(Click(batch.id, choice, ADA, turn.place.channel))
        else:
            office.clock.at = batch.deadline + 1
            await office.desk.expire_due()


NO, YES = Choice.REJECT, Choice.ACCEPT


@pytest.mark.parametrize("choices", [(NO, NO, NO), (None, NO, None), (YES, NO, NO, NO)])
async def test_the_third_card_in_a_row_without_an_accept_ends_the_turn(
    office: Office, choices: tuple[Choice | None, ...]
) -> None:
    turn = in_thread(1)
    await decide(office, turn, *choices)
    await office.until(lambda: office.front.replies)
    ((_, text),) = office.front.replies
    assert text.startswith("I stopped: nothing was accepted on 3 cards in a row. None of those calls was run.")
    assert await office.state(turn) is TurnState.STOPPED
    assert len(office.runner.advanced) == len(choices), "the model was not asked again"


@pytest.mark.parametrize("choices", [(NO, NO), (NO, NO, YES), (NO, NO, YES, NO, NO)])
async def test_an_accept_in_between_starts_the_count_again(office: Office, choices: tuple[Choice, ...]) -> None:
    turn = in_thread(1)
    await decide(office, turn, *choices)
    await office.until(lambda: office.front.replies)
    assert office.front.replies == [(turn.id, "the answer")]
    assert await office.state(turn) is TurnState.DONE


async def test_calls_that_a_mode_rejects_do_not_count(store: Store, clock: HandClock) -> None:
    office = Office(store, clock, modes=Modes("auto_deny"))
    turn = in_thread(1)
    office.runner.script(turn, *(Waiting(batch_of(turn)) for _ in range(5)))
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    assert await office.state(turn) is TurnState.DONE
    assert len(office.runner.advanced) == 6
    await office.driver.stop(0)


async def test_the_next_process_ends_a_turn_that_was_rejected_before_a_kill(office: Office) -> None:
    turn = in_thread(1)
    office.driver.limits = type(office.limits)(rejected_cards=9)
    await decide(office, turn, NO, NO)
    batch = batch_of(turn)
    office.runner.script(turn, Waiting(batch))
    await has_card(office, batch)
    await office.driver.stop(0)
    await office.desk.decide(Click(batch.id, NO, ADA, turn.place.channel))
    successor = office.successor()
    await successor.driver.recover()
    await successor.until(lambda: successor.front.replies)
    assert "on 3 cards in a row" in successor.front.replies[0][1]
    assert successor.runner.advanced == []
    await successor.driver.stop(0)

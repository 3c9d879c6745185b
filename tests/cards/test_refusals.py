"""The wording for people whose choice did not count: the same in every front end."""

from __future__ import annotations

import pytest

from signoff.approvals.errors import (
    AlreadySettled,
    AlreadyVoted,
    DeskError,
    NotAllowed,
    Outdated,
    Refused,
    UnknownRequest,
)
from signoff.approvals.model import Vote
from signoff.bot import quoting
from signoff.bot import responses as answers
from signoff.bot.responses import REFUSED_SPACE, Slow, Visit
from signoff.cards import wording
from signoff.cards.model import Line, Moment, Person
from signoff.cards.wording import explain_refusal
from signoff.errors import StoreError
from signoff.terminal import card_session
from tests.rigs.cards import ADMIN, NOW, make_batch, make_request, settle

BATCH = make_batch()
VOTED = make_batch(make_request(quorum=2, votes=(Vote(ADMIN, NOW),)))
VISIT = Visit(ADMIN, "10", "1")

SAID: dict[DeskError, Line] = {
    AlreadySettled(settle(BATCH)): ("Already decided: ", "APPROVED by ", Person("200", "grace"), " ", Moment(NOW + 5)),
    AlreadyVoted(VOTED): ("Your accept is counted: 1 of 2.",),
    Outdated(BATCH): ("The call was edited after you opened this: look again. Nothing was decided.",),
    NotAllowed(BATCH): ("You may not decide this. These may: ", "members with Manage Server"),
    NotAllowed(BATCH, "you asked"): ("You may not decide this: you asked.",),
    Refused("Not changed: the tool says no."): ("Not changed: the tool says no.",),
    UnknownRequest(): ("Unknown request: it belongs to another place or no longer exists. Nothing was decided.",),
}


@pytest.mark.parametrize("error", SAID, ids=lambda error: type(error).__name__)
def test_every_front_end_says_the_same(error: DeskError) -> None:
    assert explain_refusal(error, BATCH.id) == SAID[error]
    assert answers.refusal(error, VISIT, BATCH.id) == SAID[error]
    assert card_session.refusal(error, BATCH.id) == SAID[error]


def test_no_error_of_the_desk_is_taken_for_a_failing_store() -> None:
    assert set(DeskError.__subclasses__()) == {type(error) for error in SAID}
    assert not any(kind.__subclasses__() for kind in DeskError.__subclasses__())


def test_what_is_not_the_desks_is_logged_and_said_to_be_undecided(caplog: pytest.LogCaptureFixture) -> None:
    for error in (StoreError("disk full"), RuntimeError("a bug")):
        assert explain_refusal(error, BATCH.id) is None
        assert answers.refusal(error, VISIT, BATCH.id) == wording.NOT_SAVED
        assert card_session.refusal(error, BATCH.id) == wording.NOT_SAVED
    assert [record.exc_info is not None for record in caplog.records] == [True] * 4
    assert answers.refusal(Slow(), VISIT, BATCH.id) == wording.SLOW


def test_a_refusal_that_quotes_hides_nothing_and_fits_into_a_message() -> None:
    error = Refused("The tool does not take this: \u202e" + "\u200b" * 5000)
    (said,) = answers.refusal(error, VISIT, BATCH.id)
    assert isinstance(said, str)
    assert said.startswith(r"The tool does not take this: \u{202E}\u{200B}")
    assert len(said) == REFUSED_SPACE
    assert len(quoting.line((said,))) <= 2000
    assert "\u202e" not in str(card_session.refusal(error, BATCH.id))

"""The private responses: who was first, who may decide, and a person's decision as distinct from a timeout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import ApprovalRequest, Batch, Choice, Remember, RequestState
from signoff.cards.actions import Offers
from signoff.cards.approver_names import may_decide_line, name_approvers
from signoff.cards.model import Moment, Person, RoleRef
from signoff.cards.wording import UNKNOWN_REQUEST, already_settled, not_allowed, remember_lines
from tests.rigs.cards import NOW, as_text, make_batch, make_request, may_have_run, settle


def batch_for(*approvers: str) -> Batch:
    return make_batch(make_request(approvers=approvers))


def test_a_late_click_is_told_who_decided_and_when() -> None:
    line = already_settled(settle(make_batch()))
    assert line == ("Already decided: ", "APPROVED by ", Person("200", "grace"), " ", Moment(1_700_000_005.0))


def test_a_timeout_is_told_apart_from_a_person() -> None:
    assert as_text(already_settled(settle(make_batch(), None, None))).startswith(
        "Too late, nobody decided in time: TIMEOUT - Request expired"
    )
    cancelled = settle(make_batch(), None, None, "stopped", RequestState.CANCELLED)
    assert as_text(already_settled(cancelled)).startswith("No longer open: CANCELLED - stopped")
    automatic = settle(make_batch(), Choice.REJECT, None, "mode auto_deny")
    assert as_text(already_settled(automatic)).startswith("Already decided: REJECTED automatically: mode auto_deny")


def test_what_comes_after_the_deadline_and_before_the_sweeper_is_told_that_nobody_decided() -> None:
    other = settle(make_batch(make_request(2))).requests
    said = ("Too late, nobody decided in time: the deadline passed ", Moment(NOW + 290))
    assert already_settled(make_batch(make_request()), "01" * 8) == said
    assert already_settled(make_batch(make_request(), *other), "01" * 8) == said


def test_a_click_on_one_call_is_told_about_that_call() -> None:
    ran = settle(make_batch(may_have_run(1)), Choice.RAN).requests
    skipped = settle(make_batch(may_have_run(2)), Choice.SKIP).requests
    batch = make_batch(*ran, *skipped)
    assert as_text(already_settled(batch)) == "Already decided, call by call: see the card."
    assert "SKIPPED by <Person 200>" in as_text(already_settled(batch, "02" * 8))


@pytest.mark.parametrize(
    ("approvers", "words"),
    [
        (("manage_server",), "members with Manage Server"),
        (("asker",), "<Person 100>"),
        (("role:7", "user:8"), "<RoleRef 7> or <Person 8>"),
        (("manage_server", "role:7", "asker"), "members with Manage Server, <RoleRef 7> or <Person 100>"),
        (("user:1", "user:2", "user:3", "user:4", "user:5", "user:6"), None),
        (("role:", "nonsense", "role:@everyone", "role:7>`"), "nobody"),
        ((), "nobody"),
    ],
)
def test_who_may_decide_in_words(approvers: tuple[str, ...], words: str | None) -> None:
    expected = words or "<Person 1>, <Person 2>, <Person 3>, <Person 4> or 2 more"
    assert as_text(name_approvers(approvers, make_batch())) == expected


def test_the_wrong_person_is_told_who_may_decide() -> None:
    assert not_allowed(batch_for("role:7")) == ("You may not decide this. These may: ", RoleRef("7"))
    assert not_allowed(batch_for()) == ("Nobody may decide this: it will expire.",)
    differing = make_batch(make_request(1, approvers=("asker",)), make_request(2, approvers=("role:7",)))
    assert as_text(not_allowed(differing)).startswith("You may not decide this. Who may differs by call")
    assert as_text(not_allowed(differing, "02" * 8)).endswith("These may: <RoleRef 7>")


def test_the_card_says_who_may_decide() -> None:
    assert may_decide_line(batch_for()) == (" · nobody may decide this: it will expire",)
    assert may_decide_line(settle(batch_for(), Choice.REJECT, by=None)) == (" · nobody may decide this",)
    assert may_decide_line(batch_for("asker")) == (" · may decide: ", Person("100", "ada"))
    differing = make_batch(make_request(1), make_request(2, approvers=()))
    assert may_decide_line(settle(batch_for("asker"), Choice.REJECT)) == (), "it was decided"
    assert may_decide_line(differing) == (" · who may decide differs by call",)


def test_unknown_requests_get_words() -> None:
    assert as_text(UNKNOWN_REQUEST).startswith("Unknown request: ")


def covered(batch: Batch) -> str:
    return as_text(remember_lines(batch, batch.requests[0], GrantTerms(Remember.SESSION), 0.0)[0])


def test_what_would_be_remembered_is_said_to_the_letter() -> None:
    alone = "This remembers exactly this tool with exactly these arguments"
    assert covered(make_batch(make_request())) == alone
    assert covered(make_batch(make_request(preview="- a"))) == f"{alone} and with what the tool says about them"
    for request in (make_request(four_eyes=True), make_request(approvers=("asker",))):
        assert covered(make_batch(request)) == f"{alone}, if <Person 100> asks"


def test_nothing_is_remembered_that_the_panel_could_not_quote() -> None:
    offers = Offers(grants=GrantTerms(Remember.SESSION))
    shown = make_request(preview="would delete 3 rows", metadata={"summary": "few"})
    assert offers.quoted(shown).endswith("Tool's words: few\nTool's preview: would delete 3 rows")
    assert offers.may_remember(shown)
    assert not offers.may_remember(make_request(preview="would delete a row\n" * 300))


REMEMBERS = GrantTerms(Remember.SESSION)
ON_A_TABLE = replace(make_request(), call=replace(make_request().call, operands={"table users": "digest"}))


@pytest.mark.parametrize(
    ("offers", "request_", "said"),
    [
        (Offers(edit=True, grants=REMEMBERS), make_request(), []),
        (Offers(edit=True), make_request(), ["A decision can't be remembered: the operator does not permit it."]),
        (
            Offers(edit=True, grants=REMEMBERS),
            ON_A_TABLE,
            ["A decision can't be remembered: the call depends on something that may change, such as a file."],
        ),
        (
            Offers(edit=True, grants=REMEMBERS),
            make_request(preview="row\n" * 900),
            ["A decision can't be remembered: the call is too long to be shown with what would be remembered."],
        ),
        (
            Offers(edit=True),
            make_request(args={"text": "x" * 5000}),
            ["This call can't be edited: the arguments are longer than the 4,000 characters that one field takes."],
        ),
        (
            Offers(edit=True, grants=REMEMBERS),
            may_have_run(),
            ["This call can't be edited, and a decision can't be remembered: the call may have run already."],
        ),
    ],
)
def test_a_panel_gives_one_reason_for_what_is_not_possible(
    offers: Offers, request_: ApprovalRequest, said: list[str]
) -> None:
    assert offers.obstacles(request_) == said

"""A card's wording about decisions: quorum and votes, four eyes, missing approvers, edits, reasons, and the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    CallRun,
    Choice,
    Edit,
    GrantNote,
    Remember,
    RequestState,
    RunState,
    Settlement,
    Vote,
)
from signoff.approvals.tool_description import ToolDescription
from signoff.bot.card_view import render
from signoff.cards.actions import Offers, further_actions
from signoff.cards.approver_names import name_approvers
from signoff.cards.build import fit_card
from signoff.cards.wording import already_voted, not_allowed, outcome
from tests.rigs.cards import ADMIN, ASKER, NOW, as_text, card_of, make_batch, make_request, measure, settle

MAX = Actor("300", "max", "1")


def facts(request: ApprovalRequest) -> list[str]:
    return [as_text(fact) for fact in card_of(make_batch(request)).calls[0].facts]


def test_votes_and_quorum_are_on_the_card() -> None:
    request = make_request(quorum=2, votes=(Vote(ADMIN, NOW),), four_eyes=True)
    assert facts(request) == ["Accepted by 1 of 2: <Person 200>"]
    (line,) = card_of(make_batch(request)).about
    assert " · may decide: Manage Server, not by the asker; 2 people have to accept · " in as_text(line)


def test_a_vote_that_no_longer_counts_is_on_the_card() -> None:
    request = make_request(quorum=3, votes=(Vote(ADMIN, NOW),), void=(Vote(MAX, NOW),))
    said = "The vote of <Person 300> no longer counts: they may no longer decide this"
    assert facts(request) == ["Accepted by 1 of 3: <Person 200>", said]
    two = replace(request, votes=(), void=(Vote(MAX, NOW), Vote(ASKER, NOW)))
    assert facts(two)[1] == (
        "The votes of <Person 300> and <Person 100> no longer count: they may no longer decide this"
    )
    assert said in facts(settle(make_batch(request), Choice.REJECT).requests[0])
    assert facts(settle(make_batch(request)).requests[0]) == [], "the outcome names those who counted"


def test_many_voters_are_counted_and_some_named() -> None:
    votes = tuple(Vote(Actor(str(n), "x" * 90, "1"), NOW) for n in range(7))
    assert facts(make_request(quorum=9, votes=votes)) == [
        "Accepted by 7 of 9: <Person 0>, <Person 1>, <Person 2>, <Person 3> and 3 more"
    ]


def test_the_rules_words_are_trusted_and_on_one_line() -> None:
    assert facts(make_request(message="Ask ops first\n\u202e**now**")) == [
        "Note: Ask ops first\\u{000A}\\u{202E}**now**"
    ]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (("role:7",), "The approver role no longer exists: 7"),
        (("user:8",), "The approver is no longer in this server: 8"),
        (("role:7", "role:9"), "Approver roles no longer exist: 7, 9"),
        (("role:7", "user:8"), "Approvers no longer exist: 7, 8"),
    ],
)
def test_who_is_gone_is_said(missing: tuple[str, ...], said: str) -> None:
    """Attack 20."""
    joined = "&".join(("role:5", missing[0]))
    request = make_request(approvers=(*missing, joined, "manage_server"), missing=missing)
    assert facts(request) == [said], "the role that it is joined with is still there"
    assert " · may decide: Manage Server · " in as_text(card_of(make_batch(request)).about[-1])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("role:7&manage_server", "people with <RoleRef 7> and Manage Server"),
        ("role:7&role:8&manage_server", "people with <RoleRef 7>, <RoleRef 8> and Manage Server"),
        ("asker&manage_server", "<Person 100> with Manage Server"),
        ("user:8&role:7", "<Person 8> with <RoleRef 7>"),
        ("asker&user:100", "<Person 100>"),
        ("user:8&user:9", "nobody"),
        ("role:7&nonsense", "nobody"),
        ("&".join(f"role:{n}" for n in range(6)), "people with <RoleRef 0>, <RoleRef 1>, <RoleRef 2> and 3 more"),
    ],
)
def test_joined_specifications_in_words(spec: str, words: str) -> None:
    assert as_text(name_approvers((spec,), make_batch())) == words


def test_terms_that_differ_are_told_call_by_call() -> None:
    card = card_of(make_batch(make_request(1), make_request(2, quorum=2)))
    assert " · who may decide differs by call · " in as_text(card.about[-1])
    assert as_text(card.calls[1].why).endswith("may decide: Manage Server; 2 people have to accept")


def test_an_edit_shows_both_and_what_is_the_same_once() -> None:
    original = {"path": "a.txt", "mode": 5, "gone": "x"}
    edit = Edit(original, "00" * 32, ADMIN, NOW, (MAX,))
    request = make_request(args={"path": "b.txt", "mode": 5, "new": "y"}, edit=edit)
    card = card_of(make_batch(request))
    assert [(q.label, q.text) for q in card.calls[0].quotes] == [
        ("gone (original, removed)", "x"),
        ("mode", "5"),
        ("new (added)", "y"),
        ("path (original, does not run)", "a.txt"),
        ("path (edited)", "b.txt"),
    ]
    assert facts(request) == ["Edited by <Person 200> <Moment >", "Votes that this edit made void: <Person 300>"]


def test_five_and_the_text_five_are_not_the_same() -> None:
    edit = Edit({"n": "1", "b": 1}, "00" * 32, ADMIN, NOW)
    labels = [q.label for q in card_of(make_batch(make_request(args={"n": 1, "b": True}, edit=edit))).calls[0].quotes]
    assert labels == [f"{name}{ending}" for name in "bn" for ending in (" (original, does not run)", " (edited)")]


def test_no_argument_can_pass_for_the_edited_one() -> None:
    card = card_of(make_batch(make_request(args={"path (edited)": "x"})))
    assert card.calls[0].quotes[0].label == '"path (edited)"'


def test_the_file_of_an_edited_call_holds_both_and_the_preview() -> None:
    edit = Edit({"path": "a.txt"}, "00" * 32, ADMIN, NOW)
    request = make_request(args={"path": "b.txt"}, edit=edit, preview="-a\n+b\u202e")
    (file,) = card_of(make_batch(request), 0).files
    text = file.data.decode()
    assert 'arguments before the edit, which do not run: {"path": "a.txt"}' in text
    assert "     2 | +b\\u{202E}" in text
    assert text.endswith('{\n  "path": "b.txt"\n}\n')


def test_a_long_preview_is_attached_and_its_end_is_shown() -> None:
    preview = "@@ -1 +1 @@\n" + "\n".join(f"+line {n}" for n in range(500)) + "\n+the tail"
    card = card_of(make_batch(make_request(preview=preview)))
    assert card.calls[0].quotes[-1].text.endswith("the tail")
    assert card.files


@pytest.mark.parametrize(
    ("settlement", "votes", "words"),
    [
        (
            Settlement(Choice.ACCEPT, MAX, NOW),
            (Vote(ADMIN, NOW), Vote(MAX, NOW)),
            "APPROVED by <Person 200> and <Person 300>",
        ),
        (Settlement(Choice.ACCEPT, None, NOW, "mode auto_approve"), (), "APPROVED automatically: mode auto_approve"),
        (
            Settlement(Choice.ACCEPT, None, NOW, "remembered: grant 1a2b of grace`"),
            (),
            "APPROVED automatically: remembered: grant 1a2b of grace\\u{0060}",
        ),
        (
            Settlement(Choice.ACCEPT, ADMIN, NOW, remember=Remember.SESSION),
            (),
            "APPROVED by <Person 200>, remembered in this conversation",
        ),
        (
            Settlement(Choice.REJECT, ADMIN, NOW, remember=Remember.ALWAYS),
            (Vote(MAX, NOW), Vote(ASKER, NOW)),
            "REJECTED by <Person 200>, remembered in this server",
        ),
    ],
)
def test_how_it_ended(settlement: Settlement, votes: tuple[Vote, ...], words: str) -> None:
    assert settlement.choice is not None
    request = make_request(settlement=settlement, state=settlement.choice.state, votes=votes)
    assert as_text(outcome(request)) == words
    assert card_of(make_batch(request)).calls[0].quotes == (), "what nobody said is not quoted as a reason"


def test_private_answers_about_votes_and_four_eyes() -> None:
    batch = make_batch(make_request(1, quorum=3, votes=(Vote(ADMIN, NOW),)), make_request(2))
    assert as_text(already_voted(batch, "01" * 8)) == "Your accept is counted: 1 of 3."
    assert as_text(already_voted(batch)) == "Your accept is counted: 1 of 3."
    assert as_text(not_allowed(batch, None, "four eyes")) == "You may not decide this: four eyes."


def test_remember_is_offered_only_where_it_can_be_carried_out() -> None:
    offers = Offers(grants=GrantTerms(Remember.SESSION))
    request = make_request(args={"path": "a"})
    touching = replace(request, call=replace(request.call, operands={"a": "b"}))
    for found, offered in ((request, True), (touching, False)):
        card = fit_card(make_batch(found), now=NOW, limit=4000, size=measure, offers=offers)
        assert [a.label for a in card.buttons] == ["Accept", "Reject", "More…"]
        further = further_actions(make_batch(found), found, offers, 0)
        assert ("Remember…" in [a.label for a in further]) == offered
    hidden = fit_card(
        make_batch(make_request(args={"x": "y\n" * 9000})),
        now=NOW,
        limit=4000,
        size=measure,
        can_attach=False,
        offers=offers,
    )
    assert [a.label for a in hidden.buttons] == ["Reject", "More…"]


def test_calls_that_are_settled_have_their_outcome_and_no_buttons() -> None:
    done = settle(make_batch(make_request(1))).requests
    card = card_of(make_batch(*done, make_request(2), make_request(3)))
    assert as_text(card.calls[0].outcome) == "APPROVED by <Person 200>"
    assert card.calls[0].actions == ()
    assert [a.label for a in card.calls[1].actions] == ["Accept", "Reject"]
    assert [a.label for a in card.actions] == ["Accept all", "Reject all", "More…"]
    assert make_request().state is RequestState.PENDING


def remembered(number: int, choice: Choice = Choice.REJECT, **changes: Any) -> ApprovalRequest:
    """A call whose decision is remembered if one of its three arguments is the same."""
    request = make_request(number, {"mode": "b", "path": "a", "zeta": 1}, **changes)
    note = GrantNote("deadbeef", ADMIN, NOW + 1e6, here=False, named=("path",))
    end = Settlement(choice, ADMIN, NOW + 5, "no " * 100, Remember.ALWAYS, grant=note)
    return replace(request, state=choice.state, settlement=end)


async def test_four_remembered_decisions_fit_on_a_card_with_many_words() -> None:
    people = [Actor(f"{10**17 + n}", "N" * 60, "1") for n in range(4)]
    votes = tuple(Vote(one, NOW) for one in people[:3])
    edit = Edit({"path": "b"}, "00" * 32, ADMIN, NOW, (people[3],))
    run = CallRun(RunState.DONE, NOW, NOW + 50, "r" * 200)
    many = {"why": "w" * 500, "message": "m" * 400, "quorum": 3, "votes": votes, "void": votes[:1], "edit": edit}
    batch = make_batch(*(remembered(number, **many, run=run) for number in range(1, 5)))
    lines = [as_text(fact) for call in render(batch, NOW + 10).card.calls for fact in call.facts]
    assert lines.count("Remembered, until <Moment > · grant deadbeef") == 4


def test_a_remembered_decision_names_arguments_in_the_tools_own_order() -> None:
    order = ToolDescription(order=("path", "zeta", "mode"))
    (call,) = card_of(make_batch(remembered(1, Choice.ACCEPT, description=order))).calls
    covered = "if they have the same path; all other arguments (zeta, mode) are free"
    said = f"Remembered by <Person 200>: later calls are accepted {covered}, in this server, until "
    assert any(as_text(fact).startswith(said) for fact in call.facts)

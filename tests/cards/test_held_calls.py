"""Held calls on a card: one line for all of them, no block, no buttons of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from signoff.approvals.automatic import settled_with_questions
from signoff.approvals.model import ApprovalRequest, Batch, Choice, RequestState, Settlement
from signoff.bot.card_view import render
from signoff.cards.actions import Offers, further_actions, optional_calls
from signoff.cards.build import build_held_call
from signoff.cards.model import Card, Verb
from signoff.cards.wording import already_settled, not_allowed, reminder
from signoff.text.secrets.masker import Masker
from tests.rigs.cards import ADMIN, ASKER, NOW, as_text, card_of, make_batch, make_request, settle, trusted_strings


def held(number: int, tool: str = "roll_dice", **changes: Any) -> ApprovalRequest:
    return make_request(number, {"sides": "six"}, tool=tool, held=True, **changes)


def lead(card: Card) -> list[str]:
    return [as_text(line) for line in card.about]


def ended(question: Batch, *others: ApprovalRequest) -> Batch:
    """Return the settled question with its held calls, as the desk settles them."""
    batch = replace(question, requests=(*question.requests, *others))
    settled = {r.id: r for r in settled_with_questions(batch, NOW + 5)}
    return replace(batch, requests=tuple(settled.get(r.id, r) for r in batch.requests))


def test_held_calls_are_one_line_and_one_button() -> None:
    card = card_of(make_batch(held(1), make_request(2, {"path": "a"}), held(3, "current_time")))
    assert [call.request for call in card.calls] == ["02" * 8]
    assert "With these, needing no approval: roll_dice, current_time" in lead(card)
    assert [(a.label, a.verb, a.target) for a in card.buttons] == [
        ("Accept", Verb.ACCEPT, "b0" * 8),
        ("Reject", Verb.REJECT, "b0" * 8),
        ("More…", Verb.MORE, "b0" * 8),
    ]
    assert "sides" not in str(card.calls)
    assert "six" not in str(card)


def test_pages_and_accept_all_count_questions_only() -> None:
    questions = [make_request(n, {"n": n}) for n in range(1, 5)]
    card = card_of(make_batch(*(held(n) for n in range(10, 14)), *questions))
    assert (card.pages, len(card.calls)) == (1, 4)
    assert [a.label for a in card.actions] == ["Accept all", "Reject all", "More…"]
    several = card_of(make_batch(make_request(1), held(2), held(3)))
    assert "Accept all" not in [a.label for a in several.buttons], "there is one question"


def test_approvers_deadline_words_and_reminders_come_from_the_questions() -> None:
    asking = make_request(1, approvers=("role:7",))
    batch = make_batch(asking, held(2, approvers=("manage_server",), quorum=3, four_eyes=True))
    card = card_of(batch)
    assert " · may decide: <RoleRef 7> · " in lead(card)[-1]
    assert as_text(reminder(batch)).startswith("Still open: write_file, until")
    assert as_text(not_allowed(batch, "02" * 8)) == "You may not decide this. These may: <RoleRef 7>"
    assert as_text(not_allowed(batch)) == "You may not decide this. These may: <RoleRef 7>"


def test_the_end_of_the_card_is_the_end_of_its_questions() -> None:
    accepted = ended(settle(make_batch(make_request(1))), held(2))
    assert accepted.requests[1].state is RequestState.APPROVED
    card = card_of(accepted)
    assert as_text(card.status) == "APPROVED by <Person 200>"
    assert "With these, needing no approval: roll_dice" in lead(card)
    assert card.buttons == ()
    rejected = card_of(ended(settle(make_batch(make_request(1)), Choice.REJECT), held(2)))
    assert as_text(rejected.status) == "REJECTED by <Person 200>"
    assert "Not run, because nothing was approved: roll_dice" in lead(rejected)
    assert as_text(already_settled(accepted)).startswith("Already decided: APPROVED by <Person 200>")


def test_a_rejected_held_call_is_named_with_who_rejected_it() -> None:
    no = Settlement(Choice.REJECT, ADMIN, NOW)
    batch = make_batch(make_request(1), held(2, state=RequestState.REJECTED, settlement=no), held(3, "current_time"))
    card = card_of(batch)
    assert "Rejected by <Person 200>, needing no approval: roll_dice" in lead(card)
    assert "With these, needing no approval: current_time" in lead(card)
    assert "More…" in [a.label for a in card.buttons]
    rejected = make_batch(*batch.requests[:2])
    assert optional_calls(rejected, 0, Offers()) == [rejected.requests[0]], "no held call is open any more"


def test_names_of_held_tools_cannot_forge_a_line() -> None:
    card = card_of(make_batch(make_request(1), *(held(n, f"`x`\n# APPROVED {n}") for n in range(2, 40))))
    assert not any("\n" in text or "`" in text for text in trusted_strings(card))
    assert any("and 30 more" in line for line in lead(card))


def test_what_a_held_call_says_costs_the_card_nothing() -> None:
    long = make_request(2, {"text": "x" * 600_000}, held=True, preview="y" * 9000, metadata={"summary": "z" * 9000})
    masker = Masker(key=b"k" * 32)
    plain = make_batch(make_request(1, {"path": "a"}))
    with_held = replace(plain, requests=(*plain.requests, long))
    for offers in (Offers(), Offers(masker=masker)):
        one, other = render(plain, NOW, offers=offers).card, render(with_held, NOW, offers=offers).card
        assert other.calls == one.calls
        assert other.files == one.files


def test_a_full_page_with_held_calls_fits_into_a_message() -> None:
    """The largest page: four long calls with files, model text, both page buttons, and held calls."""
    questions = [make_request(n, {"text": "line\n" * 2000}) for n in range(1, 11)]
    batch = make_batch(*questions, *(held(n) for n in range(20, 25)), model_text="w" * 3000)
    rendered = render(batch, NOW, page=1)
    assert len(rendered.card.files) == 4
    assert [a.label for a in rendered.card.actions] == ["Accept these 4", "Reject all", "More…", "◀", "▶"]


def test_one_held_call_can_be_looked_at_and_rejected_but_nothing_else() -> None:
    request = held(2)
    batch = make_batch(make_request(1), request)
    card = build_held_call(batch, request, now=NOW, page=2, offers=Offers(edit=True))
    assert [quote.text for quote in card.calls[0].quotes] == ["six"]
    assert [(a.verb, a.target, a.page) for a in card.buttons] == [(Verb.REJECT, request.id, 2)]
    assert [a.verb for a in further_actions(batch, request, Offers(edit=True), 0)] == [Verb.REJECT]
    assert Offers(edit=True).why_no_edit(request) == "the call needs no approval"
    assert ASKER.name not in str(card.about)

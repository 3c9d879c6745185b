"""Inquiries on a card: the question, its fields, the buttons, and the answer. Everything in them is untrusted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.answer_forms import inquire
from signoff.approvals.automatic import settled_with_questions
from signoff.approvals.grants import GrantTerms
from signoff.approvals.inquiries import AnswerField, FieldKind, Inquiry, Option
from signoff.approvals.model import (
    ApprovalRequest,
    Batch,
    CallRun,
    Choice,
    JsonObject,
    Remember,
    RequestKind,
    RequestState,
    RunState,
)
from signoff.bot.card_view import render
from signoff.cards import notices
from signoff.cards.actions import Offers, further_actions
from signoff.cards.build import build_card
from signoff.cards.inquiry_contents import describe
from signoff.cards.model import Card, Quote, Shape, Style, Tone, Verb
from signoff.cards.wording import already_settled, not_allowed
from signoff.text.secrets.masker import Masker
from tests.rigs.cards import (
    ADMIN,
    FORGERY,
    NOW,
    as_text,
    card_of,
    make_batch,
    make_request,
    may_have_run,
    settle,
    trusted_strings,
)
from tests.rigs.drawn_cards import texts, within_limits

COLOUR = AnswerField(
    "colour", FieldKind.CHOICE, "Colour", options=(Option(1, "red"), Option(2, "blue", "like the sky")), required=True
)
MASKER = Masker(b"k" * 32)


def asking(words: str = "Which colour?", *fields: AnswerField, number: int = 1, **changes: Any) -> ApprovalRequest:
    inquiry = Inquiry(words, fields or (COLOUR,), **{name: changes.pop(name) for name in _OWN if name in changes})
    changes = {"tool": "ask_colour", "why": "the tool needs an answer from a person", **changes}
    return make_request(number, kind=RequestKind.ANSWER, inquiry=inquiry, **changes)


_OWN = ("server", "only", "tells_all")


def answered(batch: Batch, answer: JsonObject, choice: Choice = Choice.ANSWER) -> Batch:
    batch = settle(batch, choice)
    ends = [replace(r, settlement=replace(r.settlement, answer=answer)) for r in batch.requests if r.settlement]
    return replace(batch, requests=tuple(ends))


def quotes_of(card: Card) -> list[tuple[str, str, str]]:
    return [(quote.label, quote.text, quote.note) for quote in card.calls[0].quotes]


# -- open --------------------------------------------------------------------------------------------------------------


def test_a_question_leads_to_a_form_or_is_declined() -> None:
    card = card_of(make_batch(asking()))
    assert (card.title, card.headline) == ("Answer Needed", False)
    assert [(a.verb, a.target, a.label, a.style) for a in card.actions] == [
        (Verb.FILL, "01" * 8, "Answer…", Style.GOOD),
        (Verb.DECLINE, "01" * 8, "Decline", Style.BAD),
        (Verb.MORE, "b0" * 8, "More…", Style.PLAIN),
    ]
    assert quotes_of(card) == [
        ("Question", "Which colour?", ""),
        ("Colour", "red · blue (like the sky)", "choose one of 2"),
    ]
    assert "may answer: Manage Server · expires " in as_text(card.about[-1])


def test_a_question_without_fields_is_confirmed_with_one_press() -> None:
    request = replace(asking("Did you restart it?"), inquiry=Inquiry("Did you restart it?", ()))
    actions = card_of(make_batch(request)).actions
    assert [(a.verb, a.label) for a in actions][:2] == [(Verb.ANSWER, "Confirm"), (Verb.DECLINE, "Decline")]
    assert (actions[0].verb.choice, actions[1].verb.choice) == (Choice.ANSWER, Choice.DECLINE)


@pytest.mark.parametrize("verb", [Verb.FILL, Verb.SEND])
def test_opening_and_sending_a_form_are_no_choices_by_themselves(verb: Verb) -> None:
    assert verb.choice is None


def test_the_card_says_who_asks_and_who_gets_the_answer() -> None:
    (call,) = card_of(make_batch(asking())).calls
    assert ("The agent asks this and reads your answer",) in call.facts
    (call,) = card_of(make_batch(asking(server="shop"))).calls
    assert ("The MCP server **shop** asks this while its call runs. Your answer goes to that server",) in call.facts


def test_the_settled_card_still_names_the_server_that_asked() -> None:
    assert card_of(answered(make_batch(asking()), {"colour": 2})).calls[0].facts == ()
    (call,) = card_of(answered(make_batch(asking(server="shop")), {"colour": 2})).calls
    assert call.facts == (("The MCP server **shop** asked this",),)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (AnswerField("a"), "a text"),
        (AnswerField("a", required=False), "a text, optional"),
        (AnswerField("a", least=2, most=8), "a text, from 2 to 8 characters"),
        (AnswerField("a", shape="email"), "an email address"),
        (AnswerField("a", FieldKind.NUMBER, least=0.5), "a number, at least 0.5"),
        (AnswerField("a", FieldKind.INTEGER, most=9), "a whole number, at most 9"),
        (AnswerField("a", FieldKind.INTEGER, least=1_000_000.0), "a whole number, at least 1,000,000"),
        (AnswerField("a", FieldKind.NUMBER, most=float("inf")), "a number, at most inf"),
        (AnswerField("a", FieldKind.YES_NO), "yes or no"),
        (AnswerField("a", FieldKind.JSON), "JSON"),
        (AnswerField("a", FieldKind.CHOICES, options=COLOUR.options, most=1.0), "choose any of 2, at most 1"),
        (AnswerField("a", FieldKind.CHOICE, options=COLOUR.options, most=1.0, listed=True), "choose one of 2"),
    ],
)
def test_each_kind_of_field_is_named_in_words(field: AnswerField, words: str) -> None:
    assert describe(field) == words


def test_a_hint_is_shown_before_the_options() -> None:
    hinted = replace(COLOUR, hint="For the hall.")
    assert quotes_of(card_of(make_batch(asking("", hinted)))) == [
        ("Colour", "For the hall.", "choose one of 2"),
        ("Options", "red · blue (like the sky)", ""),
    ]


def test_arguments_are_shown_unless_the_question_tells_everything() -> None:
    request = replace(asking(), call=make_request(args={"room": "hall"}).call)
    assert ("room", "hall", "") in quotes_of(card_of(make_batch(request)))
    told = replace(asking(tells_all=True), call=request.call)
    assert [quote[0] for quote in quotes_of(card_of(make_batch(told)))] == ["Question", "Colour"]


def test_a_card_with_a_call_and_a_question_has_both_kinds_of_buttons() -> None:
    card = card_of(make_batch(make_request(1, {"path": "a"}), asking(number=2), make_request(3, {"path": "b"})))
    assert card.title == "Approval and Answer Needed"
    own = [[action.verb for action in call.actions] for call in card.calls]
    assert own[0] == own[2] == [Verb.ACCEPT, Verb.REJECT]
    assert own[1] == [Verb.FILL, Verb.DECLINE]
    assert [a.label for a in card.actions] == ["Accept all", "Reject all", "More…"]
    assert " · rejected or declined " in as_text(card.about[-1])


def test_if_it_differs_by_call_a_question_says_who_may_answer_until_it_is_settled() -> None:
    batch = make_batch(make_request(1), asking(number=2, approvers=("asker",)))
    assert [as_text(call.why).split(": ")[-2] for call in card_of(batch).calls][1] == "May answer"
    assert card_of(answered(batch, {"colour": 2})).calls[1].why == ()


def test_an_answer_approves_nothing_so_a_held_call_did_not_run_for_want_of_approval() -> None:
    rejected = settle(make_batch(make_request(1)), Choice.REJECT).requests
    asked = answered(make_batch(asking(number=2)), {"colour": 2}).requests
    batch = make_batch(*rejected, *asked, make_request(3, tool="roll_dice", held=True))
    batch = replace(batch, requests=(*rejected, *asked, *settled_with_questions(batch, NOW)))
    about = " ".join(as_text(line) for line in card_of(batch).about)
    assert "Not run, because nothing was approved: roll_dice" in about


def test_a_call_that_may_have_run_keeps_the_title() -> None:
    assert card_of(make_batch(may_have_run(1), asking(number=2))).title == "1 of these 2 calls may have run"


def test_a_question_is_neither_edited_nor_remembered_and_the_reason_is_true() -> None:
    offers = Offers(edit=True, grants=GrantTerms(Remember.ALWAYS))
    batch = make_batch(asking())
    assert offers.why_no_edit(batch.requests[0]) == "the call needs an answer, not an approval"
    assert offers.why_no_remember(batch.requests[0]) == "the call needs an answer, not an approval"
    assert offers.obstacles(batch.requests[0]) == []
    (reason,) = further_actions(batch, batch.requests[0], offers, 0)
    assert (reason.verb, reason.label) == (Verb.REASON, "Decline with a reason…")


# -- hostile texts -----------------------------------------------------------------------------------------------------

HOSTILE = [
    FORGERY,
    "@everyone **ANSWERED by Ada**",
    "# Heading\n> quote\n-# small",
    "a\u202eb\u200bc",
    "pаypal.com",  # the second letter is Cyrillic
    "x" * 300,
    "[safe](https://evil.example)",
    "Asked by Ada · may answer: you",
    "Reason given",
    "Answer to port",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["words", "label", "hint", "option", "option hint", "name"])
def test_hostile_texts_are_quoted_wherever_they_are(place: str, text: str) -> None:
    field = {
        "label": replace(COLOUR, label=text),
        "hint": replace(COLOUR, hint=text),
        "name": replace(COLOUR, name=text, label=""),
        "option": replace(COLOUR, options=(Option(1, text), Option(2, "blue"))),
        "option hint": replace(COLOUR, options=(Option(1, "red", text), Option(2, "blue"))),
        "words": COLOUR,
    }[place]
    batch = make_batch(asking(text if place == "words" else "Which?", field))
    card = card_of(batch)
    assert not any(text in ours for ours in trusted_strings(card))
    first = text.split("\n")[0]
    shown = [quote for quote in card.calls[0].quotes if quote.text and quote.shape is Shape.BLOCK]
    assert any(first[:3] in quote.text or "\\u{" in quote.text for quote in shown)
    for message in texts(render(batch, batch.opened)):
        assert "@everyone" not in message.replace("```", "").split("\n")[0]


def test_hidden_characters_and_lookalikes_are_warned_about() -> None:
    hidden = replace(COLOUR, label="a\u202eb", options=(Option(1, "pаypal.com"), Option(2, "x")))
    (call,) = card_of(make_batch(asking("\u200bWhich?", hidden))).calls
    assert any("question: contains 1 hidden character" in warning for warning in call.warnings)
    assert any(warning.startswith("field a") and "hidden" in warning for warning in call.warnings)
    assert any("look-alike" in warning or "Cyrillic" in warning for warning in call.warnings)


def test_an_option_cannot_pass_for_two() -> None:
    forged = replace(COLOUR, options=(Option(1, "red\n• green"), Option(2, "blue", "hint\n• black")))
    (quote,) = [q for q in card_of(make_batch(asking("?", forged))).calls[0].quotes if "options" in q.label]
    assert [line for line in quote.text.split("\n") if line.startswith("• ")] == ["• red", "• blue"]


def test_options_that_are_typed_have_the_numbers_by_which_they_are_typed() -> None:
    many = replace(COLOUR, options=tuple(Option(n, f"colour {n}") for n in range(26)))
    (quote, *_) = [q for q in card_of(make_batch(asking("?", many))).calls[0].quotes if "options" in q.label]
    assert quote.text.startswith("#0 colour 0\n#1 colour 1")
    (file,) = card_of(make_batch(asking("?", many))).files
    assert 'field 1, option #25: "colour 25"' in file.data.decode()
    assert many.read(["#1"]) == many.read(["colour 1"]) == 1


def test_a_long_form_is_attached_whole_and_not_answered_without_it() -> None:
    fields = [replace(COLOUR, name=f"f{n}", label=f"Field\n{n}", hint="h\n" * 30 + str(n)) for n in range(12)]
    batch = make_batch(asking("long\n" * 50, *fields))
    card = card_of(batch)
    (file,) = card.files
    assert all('"hint": "h\\nh' in line for line in file.data.decode().split("\n") if line.startswith("field "))
    assert file.data.decode().count("\nfield ") == 12
    assert Verb.FILL in [a.verb for a in card.actions]
    bare = card_of(batch, can_attach=False)
    assert [a.verb for a in bare.actions] == [Verb.DECLINE, Verb.MORE]
    assert any("Answer is not offered" in as_text(line) for line in bare.about)


@pytest.mark.parametrize("count", [1, 5, 25])
def test_the_largest_forms_fit_into_a_message_open_and_answered(count: int) -> None:
    options = tuple(Option(f"v{n}", "*" * 40, "`" * 40) for n in range(3))
    fields = [AnswerField(f"n{n}", FieldKind.CHOICES, "L" * 60, "_" * 90, options=options) for n in range(count)]
    texts_ = [AnswerField(f"t{n}", label="`" * 60) for n in range(count)]
    for own in (fields, texts_):
        batch = make_batch(*(asking("`" * 2000, *own, number=n) for n in range(1, 5)))
        answer: JsonObject = {f.name: ["v0", "v1"] if f.options else "`*_" * 1300 for f in own}
        for state in (batch, answered(batch, answer), settle(batch, Choice.DECLINE, note="`" * 900)):
            within_limits(render(state, state.opened))


# -- secrets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("What is the password of the server?", AnswerField("value", label="Answer")),
        ("?", AnswerField("api_key")),
        ("?", AnswerField("value", label="Your API key")),
        ("?", AnswerField("value", hint="the access token")),
        ("?", AnswerField("value", shape="password")),
    ],
)
def test_people_are_warned_not_to_enter_a_secret(words: str, field: AnswerField) -> None:
    (call,) = card_of(make_batch(asking(words, field))).calls
    assert "don't enter a password or key: the answer is stored, and the model reads it" in call.warnings
    (call,) = card_of(make_batch(asking(words, field, server="shop"))).calls
    assert "don't enter a password or key: the answer is stored, and the server gets it" in call.warnings


@pytest.mark.parametrize("words", ["Which colour?", "How long may the password policy be?", "Which session suits you?"])
def test_other_questions_bring_no_such_warning(words: str) -> None:
    assert not card_of(make_batch(asking(words))).calls[0].warnings


def masked_text(batch: Batch) -> str:
    card = build_card(batch, now=batch.opened, offers=Offers(masker=MASKER))
    quotes: list[Quote] = [quote for call in card.calls for quote in call.quotes]
    return "\n".join([*(q.label + q.text for q in quotes), *(file.data.decode() for file in card.files)])


SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (AnswerField("db_password", label="Database"), "hunter2-hunter2"),
        (AnswerField("value", label="Password"), "hunter2-hunter2"),
        (AnswerField("value", label="Anything"), SECRET),
        (AnswerField("pin", FieldKind.INTEGER), 493_827),
    ],
)
def test_a_secret_in_an_answer_is_masked_on_the_card(field: AnswerField, value: Any) -> None:
    text = masked_text(answered(make_batch(asking("?", field)), {field.name: value}))
    assert str(value) not in text
    assert "masked" in text


def test_secrets_in_the_question_and_its_options_are_masked() -> None:
    leaking = replace(COLOUR, options=(Option(SECRET, f"use {SECRET}"), Option("b", "other")), hint=SECRET)
    batch = make_batch(asking(f"Use {SECRET}?", leaking))
    for state in (batch, answered(batch, {"colour": SECRET})):
        text = masked_text(state)
        assert SECRET not in text
    assert "use ‹masked" in text


def test_the_label_of_a_chosen_option_is_shown_if_its_field_has_a_secret_name() -> None:
    token = AnswerField("token", FieldKind.CHOICE, options=(Option("first-token", "the old one"), Option("b", "new")))
    assert "the old one" in masked_text(answered(make_batch(asking("?", token)), {"token": "first-token"}))


# -- settled -----------------------------------------------------------------------------------------------------------


def test_the_answered_card_says_who_answered_what() -> None:
    size = AnswerField("size", FieldKind.INTEGER, "How large?")
    card = card_of(answered(make_batch(asking("Which?", COLOUR, size)), {"colour": 2, "size": 7}))
    assert (card.tone, as_text(card.status)) == (Tone.APPROVED, "ANSWERED by <Person 200>")
    assert quotes_of(card)[-2:] == [("Answer to Colour", "blue", ""), ('Answer to "How large?"', "7", "")]
    assert not card.actions


def test_a_forged_answer_is_quoted_in_a_block() -> None:
    card = card_of(answered(make_batch(asking("?", AnswerField("value"))), {"value": FORGERY}))
    answer = card.calls[0].quotes[-1]
    assert (answer.label, answer.shape) == ("The answer", Shape.BLOCK)


@pytest.mark.parametrize("name", ["Answer", "Question", "Options", "Field", "The answer", "The question"])
def test_an_argument_cannot_pass_for_the_question_or_the_answer(name: str) -> None:
    request = replace(asking("Line\nbreak?", AnswerField("value")), call=make_request(args={name: "yes\nreally"}).call)
    quotes = card_of(answered(make_batch(request), {"value": "no\nway"})).calls[0].quotes
    ours = [quote.label for quote in quotes if quote.text != "yes\nreally"]
    assert ours == ["The question", "value", "The answer"]
    assert not any(quote.label in ours for quote in quotes if quote.text == "yes\nreally")


def test_a_long_answer_is_cut_with_its_length() -> None:
    fields = [AnswerField(name) for name in "abc"]
    batch = answered(make_batch(asking("?", *fields)), {"a": "word " * 700, "b": "w" * 999, "c": "x"})
    notes = [note for _, _, note in quotes_of(card_of(batch))[-3:]]
    assert notes == ["3500 characters in all", "999 characters in all", "1 more in the record"]


def test_an_empty_answer_is_said_to_be_empty() -> None:
    optional = replace(COLOUR, required=False)
    quotes = quotes_of(card_of(answered(make_batch(asking("?", optional)), {})))
    assert quotes[-1] == ("The answer", "", "everything was left empty")


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (settle(make_batch(asking()), Choice.DECLINE, note="no time"), "DECLINED by <Person 200>"),
        (settle(make_batch(asking()), Choice.DECLINE, None, "nobody may answer"), "DECLINED automatically: nobody may"),
        (settle(make_batch(asking()), None, None), "TIMEOUT - Request expired"),
        (settle(make_batch(asking()), None, None, "stopped", RequestState.CANCELLED), "CANCELLED - stopped"),
    ],
)
def test_the_outcome_of_a_question_is_named(batch: Batch, words: str) -> None:
    assert as_text(card_of(batch).status).startswith(words)
    assert card_of(batch).title == "Answer Needed"


def test_answers_and_approvals_are_counted_apart() -> None:
    call, question = make_request(1, {"path": "a"}), asking(number=2)
    both = make_batch(*settle(make_batch(call)).requests, *answered(make_batch(question), {"colour": 1}).requests)
    card = card_of(both)
    assert as_text(card.status) == "DECIDED: 1 approved, 1 answered"
    assert [as_text(c.outcome) for c in card.calls] == ["APPROVED by <Person 200>", "ANSWERED by <Person 200>"]
    ran = CallRun(RunState.DONE, 1.0, 2.0, "result")
    done = replace(both, requests=tuple(replace(r, run=ran) for r in both.requests))
    assert as_text(card_of(done).status) == "DECIDED: 1 approved, 1 answered · done"
    assert not any(as_text(fact).startswith("Done") for fact in card_of(done).calls[1].facts)


def test_a_late_answer_and_the_wrong_person_are_told_so() -> None:
    batch = make_batch(asking())
    assert as_text(not_allowed(batch, "01" * 8)) == "You may not answer this. These may: members with Manage Server"
    assert as_text(already_settled(answered(batch, {"colour": 1}), "01" * 8)).startswith(
        "Already decided: ANSWERED by <Person 200>"
    )


def test_notices_say_that_an_answer_is_needed() -> None:
    assert as_text(notices.opened(make_batch(asking()))).startswith("Answer needed: ask_colour, asked by")
    both = make_batch(make_request(1), asking(number=2))
    assert as_text(notices.opened(both)).startswith("Approval and answer needed: 2 calls (")
    assert as_text(notices.opened(make_batch())).startswith("Approval needed: ")
    escalated = replace(asking(), escalate_to=("user:5",))
    assert "nobody has answered" in as_text(notices.escalated(make_batch(escalated)))
    assert "nobody has decided" in as_text(notices.escalated(make_batch(make_request(escalate_to=("user:5",)))))


def test_a_form_made_from_a_schema_is_shown() -> None:
    schema = {
        "properties": {"when": {"type": "string", "format": "date"}, "go": {"type": "boolean"}},
        "required": ["go"],
    }
    inquiry = inquire("When?", schema)
    quotes = quotes_of(card_of(make_batch(replace(asking(), inquiry=inquiry))))
    assert quotes[1:] == [("when", "", "a date, optional"), ("go", "", "yes or no")]
    assert ADMIN.id == "200"

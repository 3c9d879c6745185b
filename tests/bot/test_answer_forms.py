"""The form for an answer: its controls, its parts, and what happens to what people submit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from discord_sandbox import Person
from discord_sandbox.modals import inputs
from discord_sandbox.seen import Outcome, SeenMessage
from signoff.approvals.inquiries import AnswerField, FieldKind, Inquiry, Option
from signoff.approvals.model import ApprovalRequest, Batch, CardCopy, Choice, RequestKind, RequestState
from signoff.bot.answer_parts import answer_form, part_of
from signoff.bot.buttons import FormKind, FormLocator, Locator, parse, parse_form
from signoff.bot.notifier import DiscordNotifier
from signoff.cards.actions import Offers
from signoff.cards.model import Verb
from tests.rigs import discord_schema
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_answers import MASKER, drawn, further, private, states
from tests.rigs.bot_fakes import make_batch, make_request
from tests.rigs.cards import FORGERY

TEXT, SHORT, PARAGRAPH = 4, 1, 2
SELECT, RADIO, BOXES = 3, 21, 22
COLOURS = (Option("r", "red"), Option("b", "blue", "like the sky"))
COLOUR = AnswerField("colour", FieldKind.CHOICE, "Colour", options=COLOURS)


def asking(*fields: AnswerField, words: str = "Which colour?", **changes: Any) -> ApprovalRequest:
    inquiry = Inquiry(words, fields or (COLOUR,))
    return make_request(kind=RequestKind.ANSWER, inquiry=inquiry, tool="ask_colour", **changes)


async def ask(rig: Rig, *fields: AnswerField, **changes: Any) -> tuple[Batch, SeenMessage]:
    return await show(rig, make_batch(await rig.place(), await rig.asker(), asking(*fields, **changes)))


def many(count: int, **changes: Any) -> list[AnswerField]:
    return [AnswerField(f"f{n}", label=f"Field {n}", **changes) for n in range(count)]


def controls(opened: Outcome) -> dict[str, Any]:
    assert opened.modal is not None, opened.raw
    return inputs(opened.modal)


def labels(opened: Outcome) -> list[str]:
    assert opened.modal is not None, opened.raw
    return [part["label"] for part in opened.modal["components"]]


def answer_of(rig: Rig, batch: Batch, which: int = 0) -> Any:
    end = rig.desk.batches[batch.id].requests[which].settlement
    return end.answer if end else None


def draft_of(rig: Rig, batch: Batch, person: Person) -> Any:
    return rig.desk.batches[batch.id].requests[0].drafts.get(str(person.id))


# -- one part ----------------------------------------------------------------------------------------------------------


async def test_the_form_answers_the_question(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig)
    assert [button.label for button in card.buttons] == ["Answer…", "Decline", "More…"]
    assert "Answer Needed" in card.text
    opened = await ada.click(card, "Answer…")
    assert opened.modal is not None
    assert (opened.modal["title"], labels(opened)) == ("Answer ask_colour", ["Colour"])
    after = drawn(await ada.submit(opened, {"answer-0": "#1"}))
    assert f"ANSWERED by <@{ada.id}>" in after.text
    assert "> **Answer given**: blue" in after.text
    assert not after.buttons
    assert answer_of(rig, batch) == {"colour": "b"}
    assert states(rig, batch.id) == [RequestState.APPROVED]


async def test_decline_settles_the_question_without_an_answer(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig)
    after = drawn(await ada.click(card, "Decline"))
    assert f"DECLINED by <@{ada.id}>" in after.text
    assert states(rig, batch.id) == [RequestState.REJECTED]
    assert answer_of(rig, batch) is None


async def test_decline_with_a_reason_shows_the_reason(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig)
    opened = await further(ada, card, "Decline with a reason…")
    assert opened.modal is not None
    assert opened.modal["title"] == "Decline ask_colour"
    drawn(await ada.submit(opened, {"reason": "no idea"}))
    after = await ada.wait_for_change(card, lambda m: "DECLINED by" in m.text)
    assert "> **Reason given**: no idea" in after.text
    end = rig.desk.batches[batch.id].requests[0].settlement
    assert end
    assert end.choice is Choice.DECLINE


async def test_the_form_says_that_a_server_does_not_get_the_reason(rig: Rig, ada: Person) -> None:
    request = replace(asking(), inquiry=Inquiry("Which colour?", (COLOUR,), server="shop"))
    _, card = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    opened = await further(ada, card, "Decline with a reason…")
    assert opened.modal is not None
    assert opened.modal["components"][0]["description"] == "The card shows it, but the MCP server does not get it"


async def test_a_question_without_fields_is_confirmed(rig: Rig, ada: Person) -> None:
    request = replace(asking(), inquiry=Inquiry("Did you open the page?", ()))
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    after = drawn(await ada.click(card, "Confirm"))
    assert f"ANSWERED by <@{ada.id}>" in after.text
    assert answer_of(rig, batch) == {}


async def test_the_wrong_person_gets_no_form_and_cannot_submit_one(rig: Rig, ada: Person, max_: Person) -> None:
    """Attack 12."""
    batch, card = await ask(rig)
    assert "You may not answer this" in private(await max_.click(card, "Answer…"))
    assert "You may not answer this" in private(await max_.click(card, "Decline"))
    opened = await ada.click(card, "Answer…")
    rig.desk.batches[batch.id] = replace(
        rig.desk.batches[batch.id], requests=(replace(batch.requests[0], approvers=("user:1",)),)
    )
    assert "You may not answer this" in private(await ada.submit(opened, {"answer-0": "#0"}))
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_the_second_of_two_submissions_is_told_who_answered(rig: Rig, ada: Person) -> None:
    """Attack 11."""
    batch, card = await ask(rig)
    first, second = await ada.click(card, "Answer…"), await ada.click(card, "Answer…")
    drawn(await ada.submit(first, {"answer-0": "#0"}))
    assert f"Already decided: ANSWERED by <@{ada.id}>" in private(await ada.submit(second, {"answer-0": "#1"}))
    assert answer_of(rig, batch) == {"colour": "r"}


async def test_two_submissions_at_once_give_one_answer(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig)
    forms = [await ada.click(card, "Answer…") for _ in range(4)]
    rig.desk.delay = 0.05
    answers = await asyncio.gather(*(ada.submit(form, {"answer-0": f"#{n % 2}"}) for n, form in enumerate(forms)))
    assert sum(answer.updated is not None for answer in answers) == 1
    assert answer_of(rig, batch) in ({"colour": "r"}, {"colour": "b"})


async def test_an_answer_after_the_deadline_is_too_late_and_given_back(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig, AnswerField("value", label="Answer"))
    opened = await ada.click(card, "Answer…")
    rig.desk.batches[batch.id] = replace(rig.desk.batches[batch.id], deadline=time.time() - 1)
    said = private(await ada.submit(opened, {"answer-0": "forty-two"}))
    assert "Too late" in said
    assert "forty-two" in said
    assert answer_of(rig, batch) is None


@pytest.mark.parametrize("chosen", ["#99", "green", "#-1", "r\u0000"])
async def test_an_option_that_was_not_offered_is_refused(rig: Rig, ada: Person, chosen: str) -> None:
    """Attack 27."""
    batch, card = await ask(rig)
    opened = await ada.click(card, "Answer…")
    said = private(await ada.submit(opened, {"answer-0": chosen}, forged=True))
    assert "Colour: must be one of the options. Nothing was sent." in said
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_a_wrong_value_is_given_back_and_the_others_are_kept(rig: Rig, ada: Person) -> None:
    fields = (AnswerField("count", FieldKind.INTEGER, "Count"), COLOUR, AnswerField("why", label="Why"))
    batch, card = await ask(rig, *fields)
    opened = await ada.click(card, "Answer…")
    said = private(await ada.submit(opened, {"answer-0": "many", "answer-1": "#1", "answer-2": "it\nis"}))
    assert "Count: must be a whole number. Nothing was sent." in said
    assert "The other fields are kept" in said
    assert "many" in said
    assert "it\nis" in said
    assert states(rig, batch.id) == [RequestState.PENDING]
    assert draft_of(rig, batch, ada) == {"colour": "b", "why": "it\nis"}
    again = await ada.click(card, "Answer…")
    assert controls(again)["answer-2"]["value"] == "it\nis"
    assert [o.get("default") for o in controls(again)["answer-1"]["options"]] == [False, True]
    drawn(await ada.submit(again, {"answer-0": "7"}))
    assert answer_of(rig, batch) == {"count": 7, "colour": "b", "why": "it\nis"}


async def test_several_wrong_values_are_told_in_one_message(rig: Rig, ada: Person) -> None:
    _, card = await ask(rig, *(AnswerField(name, FieldKind.INTEGER) for name in ("rooms", "doors")))
    said = private(await ada.submit(await ada.click(card, "Answer…"), {"answer-0": "many", "answer-1": "few"}))
    assert "rooms: must be a whole number. doors: must be a whole number. Nothing was sent." in said
    assert "are kept" not in said


async def test_blanks_alone_do_not_fill_a_required_field(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig, AnswerField("value", label="Answer"))
    said = private(await ada.submit(await ada.click(card, "Answer…"), {"answer-0": "   "}))
    assert "Answer: must not be empty. Nothing was sent." in said
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_a_question_and_a_call_on_one_card_are_settled_apart(rig: Rig, ada: Person) -> None:
    requests = make_request({"path": "a"}), asking()
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    assert "Approval and Answer Needed" in card.text
    assert [b.label for b in card.buttons] == ["Accept", "Reject", "Answer…", "Decline", "More…"]
    after = drawn(await ada.submit(await ada.click(card, "Answer…"), {"answer-0": "#0"}))
    assert "ANSWERED by" in after.text
    assert [b.label for b in after.buttons] == ["Accept", "Reject", "More…"]
    done = drawn(await ada.click(after, "Accept"))
    assert "DECIDED: 1 approved, 1 answered · done" in done.text
    assert states(rig, batch.id) == [RequestState.APPROVED] * 2


async def test_a_question_is_answered_from_a_copy_in_another_channel(rig: Rig, ada: Person) -> None:
    posted, card = await ask(rig)
    ops = str((await rig.sandbox.channel("ops")).id)
    batch = replace(posted, notify=(f"channel:{ops}",))
    message = await DiscordNotifier(rig.client, rig.front_end).post_copy(batch, ops)
    rig.desk.open(replace(batch, copies=(CardCopy(ops, message),)))
    copy = await ada.wait_for_message(ops, lambda m: str(m.id) == message)
    assert [button.label for button in copy.buttons] == ["Answer…", "Decline", "More…"]
    after = drawn(await ada.submit(await ada.click(copy, "Answer…"), {"answer-0": "#0"}))
    assert "ANSWERED by" in after.text
    await ada.wait_for_change(card, lambda m: "ANSWERED by" in m.text)
    await until(lambda: rig.desk.final == [batch.id])


async def test_a_question_is_answered_from_the_inbox(rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, card = await ask(rig)

    async def inbox(interaction: Any, visit: Any, panel: Any) -> None:
        await rig.bot.clicks.inbox.show(interaction, visit.actor)

    with monkeypatch.context() as patched:  # the rig has no commands, so "More…" leads to the inbox
        patched.setattr(rig.bot.clicks.responses, "panel", inbox)
        opened = await ada.click(card, "More…")
    listed = opened.reply
    assert listed is not None
    assert "Answer Needed" in listed.text
    assert [b.label for b in listed.buttons] == ["Answer…", "Decline", "Open…", "Refresh"]
    after = drawn(await ada.submit(await ada.click(listed, "Answer…"), {"answer-0": "#0"}))
    assert f"Done: ANSWERED by <@{ada.id}>" in after.text
    assert "No open card waits" in after.text
    await ada.wait_for_change(card, lambda m: "ANSWERED by" in m.text)
    assert answer_of(rig, batch) == {"colour": "r"}


async def test_a_slow_store_brings_no_form_too_late(rig: Rig, ada: Person) -> None:
    """A form must be the first response, so a slow store is said."""
    _, card = await ask(rig)
    rig.bot.clicks.responses.patience = 0.0
    assert "I am slow right now" in private(await ada.click(card, "Answer…"))


# -- parts -------------------------------------------------------------------------------------------------------------


async def test_a_long_form_has_parts_that_survive_a_restart(idle: Rig) -> None:
    ada = await idle.sandbox.person("Ada")
    fields = [*many(7), AnswerField("last", FieldKind.INTEGER, "Last", required=True)]
    fields[0] = replace(fields[0], required=False)
    async with idle.running():
        batch, card = await ask(idle, *fields)
        opened = await ada.click(card, "Answer…")
        assert opened.modal is not None
        assert opened.modal["title"].startswith("Part 1 of 2: ")
        assert labels(opened) == ["Field 1", "Field 2", "Field 3", "Field 4", "Field 5"], "required fields come first"
        answer = await ada.submit(opened, {f"answer-{n}": f"v{n}" for n in range(1, 6)})
        said = private(answer)
        assert "Part 1 of 2 is kept. **Nothing was sent yet.**" in said
        assert "5 of 8 fields are filled in. 2 required fields are still empty." in said
        assert answer.reply is not None
        panel = answer.reply
        assert [b.label for b in panel.buttons] == ["Next part…", "Decline"]
        assert states(idle, batch.id) == [RequestState.PENDING]
        second = await ada.click(panel, "Next part…")
    async with idle.running():
        assert labels(second) == ["Field 6", "Last", "Field 0"]
        done = drawn(await ada.submit(second, {"answer-6": "v6", "answer-7": "3"}))
        assert "ANSWERED by" in done.text
    expected = {**{f"f{n}": f"v{n}" for n in range(1, 7)}, "last": 3}
    assert answer_of(idle, batch) == expected


async def test_the_panel_opened_before_a_restart_works_after_it(idle: Rig) -> None:
    ada = await idle.sandbox.person("Ada")
    optional = many(6, required=False)
    async with idle.running():
        batch, card = await ask(idle, *optional)
        answer = await ada.submit(await ada.click(card, "Answer…"), {"answer-0": "one"})
        assert answer.reply is not None
        assert [b.label for b in answer.reply.buttons] == ["Next part…", "Send", "Decline"]
    async with idle.running():
        done = drawn(await ada.click(answer.reply, "Send"))
        assert f"Done: ANSWERED by <@{ada.id}>" in done.text
        await ada.wait_for_change(card, lambda m: "ANSWERED by" in m.text)
    assert answer_of(idle, batch) == {"f0": "one"}


async def test_a_last_part_with_empty_required_fields_sends_nothing(rig: Rig, ada: Person) -> None:
    """Attack 27: a form's button can be forged, so parts may come in any order."""
    batch, card = await ask(rig, *many(7))
    request = batch.requests[0].id
    second = await ada.click(card, f"signoff:fill:{request}:0:0:1", forged=True)
    answer = await ada.submit(second, {"answer-5": "x", "answer-6": "y"})
    assert "5 required fields are still empty" in private(answer)
    assert answer.reply is not None
    assert [b.label for b in answer.reply.buttons] == ["First part…", "Decline"]
    sent = await ada.click(answer.reply, f"signoff:send:{request}:0:0", forged=True)
    assert "must not be empty" in private(sent)
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_each_person_has_their_own_draft(rig: Rig, ada: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    batch, card = await ask(rig, *many(6), approvers=("manage_server", f"user:{olga.id}"))
    await ada.submit(await ada.click(card, "Answer…"), {f"answer-{n}": "of Ada" for n in range(5)})
    opened = await olga.click(card, "Answer…")
    assert all(not part.get("value") for part in controls(opened).values())
    assert draft_of(rig, batch, olga) is None


async def test_a_part_of_a_settled_question_is_too_late(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig, *many(6, required=False))
    answer = await ada.submit(await ada.click(card, "Answer…"), {"answer-0": "one"})
    assert answer.reply is not None
    await ada.click(card, "Decline")
    assert "Already decided: DECLINED by" in private(await ada.click(answer.reply, "Send"))
    assert "Already decided" in private(await ada.click(answer.reply, "Next part…"))
    assert answer_of(rig, batch) is None


async def test_decline_in_the_panel_declines_the_question(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig, *many(6))
    answer = await ada.submit(await ada.click(card, "Answer…"), {f"answer-{n}": "x" for n in range(5)})
    assert answer.reply is not None
    assert "Done: DECLINED by" in drawn(await ada.click(answer.reply, "Decline")).text
    assert states(rig, batch.id) == [RequestState.REJECTED]


# -- ids ---------------------------------------------------------------------------------------------------------------

REQUEST = "01" * 8


def test_ids_of_forms_carry_their_part() -> None:
    locator = FormLocator(FormKind.ANSWER, REQUEST, 2, part=3)
    assert str(locator) == f"signoff-form:answer:{REQUEST}:2:3"
    assert parse_form(str(locator)) == locator
    assert parse(f"signoff:fill:{REQUEST}:0:1:2") == Locator(Verb.FILL, REQUEST, 0, 1, "2")
    assert Locator(Verb.FILL, REQUEST, 0, 1, "2").part == 2
    assert Locator(Verb.FILL, REQUEST, 0, 1).part == 0


@pytest.mark.parametrize(
    "forged",
    [
        f"signoff:accept:{REQUEST}:0:0:2",
        f"signoff:fill:{REQUEST}:0:0:0",
        f"signoff:fill:{REQUEST}:0:0:10",
        f"signoff:fill:{REQUEST}:0:0:accept.here.exact",
        f"signoff:save:{REQUEST}:0:0:2",
        f"signoff:send:{REQUEST}:0:0:1",
        f"signoff:answer:{REQUEST}:0:0:1",
    ],
)
def test_ids_with_a_part_where_none_belongs_are_not_ours(forged: str) -> None:
    assert parse(forged) is None


@pytest.mark.parametrize("rest", ["", "a", "12", "-1", "1:1", "d1d1"])
def test_a_form_without_a_proper_part_is_not_ours(rest: str) -> None:
    assert parse_form(f"signoff-form:answer:{REQUEST}:0:{rest}") is None


async def test_a_part_that_does_not_exist_is_refused(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig)
    said = await ada.click(card, f"signoff:fill:{batch.requests[0].id}:0:0:7", forged=True)
    assert "Unknown request" in private(said)


async def test_a_call_that_needs_approval_cannot_be_answered(rig: Rig, ada: Person) -> None:
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker()))
    request = batch.requests[0].id
    for verb in ("fill", "send"):
        said = private(await ada.click(card, f"signoff:{verb}:{request}:0:0", forged=True))
        assert "needs a decision, not an answer" in said
    assert "Unknown request" in private(await ada.click(card, f"signoff:decline:{request}:0:0", forged=True))
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_a_question_cannot_be_accepted_or_edited(full: Rig, ada: Person) -> None:
    batch, card = await ask(full)
    request = batch.requests[0].id
    for verb in ("accept", "rerun", "accept_always", "edit", "remember"):
        private(await ada.click(card, f"signoff:{verb}:{request}:0:0", forged=True))
    assert states(full, batch.id) == [RequestState.PENDING]


# -- controls ----------------------------------------------------------------------------------------------------------


def options(count: int) -> tuple[Option, ...]:
    return tuple(Option(n, f"option {n}") for n in range(count))


def form_for(*fields: AnswerField, draft: dict[str, Any] | None = None, number: int = 0) -> dict[str, Any]:
    request = asking(*fields)
    part = part_of(Inquiry("?", fields), number)
    assert part is not None
    return answer_form(request, part, draft or {}, Offers(masker=MASKER), 0).to_dict()


@pytest.mark.parametrize(
    ("kind", "count", "control"),
    [
        (FieldKind.CHOICE, 1, SELECT),
        (FieldKind.CHOICE, 2, RADIO),
        (FieldKind.CHOICE, 10, RADIO),
        (FieldKind.CHOICE, 11, SELECT),
        (FieldKind.CHOICE, 25, SELECT),
        (FieldKind.CHOICE, 26, TEXT),
        (FieldKind.CHOICES, 1, BOXES),
        (FieldKind.CHOICES, 10, BOXES),
        (FieldKind.CHOICES, 11, SELECT),
        (FieldKind.CHOICES, 25, SELECT),
        (FieldKind.CHOICES, 100, TEXT),
        (FieldKind.YES_NO, 0, RADIO),
        (FieldKind.TEXT, 0, TEXT),
        (FieldKind.INTEGER, 0, TEXT),
        (FieldKind.JSON, 0, TEXT),
    ],
)
@pytest.mark.parametrize("required", [True, False])
async def test_each_kind_of_field_has_its_control(
    rig: Rig, ada: Person, kind: FieldKind, count: int, control: int, required: bool
) -> None:
    field = AnswerField("value", kind, "Answer", options=options(count), required=required)
    _, card = await ask(rig, field)
    (part,) = controls(await ada.click(card, "Answer…")).values()
    assert part["type"] == control
    assert part["required"] is (required and kind is not FieldKind.CHOICES)


@pytest.mark.parametrize(
    ("field", "style"),
    [
        (AnswerField("a"), PARAGRAPH),
        (AnswerField("a", most=80), SHORT),
        (AnswerField("a", shape="email"), SHORT),
        (AnswerField("a", FieldKind.NUMBER), SHORT),
        (AnswerField("a", FieldKind.JSON), PARAGRAPH),
    ],
)
async def test_short_texts_are_typed_on_one_line(field: AnswerField, style: int) -> None:
    assert form_for(field)["components"][0]["component"]["style"] == style


@pytest.mark.parametrize(
    ("field", "values", "answer"),
    [
        (AnswerField("a", FieldKind.CHOICES, options=options(3)), ["#2", "#0"], [2, 0]),
        (AnswerField("a", FieldKind.CHOICES, options=options(3)), [], []),
        (AnswerField("a", FieldKind.CHOICES, options=options(20)), ["#19"], [19]),
        (AnswerField("a", FieldKind.CHOICES, options=options(30)), "#29\noption 3\n", [29, 3]),
        (AnswerField("a", FieldKind.CHOICE, options=options(30)), "#29", 29),
        (AnswerField("a", FieldKind.CHOICE, options=options(12)), ["#11"], 11),
        (AnswerField("a", FieldKind.CHOICE, options=options(3), listed=True), "#1", [1]),
        (AnswerField("a", FieldKind.CHOICE, options=options(1)), ["#0"], 0),
        (AnswerField("a", FieldKind.YES_NO), "no", False),
        (AnswerField("a", FieldKind.NUMBER), "1.5", 1.5),
        (AnswerField("a", FieldKind.JSON), '{"x": [1]}', {"x": [1]}),
        (AnswerField("a"), " two\nlines ", " two\nlines "),
    ],
)
async def test_each_control_gives_the_value_that_the_tool_wants(
    rig: Rig, ada: Person, field: AnswerField, values: Any, answer: Any
) -> None:
    batch, card = await ask(rig, field)
    after = drawn(await ada.submit(await ada.click(card, "Answer…"), {"answer-0": values}))
    assert "ANSWERED by" in after.text
    assert answer_of(rig, batch) == {"a": answer}


async def test_too_few_options_are_refused_by_the_form_and_by_the_desk(rig: Rig, ada: Person) -> None:
    batch, card = await ask(rig, AnswerField("a", FieldKind.CHOICES, "Pick", options=options(4), least=2, most=3))
    opened = await ada.click(card, "Answer…")
    (part,) = controls(opened).values()
    assert (part["min_values"], part["max_values"], part["required"]) == (2, 3, True)
    assert "Pick: choose at least 2" in private(await ada.submit(opened, {"answer-0": ["#0"]}, forged=True))
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_defaults_are_filled_in() -> None:
    fields = [
        AnswerField("a", default="word"),
        AnswerField("b", FieldKind.YES_NO, default=False),
        AnswerField("c", FieldKind.CHOICE, options=options(3), default=1),
        AnswerField("d", FieldKind.CHOICES, options=options(3), default=[0, 2]),
        AnswerField("e", FieldKind.INTEGER, default=5),
    ]
    parts = [part["component"] for part in form_for(*fields)["components"]]
    assert (parts[0]["value"], parts[4]["value"]) == ("word", "5")
    chosen = [[o["value"] for o in part["options"] if o.get("default")] for part in parts[1:4]]
    assert chosen == [["no"], ["#1"], ["#0", "#2"]]
    emptied = form_for(fields[0], draft={"a": None})["components"][0]["component"]
    assert not emptied.get("value"), "a field that the person emptied stays empty"


@pytest.mark.parametrize(
    "default", ["pay\u202eload", "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", 5, ["x"], "x" * 5000]
)
async def test_a_default_that_people_could_not_read_is_not_filled_in(default: Any) -> None:
    (part,) = form_for(AnswerField("a", default=default))["components"]
    assert not part["component"].get("value")


HOSTILE = [FORGERY, "@everyone", "a\u202eb\u200bc", "😀" * 200, "x" * 300, "", " ", "\n", "`" * 90, "\ud800"]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_texts_fit_into_the_form(rig: Rig, ada: Person, text: str) -> None:
    fields = [
        AnswerField(text or "n", label=text, hint=text),
        AnswerField("b", FieldKind.CHOICE, text, text, options=(Option(1, text, text), Option(2, text, text))),
        AnswerField("c", FieldKind.CHOICES, text, text, options=(Option(text, text, text),)),
        AnswerField("d", FieldKind.CHOICE, text, text, options=tuple(Option(n, text, text) for n in range(20))),
        AnswerField("e", FieldKind.JSON, text, text, default=text),
    ]
    _, card = await ask(rig, *fields, words=text)
    opened = await ada.click(card, "Answer…")
    assert opened.modal is not None, opened.raw
    assert "\u202e" not in str(opened.modal)
    done = drawn(
        await ada.submit(
            opened, {"answer-0": "x", "answer-1": "#0", "answer-2": ["#0"], "answer-3": ["#5"], "answer-4": "1"}
        )
    )
    assert "ANSWERED by" in done.text
    assert "\u202e" not in done.text


async def test_secrets_in_the_options_are_masked_in_the_form() -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    field = AnswerField(
        "a", FieldKind.CHOICE, f"Use {secret}", secret, options=(Option(secret, secret, secret), *options(2))
    )
    assert secret not in str(form_for(field))


@pytest.mark.skipif(discord_schema.document_path() is None, reason="Discord's schema is not at hand")
@pytest.mark.parametrize("required", [True, False])
async def test_the_form_matches_discords_own_schema(required: bool) -> None:
    chosen = (FieldKind.CHOICE, FieldKind.CHOICES)
    bounds: Sequence[tuple[float | None, float | None]] = [(None, None), (0, 0), (3, 2), (-5.5, 1e308), (99, 99)]
    for least, most in bounds:
        kinds = [(kind, count) for kind in chosen for count in (1, 2, 10, 11, 25, 26, 100)]
        kinds += [(kind, 0) for kind in FieldKind if kind not in chosen and least in (None, 3)]
        fields = [
            AnswerField("a" * 200, kind, "L" * 200, "H" * 200, required, options(count), None, least, most)
            for kind, count in kinds
        ]
        for number in range(-(-len(fields) // 5)):
            form = form_for(*fields, number=number)
            assert discord_schema.problems_of_modal(form) == []

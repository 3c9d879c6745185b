"""The form for an answer: its parts with Discord's controls, and what happens when a part is submitted.

A form of Discord has at most five fields, so a longer one has parts. Each submitted part is kept in the store for the
person who filled it in, and nothing is kept in memory. The last part sends the answer; the desk checks it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import discord
from discord import ui

from signoff.approvals.answering import Answering, inquiry_of
from signoff.approvals.inquiries import (
    LONGEST_TEXT,
    NO,
    NOT_SENT,
    YES,
    AnswerField,
    BadAnswer,
    FieldKind,
    Inquiry,
    Json,
    same_value,
)
from signoff.approvals.model import ApprovalRequest, Batch, JsonObject
from signoff.bot import panels, quoting
from signoff.bot.buttons import FormKind, FormLocator
from signoff.bot.form_values import chosen_in, form_about, given_back, typed_in
from signoff.bot.inbox import Inbox
from signoff.bot.responses import Responses, Visit, refusal, whisper
from signoff.bot.split import size
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.inquiry_contents import MOST_OFFERED, TEXT, describe, is_typed
from signoff.cards.masking import mask_inquiry
from signoff.cards.model import Line
from signoff.text.visible import clip, is_hidden, visible

FIELDS = 5
"""Most fields of one form."""
MOST_IN_GROUP = 10
"""Most options of a radio group or a checkbox group. More options make a list to choose from."""
LABEL, HINT, OPTION = 45, 100, 100
SHORT = 100
"""A text of at most this many characters is typed on one line."""
NO_NAME = "(no name)"
REST_KEPT: Line = (" The other fields are kept: open the form again to go on.",)


@dataclass(frozen=True, slots=True)
class Part:
    """One form of an inquiry: its fields with their positions in the inquiry."""

    number: int
    count: int
    fields: tuple[tuple[int, AnswerField], ...]

    @property
    def is_last(self) -> bool:
        return self.number == self.count - 1


def part_of(inquiry: Inquiry, number: int) -> Part | None:
    """Return a part of the form; None if there is no such part. Required fields are in the first parts."""
    ordered = sorted(enumerate(inquiry.fields), key=lambda numbered: not numbered[1].required)
    count = -(-len(ordered) // FIELDS)
    if not 0 <= number < count:
        return None
    return Part(number, count, tuple(ordered[number * FIELDS : (number + 1) * FIELDS]))


def key_of(index: int) -> str:
    return f"answer-{index}"


def answer_form(request: ApprovalRequest, part: Part, draft: JsonObject, offers: Offers, page: int) -> ui.Modal:
    """Build the form for one part. `draft`: what this person has filled in so far."""
    does = "Answer " if part.count == 1 else f"Part {part.number + 1} of {part.count}: "
    modal = form_about(does, request, FormLocator(FormKind.ANSWER, request.id, page, part=part.number))
    inquiry = inquiry_of(request)
    shown = mask_inquiry(inquiry, offers.masker) if offers.masker else inquiry
    for index, field in part.fields:
        as_shown = shown.fields[index]
        # A default that people cannot see as it is would be sent without anybody having read it.
        default = field.default if same_value(as_shown.default, field.default) and not _hides(field.default) else None
        value = draft.get(field.name, default)
        hint = as_shown.hint or _obvious(field)
        modal.add_item(
            ui.Label[Any](
                text=_cut(as_shown.shown, LABEL) or NO_NAME,
                description=_cut(hint, HINT) or None,
                component=_control(field, as_shown, key_of(index), value),
            )
        )
    return modal


def _control(field: AnswerField, shown: AnswerField, key: str, value: Json) -> ui.Item[Any]:
    match field.kind:
        case FieldKind.YES_NO:
            options = [
                discord.RadioGroupOption(label=label, value=word, default=value is yes)
                for label, word, yes in (("Yes", YES, True), ("No", NO, False))
            ]
            return ui.RadioGroup[Any](custom_id=key, required=field.required, options=options)
        case FieldKind.CHOICE | FieldKind.CHOICES if 0 < len(field.options) <= MOST_OFFERED:
            return _choice(field, shown, key, value)
        case _:
            return _text(field, key, value)


def _choice(field: AnswerField, shown: AnswerField, key: str, value: Json) -> ui.Item[Any]:
    """Return a control with the options. Their values are their numbers, since a value may be anything."""
    chosen = cast("list[Json]", value) if isinstance(value, list) else [value]
    if field.kind is FieldKind.CHOICE:
        chosen = chosen[:1]
    offered: list[dict[str, Any]] = [
        {
            "label": _cut(one.label, OPTION) or NO_NAME,
            "value": f"#{number}",
            "description": _cut(one.hint, HINT) or None,
            "default": any(same_value(field.options[number].value, each) for each in chosen),
        }
        for number, one in enumerate(shown.options)
    ]
    required, count = not may_be_empty(field), len(offered)
    if field.kind is FieldKind.CHOICE and 2 <= count <= MOST_IN_GROUP:
        radios = [discord.RadioGroupOption(**option) for option in offered]
        return ui.RadioGroup[Any](custom_id=key, required=required, options=radios)
    most = 1 if field.kind is FieldKind.CHOICE else _within(field.most, 1, count, count)
    least = _within(field.least, 1, most, 1) if required else 0
    if sum(option["default"] for option in offered) > most:
        offered = [{**option, "default": False} for option in offered]
    if field.kind is FieldKind.CHOICES and count <= MOST_IN_GROUP:
        boxes = [discord.CheckboxGroupOption(**option) for option in offered]
        return ui.CheckboxGroup[Any](custom_id=key, required=required, min_values=least, max_values=most, options=boxes)
    listed = [discord.SelectOption(**option) for option in offered]
    return ui.Select[Any](custom_id=key, required=required, min_values=least, max_values=most, options=listed)


def _text(field: AnswerField, key: str, value: Json) -> ui.TextInput[Any]:
    text = _written(field, value)
    most = LONGEST_TEXT
    if field.kind is FieldKind.TEXT:
        most = max(_within(field.most, 1, LONGEST_TEXT, LONGEST_TEXT), len(text))
    one_line = field.kind in (FieldKind.NUMBER, FieldKind.INTEGER, FieldKind.CHOICE) or bool(field.shape)
    words = _wanted(field)
    if is_typed(field):
        several = "Options by number or label, one per line" if field.kind is FieldKind.CHOICES else "Number or label"
        words = f"{several}, as on the card"
    return ui.TextInput[Any](
        custom_id=key,
        style=discord.TextStyle.short if one_line or most <= SHORT else discord.TextStyle.paragraph,
        default=text or None,
        placeholder=_cut(words, HINT) or None if field.hint or is_typed(field) else None,
        required=not may_be_empty(field),
        max_length=most,
    )


def _obvious(field: AnswerField) -> str:
    """Return what stands below the label of a field without a hint; empty if its control says it all."""
    return "" if field.kind in (FieldKind.YES_NO, FieldKind.CHOICE) and not is_typed(field) else _wanted(field)


def _wanted(field: AnswerField) -> str:
    """Say what goes into a field. A box for text says by itself that it takes a text."""
    words = describe(field)
    return "" if words == TEXT else words.removeprefix(f"{TEXT}, ")


def _written(field: AnswerField, value: Json) -> str:
    """Return a value as people would type it; empty if there is none or it is too long."""
    if value is None:
        return ""
    if field.options:
        values = cast("list[Json]", value) if isinstance(value, list) else [value]
        named = [n for each in values for n, one in enumerate(field.options) if same_value(one.value, each)]
        text = "\n".join(f"#{number}" for number in named)
    elif field.kind is FieldKind.TEXT:
        text = value if isinstance(value, str) else ""
    else:
        text = json.dumps(value)
    return text if size(text) <= LONGEST_TEXT else ""


def may_be_empty(field: AnswerField) -> bool:
    """Whether the field may be left empty. For a required list without a least number, nothing is an answer, too."""
    return not field.required or (field.kind is FieldKind.CHOICES and not field.least)


def _hides(value: Json) -> bool:
    return any(map(is_hidden, value)) if isinstance(value, str) else False


def _cut(text: str, budget: int) -> str:
    """Return one visible line that fits, however Discord counts. A cut is marked, and the card has the whole text."""
    short, _ = clip(text.strip(), budget)
    return short if size(short) <= budget else clip(text.strip(), budget // 2)[0]


def _within(bound: float | None, least: int, most: int, usual: int) -> int:
    if bound is None or not math.isfinite(bound):
        return usual
    return min(max(int(bound), least), most)


@dataclass(frozen=True, slots=True)
class Reading:
    """A submitted part: the values that fit, by name, and what is wrong with the others."""

    values: JsonObject
    problems: tuple[str, ...]


def read_part(part: Part, data: object) -> Reading | None:
    """Read a submitted part; None if it does not fit the form."""
    typed = {name: [text] for name, text in typed_in(data).items()}
    given: Mapping[str, Sequence[str]] = {**typed, **chosen_in(data)}
    if set(given) != {key_of(index) for index, _ in part.fields}:
        return None
    values: dict[str, Json] = {}
    problems: list[str] = []
    for index, field in part.fields:
        texts = given[key_of(index)]
        if field.kind is FieldKind.CHOICES and is_typed(field):
            texts = [line for text in texts for line in text.splitlines()]
        try:
            values[field.name] = _read(field, texts)
        except BadAnswer as error:
            problems.append(str(error))
    return Reading(values, tuple(problems))


def _read(field: AnswerField, texts: Sequence[str]) -> Json:
    value: Json = field.read(texts)
    if value is None and field.required and may_be_empty(field):
        return []
    if value is not None:
        field.check(value)
    return value


class AnswerForms:
    """Opens the parts of a form, and handles them when they are submitted."""

    def __init__(self, answering: Answering, offers: Offers, responses: Responses, inbox: Inbox) -> None:
        self._answering = answering
        self._offers = offers
        self._responses = responses
        self._inbox = inbox

    async def form(self, visit: Visit, target: str, page: int, number: int) -> ui.Modal | Line:
        """Return the form for a part of the answer, with what this person has filled in so far."""
        request = await self._answering.request(target, visit.actor, visit.channel, visit.card)
        part = part_of(inquiry_of(request), number)
        if part is None:
            return wording.UNKNOWN_REQUEST
        return answer_form(request, part, request.drafts.get(visit.actor.id, {}), self._offers, page)

    async def submit(self, interaction: discord.Interaction[Any], visit: Visit, form: FormLocator) -> None:
        components = (interaction.data or {}).get("components")
        try:
            result = await self._responses.in_time(interaction, self._take(visit, form, components))
        except Exception as error:
            result = refusal(error, visit, form.target)
        if isinstance(result, Batch):
            end = self._inbox.end(interaction, result)
            await self._responses.show(interaction, visit, result, form.target, form.page, end=end)
        elif isinstance(result, panels.Panel):
            await self._responses.panel(interaction, visit, result)
        else:
            typed = typed_in(components)
            texts = [typed[key] for key in sorted(typed, key=lambda key: (len(key), key)) if typed[key]]
            text, file = given_back(quoting.line(result), "\n\n".join(texts))
            await whisper(interaction, text, file)

    async def _take(self, visit: Visit, form: FormLocator, components: object) -> Batch | panels.Panel | Line:
        """Keep a submitted part or, if it is the last one and nothing is missing, send the answer."""
        who = visit.actor, visit.channel, visit.card
        request = await self._answering.request(form.target, *who)
        inquiry = inquiry_of(request)
        part = part_of(inquiry, form.part)
        reading = read_part(part, components) if part else None
        if part is None or reading is None:
            return wording.UNKNOWN_REQUEST
        if reading.problems:
            if reading.values:
                await self._answering.keep(form.target, reading.values, *who)
            kept = REST_KEPT if any(value is not None for value in reading.values.values()) else ()
            problems = [problem.removesuffix(NOT_SENT).strip() for problem in reading.problems]
            return (visible(" ".join([*problems, NOT_SENT])).text, *kept)
        answer = {**request.drafts.get(visit.actor.id, {}), **reading.values}
        if part.count == 1 or (part.is_last and not inquiry.missing(answer)):
            return (await self._answering.answer(form.target, answer, *who)).batch
        kept = await self._answering.keep(form.target, reading.values, *who)
        return panels.kept_part(kept, part.number, part.count, answer, form.page)

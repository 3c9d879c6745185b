"""The parts of the form for an answer: which fields each part has, with Discord's controls.

A form of Discord has at most five fields, so a longer one has parts. All texts of a field are untrusted. This module
only builds forms: `answer_forms` handles them.
"""

from __future__ import annotations

import json
import math
from typing import Any, cast

import discord
from discord import ui

from signoff.approvals.answering import inquiry_of
from signoff.approvals.inquiries import (
    LONGEST_TEXT,
    NO,
    YES,
    AnswerField,
    FieldKind,
    Inquiry,
    Json,
    same_value,
)
from signoff.approvals.model import ApprovalRequest, JsonObject
from signoff.bot.buttons import FormKind, FormLocator
from signoff.bot.form_values import form_about
from signoff.bot.split import size
from signoff.cards.actions import Offers
from signoff.cards.inquiry_contents import MOST_OFFERED, TEXT, describe, is_typed
from signoff.cards.masking import mask_inquiry
from signoff.dataclass import dataclass
from signoff.text.visible import clip, is_hidden

FIELDS = 5
"""Most fields of one form."""
MOST_IN_GROUP = 10
"""Most options of a radio group or a checkbox group. More options make a list to choose from."""
LABEL, HINT, OPTION = 45, 100, 100
SHORT = 100
"""A text of at most this many characters is typed on one line."""
NO_NAME = "(no name)"


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

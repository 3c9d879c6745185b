"""The form for an answer: opens its parts, and handles each part that is submitted.

Each submitted part is kept in the store for the person who filled it in, and nothing is kept in memory. The last part
sends the answer; the desk checks it. `answer_parts` builds the forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import discord
from discord import ui

from signoff.approvals.answering import Answering, inquiry_of
from signoff.approvals.inquiries import NOT_SENT, AnswerField, BadAnswer, FieldKind, Json
from signoff.approvals.model import Batch, JsonObject
from signoff.bot import panels, quoting
from signoff.bot.answer_parts import Part, answer_form, key_of, may_be_empty, part_of
from signoff.bot.buttons import FormLocator
from signoff.bot.form_values import chosen_in, given_back, typed_in
from signoff.bot.inbox import Inbox
from signoff.bot.responses import Responses, Visit, refusal, whisper
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.inquiry_contents import is_typed
from signoff.cards.model import Line
from signoff.dataclass import dataclass
from signoff.text.visible import visible

REST_KEPT: Line = (" The other fields are kept: open the form again to go on.",)


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

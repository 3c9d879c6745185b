"""Forms for new arguments, for a reason and for what to remember: build them, and handle all submitted forms.

A form that was opened before a restart must work after it, so everything needed is in its id, and nothing is kept in
memory. The desk or the editor decides. If a form is refused, the typed text is returned, so that nothing is lost.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import discord
from discord import ui

from signoff.approvals.answering import Answering
from signoff.approvals.approvers import objection
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.model import ApprovalRequest, Batch, Choice, Remember
from signoff.bot import panels, quoting
from signoff.bot.answer_forms import AnswerForms
from signoff.bot.buttons import DIGEST, EXACTLY, FormKind, FormLocator
from signoff.bot.form_values import chosen_in, form_about, given_back, typed_in
from signoff.bot.inbox import Inbox
from signoff.bot.responses import Responses, Visit, refusal, tell, visit, whisper
from signoff.bot.sending import Failure
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.coverage_wording import NAMES, Plan, Span, spans
from signoff.cards.forms import Form, NotReadable, form_of
from signoff.cards.masking import mask_request
from signoff.cards.model import Line
from signoff.text.visible import clip

log = logging.getLogger(__name__)

NOT_CHANGED = "Not changed: {why}"
REASON = "reason"
REASON_SPACE = 1000
NOT_FOR_SERVER = "The card shows it, but the MCP server does not get it"
MAX_OPTION = 100
NO_REMEMBER = "A decision about this call can't be remembered. Nothing was decided."
REMEMBER_INTRODUCTION = "Nothing is decided or saved yet: the next step shows what will be covered."
DECISION, WHAT, SAME, SPAN = "decision", "what", "same", "span"
SOME = "some"
SPANS = {Span.HERE: "This conversation", Span.HOUR: "An hour", Span.DAY: "A day", Span.ALWAYS: "Always"}
IN_SERVER = "All but the first hold in every conversation of this server"


def edit_form(request: ApprovalRequest, form: Form, page: int) -> ui.Modal:
    modal = form_about("Edit ", request, FormLocator(FormKind.EDIT, request.id, page, request.call.digest))
    for field in form.fields:
        typed = ui.TextInput[Any](
            custom_id=field.key,
            style=discord.TextStyle.paragraph if field.long else discord.TextStyle.short,
            default=field.text or None,
            required=False,
            max_length=4000,
        )
        modal.add_item(ui.Label[Any](text=field.label, description=field.hint or None, component=typed))
    return modal


def reason_form(request: ApprovalRequest, page: int) -> ui.Modal:
    does, kind = ("Decline ", FormKind.DECLINE) if request.inquiry else ("Reject ", FormKind.REASON)
    modal = form_about(does, request, FormLocator(kind, request.id, page))
    typed = ui.TextInput[Any](
        custom_id=REASON, style=discord.TextStyle.paragraph, max_length=REASON_SPACE, required=True
    )
    asked_by_server = request.inquiry is not None and bool(request.inquiry.server)
    read_by = NOT_FOR_SERVER if asked_by_server else "The model reads it, and the card shows it"
    modal.add_item(ui.Label[Any](text="Reason", description=read_by, component=typed))
    return modal


def remember_form(batch: Batch, request: ApprovalRequest, offers: Offers, page: int, *, may_widen: bool) -> ui.Modal:
    """Build the form for what is to be remembered. It offers only what this person and this call may have."""
    modal = form_about("Remember ", request, FormLocator(FormKind.REMEMBER, request.id, page, request.call.digest))
    modal.add_item(ui.TextDisplay[Any](REMEMBER_INTRODUCTION))
    _add_radio(modal, DECISION, "Decision", {Choice.ACCEPT: "Accept", Choice.REJECT: "Reject"})
    alone = request.quorum <= 1
    shown = mask_request(request, offers.masker) if offers.masker else request
    names = request.description.ordered(request.call.args)
    numbers = {name: str(number) for number, name in enumerate(sorted(names))}
    wide = may_widen and alone and offers.grants.widest is Remember.ALWAYS
    if wide and 0 < len(names) <= NAMES and set(names) == set(shown.call.args):
        _add_radio(modal, WHAT, "What is covered", {EXACTLY: "Exactly this call", SOME: "This tool, arguments free"})
        options = [
            discord.CheckboxGroupOption(
                label=clip(name, MAX_OPTION)[0] or "(no name)",
                value=numbers[name],
                description=clip(_one_line(shown.call.args[name]), MAX_OPTION)[0] or None,
                default=True,
            )
            for name in names
        ]
        boxes = ui.CheckboxGroup[Any](custom_id=SAME, required=False, min_values=0, options=options)
        label, hint = "Arguments that must be the same", 'For "arguments free": those without a tick are free'
        modal.add_item(ui.Label[Any](text=label, description=hint, component=boxes))
    offered = spans(offers.grants, may_widen=may_widen, alone=alone)
    if len(offered) > 1:
        hint = "" if batch.place.is_direct else IN_SERVER
        _add_radio(modal, SPAN, "How long", {span: SPANS[span] for span in offered}, hint)
    return modal


def _add_radio(modal: ui.Modal, name: str, text: str, options: Mapping[str, str], hint: str = "") -> None:
    """Add a choice of one. `options`: value -> label. The first one is chosen."""
    choices = [
        discord.RadioGroupOption(label=label, value=value, default=not number)
        for number, (value, label) in enumerate(options.items())
    ]
    group = ui.RadioGroup[Any](custom_id=name, options=choices)
    modal.add_item(ui.Label[Any](text=text, description=hint or None, component=group))


def _one_line(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def plan_in(data: object, args: Collection[str]) -> Plan | None:
    """Read a submitted form of `remember_form`; None if it does not fit the call. `args`: in the tool's own order."""
    chosen = chosen_in(data)
    one = {name: values[0] for name, values in chosen.items() if values}
    choice, span = one.get(DECISION, ""), one.get(SPAN, Span.HERE)
    if choice not in (Choice.ACCEPT, Choice.REJECT) or span not in set(Span):
        return None
    if one.get(WHAT, EXACTLY) == EXACTLY:
        return Plan(Choice(choice), Span(span))
    known = {str(number): name for number, name in enumerate(sorted(args))}
    ticked = chosen.get(SAME, [])
    if one[WHAT] != SOME or len(known) > NAMES or not set(ticked) <= set(known):
        return None
    named = tuple(name for name in args if name in {known[number] for number in ticked})
    return Plan.naming(Choice(choice), Span(span), named, args)


class Forms:
    """Handles submitted forms."""

    def __init__(
        self,
        desk: Desk,
        answering: Answering,
        editor: Editor | None,
        offers: Offers,
        responses: Responses,
        inbox: Inbox,
        now: Callable[[], float],
    ) -> None:
        self._now = now
        self._desk = desk
        self._editor = editor
        self._offers = offers
        self._responses = responses
        self._inbox = inbox
        self.answers = AnswerForms(answering, offers, responses, inbox)

    async def submit(self, interaction: discord.Interaction[Any], form: FormLocator) -> None:
        try:
            looking = self._inbox.at_home(visit(interaction), form.target)
            visitor = await self._responses.in_time(interaction, looking)
            if isinstance(visitor, Visit):
                await self._submit(interaction, visitor, form)
            else:
                await tell(interaction, visitor)
        except Failure as error:
            log.warning("a form by %s on %s got no answer: %s", interaction.user, form.target, error)
        except Exception:
            log.exception("a form on %s failed", form.target)

    async def _submit(self, interaction: discord.Interaction[Any], visit: Visit, form: FormLocator) -> None:
        if form.kind is FormKind.REMEMBER:
            await self._confirm(interaction, visit, form)
            return
        if form.kind is FormKind.ANSWER:
            await self.answers.submit(interaction, visit, form)
            return
        typed = typed_in((interaction.data or {}).get("components"))
        work = self._edit(visit, form, typed) if form.kind is FormKind.EDIT else self._reject(visit, form, typed)
        try:
            result = await self._responses.in_time(interaction, work)
        except Exception as error:
            result = refusal(error, visit, form.target)
        if isinstance(result, Batch):
            await self._responses.show(interaction, visit, result, form.target, form.page)
            return
        text, file = given_back(quoting.line(result), "\n\n".join(typed[key] for key in sorted(typed)))
        await whisper(interaction, text, file)

    async def _confirm(self, interaction: discord.Interaction[Any], visit: Visit, form: FormLocator) -> None:
        """Answer with a panel that says what would be remembered. The desk checks everything again at its button."""
        try:
            batch = await self._responses.in_time(
                interaction, self._desk.look(form.target, visit.actor, visit.channel, visit.card)
            )
        except Exception as error:
            await tell(interaction, refusal(error, visit, form.target))
            return
        request = next((r for r in batch.pending if r.id == form.target), None)
        if request is None:
            await tell(interaction, wording.already_settled(batch, form.target))
            return
        why = objection(visit.actor, request, batch)
        names = request.description.ordered(request.call.args)
        plan = plan_in((interaction.data or {}).get("components"), names)
        if why is not None:
            await tell(interaction, wording.not_allowed(batch, request.id, why))
        elif not form.digest or request.call.digest[:DIGEST] != form.digest or plan is None:
            await tell(interaction, wording.OUTDATED)
        elif not self._offers.may_remember(request):
            await tell(interaction, (NO_REMEMBER,))
        else:
            panel = panels.confirm(batch, request, plan, self._offers, form.page, self._now())
            await self._responses.panel(interaction, visit, panel)

    async def _reject(self, visit: Visit, form: FormLocator, typed: dict[str, str]) -> Batch | Line:
        note = typed.get(REASON, "").strip()[:REASON_SPACE]
        choice = Choice.DECLINE if form.kind is FormKind.DECLINE else Choice.REJECT
        click = Click(form.target, choice, visit.actor, visit.channel, visit.card, note=note)
        return (await self._desk.decide(click)).batch

    async def _edit(self, visit: Visit, form: FormLocator, typed: dict[str, str]) -> Batch | Line:
        if self._editor is None:
            return wording.UNKNOWN_REQUEST
        request = await self._editor.request(form.target, visit.actor, visit.channel, visit.card)
        digest = request.call.digest
        if not form.digest or digest[:DIGEST] != form.digest:
            return wording.OUTDATED
        if why := self._offers.why_no_edit(request):
            # A form can be forged, or older than the mask: nobody may edit arguments that the card hides.
            return (NOT_CHANGED.format(why=f"{why}."),)
        fields = form_of(request)
        if fields is None:
            return wording.OUTDATED
        try:
            args = fields.read(typed, request.call.args)
        except NotReadable as error:
            return (NOT_CHANGED.format(why=error),)
        edited = await self._editor.edit(form.target, args, digest, visit.actor, visit.channel, visit.card)
        return edited.batch

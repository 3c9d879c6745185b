"""Forms for new arguments of a call and for the reason of a rejection: build them, and handle them when submitted.

A form that was opened before a restart must work after it, so everything needed is in its id, and nothing is kept in
memory. The desk or the editor decides. If a form is refused, the typed text is returned, so that nothing is lost.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from typing import Any, cast

import discord
from discord import ui

from signoff.approvals.desk import Click, Desk
from signoff.approvals.edits import Editor
from signoff.approvals.model import ApprovalRequest, Batch, Choice
from signoff.bot import quoting
from signoff.bot.buttons import DIGEST, FormKind, FormLocator
from signoff.bot.inbox import Inbox
from signoff.bot.responses import Responses, Visit, refusal, tell, visit, whisper
from signoff.bot.sending import Failure
from signoff.bot.split import size
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.forms import Form, NotReadable, form_for
from signoff.cards.model import Line
from signoff.text.visible import clip

log = logging.getLogger(__name__)

NOT_CHANGED = "Not changed: {why}"
REASON = "reason"
REASON_SPACE = 1000
MAX_TITLE = 45
MAX_ANSWER = 1900
KEPT = "You typed:"
KEPT_FILE = "The text that you typed is attached."


def edit_form(request: ApprovalRequest, form: Form, page: int) -> ui.Modal:
    modal = _modal("Edit ", request, FormLocator(FormKind.EDIT, request.id, page, request.call.digest))
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
    modal = _modal("Reject ", request, FormLocator(FormKind.REASON, request.id, page))
    typed = ui.TextInput[Any](
        custom_id=REASON, style=discord.TextStyle.paragraph, max_length=REASON_SPACE, required=True
    )
    modal.add_item(
        ui.Label[Any](text="Reason", description="The model reads it, and the card shows it", component=typed)
    )
    return modal


def _modal(does: str, request: ApprovalRequest, locator: FormLocator) -> ui.Modal:
    title = does + clip(request.call.tool, (MAX_TITLE - len(does)) // 2)[0]
    modal = ui.Modal(title=title, custom_id=str(locator))
    # discord.py forgets a stopped form, so every submission takes the same path, before and after a restart.
    modal.stop()
    return modal


def typed_in(data: object) -> dict[str, str]:
    """Field id -> text, for the text fields of a submitted form."""
    typed: dict[str, str] = {}
    waiting: list[object] = [data]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += cast("list[object]", part)
        elif isinstance(part, Mapping):
            fields = cast("Mapping[str, object]", part)
            name, value = fields.get("custom_id"), fields.get("value")
            if fields.get("type") == 4 and isinstance(name, str) and isinstance(value, str):
                typed[name] = value
            waiting += [fields.get("components"), fields.get("component")]
    return typed


def given_back(text: str, typed: str) -> tuple[str, discord.File | None]:
    """Return a response with the text that the person typed, unchanged: in the message, or as a file."""
    if not typed:
        return text, None
    block, changed = quoting.block(typed)
    whole = f"{text}\n{KEPT}\n{block}"
    if not changed and size(whole) <= MAX_ANSWER:
        return whole, None
    file = discord.File(io.BytesIO(typed.encode("utf-8", "replace")), filename="what-you-typed.txt")
    return f"{text}\n{KEPT_FILE}", file


class Forms:
    """Handles submitted forms."""

    def __init__(self, desk: Desk, editor: Editor | None, offers: Offers, responses: Responses, inbox: Inbox) -> None:
        self._desk = desk
        self._editor = editor
        self._offers = offers
        self._responses = responses
        self._inbox = inbox

    async def submit(self, interaction: discord.Interaction[Any], form: FormLocator) -> None:
        try:
            visitor = await self._inbox.at_home(visit(interaction), form.target)
            if isinstance(visitor, Visit):
                await self._submit(interaction, visitor, form)
            else:
                await tell(interaction, visitor)
        except Failure as error:
            log.warning("a form by %s on %s got no answer: %s", interaction.user, form.target, error)
        except Exception:
            log.exception("a form on %s failed", form.target)

    async def _submit(self, interaction: discord.Interaction[Any], visit: Visit, form: FormLocator) -> None:
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

    async def _reject(self, visit: Visit, form: FormLocator, typed: dict[str, str]) -> Batch | Line:
        note = typed.get(REASON, "").strip()[:REASON_SPACE]
        click = Click(form.target, Choice.REJECT, visit.actor, visit.channel, visit.card, note=note)
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
        fields = form_for(request.call.args)
        if fields is None:
            return wording.OUTDATED
        try:
            args = fields.read(typed, request.call.args)
        except NotReadable as error:
            return (NOT_CHANGED.format(why=error),)
        edited = await self._editor.edit(form.target, args, digest, visit.actor, visit.channel, visit.card)
        return edited.batch

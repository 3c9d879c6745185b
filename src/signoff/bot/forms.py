"""Submitted forms: an edit or a reason, put to the desk; what is refused is given back, so that nothing typed is lost.

It does not matter which process opened the form: its id says what it is about, and everything is looked at anew.
"""

from __future__ import annotations

import logging
from typing import Any

import discord

from signoff.approvals.desk import Click
from signoff.approvals.model import Batch, Choice
from signoff.bot import modals, quoting
from signoff.bot.interactions import whisper
from signoff.bot.locators import DIGEST, FormKind, FormLocator
from signoff.bot.ports import Desk, Editor
from signoff.bot.responses import Answers, Visit, refusal, tell, visit
from signoff.bot.sending import Failure
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.forms import NotReadable, form_for
from signoff.cards.model import Line

log = logging.getLogger(__name__)

NOT_CHANGED = "Not changed: {why}"


class Forms:
    def __init__(self, desk: Desk, editor: Editor | None, offers: Offers, answers: Answers) -> None:
        self._desk = desk
        self._editor = editor
        self._offers = offers
        self._answers = answers

    async def submit(self, interaction: discord.Interaction[Any], form: FormLocator) -> None:
        try:
            found = visit(interaction)
            if isinstance(found, Visit):
                await self._submit(interaction, found, form)
            else:
                await tell(interaction, found)
        except Failure as error:
            log.warning("a form by %s on %s got no answer: %s", interaction.user, form.target, error)
        except Exception:
            log.exception("a form on %s failed", form.target)

    async def _submit(self, interaction: discord.Interaction[Any], visit: Visit, form: FormLocator) -> None:
        typed = modals.typed_in((interaction.data or {}).get("components"))
        work = self._edit(visit, form, typed) if form.kind is FormKind.EDIT else self._reject(visit, form, typed)
        try:
            result = await self._answers.in_time(interaction, work)
        except Exception as error:
            result = refusal(error, visit, form.target)
        if isinstance(result, Batch):
            await self._answers.show(interaction, visit, result, form.target, form.page)
            return
        text, file = modals.given_back(quoting.line(result), "\n\n".join(typed[key] for key in sorted(typed)))
        await whisper(interaction, text, file)

    async def _reject(self, visit: Visit, form: FormLocator, typed: dict[str, str]) -> Batch | Line:
        note = typed.get(modals.REASON, "").strip()[: modals.REASON_ROOM]
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
            # Also for a form that somebody forged: masked text must not be replaced by its mask.
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

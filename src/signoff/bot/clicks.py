"""Clicks on our buttons: each leads to a decision, another page, a private panel or a form.

This module knows how to respond, not who may decide: the desk checks that at every click. It lets no error escape:
discord.py would only log it, and the person would see "This interaction failed" without a reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

import discord

from signoff.approvals.answering import Answering
from signoff.approvals.approvers import objection
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.errors import Refused, UnknownRequest
from signoff.approvals.model import ApprovalRequest, Batch, Choice, Outcome, RequestState
from signoff.approvals.votes import may_remember
from signoff.bot import modals, panels
from signoff.bot.buttons import Locator, parse, parse_form, read_terms
from signoff.bot.card_view import render_off_loop
from signoff.bot.inbox import Inbox
from signoff.bot.inbox_view import page_of
from signoff.bot.responses import (
    PATIENCE,
    Drawing,
    Refresh,
    Responses,
    Slow,
    Visit,
    open_form,
    refusal,
    tell,
    visit,
)
from signoff.bot.sending import Failure
from signoff.cards import wording
from signoff.cards.actions import Offers, optional_calls, remember_actions
from signoff.cards.forms import form_of
from signoff.cards.model import Line, Verb

log = logging.getLogger(__name__)

NO_EDIT = "This call can't be edited: {why}."
CLOSED: Line = ("Nothing was decided.",)
_FORMS = (Verb.EDIT, Verb.REASON, Verb.REMEMBER, Verb.FILL)
"""The buttons that lead to a form, which must be the first response."""


class Clicks:
    """Responds to every press of our buttons and to every submitted form."""

    def __init__(
        self,
        desk: Desk,
        refresh: Refresh,
        now: Callable[[], float],
        offers: Offers,
        *,
        editor: Editor | None = None,
        patience: float = PATIENCE,
        drawing: Drawing | None = None,
    ) -> None:
        self._desk = desk
        self._editor = editor
        self._answering = Answering(desk)
        self._offers = offers
        self._now = now
        self.responses = Responses(desk, refresh, now, self._offers, patience, drawing)
        self.inbox = Inbox(desk, now, offers)
        desk.subscribers.append(self.inbox.opened.settled)
        self._forms = modals.Forms(desk, self._answering, editor, self._offers, self.responses, self.inbox, now)

    async def click(self, interaction: discord.Interaction[Any], locator: Locator) -> None:
        try:
            visitor = await self._at_home(interaction, locator)
            if isinstance(visitor, Visit):
                if page_of(interaction.message) is not None:
                    self.inbox.opened.forget(visitor.actor.id)
                await self._press(interaction, visitor, locator)
            else:
                await self.inbox.respond(interaction, visitor)
        except Failure as error:
            log.warning("a click by %s on %s got no answer: %s", interaction.user, locator.target, error)
        except Exception:
            log.exception("a click on %s failed", locator.target)

    async def _at_home(self, interaction: discord.Interaction[Any], locator: Locator) -> Visit | Line:
        """Return who pressed, as they are in the card's server, or what to tell them."""
        visitor = visit(interaction)
        if not isinstance(visitor, Visit) or not visitor.private:
            return visitor  # as nearly always: whoever presses the card itself is in its channel
        looking = self.inbox.at_home(visitor, locator.target)
        if locator.verb not in _FORMS:
            return await self.responses.in_time(interaction, looking)
        try:
            return await self.responses.at_once(interaction, looking)
        except Slow:
            return wording.SLOW

    async def unclaimed(self, interaction: discord.Interaction[Any]) -> None:
        """Handle submitted forms, and presses of buttons that are no longer on their message, because old or forged."""
        custom_id = (interaction.data or {}).get("custom_id")
        if interaction.type is discord.InteractionType.modal_submit:
            if (form := parse_form(custom_id)) is not None:
                await self._forms.submit(interaction, form)
        elif interaction.type is discord.InteractionType.component:
            await self._absent(interaction, parse(custom_id))

    async def _absent(self, interaction: discord.Interaction[Any], locator: Locator | None) -> None:
        """Handle a press of a button that is not on its message.

        The button may have been there a moment ago, so the press counts. But a press that would run something counts
        only if the card still offers exactly that.
        """
        refused: Line | None = wording.UNKNOWN_REQUEST
        visitor = await self._at_home(interaction, locator) if locator is not None else None
        if locator is not None and isinstance(visitor, Visit):
            refused = await self.responses.in_time(interaction, self._not_offered(visitor, locator))
            if refused is None:
                await self.click(interaction, locator)
                return
        elif isinstance(visitor, tuple):
            refused = visitor
        try:
            await self.inbox.respond(interaction, refused or wording.UNKNOWN_REQUEST)
        except Failure as error:
            log.info("an unknown component was not answered: %s", error)

    async def _not_offered(self, visit: Visit, locator: Locator) -> Line | None:
        choice = locator.verb.choice
        if choice is None or choice.state is not RequestState.APPROVED:
            return None
        try:
            batch = await self._desk.look(locator.target, visit.actor, visit.channel, visit.card)
            is_open = any(locator.target in (batch.id, r.id) for r in batch.pending)
            # If the request is settled or out of date, the desk refuses the press and explains why.
            heard = not is_open or locator.revision != batch.revision or await self._offered(batch, locator)
        except Exception as error:
            return refusal(error, visit, locator.target)
        return None if heard else wording.LOOK_AGAIN

    async def _offered(self, batch: Batch, locator: Locator) -> bool:
        if locator.verb.remember.reach:
            requests = [r for r in batch.pending if r.id == locator.target]
            actions = [a for r in requests for a in remember_actions(batch, r, self._offers, locator.page)]
        else:
            card = (await render_off_loop(batch, self._now(), page=locator.page, offers=self._offers)).card
            # This code cannot tell whether the message has the files of this page.
            actions = [] if card.files else [*card.buttons]
        drawn = (locator.verb, locator.target, locator.revision, locator.page)
        return any((a.verb, a.target, a.revision, a.page) == drawn for a in actions)

    async def _press(self, interaction: discord.Interaction[Any], visit: Visit, locator: Locator) -> None:
        choice = locator.verb.choice
        if choice is not None:
            await self._decide(interaction, visit, locator, choice)
        elif locator.verb in (Verb.PAGE, Verb.OPEN):
            await self._turn(interaction, visit, locator)
        elif locator.verb is Verb.INBOX and visit.private:
            await self.inbox.turn(interaction, visit.actor, locator.page)
        elif locator.verb is Verb.EDIT:
            await self._open_edit(interaction, visit, locator)
        elif locator.verb is Verb.FILL:
            await self._open_answer(interaction, visit, locator)
        elif locator.verb is Verb.SEND:
            sending = self._answering.send(locator.target, visit.actor, visit.channel, visit.card)
            await self._settle(interaction, visit, locator, sending)
        elif locator.verb is Verb.SAVE:
            await self._settle(interaction, visit, locator, self._saved(visit, locator))
        elif locator.verb is Verb.CLOSE:
            await self.responses.panel(interaction, visit, panels.said(CLOSED))
        else:
            await self._open(interaction, visit, locator)

    async def _decide(
        self, interaction: discord.Interaction[Any], visit: Visit, locator: Locator, choice: Choice
    ) -> None:
        click = Click(
            locator.target,
            choice,
            visit.actor,
            visit.channel,
            visit.card,
            remember=locator.verb.remember,
            revision=locator.revision,
            page=locator.page,
        )
        await self._settle(interaction, visit, locator, self._desk.decide(click))

    async def _settle(
        self,
        interaction: discord.Interaction[Any],
        visit: Visit,
        locator: Locator,
        deciding: Coroutine[Any, Any, Outcome],
    ) -> None:
        try:
            outcome = await self.responses.in_time(interaction, deciding)
        except Exception as error:
            await self.inbox.respond(interaction, refusal(error, visit, locator.target))
        else:
            batch, end = outcome.batch, self.inbox.end(interaction, outcome.batch)
            await self.responses.show(interaction, visit, batch, locator.target, locator.page, end=end)

    async def _saved(self, visit: Visit, locator: Locator) -> Outcome:
        """Decide and remember, as the panel said. The revision binds the panel to the arguments that it showed."""
        request = _decidable(await self._look(visit, locator), locator)
        plan = read_terms(locator.terms, request.description.ordered(request.call.args))
        if plan is None or not self._offers.may_remember(request):
            raise Refused(modals.NO_REMEMBER)
        click = Click(
            request.id,
            plan.choice,
            visit.actor,
            visit.channel,
            visit.card,
            remember=plan.span.remember,
            coverage=plan.coverage,
            revision=locator.revision,
            page=locator.page,
        )
        return await self._desk.decide(click)

    async def _turn(self, interaction: discord.Interaction[Any], visit: Visit, locator: Locator) -> None:
        try:
            batch = await self.responses.in_time(interaction, self._look(visit, locator))
        except Exception as error:
            await self.inbox.respond(interaction, refusal(error, visit, locator.target))
            return
        if visit.private:
            await self.inbox.show_card(interaction, visit, batch, locator.page)
        else:
            await self.responses.show(interaction, visit, batch, locator.target, locator.page, everywhere=False)

    async def _open(self, interaction: discord.Interaction[Any], visit: Visit, locator: Locator) -> None:
        """Open a panel or the form for a reason. Only approvers get one, so that nobody fills it in for nothing."""
        try:
            batch = await self.responses.at_once(interaction, self._look(visit, locator))
            if locator.verb is Verb.MORE and locator.target == batch.id:
                await self._choose(interaction, visit, batch, locator)
                return
            request = _decidable(batch, locator)
        except Exception as error:
            await tell(interaction, refusal(error, visit, locator.target))
            return
        why = objection(visit.actor, request, batch)
        if request.state is not RequestState.PENDING:
            await tell(interaction, wording.already_settled(batch, request.id))
        elif why is not None:
            await tell(interaction, wording.not_allowed(batch, request.id, why))
        elif locator.verb is Verb.REASON:
            await open_form(interaction, modals.reason_form(request, locator.page))
        elif locator.verb is Verb.MORE and request.held:
            held = panels.held_call(batch, request, self._offers, locator.page, self._now())
            await self.responses.panel(interaction, visit, held)
        elif locator.verb is Verb.MORE:
            await self.responses.panel(interaction, visit, panels.more(batch, request, self._offers, locator.page))
        elif not self._offers.may_remember(request):
            await tell(interaction, (modals.NO_REMEMBER,))
        else:
            widens = may_remember(visit.actor, batch)
            await open_form(
                interaction, modals.remember_form(batch, request, self._offers, locator.page, may_widen=widens)
            )

    async def _choose(
        self, interaction: discord.Interaction[Any], visit: Visit, batch: Batch, locator: Locator
    ) -> None:
        """Open the panel behind the card's own "More…", with the calls that this person may decide."""
        requests = optional_calls(batch, locator.page, self._offers)
        objections = [objection(visit.actor, request, batch) for request in requests]
        allowed = [request for request, why in zip(requests, objections, strict=True) if why is None]
        if not requests:
            await tell(interaction, wording.already_settled(batch))
        elif not allowed:
            await tell(interaction, wording.not_allowed(batch, None, next((why for why in objections if why), "")))
        else:
            await self.responses.panel(interaction, visit, panels.choose(batch, allowed, self._offers, locator.page))

    async def _open_edit(self, interaction: discord.Interaction[Any], visit: Visit, locator: Locator) -> None:
        if self._editor is None:
            await tell(interaction, wording.UNKNOWN_REQUEST)
            return
        asked = self._editor.request(locator.target, visit.actor, visit.channel, visit.card)
        try:
            request = await self.responses.at_once(interaction, asked)
        except Exception as error:
            await tell(interaction, refusal(error, visit, locator.target))
            return
        form = form_of(request)
        if (why := self._offers.why_no_edit(request)) or form is None:
            await tell(interaction, (NO_EDIT.format(why=why),))
        else:
            await open_form(interaction, modals.edit_form(request, form, locator.page))

    async def _open_answer(self, interaction: discord.Interaction[Any], visit: Visit, locator: Locator) -> None:
        forming = self._forms.answers.form(visit, locator.target, locator.page, locator.part)
        try:
            form = await self.responses.at_once(interaction, forming)
        except Exception as error:
            await tell(interaction, refusal(error, visit, locator.target))
            return
        if isinstance(form, discord.ui.Modal):
            await open_form(interaction, form)
        else:
            await tell(interaction, form)

    async def _look(self, visit: Visit, locator: Locator) -> Batch:
        return await self._desk.look(locator.target, visit.actor, visit.channel, visit.card)


def _decidable(batch: Batch, locator: Locator) -> ApprovalRequest:
    """Return the request that a button is about."""
    located = tuple(r for r in batch.requests if r.id == locator.target)
    if not located:
        raise UnknownRequest("Unknown request.")
    return located[0]

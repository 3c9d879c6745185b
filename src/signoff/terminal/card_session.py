"""Handle an open card until it is settled: show it, ask about each call, and give the choice to the desk.

The desk decides whether the choice counts; a refusal is printed, and the question is asked again. If the card is
settled in another way, for example by its deadline, the question ends at once. If the person leaves, nothing is decided
and the card stays open in the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from rich.text import Text

from signoff.approvals.answering import Answering
from signoff.approvals.approvers import objection
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.model import PAGE, Actor, ApprovalRequest, Batch
from signoff.cards import wording
from signoff.cards.actions import Offers, further_actions, held_actions, remember_actions
from signoff.cards.approver_names import decide_or_answer
from signoff.cards.build import build_card, build_held_call
from signoff.cards.files import file_name
from signoff.cards.model import Action, Card, CardFile, Line, Verb
from signoff.cards.wording import explain_refusal
from signoff.dataclass import dataclass
from signoff.errors import CardFailed, SignoffError
from signoff.terminal.console import Device, Withdrawn
from signoff.terminal.dialogue import Chosen, HeldCall, Subject, choose
from signoff.terminal.front_end import CARD_SPACE, COLUMNS, TerminalFrontEnd, card_id
from signoff.terminal.render import covered_lines, draw_card, left, write
from signoff.text.visible import one_line

log = logging.getLogger(__name__)

ALONE = "{} people must accept, and a terminal has only one. You can reject the call here, or let it expire."
NOT_YOU = (
    "You may not decide this call{}. It expires at its deadline. Ctrl-C leaves, and the card stays open until then."
)


@dataclass
class CardSession:
    device: Device
    front: TerminalFrontEnd
    desk: Desk
    editor: Editor
    actor: Actor
    offers: Offers
    now: Callable[[], float]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _serving: frozenset[str] = frozenset()

    def heard(self, event: Mapping[str, Any]) -> None:
        """Handle an event of the desk: a person or a deadline settled a request."""
        if event.get("request") in self._serving:
            self._changed.set()

    async def serve(self, batch: Batch) -> None:
        """Ask until the batch is settled. Raises Ended when the input ends."""
        self._serving = frozenset(request.id for request in batch.requests)
        seen: set[str] = set()
        drawn: tuple[int, int] | None = None
        while True:
            self._changed.clear()
            batch = await self.desk.look(batch.id, self.actor, batch.place.channel, card_id(batch))
            if batch.settled:
                break
            asked = self._first(batch)
            shown = asked or next(iter(batch.open_questions), batch.questions[0])
            page = batch.questions.index(shown) // PAGE
            card = self._card(batch, page)
            if drawn != (batch.revision, page):
                self.device.show(draw_card(card, self.now()))
                self.device.forget_typed()
                drawn = (batch.revision, page)
            await self._ask(batch, card, asked, seen)
        self._serving = frozenset()
        self.front.close(batch)
        try:
            await self.desk.mark_card_final(batch.id)
        except SignoffError:
            log.exception("card of %s not marked as final", batch.id)

    def _card(self, batch: Batch, page: int) -> Card:
        now = self.now()
        card = build_card(batch, now=now, budget=CARD_SPACE, page=page, offers=self.offers, columns=COLUMNS)
        notes = {r.id: self._hindrance(r, batch) for r in batch.open_questions}
        calls = (replace(c, facts=(*c.facts, (note,))) if (note := notes.get(c.request)) else c for c in card.calls)
        return replace(card, calls=tuple(calls))

    def _hindrance(self, request: ApprovalRequest, batch: Batch) -> str:
        """Return a note for the card if this person alone cannot decide the request; empty otherwise."""
        why = objection(self.actor, request, batch)
        if why is not None:
            return NOT_YOU.format(f" ({why})" if why else "")
        return ALONE.format(request.quorum) if request.quorum > 1 else ""

    def _first(self, batch: Batch) -> ApprovalRequest | None:
        """Return the first open request that this person may decide."""
        return next((r for r in batch.open_questions if objection(self.actor, r, batch) is None), None)

    async def _ask(self, batch: Batch, card: Card, mine: ApprovalRequest | None, seen: set[str]) -> None:
        if mine is None or self.now() >= batch.deadline:
            await self._changed.wait()
            return
        if len(batch.questions) > 1:
            number = batch.questions.index(mine) + 1
            self.device.show(Text.assemble(f"Call {number} of {len(batch.questions)}: ", (_tool(card, mine), "bold")))
        try:
            chosen = await self.device.perform(
                choose(self._subject(batch, card, mine, seen)),
                lambda: f"{decide_or_answer([mine])}, {left(batch.deadline - self.now())} left> ",
                self._changed,
            )
        except Withdrawn:
            return
        await self._take(batch, mine, chosen)

    def _subject(self, batch: Batch, card: Card, request: ApprovalRequest, seen: set[str]) -> Subject:
        here = [r for r in batch.page(card.page) if r in batch.pending]
        alone = len(batch.questions) == 1
        own = next(call.actions for call in card.calls if call.request == request.id)
        actions = (*(card.actions if alone else own), *further_actions(batch, request, self.offers, card.page))
        for_all = () if alone else card.actions
        files = {r.id: file for r in here if (file := _file(batch, card, r))}
        return Subject(
            args=request.call.args,
            actions=_possible(actions, [request]),
            for_all=_possible(for_all, here),
            file=files.get(request.id),
            files=tuple(files.values()),
            remember=remember_actions(batch, request, self.offers, card.page),
            covered=covered_lines(batch, request, self.offers, self.now()),
            held=[self._held_call(batch, r, card.page) for r in batch.open_held],
            seen=seen,
            inquiry=request.inquiry,
            masker=self.offers.masker,
        )

    def _held_call(self, batch: Batch, request: ApprovalRequest, page: int) -> HeldCall:
        tool = one_line(request.shown_tool)
        try:
            card = build_held_call(batch, request, now=self.now(), budget=CARD_SPACE, page=page, offers=self.offers)
        except CardFailed as error:
            return HeldCall(tool, Text(one_line(str(error))), held_actions(batch, request, page))
        return HeldCall(tool, draw_card(card, self.now()), card.actions)

    async def _take(self, batch: Batch, request: ApprovalRequest, chosen: Chosen) -> None:
        action, card, channel = chosen.action, card_id(batch), batch.place.channel
        try:
            if chosen.args is not None:
                based_on = request.call.digest
                await self.editor.edit(request.id, chosen.args, based_on, self.actor, channel, card)
                return
            if chosen.answer is not None:
                await Answering(self.desk).answer(request.id, chosen.answer, self.actor, channel, card)
                return
            choice = action.verb.choice or request.kind.no
            outcome = await self.desk.decide(
                Click(
                    action.target,
                    choice,
                    self.actor,
                    channel,
                    card,
                    chosen.note,
                    action.verb.remember,
                    action.revision,
                    action.page,
                )
            )
            if action.target in {r.id for r in batch.held}:  # rejecting a held call does not draw the card again
                self.device.show(write(wording.answer(outcome.batch, action.target), self.now()))
        except Exception as error:
            self.device.show(write(refusal(error, action.target), self.now(), "yellow"))


def refusal(error: Exception, target: str) -> Line:
    """Return the line for a person whose choice did not count."""
    if said := explain_refusal(error, target):
        return said
    log.error("the desk failed on %s", target, exc_info=error)
    return wording.NOT_SAVED


def _possible(actions: Sequence[Action], requests: Sequence[ApprovalRequest]) -> list[Action]:
    """Return the actions that one person alone can complete."""
    if all(request.quorum <= 1 for request in requests):
        return list(actions)
    return [
        action for action in actions if action.verb in (Verb.REJECT, Verb.REASON, Verb.SKIP, Verb.RAN, Verb.DECLINE)
    ]


def _file(batch: Batch, card: Card, request: ApprovalRequest) -> CardFile | None:
    name = file_name(batch, request)
    return next((file for file in card.files if file.name == name), None)


def _tool(card: Card, request: ApprovalRequest) -> str:
    return next(call.tool for call in card.calls if call.request == request.id)

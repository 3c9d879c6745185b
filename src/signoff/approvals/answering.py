"""Answers an inquiry: at once, or in parts, since a form of Discord has few fields.

Parts are kept in the store for each person until they send them, so a restart loses nothing. The desk settles the
request like any other.
"""

from __future__ import annotations

from dataclasses import replace

from signoff.approvals.clicks import Click, open_request
from signoff.approvals.desk import Desk
from signoff.approvals.errors import Refused
from signoff.approvals.inquiries import BadAnswer, Inquiry
from signoff.approvals.model import Actor, ApprovalRequest, Choice, JsonObject, Outcome
from signoff.approvals.ports import DeskTx
from signoff.dataclass import dataclass


@dataclass(frozen=True)
class Answering:
    desk: Desk

    async def request(self, request_id: str, actor: Actor, channel: str, card: str | None) -> ApprovalRequest:
        """Return the current request if this person may answer it. Raises the same errors as a click."""
        return await self.desk.store.run(lambda tx: self._request(tx, request_id, actor, channel, card))

    async def keep(
        self, request_id: str, part: JsonObject, actor: Actor, channel: str, card: str | None
    ) -> ApprovalRequest:
        """Keep what this person filled in, without sending it. A value of None empties the field. Raises Refused."""

        def work(tx: DeskTx) -> ApprovalRequest:
            request = self._request(tx, request_id, actor, channel, card)
            fields = {field.name: field for field in inquiry_of(request).fields}
            try:
                for name, value in part.items():
                    if value is not None:
                        fields[name].check(value)
            except BadAnswer as error:
                raise Refused(str(error)) from error
            draft = {**request.drafts.get(actor.id, {}), **part}
            kept = replace(request, drafts={**request.drafts, actor.id: draft})
            tx.rewrite(kept)
            return kept

        return await self.desk.store.run(work)

    async def send(self, request_id: str, actor: Actor, channel: str, card: str | None) -> Outcome:
        """Send what this person filled in."""
        request = await self.request(request_id, actor, channel, card)
        return await self.answer(request_id, request.drafts.get(actor.id, {}), actor, channel, card)

    async def answer(
        self, request_id: str, answer: JsonObject, actor: Actor, channel: str, card: str | None
    ) -> Outcome:
        """Settle the request with this answer. Raises Refused if the answer does not fit the form."""
        return await self.desk.decide(Click(request_id, Choice.ANSWER, actor, channel, card, answer=answer))

    def _request(self, tx: DeskTx, request_id: str, actor: Actor, channel: str, card: str | None) -> ApprovalRequest:
        _, request = open_request(tx, request_id, actor, channel, card, self.desk.clock.now())
        inquiry_of(request)
        return request


def inquiry_of(request: ApprovalRequest) -> Inquiry:
    if request.inquiry is None:
        raise Refused("This call needs a decision, not an answer.")
    return request.inquiry

"""A desk and a driver that keep everything in memory and record what they were asked: the bot's ports, in full."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.approvals.approvers import may_decide
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    CallKey,
    Choice,
    Outcome,
    Place,
    RequestState,
    Settlement,
    ToolCall,
)
from signoff.errors import AlreadySettled, NotAllowed, UnknownRequest
from signoff.turns.model import Admission, Turn

_numbers = itertools.count(1)


def make_request(args: dict[str, Any] | None = None, **fields: Any) -> ApprovalRequest:
    number = next(_numbers)
    call = ToolCall(
        CallKey("c", 1, f"call_{number}"), fields.pop("tool", "delete_file"), args or {}, "schema", "d1" * 32
    )
    found: dict[str, Any] = {"why": "the tool always asks", "approvers": ("manage_server",), **fields}
    return ApprovalRequest(f"{number:016x}", call, **found)


def make_batch(place: Place, asker: Actor, *requests: ApprovalRequest, turn: str = "1-2", **fields: Any) -> Batch:
    now = time.time()
    found: dict[str, Any] = {"opened": now, "deadline": now + 300, **fields}
    return Batch(f"{next(_numbers):016x}", turn, place, asker, requests or (make_request({"path": "a.txt"}),), **found)


def settled(batch: Batch, choice: Choice | None, by: Actor | None, note: str = "") -> Batch:
    state = choice.state if choice else RequestState.EXPIRED
    ending = Settlement(choice, by, time.time(), note)
    return replace(batch, requests=tuple(replace(r, state=state, settlement=ending) for r in batch.requests))


@dataclass
class RecordingDesk:
    batches: dict[str, Batch] = field(default_factory=dict)
    calls: list[tuple[str, Choice, Actor, str]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    final: list[str] = field(default_factory=list)
    fails_with: Exception | None = None
    delay: float = 0.0

    def open(self, batch: Batch) -> Batch:
        self.batches[batch.id] = batch
        return batch

    async def decide(self, target: str, choice: Choice, actor: Actor, channel: str, card: str | None = None) -> Outcome:
        self.calls.append((target, choice, actor, channel))
        await asyncio.sleep(self.delay)
        if self.fails_with is not None:
            raise self.fails_with
        batch = self.batches.get(target)
        if batch is None or batch.place.channel != channel or batch.place.server != actor.server:
            raise UnknownRequest("Unknown request.")
        if batch.settled:
            raise AlreadySettled(batch)
        if not all(may_decide(actor, r, batch) for r in batch.requests):
            raise NotAllowed(batch)
        done = self.open(settled(batch, choice, actor))
        return Outcome(done, done.requests)

    async def card_lost(self, card: str, reason: str) -> Batch | None:
        self.lost.append((card, reason))
        found = next((b for b in self.batches.values() if b.card == card and not b.settled), None)
        if found is None:
            return None
        ending = Settlement(None, None, time.time(), reason)
        ended = [replace(r, state=RequestState.CANCELLED, settlement=ending) for r in found.requests]
        return self.open(replace(found, requests=tuple(ended)))

    async def place_lost(self, channel: str, reason: str) -> list[Batch]:
        cards = [b.card for b in self.batches.values() if b.place.channel == channel and b.card]
        return [lost for card in cards if (lost := await self.card_lost(card, reason))]

    async def mark_card_final(self, batch_id: str) -> None:
        self.final.append(batch_id)


@dataclass
class RecordingIntake:
    admission: Admission = field(default_factory=lambda: Admission("started"))
    turns: dict[str, Turn] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    fails_with: Exception | None = None

    async def submit(self, turn: Turn) -> Admission:
        if self.fails_with is not None:
            raise self.fails_with
        if turn.id in self.turns:
            return Admission("duplicate")
        if self.admission.kind != "refused":
            self.turns[turn.id] = turn
            self.order.append(f"submit {turn.message}")
        return self.admission

    async def relocate(self, turn_id: str, place: Place) -> None:
        self.turns[turn_id] = replace(self.turns[turn_id], place=place)
        self.order.append(f"relocate {place.channel}")

    async def go(self, turn_id: str) -> None:
        self.order.append(f"go {self.turns[turn_id].message}")

    async def recover(self) -> None:
        self.order.append("recover")

    async def stop(self, grace: float) -> None:
        self.order.append("stop")

    @property
    def only(self) -> Turn:
        (turn,) = self.turns.values()
        return turn

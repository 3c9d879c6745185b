"""The real desk over rows in memory, and a driver that records its calls."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.digest import bind
from signoff.approvals.errors import Refused
from signoff.approvals.grants import Grant
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    CallKey,
    CallRun,
    CardCopy,
    Choice,
    JsonObject,
    Outcome,
    Place,
    RequestState,
    Ruling,
    RunState,
    Settlement,
    ToolCall,
    Verdict,
)
from signoff.approvals.ports import Revised
from signoff.turns.driver import Driver
from signoff.turns.model import Admission, Turn, TurnFile

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


class WallClock:
    def now(self) -> float:
        return time.time()


class MemoryStore:
    """The desk's rows in a dictionary. A transaction that raises changes nothing."""

    def __init__(self) -> None:
        self.batches: dict[str, Batch] = {}
        self.grants: list[Grant] = []
        self.rows: list[tuple[str, str]] = []
        self.run_of_approved: CallRun | None = CallRun(RunState.DONE)
        """What has become of each call by the time that its accept is stored."""

    async def run(self, work: Callable[[Any], Any]) -> Any:
        before = dict(self.batches), list(self.grants), list(self.rows)
        try:
            return work(self)
        except BaseException:
            self.batches, self.grants, self.rows = before
            raise

    def batch(self, batch_id: str) -> Batch | None:
        return self.batches.get(batch_id)

    def batch_about(self, target: str) -> Batch | None:
        of_request = (b for b in self.batches.values() for r in b.requests if r.id == target)
        return self.batch(target) or next(of_request, None)

    def batch_of_card(self, card: str) -> Batch | None:
        return next((b for b in self.batches.values() if b.card_message == card), None)

    def open_in(self, channel: str) -> list[Batch]:
        return [b for b in self.batches.values() if b.place.channel == channel and not b.settled]

    def open_of(self, server: str) -> list[Batch]:
        return [b for b in self.batches.values() if b.place.server == server and not b.settled]

    def open_approvers(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for batch in self.batches.values():
            if batch.pending:
                found.setdefault(batch.place.server, set()).update(s for r in batch.pending for s in r.approvers)
        return found

    def settle(self, request: ApprovalRequest) -> bool:
        return self.rewrite(request)

    def rewrite(self, request: ApprovalRequest) -> bool:
        batch = self.batch_about(request.id)
        if batch is None or request.id not in {r.id for r in batch.pending}:
            return False
        if request.state is RequestState.APPROVED:
            request = replace(request, run=self.run_of_approved)
        changed = tuple(request if r.id == request.id else r for r in batch.requests)
        self.batches[batch.id] = replace(batch, requests=changed)
        return True

    def set_revision(self, batch_id: str, revision: int) -> None:
        self.batches[batch_id] = replace(self.batches[batch_id], revision=revision)

    def set_card(self, batch_id: str, card: str) -> None:
        self.batches[batch_id] = replace(self.batches[batch_id], card_message=card)

    def set_card_final(self, batch_id: str) -> None:
        self.batches[batch_id] = replace(self.batches[batch_id], card_final=True)

    def copies_of(self, batch_id: str) -> tuple[CardCopy, ...]:
        return self.batches[batch_id].copies

    def drop_copies(self, channel: str, message: str = "") -> list[Batch]:
        had = [b for b in self.batches.values() if any(_is_at(copy, channel, message) for copy in b.copies)]
        for batch in had:
            left = tuple(copy for copy in batch.copies if not _is_at(copy, channel, message))
            self.batches[batch.id] = replace(batch, copies=left)
        return had

    def add_copy(self, batch_id: str, copy: CardCopy) -> None:
        batch = self.batches[batch_id]
        self.batches[batch_id] = replace(batch, copies=(*batch.copies, copy), card_final=False)

    def insert_grant(self, grant: Grant) -> None:
        self.grants.append(grant)

    def audit(self, kind: str, server: str, subject: str, *_: Any, **__: Any) -> None:
        self.rows.append((kind, subject))


def _is_at(copy: CardCopy, channel: str, message: str) -> bool:
    return copy.channel == channel and message in ("", copy.message)


class RecordingDesk(Desk):
    """The real desk over rows in memory. It records its calls, and can be slow or broken."""

    def __init__(self, **fields: Any) -> None:
        self.memory = MemoryStore()
        super().__init__(self.memory, WallClock(), **fields)  # pyright: ignore[reportArgumentType]
        self.calls: list[Click] = []
        self.lost: list[tuple[str, str]] = []
        self.final: list[str] = []
        self.fails_with: Exception | None = None
        self.delay = 0.0

    @property
    def batches(self) -> dict[str, Batch]:
        return self.memory.batches

    def open(self, batch: Batch) -> Batch:  # type: ignore[override]
        self.batches[batch.id] = batch
        return batch

    async def decide(self, click: Click) -> Outcome:
        self.calls.append(click)
        await asyncio.sleep(self.delay)
        if self.fails_with is not None:
            raise self.fails_with
        outcome = await super().decide(click)
        return replace(outcome, batch=self.batches[outcome.batch.id])  # with what has become of the calls

    async def card_deleted(self, card: str, reason: str) -> Batch | None:
        self.lost.append((card, reason))
        return await super().card_deleted(card, reason)

    async def mark_card_final(self, batch_id: str, drawn: Collection[CardCopy] | None = None) -> bool:
        marked = await super().mark_card_final(batch_id, drawn)
        self.final += [batch_id] if marked else []
        return marked


@dataclass
class EchoReviser:
    """Accepts all arguments unless `refuses` is set; the policy's ruling is `ruling`."""

    ruling: Ruling = field(default_factory=lambda: Ruling(Verdict.ASK, "the tool always asks"))
    refuses: str = ""

    async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
        if self.refuses:
            raise Refused(self.refuses)
        return Revised(bind(replace(request.call, args=args, digest=""), batch.place), self.ruling)


class RecordingDriver(Driver):
    """Gives every mention the same admission, runs nothing, and records its calls."""

    def __init__(self, admission: Admission | None = None) -> None:
        self.admission = admission or Admission("started")
        self.turns: dict[str, Turn] = {}
        self.order: list[str] = []
        """The calls in order, such as `submit 12`."""
        self.fails_with: Exception | None = None

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

    async def enclose(self, turn_id: str, files: Sequence[TurnFile]) -> None:
        self.turns[turn_id] = replace(self.turns[turn_id], files=tuple(files))

    async def go(self, turn_id: str) -> None:
        self.order.append(f"go {self.turns[turn_id].message}")

    async def recover(self) -> None:
        self.order.append("recover")

    @property
    def only(self) -> Turn:
        (turn,) = self.turns.values()
        return turn

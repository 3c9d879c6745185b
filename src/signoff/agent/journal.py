"""At most once: what is known of every call, and whether it may start now.

One transaction looks at the journal and at the desk's newest decision about the call, and writes *started*. Nothing
else lets a call begin. Results are kept, so that a call that is met again after a restart answers what it answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai import ToolReturn

from signoff.approvals.model import ApprovalRequest, RequestKind, RequestState, ToolCall
from signoff.approvals.ports import Clock
from signoff.turns.model import CallRecord, CallState
from signoff.turns.ports import TurnStore, TurnTx

_returned: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn[Any])


@dataclass(frozen=True, slots=True)
class Go:
    """*started* is written: call the tool. `approved` says whether people said yes to this very call."""

    approved: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """It ended before: give the same answer again."""

    record: CallRecord

    @property
    def result(self) -> ToolReturn[Any]:
        return _returned.validate_json(self.record.result or b"null")

    @property
    def failure(self) -> str:
        return (self.record.result or b"").decode()


@dataclass(frozen=True, slots=True)
class Ask:
    """People have to say something first."""

    kind: RequestKind


@dataclass(frozen=True, slots=True)
class Settled:
    """People, a mode or the clock have said no, or what they said yes to is not what would run."""

    request: ApprovalRequest
    changed: bool = False


Entry = Go | Replay | Ask | Settled


@dataclass(frozen=True)
class Journal:
    store: TurnStore
    clock: Clock
    turn: str

    async def enter(self, call: ToolCall, *, asks: bool, read_only: bool) -> Entry:
        now = self.clock.now()

        def work(tx: TurnTx) -> Entry:
            record = tx.call(call.key)
            if record and record.state is not CallState.STARTED:
                return Replay(record)
            unknown = record is not None and not read_only
            request = self._decision(tx, call)
            if request is None or (unknown and not _is_about(request, record)):
                if unknown or asks:
                    return Ask(RequestKind.MAY_HAVE_RUN if unknown else RequestKind.CALL)
            elif request.state is RequestState.PENDING:
                return Ask(request.kind)
            elif request.state is not RequestState.APPROVED:
                return Settled(request)
            elif request.call.digest != call.digest:
                data = {"approved": request.call.digest, "found": call.digest, "tool": call.tool}
                tx.audit("arguments_changed", "", request.id, "signoff", data, now)
                return Settled(request, changed=True)
            used = request.id if request else ""
            tx.put_call(CallRecord(call.key, call.tool, call.digest, CallState.STARTED, request=used), self.turn, now)
            return Go(approved=request is not None)

        return await self.store.run(work)

    async def done(self, call: ToolCall, result: Any) -> Any:
        """Keep the result, and return it as it was kept: what cannot be written down becomes readable text."""
        try:
            kept = _packed(result)
        except (ValueError, TypeError, RecursionError):
            result = str(result).encode(errors="backslashreplace").decode()
            kept = _packed(result)
        await self._end(call, CallState.DONE, kept)
        return result

    async def failed(self, call: ToolCall, words: str) -> None:
        await self._end(call, CallState.FAILED, words.encode(errors="backslashreplace"))

    async def withdraw(self, call: ToolCall) -> None:
        """The tool's own code raised ApprovalRequired before it did anything: it has not started after all."""
        await self.store.run(lambda tx: tx.drop_call(call.key))

    async def _end(self, call: ToolCall, state: CallState, result: bytes) -> None:
        record = CallRecord(call.key, call.tool, call.digest, state, result)
        now = self.clock.now()
        await self.store.run(lambda tx: tx.put_call(record, self.turn, now))

    def _decision(self, tx: TurnTx, call: ToolCall) -> ApprovalRequest | None:
        """The newest request about this call, if it belongs to this turn: an older turn's yes is not ours."""
        request = tx.request_for(call.key)
        if request is None:
            return None
        batch = tx.batch_of_request(request.id)
        return request if batch and batch.turn == self.turn else None


def _packed(result: Any) -> bytes:
    returned = cast(ToolReturn[Any], result) if isinstance(result, ToolReturn) else ToolReturn(return_value=result)
    return _returned.dump_json(returned)


def _is_about(request: ApprovalRequest, record: CallRecord | None) -> bool:
    """Whether the request asks about the interrupted start itself, and was not used up by that start."""
    return request.kind is RequestKind.MAY_HAVE_RUN and (record is None or record.request != request.id)

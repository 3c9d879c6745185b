"""The book of calls: the gate asks it before a call may start, and tells it when the call has ended.

The bot keeps it in the store (`journal`), so that it survives a kill. A library run keeps it in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import TypeAdapter
from pydantic_ai import ToolReturn

from signoff.approvals.model import ApprovalRequest, CallKey, RequestKind, RequestState, ToolCall
from signoff.turns.model import CallRecord

returned: TypeAdapter[ToolReturn[Any]] = TypeAdapter(ToolReturn[Any])


@dataclass(frozen=True, slots=True)
class Go:
    """*started* is written: call the tool. `request` is what people said yes to, if they had to."""

    request: ApprovalRequest | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The call ended before: give the same result again."""

    record: CallRecord

    @property
    def result(self) -> ToolReturn[Any]:
        return returned.validate_json(self.record.result or b"null")

    @property
    def failure(self) -> str:
        return (self.record.result or b"").decode()


@dataclass(frozen=True, slots=True)
class Ask:
    """People have to decide first."""

    kind: RequestKind
    again: bool = False
    """They have said yes, but something that the call would touch has changed since."""


@dataclass(frozen=True, slots=True)
class Settled:
    """People, a mode or the clock have said no, or the approved arguments are not those that would run."""

    request: ApprovalRequest
    changed: bool = False


Entry = Go | Replay | Ask | Settled


class CallBook(Protocol):
    """At most once: what is known of every call, and whether it may start now."""

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        """The record of a call and the newest request about it, if there are any."""
        ...

    async def enter(self, call: ToolCall, *, asks: bool, read_only: bool) -> Entry:
        """Let the call start, or say what stands in its way. Only `Go` starts a call."""
        ...

    async def done(self, call: ToolCall, result: Any) -> Any:
        """Keep the result, and return it as it was kept."""
        ...

    async def failed(self, call: ToolCall, words: str) -> None: ...

    async def withdraw(self, call: ToolCall) -> None:
        """The call has not started after all."""
        ...


@dataclass
class MemoryBook:
    """The book of one run in memory. An approval is used up by one start; nothing is replayed."""

    requests: dict[CallKey, ApprovalRequest] = field(default_factory=dict[CallKey, ApprovalRequest])
    """The newest request about each call that has not been used up."""

    def write(self, request: ApprovalRequest) -> None:
        self.requests[request.call.key] = request

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        return None, self.requests.get(key)

    async def enter(self, call: ToolCall, *, asks: bool, read_only: bool) -> Entry:
        request = self.requests.get(call.key)
        if request is None:
            return Ask(RequestKind.CALL) if asks else Go()
        if request.state is not RequestState.APPROVED:
            return Settled(request)
        del self.requests[call.key]
        if request.call.digest != call.digest:
            return Settled(request, changed=True)
        if asks and request.call.operands != call.operands:
            return Ask(RequestKind.CALL, again=True)
        return Go(request)

    async def done(self, call: ToolCall, result: Any) -> Any:
        return result

    async def failed(self, call: ToolCall, words: str) -> None:
        pass

    async def withdraw(self, call: ToolCall) -> None:
        pass

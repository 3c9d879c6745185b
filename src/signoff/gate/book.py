"""The book of calls: the gate asks it whether a call may start, and tells it when the call has ended.

The bot keeps the book in the store (`journal`), so that it survives a kill. A library run keeps it in memory.
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
    """The call is recorded as *started*: call the tool. `request` is the approved request, if there is one."""

    request: ApprovalRequest | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The call ended earlier: return the same result again."""

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
    """The call was approved, but something that it would touch has changed since."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The call was not approved, or (`changed`) the approved arguments are not those that would run."""

    request: ApprovalRequest
    changed: bool = False


Entry = Go | Replay | Ask | Settled


class CallBook(Protocol):
    """Keeps the state of every call, and lets each call run at most once."""

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        """Return the record of a call and the newest request about it, if there are any."""
        ...

    async def enter(self, call: ToolCall, *, asks: bool, read_only: bool) -> Entry:
        """Let the call start, or return why it may not. Only `Go` lets a call start."""
        ...

    async def done(self, call: ToolCall, result: Any) -> Any:
        """Store the result, and return it as it was stored."""
        ...

    async def failed(self, call: ToolCall, words: str) -> None: ...

    async def withdraw(self, call: ToolCall) -> None:
        """Take back the start: the call did not run after all."""
        ...


@dataclass
class MemoryBook:
    """The book of one run, in memory. One start uses up an approval; nothing is replayed."""

    requests: dict[CallKey, ApprovalRequest] = field(default_factory=dict[CallKey, ApprovalRequest])
    """Call key -> the newest request about that call, until a start uses it up."""

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

"""The book of calls: the gate asks it whether a call may start, and tells it when the call has ended.

The bot keeps the book in the store (`journal`), so that it survives a kill. A library run keeps it in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import cache
from itertools import islice
from typing import Any, Protocol, cast

from pydantic import TypeAdapter
from pydantic_ai import ToolReturn
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart

from signoff.approvals.containment import answered, described
from signoff.approvals.inquiries import Mask
from signoff.approvals.model import ApprovalRequest, CallKey, RequestKind, RequestState, ToolCall
from signoff.dataclass import dataclass
from signoff.turns.model import CallRecord, CallState

MOST_ITEMS = 10_000
"""How many items of an iterator become a result. Some iterators never end."""
LONG = 400_000
"""A result with more characters than this may have to be shortened."""


@cache
def returned() -> TypeAdapter[ToolReturn[Any]]:
    """Reads and writes the results of tools. It is built when it is needed: at import it would delay every start."""
    return TypeAdapter(ToolReturn[Any])


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
        return returned().validate_json(self.record.result or b"null")

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


@dataclass(frozen=True, slots=True)
class Answered:
    """People answered what the call asks: the answer is its result."""

    request: ApprovalRequest

    def record(self, call: ToolCall, at: float) -> CallRecord:
        """Return the record of the call, which ends with this answer."""
        end, inquiry = self.request.settlement, self.request.inquiry
        assert end
        assert inquiry
        result = packed(inquiry.result(end.answer or {}))[1]
        return CallRecord(call.key, call.tool, call.digest, CallState.DONE, result, self.request.id, at)

    def shown(self, mask: Mask) -> Any:
        """Return the result as people may see it: the name and the label of a field say what is a secret."""
        end, inquiry = self.request.settlement, self.request.inquiry
        assert end
        assert inquiry
        return inquiry.result(inquiry.masked(end.answer or {}, mask))


Entry = Go | Replay | Ask | Settled


def entry_of(
    call: ToolCall,
    record: CallRecord | None,
    request: ApprovalRequest | None,
    *,
    asks: bool,
    held: bool,
    read_only: bool,
) -> Entry | Answered:
    """Return whether the call may start, for a book that survives the process.

    `record` is what is known about earlier starts, and `request` the newest one about the call.
    """
    if record and record.ended:
        return Replay(record)
    if request and request.inquiry and request.inquiry.server:
        request = None  # its server asked it in the middle of a call that is lost
    unknown = record is not None and not read_only
    if request is None or (unknown and not _is_about(request, record)):
        if unknown or asks:
            return Ask(RequestKind.MAY_HAVE_RUN if unknown else RequestKind.CALL)
    elif request.state is RequestState.PENDING:
        return Ask(request.kind)
    elif request.state is not RequestState.APPROVED:
        return Settled(request)
    elif asks and request.held and not held:
        return Ask(RequestKind.CALL)
    elif request.call.digest != call.digest:
        return Settled(request, changed=True)
    elif request.inquiry:
        return Answered(request)
    elif asks and request.call.operands != call.operands:
        return Ask(request.kind, again=True)
    return Go(request)


def _is_about(request: ApprovalRequest, record: CallRecord | None) -> bool:
    """Whether the request asks about the interrupted start, and was not itself used for that start."""
    return request.kind is RequestKind.MAY_HAVE_RUN and (record is None or record.request != request.id)


class CallBook(Protocol):
    """Keeps the state of every call, and lets each call run at most once."""

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        """Return the record of a call and the newest request about it, if there are any."""
        ...

    async def enter(self, call: ToolCall, *, asks: bool, held: bool, read_only: bool) -> Entry:
        """Let the call start, or return why it may not. Only `Go` lets a call start.

        `asks`: the call asks now, by itself or because it is `held`. A call that was held when people were asked, and
        asks by itself now, was approved by nobody.
        """
        ...

    async def done(self, call: ToolCall, result: Any) -> Any:
        """Store the result, and return it as it was stored."""
        ...

    async def failed(self, call: ToolCall, words: str, *, unknown: bool = False) -> None:
        """Store the failure. `unknown`: nobody knows whether the call ran."""
        ...

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

    async def enter(self, call: ToolCall, *, asks: bool, held: bool, read_only: bool) -> Entry:
        request = self.requests.get(call.key)
        if request and request.state is RequestState.APPROVED:
            del self.requests[call.key]
        entry = entry_of(call, None, request, asks=asks, held=held, read_only=read_only)
        return Replay(entry.record(call, 0.0)) if isinstance(entry, Answered) else entry

    async def done(self, call: ToolCall, result: Any) -> Any:
        return result

    async def failed(self, call: ToolCall, words: str, *, unknown: bool = False) -> None:
        pass

    async def withdraw(self, call: ToolCall) -> None:
        pass


def packed(result: Any) -> tuple[Any, bytes]:
    """Return the result and its JSON. A result that cannot be serialized becomes text."""
    try:
        return result, _json_of(result)
    except (ValueError, TypeError, RecursionError):
        result = str(result).encode(errors="backslashreplace").decode()
        return result, _json_of(result)


def _json_of(result: Any) -> bytes:
    full = cast("ToolReturn[Any]", result) if isinstance(result, ToolReturn) else ToolReturn(return_value=result)
    return returned().dump_json(full)


class UnusableResult(Exception):
    """A tool ran, but its result cannot be passed on."""


async def passable(result: Any) -> Any:
    """Return the result if it can be stored, read again and sent to a model, or else its text.

    Results are other people's objects: writing one as JSON or as text may fail, never end or nest too deep. Unchecked,
    it would end the turn and the sibling calls, or make the stored conversation unreadable. Raises UnusableResult if
    the result has no text, either.
    """
    if result is None or type(result) in (bool, int, float):
        return result
    if type(result) is str and len(result) <= LONG and result.isascii():
        return result
    return await answered(_passable, result)


def _passable(result: Any) -> Any:
    try:
        result = _listed(result)
    except Exception as error:
        raise _unusable(error) from error
    try:
        size = _try_round_trip(result)
    except (ValueError, TypeError, RecursionError):
        return _text_of(result)
    except Exception as error:
        raise _unusable(error) from error
    if size <= LONG:
        return result
    from signoff.gate.long_results import shortened  # few results are long

    return shortened(result, size)


def _listed(result: Any) -> Any:
    """Return the items of an iterator as a list: they can be read only once, and a result is read several times."""
    if isinstance(result, ToolReturn):
        full = cast("ToolReturn[Any]", result)
        return replace(full, return_value=_listed(full.return_value))
    if not isinstance(result, Iterator):
        return result
    items = list(islice(cast("Iterator[Any]", result), MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        raise ValueError(f"its iterator gave more than {MOST_ITEMS} items")
    return items


def _try_round_trip(result: Any) -> int:
    """Raise if the journal or the conversation could not be written, or could not be read again. Return its size."""
    full = cast("ToolReturn[Any]", result) if isinstance(result, ToolReturn) else ToolReturn(return_value=result)
    returned().validate_json(returned().dump_json(full))
    message = ModelRequest(parts=[ToolReturnPart("tool", full.return_value, "call")])
    written = ModelMessagesTypeAdapter.dump_json([message])
    ModelMessagesTypeAdapter.validate_json(written)
    return len(written)


def _text_of(result: Any) -> str:
    try:
        return str(result).encode(errors="backslashreplace").decode()
    except Exception as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> UnusableResult:
    return UnusableResult(f"The tool ran, but its result cannot be passed on: {described(error)}")

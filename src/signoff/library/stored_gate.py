"""The gate that lets a run wait in a store: a response that must ask ends the run, and `resume` lets it go on later.

Memory and mode decide inside the run, as `inline` does. If a person is left to ask, all requests of the response are
stored, and the run ends with `DeferredToolRequests`, which become a `Pending`. A resumed run starts again at the open
calls, and the book of calls in the store says which of them were decided or have run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, cast

from pydantic_ai import ApprovalRequired, CallToolsNode, ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from signoff.approvals.model import ApprovalDecision, ApprovalRequest, CallKey, ToolCall
from signoff.dataclass import dataclass
from signoff.gate.book import Answered, Entry, Go, MemoryBook, Replay, entry_of, packed
from signoff.gate.delegation import Delegation, InnerRun, Opened
from signoff.gate.inline import Decided, InlineGate, has_output_call, round_of
from signoff.gate.pending_call import Attempt, PendingCall
from signoff.library.claim import Claim
from signoff.library.decider import Decider
from signoff.library.store import ApprovalStore
from signoff.turns.model import CallRecord, CallState

AFTER_TEXT = (
    "The model wrote text and then called {tool}, which has to wait for a decision. run_stream ends at the text, so it "
    "cannot wait for the call. The call was not run. Use run, run_stream_events or iter."
)
WITH_RESULT = (
    "Not run: this call has to wait for a person, so it cannot be in the same response as the final result. "
    "Call it again on its own, and give the final result once you have read its result."
)

INSIDE = (
    "Not run: this call has to wait for a person. A run in a store cannot wait in the middle of a tool, so only the "
    "agent itself may make such a call, not the code or the agents inside one of its tools."
)
IN_THE_MIDDLE = "a run in a store cannot wait in the middle of a call"


@dataclass
class Pending(DeferredToolRequests):
    """The output of a run that waits: `resume` each of these requests."""

    run: str = field(default="", kw_only=True)
    requests: tuple[ApprovalRequest, ...] = field(default=(), kw_only=True)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(request.id for request in self.requests)


@dataclass(frozen=True)
class LaterDecider(Decider):
    """Memory and mode decide at once; people decide later."""

    def known(self, request: ApprovalRequest) -> Decided | None:
        if request.inquiry and request.inquiry.server:
            # The call is running, and would be lost with this process.
            return Decided(ApprovalDecision(False, IN_THE_MIDDLE), "no_approver")
        return self.automatic(request)


@dataclass(frozen=True)
class NowDecider(LaterDecider):
    """For agents inside a tool of a stored run: a call that memory and mode do not decide at once is rejected."""

    async def ask(self, request: ApprovalRequest) -> Decided:
        return Decided(ApprovalDecision(False, INSIDE), "no_approver")


@dataclass
class StoredBook(MemoryBook):
    """The book of calls of a stored run. Automatic decisions are in memory: after a crash, they are made again."""

    store: ApprovalStore = field(kw_only=True)

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        def work() -> tuple[CallRecord | None, ApprovalRequest | None]:
            with self.store.call(key) as (record, request, _):
                return record, self.requests.get(key, request)

        return await asyncio.to_thread(work)

    async def enter(self, call: ToolCall, *, asks: bool, held: bool, read_only: bool) -> Entry:
        now = self.store.clock()

        def work() -> Entry:
            with self.store.call(call.key) as (record, request, put):
                request = self.requests.get(call.key, request)
                entry = entry_of(call, record, request, asks=asks, held=held, read_only=read_only)
                if isinstance(entry, Answered):
                    put(ended := entry.record(call, now))
                    return Replay(ended)
                if isinstance(entry, Go):
                    id = entry.request.id if entry.request else ""
                    put(CallRecord(call.key, call.tool, call.digest, CallState.STARTED, request=id, started=now))
                return entry

        return await asyncio.to_thread(work)

    async def done(self, call: ToolCall, result: Any) -> Any:
        result, kept = packed(result)
        await self._end(call, CallState.DONE, kept)
        return result

    async def failed(self, call: ToolCall, words: str, *, unknown: bool = False) -> None:
        state = CallState.UNKNOWN if unknown else CallState.FAILED
        await self._end(call, state, words.encode(errors="backslashreplace"))

    async def withdraw(self, call: ToolCall) -> None:
        def work() -> None:
            with self.store.call(call.key) as (_, _, put):
                put(None)

        await asyncio.to_thread(work)

    async def _end(self, call: ToolCall, state: CallState, result: bytes) -> None:
        def work() -> None:
            with self.store.call(call.key) as (record, _, put):
                started = record or CallRecord(call.key, call.tool, call.digest, state)
                put(replace(started, state=state, result=result))

        await asyncio.to_thread(work)


@dataclass
class StoredGate(InlineGate):
    """One per run of the framework. The run in the store may last for several of them."""

    store: ApprovalStore = field(kw_only=True)
    timeout: float | None = field(kw_only=True)
    """Seconds until a request expires, unless the rule says otherwise; None: never."""
    claim: Claim | None = field(default=None, kw_only=True)
    """The claim of the `resume` that this run is part of."""
    _waits_for: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    """The requests that this run stored and that a person has to decide."""

    @property
    def run(self) -> str:
        return self.place.conversation

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        if isinstance(node, CallToolsNode) and node.model_response.tool_calls:
            response = cast("CallToolsNode[Any, Any]", node).model_response
            messages = list(ctx.messages)
            if not messages or messages[-1] is not response:
                messages.append(response)
            await asyncio.to_thread(self.store.save, self.run, messages, self.responses, self._rounds)
        return await super().before_node_run(ctx, node=node)

    async def open_inner(self, call: Delegation, run: InnerRun, given: Sequence[ModelMessage]) -> Opened:
        opened, later = await super().open_inner(call, run, given), self.decider
        assert isinstance(opened.gate, InlineGate)
        assert isinstance(later, LaterDecider)
        opened.gate.decider = NowDecider(None, later.mode, later.memory, later.on_no_approver, later.on_event)
        return opened

    async def _ask(self, attempt: Attempt, pending: PendingCall) -> Attempt:
        if self._after_text:
            raise UserError(AFTER_TEXT.format(tool=pending.call.tool))
        if has_output_call(attempt.ctx):
            raise ModelRetry(WITH_RESULT)
        if attempt.inside and self._needs_person([pending]):
            raise ToolFailed(INSIDE)
        if attempt.ctx.tool_call_approved and not self._needs_person([pending]):
            return await super()._ask(attempt, pending)
        self._pending[pending.call.key] = pending
        raise ApprovalRequired

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        _, pending = await self._collect(ctx, requests)
        if not self._needs_person(pending) or self._is_tired(pending[0].call.key):
            return await super().handle_deferred_tool_calls(ctx, requests=requests)
        await self._wait(pending, requests)
        return None

    def _needs_person(self, pending: Sequence[PendingCall]) -> bool:
        asking = [call for call in pending if not call.ruling.held]
        return any(self.decider.known(self._request(call.call, call.ruling, call)) is None for call in asking)

    async def _wait(self, pending: Sequence[PendingCall], deferred: DeferredToolRequests) -> None:
        """Store the requests of a response, those that are decided already among them."""
        requests: list[ApprovalRequest] = []
        for call in pending:
            request = self._request(call.call, call.ruling, call)
            decided = None if request.held else self.decider.known(request)
            if decided:
                self.decider.settle(request, decided)
                request = decided.settle(request)
            elif not request.held:
                self._waits_for.append(request)
                deferred.metadata[request.tool_call_id] = {**request.metadata, "request": request.id, "run": self.run}
            requests.append(request)
        self._rounds.add(round_of(pending[0].call.key))
        limits = [call.ruling.timeout or self.timeout for call in pending if not call.ruling.held]
        seconds = min((limit for limit in limits if limit), default=None)
        await asyncio.to_thread(self.store.wait, self.run, requests, self._rounds, seconds)
        # From now on, another process may decide and let the run go on.
        if self.claim:
            self.claim.release()

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        if isinstance(result.output, DeferredToolRequests):
            if not self._waits_for:
                # A call that was approved automatically asked again, which the framework does not report.
                calls = [self._pending[self._key(part.tool_call_id)] for part in result.output.approvals]
                await self._wait(calls, result.output)
            return replace(result, output=pending_of(self.run, self._waits_for, result.output))
        await asyncio.to_thread(self.store.end, self.run)
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        if self._waits_for:
            # The agent cannot end with these requests, for example because of its output type.
            await asyncio.to_thread(self.store.withdraw, self.run)
        if self.claim is None:
            await asyncio.to_thread(self.store.end, self.run)  # nobody can resume a run that has not asked yet
        raise error


def pending_of(run: str, requests: Sequence[ApprovalRequest], deferred: DeferredToolRequests) -> Pending:
    calls, approvals, metadata = deferred.calls, deferred.approvals, deferred.metadata
    return Pending(calls=calls, approvals=approvals, metadata=metadata, run=run, requests=tuple(requests))

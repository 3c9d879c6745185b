"""The gate: every tool call of every kind passes through it, with the arguments that would really be used.

It is the outermost layer around all toolsets, so no call can bypass it. The innermost layer, the seal, refuses a call
if a layer in between changed the arguments (see `toolsets`). The gate trusts only a decision about the call's digest,
never the framework's own "approved" flag. A call that must ask ends the run with a deferral; `inline` asks inside the
run instead.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from typing import Any, ClassVar

from pydantic import ValidationError
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolDefinition, ToolDenied
from pydantic_ai.capabilities import CapabilityOrdering, ToolSearch
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import to_jsonable_python

from signoff.approvals.containment import contained
from signoff.approvals.inquiries import Inquiry
from signoff.approvals.large_values import off_loop_if_large
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    CallKey,
    Edit,
    JsonObject,
    Place,
    RequestKind,
    Ruling,
    ToolCall,
    Verdict,
)
from signoff.approvals.policy import Said
from signoff.dataclass import dataclass
from signoff.gate import wording
from signoff.gate.arguments import seal_of
from signoff.gate.asking_people import elsewhere, inquiry_of_tool
from signoff.gate.book import Ask, CallBook, Go, Replay, Settled, UnusableResult, passable
from signoff.gate.declarations import (
    describe_tool,
    is_independent,
    is_read_only,
    marks_of,
    may_ask_people,
    only_asks,
    runs_agents,
    says_it_asks,
)
from signoff.gate.delegation import (
    AgentsAsk,
    Delegation,
    InnerRun,
    InnerRuns,
    ModelRequests,
    Opened,
    beside,
    calls_inside,
)
from signoff.gate.examiner import Examiner, Judge
from signoff.gate.home_loop import HomeLoop
from signoff.gate.live_calls import AnswerNeeded, LiveCall, LiveCalls
from signoff.gate.lost_calls import CallLost
from signoff.gate.passing_events import PassesEvents
from signoff.gate.pending_call import (
    Attempt,
    CallInfo,
    CallTool,
    PendingCall,
    Preview,
    approved_by,
    is_answered,
    keeps_edit,
    may_still_run,
    said_yes,
)
from signoff.gate.tool_slots import StartOrder, ToolOverran, ToolSlots
from signoff.gate.toolsets import GatedToolset, Seal, around_the_gate
from signoff.gate.transcript import response_of
from signoff.turns.model import CallState
from signoff.turns.ports import Progress
from signoff.turns.progress import Unseen


class Refusal(ToolDenied):
    """Refuses only this attempt. It does not say whether an earlier attempt ran."""


@dataclass
class Gate(PassesEvents):
    """Handles one run step, and remembers the rulings on the calls of each response."""

    policy: Judge
    book: CallBook
    place: Place
    asker: Actor
    slots: ToolSlots
    hold: bool = True
    calls_per_response: int = 10
    contains_failures: bool = True
    """Whether a tool's exception becomes a failed result, instead of ending the run."""
    native_allowed: bool = False
    asks_inside: ClassVar[bool] = False
    """Whether people are asked inside the run, which then goes on at once. See `inline`."""
    heard: Sequence[Said] | None = None
    """The conversation for predicates; None: read it from the run's own messages."""
    responses: int = 0
    """How many responses the conversation has. The run's own history may be shorter, because an agent may cut it."""
    progress: Progress = field(default_factory=Unseen)
    begun: Callable[[], Awaitable[None]] | None = None
    """Waits for the step, if the run is ahead of it: until then, no response counts."""
    conversation: str = ""
    """Keys the calls in the book, if it is not the place's: the agent runs inside a tool. See `delegation`."""
    path: tuple[str, ...] = ()
    """The names of the agents inside tools that lead to this one, outermost first."""
    children: InnerRuns | None = None
    """Keeps the runs of agents inside tools."""
    live: LiveCalls = field(default_factory=LiveCalls)
    """The calls that go on while people answer what they ask."""
    requests: ModelRequests = field(default_factory=ModelRequests)
    home: HomeLoop | None = None
    """The bot's loop, if this gate may be used on another one."""
    ran: dict[CallKey, str] = field(default_factory=dict[CallKey, str])
    """Key of each call that ran -> its tool."""
    admitted: dict[str, str] = field(default_factory=dict[str, str])
    """Call id -> fingerprint of the arguments that were let in, for the seal."""
    _seen: dict[CallKey, tuple[ToolCall, Ruling]] = field(default_factory=dict[CallKey, tuple[ToolCall, Ruling]])
    """Key of each validated call -> (the call, the ruling on it)."""
    _pending: dict[CallKey, PendingCall] = field(default_factory=dict[CallKey, PendingCall])
    _within: dict[CallKey, Sequence[PendingCall]] = field(default_factory=dict[CallKey, Sequence[PendingCall]])
    """Key of each call whose tool runs agents that ask -> their calls."""
    _around: set[str] = field(default_factory=set[str])
    """Names of the tools of wrappers that are around the gate, such as the harness's code mode."""
    _order: StartOrder = field(default_factory=StartOrder)

    def __post_init__(self) -> None:
        self.examiner = Examiner(self.policy, self.place, self.asker, self.slots, self.heard)

    # The framework calls these, in this order: see docs/architecture.md

    def get_ordering(self) -> CapabilityOrdering:
        # Tool search is outermost as well. Its own tool passes the gate like all others.
        return CapabilityOrdering(position="outermost", wraps=[ToolSearch])

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self)

    def seal(self) -> Seal:
        return Seal(self)

    def begin_step(self, book: CallBook, progress: Progress) -> None:
        """Begin a step in a run that waited for it: nothing that was judged before it counts any more."""
        self.book, self.progress = book, progress
        self.examiner.asked_early.clear()
        for judged in (self._seen, self._pending, self._within):
            judged.clear()

    def declare(self, tools: Mapping[str, ToolsetTool[Any]]) -> None:
        self.examiner.tools.update(tools)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        await self.slots.wait_open(self.place.server)
        self.requests.take()
        self.progress.thinking()
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        if self.begun:
            await self.begun()
        self.responses += 1
        return response

    async def check(self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any]) -> None:
        """Run the tool's own validator on the arguments, unless nothing is left to check."""
        key = self._key(ctx.tool_call_id)
        record, request = await self.book.met(key)
        if (record and record.ended) or key in self.live or (request and not may_still_run(request)):
            return  # it will not run again, and it may itself have caused the state that the validator would see
        if request and request.edit:
            return  # `_edited` checks the person's arguments instead
        try:
            await self.examiner.check(ctx, key, validate, args, approved=said_yes(request))
        except (ModelRetry, ToolFailed) as failure:
            if record is None:
                raise
            # The interrupted attempt may have caused this failure. First ask people whether to run the call again.
            if said_yes(request):
                raise ToolFailed(f"{wording.CUT_OFF} {failure.message}") from failure

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        if tool_def.name not in self.examiner.tools and ctx.tool_manager and ctx.tool_manager.tools:
            self.declare({tool_def.name: ctx.tool_manager.tools[tool_def.name]})
            self._around.add(tool_def.name)
        if not self.asks_inside and len(response_of(ctx).tool_calls) == 1:
            return args  # it is judged when it enters, and no call beside it has to know
        # All calls of a response are validated before any runs, so the first one that runs knows of the others.
        described = (await self.examiner.describe(ctx, tool_def.name, args, self._key(call.tool_call_id)))[0]
        self._seen[described.key] = described, await self.examiner.rule(described, ctx)
        return args

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> dict[str, Any]:
        with beside(self):
            validated = await handler(args)
        if not is_independent(tool_def):
            self._order.expect(self._key(call.tool_call_id))
        return validated

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        key, outer = self._key(call.tool_call_id), calls_inside(self)
        if outer:
            await outer.begin_call(key)
        try:
            with beside(self):
                if tool_def.name in self._around:
                    return await self.admit(ctx, tool_def, args, around_the_gate(handler))
                return await handler(args)
        finally:
            self._order.passed(key)
            self.slots.shares.leave(self._holder, key)
            if outer:
                await outer.end_call(key)

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        with beside(self):
            return await handler(output)

    def moved(self, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
        key, threads = self._key(ctx.tool_call_id), self.slots.threads
        return threads.moved(tool, lambda work: self.slots.shares.begun(key, work)) if threads else tool

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        """Let one call run, defer it, or return a refusal or a stored result in its place."""
        attempt = await self._attempt(ctx, tool_def.name, args, run)
        record, request = await self.book.met(attempt.call.key)
        if record and record.ended:
            if attempt.inside and record.digest != attempt.call.digest:
                raise ToolFailed(wording.OTHER_CALLS)
            return self._replay(attempt.call, Replay(record))
        is_live = bool(self.live) and await self.live.found(attempt.call.key) is not None
        cut_off = record is not None and not is_live
        try:
            if is_live:
                pass  # it has its arguments
            elif request and request.edit and request.called == attempt.call.digest and keeps_edit(request):
                attempt = await self._edited(attempt, request)
            else:
                await self._check_fixed(attempt, args, approved=said_yes(request))
            result = await self._admit(replace(attempt, decided=request is not None))
        except (ModelRetry, ToolFailed) as failure:
            if not cut_off:
                raise
            raise ToolFailed(f"{wording.CUT_OFF} {failure.message}") from failure
        if cut_off and isinstance(result, Refusal):
            return ToolDenied(f"{wording.CUT_OFF} {result.message}")
        return result

    # One call

    async def _admit(self, attempt: Attempt) -> Any:
        """Return the call's result or refusal. Each further round comes after a pause or a decision."""
        while isinstance(outcome := await self._enter(attempt), Attempt):
            attempt = outcome
        return outcome

    async def _enter(self, attempt: Attempt) -> Any:
        """Judge the call, and run it if it may run now. Returns an attempt if the call must be judged again."""
        call, tool_def = attempt.call, attempt.tool_def
        # Wait first: a ruling or a preview from before a pause is out of date after it.
        await self.slots.wait_open(self.place.server, (self._holder, call.key))
        ruling = await self.examiner.rule(call, attempt.ctx)
        if self.live and (live := await self.live.found(call.key)):
            return await self._go_on(attempt, ruling, live)
        if ruling.verdict is Verdict.DENY:
            return self._denied(call, ruling)
        if ruling.verdict is Verdict.ALLOW and self.hold and self._is_held(attempt):
            ruling = replace(ruling, verdict=Verdict.ASK, reason=wording.HELD, held=True)
        asks = ruling.verdict is Verdict.ASK and not attempt.only_asks
        view = await self.examiner.preview(tool_def, attempt.ctx, attempt.args) if asks else Preview("")
        call = replace(call, operands=view.operands)
        if (attempt.decided or not asks) and await self._wait_for_turn(attempt):
            return attempt  # the server may have been paused, and its rules changed, in the meantime
        repeatable = is_read_only(tool_def) or (attempt.delegates and self.children is not None)
        match await self.book.enter(call, asks=asks, held=ruling.held, read_only=repeatable):
            case Ask(RequestKind.MAY_HAVE_RUN as kind):
                why = wording.interrupted(idempotent=marks_of(tool_def).idempotent is True)
                pending = self._pend(call, replace(ruling, reason=why, held=False), view, kind, edit=attempt.edit)
            case Ask(again=again):
                ruling = replace(ruling, reason=wording.CHANGED, held=False) if again else ruling
                words = self.examiner.words(call.key, ruling)
                pending = self._pend(call, ruling, view, metadata=words, edit=attempt.edit)
            case Settled(changed=True):
                return Refusal(wording.OTHER_ARGUMENTS)
            case Settled(request):
                return ToolDenied(wording.told(request))
            case Replay() as entry:
                return self._replay(call, entry)
            case Go(request):
                if self.slots.is_shut(self.place.server):
                    await self.book.withdraw(call)  # the server was paused just now
                    return attempt
                started = replace(attempt, call=call)
                try:
                    return await self._reported(started, request)
                except AgentsAsk as asked:
                    if asked.fatal:
                        raise asked.fatal from asked
                    self._within[call.key] = asked.pending
                    raise ApprovalRequired from asked
                except ApprovalRequired as raised:
                    pending = await self._asked_by_tool(started, ruling, request, raised)
                except CallDeferred as raised:
                    asked = inquiry_of_tool(self.examiner.tools[call.tool], call, raised.metadata)
                    pending = self._inquire(call, ruling, request, asked)
                except AnswerNeeded as needed:
                    pending = self._inquire(call, ruling, request, needed.inquiry)
        return replace(await self._ask(attempt, pending), decided=True)

    async def _go_on(self, attempt: Attempt, ruling: Ruling, live: LiveCall) -> Any:
        """Hand people's answer to a call that is running, and ask further if that call does."""
        if not live.is_of(attempt.call):
            raise ToolFailed(wording.OTHER_CALLS)
        call = live.call
        if ruling.verdict is Verdict.DENY:
            await self.live.give_up(call.key)
            await self.book.failed(call, wording.denied_midway(ruling), unknown=True)
            raise ToolFailed(wording.denied_midway(ruling))
        _, request = await self.book.met(call.key)
        try:
            if live.is_asking and (request is None or not live.takes(request)):
                raise live.needed()

            async def go_on(ctx: RunContext[Any], args: dict[str, Any]) -> Any:
                return await self.live.go_on(call.key, request)

            return await self._reported(replace(attempt, call=call, run=go_on), live.approval)
        except AnswerNeeded as needed:
            pending = self._inquire(call, ruling, live.approval, needed.inquiry)
        return replace(await self._ask(attempt, pending), decided=True)

    def _inquire(
        self, call: ToolCall, ruling: Ruling, approval: ApprovalRequest | None, inquiry: Inquiry
    ) -> PendingCall:
        """Return the pending call for a tool that needs an answer. `approval`: the request that let the call start."""
        reason = wording.SERVER_INQUIRES if inquiry.server else wording.INQUIRES
        # A tool may have asked for the approval by itself, without any rule. Then it is answered as it was approved.
        verdict = Verdict.ASK if said_yes(approval) else ruling.verdict
        ruling = replace(ruling, verdict=verdict, reason=reason, held=False)
        edit = approval.edit if approval else None
        return replace(self._pend(call, ruling, Preview(""), RequestKind.ANSWER, edit=edit), inquiry=inquiry)

    async def _ask(self, attempt: Attempt, pending: PendingCall) -> Attempt:
        """Ask people about the call: the run ends here until they decide. `inline` asks and returns the attempt."""
        if attempt.inside and not self.asks_inside:
            await attempt.inside.ask(replace(pending, path=(*self.path, attempt.inside.call.tool)))
        self._pending[pending.call.key] = pending
        raise ApprovalRequired

    def _pend(
        self,
        call: ToolCall,
        ruling: Ruling,
        view: Preview,
        kind: RequestKind = RequestKind.CALL,
        metadata: JsonObject | None = None,
        edit: Edit | None = None,
    ) -> PendingCall:
        said = describe_tool(self.examiner.tools[call.tool])
        return PendingCall(call, ruling, kind, metadata or {}, view.text, edit, said, view.diff_of, self.path)

    def pending(self, call_id: str) -> Sequence[PendingCall]:
        """Return what people have to decide about this call of the newest response: the call, or calls inside it."""
        key = self._key(call_id)
        return self._within.get(key) or ([self._pending[key]] if key in self._pending else [])

    async def open_inner(self, call: Delegation, run: InnerRun, given: Sequence[ModelMessage]) -> Opened:
        """Return the gate for an agent that runs inside the call."""
        if self.children is None:
            raise RuntimeError("no agent may run here")
        return await self.children.open(call, run, given, call.home)

    async def _reported(self, attempt: Attempt, request: ApprovalRequest | None) -> Any:
        """Run the call, and report when it starts and how it ends. By then the book has its end."""
        key = attempt.call.key
        self.progress.started(key, attempt.call.tool)
        try:
            result = await self._go(attempt, request)
        except (ApprovalRequired, AgentsAsk, CallDeferred, AnswerNeeded):
            self.progress.withdrawn(key)
            raise
        except BaseException:
            self.progress.ended(key, failed=True)
            raise
        self.progress.ended(key)
        return result

    async def _go(self, attempt: Attempt, request: ApprovalRequest | None) -> Any:
        call, args = attempt.call, attempt.args
        self.admitted[call.key.call_id] = await off_loop_if_large(args, lambda: seal_of(args))
        info = CallInfo(self.place, self.asker, request.call.operands if request else {}, approved_by(request))
        ctx = replace(attempt.ctx, tool_call_approved=said_yes(request), tool_call_metadata=info)
        try:
            async with self.slots.occupy() as limit:
                with contained() if self.contains_failures else nullcontext():
                    self._order.passed(call.key)
                    tool = attempt.run(ctx, args)
                    if may_ask_people(attempt.tool_def) and self.live.get(call.key) is None:
                        tool = self.live.run(call, request, tool)
                    result = await Delegation(self, call).run(limit, tool)
                    result = await passable(result) if self.contains_failures else result
        except (AgentsAsk, AnswerNeeded):
            raise  # the call goes on later: the book keeps it as started
        except (ApprovalRequired, CallDeferred):
            await self.book.withdraw(call)
            raise
        except (ModelRetry, ToolFailed) as failure:
            await self.book.failed(call, failure.message, unknown=isinstance(failure, CallLost))
            raise
        except Exception as error:
            words = str(error) if isinstance(error, ToolOverran | UnusableResult) else wording.failed(error)
            await self.book.failed(call, words, unknown=isinstance(error, ToolOverran))
            if not self.contains_failures:
                raise
            # An exception would cancel the sibling calls and end the turn, so the model gets a failed result instead.
            raise ToolFailed(words) from error
        self.ran[call.key] = call.tool
        if request and request.edit:
            result = wording.with_note(result, wording.edited(request))
        return await self.book.done(call, result)

    async def _asked_by_tool(
        self, attempt: Attempt, ruling: Ruling, request: ApprovalRequest | None, raised: ApprovalRequired
    ) -> PendingCall:
        """Return the pending call for a tool that asked when it was called.

        Raises ToolFailed if the tool repeats a question that was just decided.
        """
        words = to_jsonable_python(raised.metadata or {}, fallback=str)
        # Make the preview again: the tool may ask because something has changed.
        view = await self.examiner.preview(attempt.tool_def, attempt.ctx, attempt.args)
        if request and said_yes(request) and is_answered(request, words, view):
            raise ToolFailed(wording.ASKS_AGAIN) from raised
        ruling = replace(ruling, verdict=Verdict.ASK, reason=wording.ASKED, held=False)
        call = replace(attempt.call, operands=view.operands)
        edit = request.edit if request else None
        return self._pend(call, ruling, view, metadata=words, edit=edit)

    def _replay(self, call: ToolCall, entry: Replay) -> Any:
        self.ran[call.key] = call.tool
        if entry.record.state in (CallState.FAILED, CallState.UNKNOWN):
            raise ToolFailed(entry.failure)
        return entry.result

    def _denied(self, call: ToolCall, ruling: Ruling) -> ToolDenied:
        return Refusal(wording.denied(ruling))

    # Reading and checking a call

    async def _attempt(self, ctx: RunContext[Any], name: str, args: dict[str, Any], run: CallTool) -> Attempt:
        """Return the call with the arguments that its tool would get.

        Raises ToolFailed if the response has too many calls or repeats this id, or if the tool would run elsewhere.
        """
        inside = calls_inside(self)
        ids = [call.tool_call_id for call in response_of(ctx).tool_calls]
        if len(ids) > self.calls_per_response:
            raise ToolFailed(wording.too_many(len(ids), self.calls_per_response))
        if inside is None and ids.count(ctx.tool_call_id or "") != 1:
            raise ToolFailed(wording.SAME_ID)
        tool = self.examiner.tools[name]
        tool_def = tool.tool_def
        ctx = replace(ctx, tool_call_metadata=CallInfo(self.place, self.asker))
        call, fixed = await self.examiner.describe(ctx, name, args, self._key(ctx.tool_call_id))
        run = elsewhere if tool_def.kind == "external" else run
        delegates, asks = runs_agents(tool), only_asks(tool)
        return Attempt(ctx, tool_def, fixed.args, run, call, delegates=delegates, inside=inside, only_asks=asks)

    async def _edited(self, attempt: Attempt, request: ApprovalRequest) -> Attempt:
        """Replace the model's arguments with those that a person wrote, as the tool's own validator reads them."""
        ctx, tool = attempt.ctx, self.examiner.tools[attempt.tool_def.name]
        text = json.dumps(dict(request.call.args))
        try:
            args = tool.args_validator.validate_json(text, context=ctx.validation_context)
        except ValidationError as error:
            raise ToolFailed(wording.OUT_OF_DATE) from error
        call, fixed = await self.examiner.describe(ctx, attempt.tool_def.name, args, attempt.call.key)
        if call.digest != request.call.digest:
            raise ToolFailed(wording.OTHER_ARGUMENTS)
        if tool.args_validator_func:
            await self.examiner.check(
                ctx, self._key(ctx.tool_call_id), tool.args_validator_func, fixed.args, approved=said_yes(request)
            )
        return replace(attempt, args=fixed.args, call=call, edit=request.edit)

    async def _check_fixed(self, attempt: Attempt, validated: dict[str, Any], *, approved: bool) -> None:
        """Run the validator again if the tool would get other arguments than the validator saw."""
        validate = self.examiner.tools[attempt.tool_def.name].args_validator_func
        if validate and attempt.args != validated:
            await self.examiner.check(attempt.ctx, attempt.call.key, validate, attempt.args, approved=approved)

    async def _wait_for_turn(self, attempt: Attempt) -> bool:
        """Wait for the calls before this one, and for a place in its person's share. Returns whether it had to wait."""
        waited = await self._wait_for_earlier(attempt)
        return await self.slots.shares.take(self._holder, attempt.call.key) or waited

    async def _wait_for_earlier(self, attempt: Attempt) -> bool:
        """Wait until the calls before this one have started or will not start. Returns whether it had to wait."""
        if attempt.inside:
            return False
        ids = [call.tool_call_id for call in response_of(attempt.ctx).tool_calls]
        earlier = [self._key(call_id) for call_id in ids[: ids.index(attempt.call.key.call_id)]]
        if is_independent(attempt.tool_def) or not self._order.expects_any(earlier):
            return False
        try:
            await self.slots.in_time(wording.ORDER, self._order.wait_for(earlier))
        except ToolFailed:
            if not self.slots.is_shut(self.place.server) and not self.slots.shares.is_waiting(self._holder):
                raise  # a pause or a queue may last longer than the time limit
        return True

    def _is_held(self, attempt: Attempt) -> bool:
        # A tool that runs agents, makes calls or asks people goes ahead: these questions belong on the same card.
        goes_ahead = attempt.delegates or attempt.inside or attempt.only_asks or says_it_asks(attempt.tool_def)
        return not goes_ahead and bool(self._questions(attempt.call.key))

    def _questions(self, key: CallKey) -> list[ToolCall]:
        """The other calls of the same response that need approval by themselves."""
        return [
            call
            for other, (call, ruling) in self._seen.items()
            if ruling.verdict is Verdict.ASK and other.position == key.position and other != key
            if not only_asks(self.examiner.tools[call.tool])
        ]

    @property
    def _holder(self) -> str:
        """Who holds the place of a call. A tool that makes calls itself keeps its own place meanwhile."""
        return f"{self.asker.id}/within" if calls_inside(self) else self.asker.id

    def _key(self, call_id: str | None) -> CallKey:
        return CallKey(self.conversation or self.place.conversation, self.responses, call_id or "")

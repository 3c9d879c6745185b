"""Agents that run inside a tool: they run behind the gate of the call that runs them, as they are.

Every run of PydanticAI goes through `Agent.iter`. `install` puts one function in front of it: a run that starts inside
a tool call is given to that call's `Delegation`, every other run is left alone (see docs/decisions/015). If an agent
inside a tool must ask, the tool is left without a result, and the tool's call waits for the questions of its agents.
After the decision the tool is run again from its beginning, and each agent goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed, UsageLimitExceeded, UserError
from pydantic_ai.messages import ModelMessage
from pydantic_core import to_jsonable_python

from signoff.approvals.digest import fingerprint
from signoff.approvals.model import CallKey, ToolCall
from signoff.dataclass import dataclass
from signoff.errors import SignoffError
from signoff.gate import wording
from signoff.gate.home_loop import HomeLoop
from signoff.gate.pending_call import PendingCall
from signoff.gate.tool_threads import carry_into_threads

if TYPE_CHECKING:
    from signoff.gate.gate import Gate

QUIET_SECONDS = 0.05
"""How long no agent of a call may be busy before those that wait leave the tool. A tool may start the next one."""

LONGEST_NAME = 40
"""Most characters of an agent's name on a card, so that the name of its tool stays in sight."""

_running: ContextVar[Delegation | None] = ContextVar("_running", default=None)
"""The innermost tool call whose code is running here."""


class AgentsAsk(Exception):
    """Agents inside a tool ask, or their run was broken off (`fatal`): the tool's call has no result yet."""

    def __init__(self, pending: Sequence[PendingCall], fatal: SignoffError | None = None) -> None:
        super().__init__("agents inside a tool ask")
        self.pending = tuple(pending)
        self.fatal = fatal


class Delegated(BaseException):
    """Leaves the run of an agent that must ask. A tool's `except Exception` does not catch it.

    Nothing depends on how far it travels: the `Delegation` knows which of its agents wait.
    """


@dataclass
class ModelRequests:
    """How many model requests a turn has left, for its agent and all agents inside its tools together."""

    left: float = float("inf")

    def take(self) -> None:
        if self.left < 1:
            raise UsageLimitExceeded("The turn has used all of its model requests.")
        self.left -= 1


class RunState(StrEnum):
    BUSY = "busy"
    WAITING = "waiting"
    ENDED = "ended"


@dataclass(eq=False)
class InnerRun:
    """One run of an agent inside a tool call, or one call that the tool makes itself."""

    agent: str
    conversation: str
    """Keys its messages and its calls in the store. Empty: it is a call that the tool makes itself."""
    state: RunState = RunState.BUSY
    pending: Sequence[PendingCall] = ()
    """The calls that people have to decide, once it waits."""


@dataclass(frozen=True)
class Opened:
    """Everything that the framework runs the agent with."""

    gate: Gate
    history: Sequence[ModelMessage] | None = None
    """The messages to go on from; None: the run has not begun before."""
    capabilities: Sequence[AbstractCapability[Any]] = ()
    """Further capabilities of ours, between the gate and the seal."""


class InnerRuns(Protocol):
    """Keeps what agents inside tools did, so that they go on after a decision or a restart."""

    async def open(
        self, delegation: Delegation, run: InnerRun, given: Sequence[ModelMessage], home: HomeLoop
    ) -> Opened:
        """Note that the run begins, and return its gate and what is known of an earlier attempt."""
        ...

    async def ended(self, run: InnerRun) -> None: ...

    async def left_behind(self, call: CallKey, begun: set[str]) -> bool:
        """Whether an earlier attempt of the call had a run that waits, and that is not among `begun`."""
        ...


@dataclass(eq=False)
class Delegation:
    """A running tool call and the agents inside it. All of its state belongs to the bot's loop."""

    gate: Gate
    call: ToolCall
    runs: list[InnerRun] = field(default_factory=list[InnerRun])
    fatal: SignoffError | None = None
    """Ends the turn's step even if the tool catches it: the store failed, or the turn was stopped."""
    _calls: dict[CallKey, InnerRun] = field(default_factory=dict[CallKey, InnerRun])
    """Key of each call that the tool makes itself -> its entry in `runs`."""
    _over: bool = False
    """Whether the tool's own code has ended. Agents that it left running can ask nobody any more."""
    is_beside: bool = False
    """Whether it stands for code that is no tool. See `beside`."""
    _quiet: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once those that wait leave the tool."""
    _loop: asyncio.AbstractEventLoop | None = None
    """The loop on which the gate runs the call."""
    _limit: asyncio.Timeout | None = None
    _seconds: float | None = None

    # Around the tool

    async def run(self, limit: asyncio.Timeout, tool: Awaitable[Any]) -> Any:
        """Return the tool's result. Raises AgentsAsk, no matter how the tool ended, if agents inside it wait."""
        self._loop, self._limit, self._seconds = asyncio.get_running_loop(), limit, self.gate.slots.seconds_per_tool
        token = _running.set(self)
        result, failure = None, None
        try:
            result = await tool
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, GeneratorExit) or (task and task.cancelling()):
                raise
            failure = error
        finally:
            _running.reset(token)
            self._over = True
        if self.runs:
            await self.home.run(self._leave())
        if failure is not None:
            raise failure
        return result

    @property
    def home(self) -> HomeLoop:
        assert self._loop is not None
        return self.gate.home or HomeLoop(self._loop)

    async def _leave(self) -> None:
        self._quiet.set()
        if self.fatal:
            raise AgentsAsk((), self.fatal)
        pending = [call for run in self.runs for call in run.pending]
        if not pending:
            return
        children = self.gate.children
        if children and await children.left_behind(self.call.key, {run.conversation for run in self.runs}):
            raise ToolFailed(wording.OTHER_PROMPT)
        raise AgentsAsk(pending)

    # Around each agent, on any loop

    async def begin(self, agent: str, prompt: Any, given: Sequence[ModelMessage]) -> tuple[InnerRun, Opened]:
        """Note that an agent's run begins. Raises Delegated if the tool is being left."""
        return await self.home.run(self._begin(agent, prompt, given))

    async def wait(self, run: InnerRun, pending: Sequence[PendingCall]) -> bool:
        """Wait until all agents of the call have ended or wait, too. Returns False if nobody can be asked any more."""
        return await self.home.run(self._wait(run, pending))

    async def end(self, run: InnerRun, *, finished: bool) -> None:
        await self.home.run(self._end(run, finished))

    # Around each call that the tool makes itself: see `calls_inside`

    async def begin_call(self, key: CallKey) -> None:
        await self.home.run(self._begin_call(key))

    async def ask(self, pending: PendingCall) -> None:
        """Leave the tool until people have decided about a call that the tool makes itself."""
        if not await self.wait(self._calls[pending.call.key], [pending]):
            raise ToolFailed(self.why_nobody)
        raise Delegated

    async def end_call(self, key: CallKey) -> None:
        await self.end(self._calls[key], finished=False)

    @property
    def why_nobody(self) -> str:
        """The reason why a call that asks is denied, once nobody can be asked."""
        return wording.BESIDE if self.is_beside else wording.LEFT_RUNNING

    # On the bot's loop

    async def _begin_call(self, key: CallKey) -> None:
        if self._quiet.is_set() and not self._over:
            raise Delegated
        self._calls[key] = run = InnerRun("", "")
        self.runs.append(run)
        self._stop_limit()

    async def _begin(self, agent: str, prompt: Any, given: Sequence[ModelMessage]) -> tuple[InnerRun, Opened]:
        if self._quiet.is_set() and not self._over:
            raise Delegated
        run = InnerRun((agent or self.call.tool)[:LONGEST_NAME], self._conversation(agent, prompt, len(given)))
        self.runs.append(run)
        self._stop_limit()
        try:
            return run, await self.gate.open_inner(self, run, given)
        except BaseException:
            run.state = RunState.ENDED
            raise

    def _conversation(self, agent: str, prompt: Any, given: int) -> str:
        """Return the key of a run: it depends on the agent and its prompt, not on the order in which runs begin.

        So agents that run at the same time find their own earlier attempt. Runs that are alike are numbered.
        """
        said = to_jsonable_python(prompt, fallback=lambda value: type(value).__name__)
        which = fingerprint({"agent": agent, "prompt": said, "given": given})[:16]
        key = self.call.key
        call_id = hashlib.sha256(key.call_id.encode(errors="backslashreplace")).hexdigest()[:16]
        name = f"{key.conversation}/{key.position}.{call_id}.{which}"
        return f"{name}.{sum(run.conversation.startswith(f'{name}.') for run in self.runs)}"

    async def _wait(self, run: InnerRun, pending: Sequence[PendingCall]) -> bool:
        if self._over:
            return False
        run.state, run.pending = RunState.WAITING, pending
        self._look()
        await self._quiet.wait()
        return True

    async def _end(self, run: InnerRun, finished: bool) -> None:
        if run.state is RunState.BUSY:
            run.state = RunState.ENDED
            if finished and run.conversation and self.gate.children:
                await self.gate.children.ended(run)
        self._look()

    def _look(self) -> None:
        """Let those that wait leave, if no other agent is busy for a moment."""
        if not any(run.state is RunState.BUSY for run in self.runs):
            self._start_limit()
            if any(run.state is RunState.WAITING for run in self.runs):
                asyncio.get_running_loop().call_later(QUIET_SECONDS, self._close)

    def _close(self) -> None:
        if not any(run.state is RunState.BUSY for run in self.runs):
            self._quiet.set()

    # The time limit is for the tool's own code: its agents' tools have limits of their own, and models take their time.

    def _stop_limit(self) -> None:
        self._move_limit(lambda now: None)

    def _start_limit(self) -> None:
        seconds = self._seconds
        self._move_limit(lambda now: now + seconds if seconds else None)

    def _move_limit(self, until: Callable[[float], float | None]) -> None:
        loop, limit = self._loop, self._limit
        if loop is None or limit is None:
            return

        def move() -> None:
            with suppress(RuntimeError):  # the call has ended
                limit.reschedule(until(loop.time()))

        loop.call_soon_threadsafe(move)


def is_inside() -> bool:
    """Whether this code belongs to a tool call, so that the gate of that call is in charge of agents that run here."""
    return _running.get() is not None


def calls_inside(gate: Gate) -> Delegation | None:
    """Return the call of this gate whose tool makes further calls through the same gate, if that happens here.

    The code mode of pydantic-ai-harness does so: its `run_code` calls the other tools.
    """
    current = _running.get()
    return current if current is not None and current.gate is gate and not current.is_beside else None


@contextmanager
def beside(gate: Gate) -> Generator[None]:
    """Run code of the gate's agent that is no tool: output functions, validators, previews, conditions.

    Agents that such code runs get the rules of the gate. It cannot be run again after a decision, so they ask nobody.
    """
    if _running.get() is not None:
        yield
        return
    key = CallKey(gate.conversation or gate.place.conversation, gate.responses, secrets.token_hex(8))
    loop = asyncio.get_running_loop()
    delegation = Delegation(gate, ToolCall(key, "agent", {}, ""), is_beside=True, _over=True, _loop=loop)
    token = _running.set(delegation)
    try:
        yield
    finally:
        _running.reset(token)
    if delegation.fatal:
        raise delegation.fatal


@contextmanager
def outside() -> Generator[None]:
    """Run code that belongs to no tool call, such as a user interface that runs an agent of its own."""
    token = _running.set(None)
    try:
        yield
    finally:
        _running.reset(token)


def install(inner_iter: Callable[..., Any]) -> None:
    """Give runs that start inside a tool call to `inner_iter`, which gets `Agent.iter` and the call's delegation.

    The modules that make gates do this when they are imported. A second time has no effect.
    """
    original: Any = Agent.iter
    if getattr(original, "signoff_delegation", False):
        return

    @functools.wraps(original)
    def iter_behind_the_gate(self: Any, *args: Any, **options: Any) -> Any:
        delegation = _running.get()
        if delegation is None:
            return original(self, *args, **options)
        return inner_iter(original, delegation, self, *args, **options)

    marked: Any = iter_behind_the_gate
    marked.signoff_delegation = True
    Agent.iter = marked
    realtime: Any = AbstractAgent.realtime

    @functools.wraps(realtime)
    def realtime_outside(self: Any, *args: Any, **options: Any) -> Any:
        if _running.get() is not None:
            raise UserError("A tool cannot open a realtime session of an agent: its calls would bypass every approval.")
        return realtime(self, *args, **options)

    changed: Any = realtime_outside
    AbstractAgent.realtime = changed
    carry_into_threads(_running, Delegated)

"""Calls that go on while people answer what their tool asks: an MCP server may ask in the middle of a call.

The run ends as it does for every question, and only the tool's own task goes on. The next step of the turn finds the
call here, hands it the answer and waits for its result. Nothing of this survives the process: a call that is lost with
it may have run. This module does not know how people are asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from signoff.approvals.inquiries import Inquiry
from signoff.approvals.model import ApprovalRequest, CallKey, RequestState, ToolCall
from signoff.dataclass import dataclass

log = logging.getLogger(__name__)

END_SECONDS = 1.0
"""How long a cancelled call may take to end."""

_current: ContextVar[LiveCall | None] = ContextVar("_current", default=None)
"""The call whose tool is running here."""


class AnswerNeeded(Exception):
    """The running tool asks people something, and goes on when they have answered."""

    def __init__(self, inquiry: Inquiry) -> None:
        super().__init__("the tool needs an answer")
        self.inquiry = inquiry


class NobodyAnswers(Exception):
    """The call has ended, so nobody will answer any more."""


@dataclass(eq=False)
class LiveCall:
    """One running call. Its tool asks one thing at a time."""

    call: ToolCall
    """The call as it was started, with the arguments that a person may have edited."""
    approval: ApprovalRequest | None
    """The approved request that let the call start, if there is one."""
    inquiry: Inquiry | None = None
    """What the tool asks now."""
    _loop: asyncio.AbstractEventLoop | None = None
    """The loop of the task. An agent inside a tool may run on another one than the bot's."""
    _task: asyncio.Task[Any] | None = None
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _answer: asyncio.Future[ApprovalRequest] | None = None
    _used: set[str] = field(default_factory=set[str])
    """The ids of the requests that the tool has got. A tool may ask the same again."""
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, inquiry: Inquiry) -> ApprovalRequest:
        """Ask people, and return the settled request. Called for the tool. Raises NobodyAnswers."""
        async with self._one_at_a_time:
            if self._task is None or self._task.done() or self._task.cancelling():
                raise NobodyAnswers
            self.inquiry, self._answer = inquiry, asyncio.get_running_loop().create_future()
            self._asked.set()
            try:
                return await self._answer
            finally:
                self.inquiry = None
                self._asked.clear()  # the question may also have been withdrawn

    def is_of(self, call: ToolCall) -> bool:
        """Whether this is the call that the model, or the code of a tool, makes now."""
        return call.digest in (self.call.digest, self.approval and self.approval.called)

    @property
    def is_asking(self) -> bool:
        """Whether the tool waits for an answer now. A tool that has ended waits for none."""
        return self._asked.is_set() and not (self._task and self._task.done())

    def takes(self, request: ApprovalRequest) -> bool:
        """Whether this request is about what the tool asks now, and is settled."""
        is_new = request.id not in self._used and request.inquiry == self.inquiry
        return is_new and request.state is not RequestState.PENDING

    def needed(self) -> AnswerNeeded:
        assert self.inquiry is not None
        return AnswerNeeded(self.inquiry)

    def answer(self, request: ApprovalRequest) -> None:
        self._used.add(request.id)
        self._asked.clear()
        if self._answer and not self._answer.done():
            self._answer.set_result(request)

    def start(self, tool: Awaitable[Any]) -> None:
        async def run() -> Any:
            _current.set(self)
            return await tool

        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(run())
        # It may end while nobody follows it. Its error is not lost: the next step, if there is one, reads it.
        self._task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def follow(self) -> Any:
        """Return the tool's result. Raises AnswerNeeded if the tool asks; then the tool goes on by itself."""
        assert self._task is not None
        while not self._task.done():
            asked = asyncio.get_running_loop().create_task(self._asked.wait())
            try:
                await asyncio.wait({self._task, asked}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                await self.end()
                raise
            finally:
                asked.cancel()
            if self.is_asking:
                raise self.needed()
        return self._task.result()

    @property
    def is_here(self) -> bool:
        """Whether the call's task is one of the running loop, so that it can be waited for."""
        return self._loop is asyncio.get_running_loop()

    async def end(self) -> None:
        """Give the call up."""
        if self._task and self._loop and not self.is_here:
            with suppress(RuntimeError):  # that loop is closed
                self._loop.call_soon_threadsafe(self._task.cancel)
        elif self._task and not self._task.done():
            self._task.cancel()
            if self._answer and not self._answer.done():
                self._answer.set_exception(NobodyAnswers())
            await asyncio.wait({self._task}, timeout=END_SECONDS)


class LiveCalls(dict[CallKey, LiveCall]):
    """Key of each call whose tool runs, or waits for an answer -> the call."""

    def __init__(self) -> None:
        super().__init__()
        self._ending: set[asyncio.Task[None]] = set()
        """The tasks that give calls up."""

    async def found(self, key: CallKey) -> LiveCall | None:
        """Return the call if it still goes on, or has ended since it asked.

        One that an agent inside a tool left behind on a loop that is gone is lost.
        """
        if (call := self.get(key)) and not call.is_here:
            log.warning("%s asked people on an event loop that is gone, so it is given up", call.call.tool)
            await self.give_up(key)
        return self.get(key)

    async def run(self, call: ToolCall, approval: ApprovalRequest | None, tool: Awaitable[Any]) -> Any:
        """Run a tool that may ask people while it runs."""
        live = LiveCall(call, approval)
        live.start(tool)
        return await self._follow(call.key, live)

    async def go_on(self, key: CallKey, request: ApprovalRequest | None) -> Any:
        """Hand the settled request to the tool that asked, if it still asks, and run the tool further."""
        call = self[key]
        if request and call.is_asking and call.takes(request):
            call.answer(request)
        return await self._follow(key, call)

    async def _follow(self, key: CallKey, call: LiveCall) -> Any:
        self[key] = call
        waits = False
        try:
            return await call.follow()
        except AnswerNeeded:
            waits = True
            raise
        finally:
            if not waits:
                self.pop(key, None)

    async def give_up(self, key: CallKey) -> None:
        if call := self.pop(key, None):
            await call.end()

    def end_turn(self, conversation: str) -> None:
        """Give up the calls of a conversation whose turn has ended, and those of agents inside its tools."""
        for key in [key for key in self if f"{key.conversation}/".startswith(f"{conversation}/")]:
            call = self.pop(key)
            ending = asyncio.get_running_loop().create_task(call.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


def current_call() -> LiveCall | None:
    """Return the call whose tool is running here, if that tool may ask people."""
    return _current.get()

"""Decides one request: first memory and mode, then the UI. Then remembers the decision and announces it.

Fails closed: the call is rejected if the UI fails or returns something other than a decision, or if there is no UI
(unless `on_no_approver` is "approve"). Knows only requests and decisions; `collect` and the gate turn them
into the framework's results.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, cast, get_args

from signoff.approvals.containment import answered
from signoff.approvals.digest import canonical
from signoff.approvals.events import FAILED, tool_approval
from signoff.approvals.model import ApprovalDecision, ApprovalRequest
from signoff.dataclass import dataclass
from signoff.gate.inline import LOCAL, Decided
from signoff.library.calling_thread import is_driven_by_sync_code
from signoff.library.memory import ApprovalMemory
from signoff.library.ui import AnyApprovalUI, ApprovalMode

log = logging.getLogger(__name__)

OnNoApprover = Literal["reject", "approve"]
Event = dict[str, Any]
Subscriber = Callable[[Event], None]

_question: ContextVar[asyncio.Lock | None] = ContextVar("signoff_question", default=None)


@contextmanager
def one_question_at_a_time():
    """Ask a UI only one question at a time in this context, and in runs that its tools start."""
    token = _question.set(_question.get() or asyncio.Lock())
    try:
        yield
    finally:
        _question.reset(token)


@dataclass(frozen=True)
class Decider:
    """Decides the requests of one run."""

    ui: AnyApprovalUI | None
    mode: ApprovalMode = "interactive"
    memory: ApprovalMemory | None = None
    on_no_approver: OnNoApprover = "reject"
    on_event: Subscriber | Sequence[Subscriber] = ()

    def __post_init__(self) -> None:
        # A misspelt mode must not act like another mode.
        if self.mode not in get_args(ApprovalMode):
            raise ValueError(f"unknown mode {self.mode!r}: use one of {', '.join(get_args(ApprovalMode))}")
        if self.on_no_approver not in get_args(OnNoApprover):
            raise ValueError(f"unknown on_no_approver {self.on_no_approver!r}: use reject or approve")

    def automatic(self, request: ApprovalRequest) -> Decided | None:
        """Return the decision of memory or mode, if there is one. A reject of either overrides an accept.

        Neither of them answers an inquiry: a mode that asks nobody declines it.
        """
        if request.inquiry:
            asks = self.mode == "interactive"
            return None if asks else Decided(ApprovalDecision(False, f"mode {self.mode} asks nobody"), "mode")
        remembered = self.memory.lookup(request) if self.memory else None
        if remembered and not remembered.approved:
            return Decided(ApprovalDecision(False, remembered.note), "memory")
        if self.mode == "auto_deny":
            return Decided(ApprovalDecision(False), "mode")
        if remembered:
            return Decided(ApprovalDecision(True, remembered.note), "memory")
        if self.mode == "auto_approve":
            return Decided(ApprovalDecision(True), "mode")
        return None

    def known(self, request: ApprovalRequest) -> Decided | None:
        """Return the decision if no person needs to be asked, or if there is no UI to ask."""
        answer = self.automatic(request)
        if answer or self.ui is not None:
            return answer
        if request.inquiry:
            log.warning("nobody is there to answer %s: declined", request.call.tool)
            return Decided(ApprovalDecision(False), "no_approver")
        approve = self.on_no_approver == "approve"
        ending = "approved, as on_no_approver says" if approve else "rejected"
        log.warning("nobody is there to approve %s: %s", request.call.tool, ending)
        return Decided(ApprovalDecision(approve), "no_approver")

    def ask_sync(self, request: ApprovalRequest) -> Decided:
        assert self.ui is not None
        if inspect.iscoroutinefunction(self.ui.choose):
            raise TypeError("this UI is async: use collect_approvals or run_with_approval")
        try:
            return checked(self._choose()(request))
        except Exception:
            return _failed(request)

    async def ask(self, request: ApprovalRequest) -> Decided:
        assert self.ui is not None
        async with _question.get() or asyncio.Lock():
            # The UI may run an agent that asks, too. That inner question must not wait for this one.
            token = _question.set(None)
            try:
                if not is_driven_by_sync_code():
                    # A sync UI gets its own thread, so that it does not block the event loop.
                    return checked(await answered(self._choose(), request))
                said = self._choose()(request)
                return checked(await said if inspect.isawaitable(said) else said)
            except Exception:
                return _failed(request)
            finally:
                _question.reset(token)

    def _choose(self) -> Callable[[ApprovalRequest], Any]:
        """Return the UI's method, with the mode if the method takes one."""
        choose = cast(Callable[..., Any], self.ui.choose if self.ui else None)
        return functools.partial(choose, mode=self.mode) if _takes_mode(choose) else choose

    def settle(self, request: ApprovalRequest, decided: Decided) -> None:
        """Remember the decision if it says so, and tell the subscribers."""
        if self.memory:
            try:
                self.memory.store(request, decided.decision)
            except OSError:
                log.exception("the decision about %s stands, but could not be remembered", request.call.tool)
        self.announce(request, decided)

    def announce(self, request: ApprovalRequest, decided: Decided) -> None:
        event = tool_approval(LOCAL, decided.settle(request), how=decided.how, note=decided.decision.note)
        if decided.approved and request.edit is None and decided.decision.override_args is not None:
            event["override_args"] = dict(decided.decision.override_args)
        subscribers = (self.on_event,) if callable(self.on_event) else self.on_event
        for subscriber in subscribers:
            try:
                subscriber(event)
            except Exception:
                log.exception(FAILED)


def _takes_mode(choose: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(choose).parameters.values()
    except (ValueError, TypeError):  # not written in Python
        return False
    return any(p.name == "mode" and p.kind is not p.POSITIONAL_ONLY for p in parameters)


def checked(said: Any) -> Decided:
    """Check the UI's decision. True, or any other truthy value, is not an approval."""
    if not isinstance(said, ApprovalDecision) or not isinstance(cast(Any, said.approved), bool):
        raise TypeError(f"the UI answered with {type(said).__name__} instead of an ApprovalDecision")
    if said.remember not in ("none", "session", "always"):
        raise ValueError(f"the UI wants the decision remembered in an unknown way: {said.remember!r}")
    if said.override_args is not None:
        canonical(dict(said.override_args))  # raises if it is not plain JSON, which could not be stored or shown
    if said.answer is not None:
        json.dumps(dict(said.answer), ensure_ascii=False, allow_nan=False).encode()
    return Decided(replace(said, note=said.note or ""), "ui")  # None is no note, too


def _failed(request: ApprovalRequest) -> Decided:
    log.exception("the UI failed at the request about %s: the call is rejected", request.call.tool)
    return Decided(ApprovalDecision(False), "error")

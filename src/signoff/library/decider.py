"""One decision about one request: what memory and mode say, else what the UI says; then remembered and announced.

Closed when in doubt: no UI, a UI that fails and an answer that is none all reject. It knows requests and decisions
only; what the framework makes of them is in `collect` and `gate`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from signoff.approvals.containment import answered
from signoff.approvals.digest import canonical
from signoff.approvals.model import ApprovalDecision, ApprovalRequest
from signoff.library.memory import ApprovalMemory
from signoff.library.ui import AnyApprovalUI, ApprovalUI

log = logging.getLogger(__name__)

ApprovalMode = Literal["interactive", "auto_approve", "auto_deny"]
OnNoApprover = Literal["reject", "approve"]
How = Literal["ui", "memory", "mode", "no_approver", "error", "policy", "max_rounds", "unreadable"]
Event = dict[str, Any]
Subscriber = Callable[[Event], None]

REFUSALS: dict[How, str] = {
    "ui": "Rejected by user: the call was not run.",
    "memory": "Rejected by user, who wanted this decision remembered: the call was not run.",
    "mode": "Rejected by the configuration (auto_deny): the call was not run.",
    "no_approver": "Rejected: nobody is there to approve the call, so it was not run. This was not a person's refusal.",
    "error": "Rejected: approval could not be obtained, so the call was not run. This was not a person's refusal.",
    "policy": "Not allowed: the call was not run.",
    "max_rounds": "Rejected: approval was asked for too often in this run, so the call was not run. Do not repeat it.",
    "unreadable": "Rejected: the arguments cannot be shown to a person, so the call was not run.",
}

_question: ContextVar[asyncio.Lock | None] = ContextVar("signoff_question", default=None)


@contextmanager
def one_question_at_a_time():
    """Within it, and in runs that are started inside its tools, a UI is never asked two things at once."""
    token = _question.set(_question.get() or asyncio.Lock())
    try:
        yield
    finally:
        _question.reset(token)


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision, and where it comes from."""

    decision: ApprovalDecision
    how: How

    @property
    def approved(self) -> bool:
        return self.decision.approved

    @property
    def by(self) -> str | None:
        return "user" if self.how in ("ui", "memory") else None

    @property
    def refusal(self) -> str:
        """What the model reads in place of a result."""
        return REFUSALS[self.how] + (f" Reason: {self.decision.note}" if self.decision.note else "")


@dataclass(frozen=True)
class Asker:
    """Everything that decides about requests in one run."""

    ui: AnyApprovalUI | None
    mode: ApprovalMode = "interactive"
    memory: ApprovalMemory | None = None
    on_no_approver: OnNoApprover = "reject"
    on_event: Subscriber | Sequence[Subscriber] = ()
    in_thread: bool = True
    """Whether a sync UI is called in a thread of its own, so that it does not block the event loop."""

    def __post_init__(self) -> None:
        # A misspelt mode must not fall through to some default.
        if self.mode not in get_args(ApprovalMode):
            raise ValueError(f"unknown mode {self.mode!r}: use one of {', '.join(get_args(ApprovalMode))}")
        if self.on_no_approver not in get_args(OnNoApprover):
            raise ValueError(f"unknown on_no_approver {self.on_no_approver!r}: use reject or approve")

    def settled(self, request: ApprovalRequest) -> Answer | None:
        """What memory and mode say, if they do. A reject of any origin wins over an accept of any other."""
        remembered = self.memory.lookup(request) if self.memory else None
        if remembered and not remembered.approved:
            return Answer(ApprovalDecision(False, remembered.note), "memory")
        if self.mode == "auto_deny":
            return Answer(ApprovalDecision(False), "mode")
        if remembered:
            return Answer(ApprovalDecision(True, remembered.note), "memory")
        if self.mode == "auto_approve":
            return Answer(ApprovalDecision(True), "mode")
        return None

    def asks(self, request: ApprovalRequest) -> bool:
        """Whether a person has to be asked, and is there."""
        return self.ui is not None and self.settled(request) is None

    def known(self, request: ApprovalRequest) -> Answer | None:
        """The answer, if nobody has to be asked or nobody is there."""
        answer = self.settled(request)
        if answer or self.ui is not None:
            return answer
        approve = self.on_no_approver == "approve"
        ending = "approved, as on_no_approver says" if approve else "rejected"
        log.warning("nobody is there to approve %s: %s", request.call.tool, ending)
        return Answer(ApprovalDecision(approve), "no_approver")

    def ask_sync(self, request: ApprovalRequest) -> Answer:
        assert self.ui is not None
        if inspect.iscoroutinefunction(self.ui.choose):
            raise TypeError("this UI is async: use collect_approvals or run_with_approval")
        try:
            return _checked(cast(ApprovalUI, self.ui).choose(request))
        except Exception:
            return _failed(request)

    async def ask(self, request: ApprovalRequest) -> Answer:
        assert self.ui is not None
        async with _question.get() or asyncio.Lock():
            # The UI may itself run an agent that asks: that question comes within this one and must not wait for it.
            token = _question.set(None)
            try:
                if self.in_thread:
                    return _checked(await answered(self.ui.choose, request))
                said = self.ui.choose(request)
                return _checked(await said if inspect.isawaitable(said) else said)
            except Exception:
                return _failed(request)
            finally:
                _question.reset(token)

    def settle(self, request: ApprovalRequest, answer: Answer) -> None:
        """Remember the answer if it asks for it, and tell the subscribers."""
        if self.memory:
            try:
                self.memory.store(request, answer.decision)
            except OSError:
                log.exception("the decision about %s stands, but could not be remembered", request.call.tool)
        self.announce(request.call.tool, dict(request.call.args), answer, request.id)

    def announce(self, tool: str, arguments: Event, answer: Answer, request_id: str = "") -> None:
        override = answer.decision.override_args if answer.approved else None
        event: Event = {
            "event": "tool_approval",
            "tool": tool,
            "arguments": arguments,
            "override_args": None if override is None else dict(override),
            "approved": answer.approved,
            "by": answer.by,
            "how": answer.how,
            "note": answer.decision.note,
            "request": request_id,
        }
        subscribers = (self.on_event,) if callable(self.on_event) else self.on_event
        for subscriber in subscribers:
            try:
                subscriber(event)
            except Exception:
                log.exception("a tool_approval subscriber failed; the decision stands")


def _checked(said: Any) -> Answer:
    """The UI's answer, if it is one: a bare True, or a truthy something, is no approval."""
    if not isinstance(said, ApprovalDecision) or not isinstance(cast(Any, said.approved), bool):
        raise TypeError(f"the UI answered with {type(said).__name__} instead of an ApprovalDecision")
    if said.remember not in ("none", "session", "always"):
        raise ValueError(f"the UI wants the decision remembered in an unknown way: {said.remember!r}")
    if said.override_args is not None:
        canonical(dict(said.override_args))  # raises for what is not plain JSON and could not be kept or shown again
    return Answer(said, "ui")


def _failed(request: ApprovalRequest) -> Answer:
    log.exception("the UI failed at the request about %s: the call is rejected", request.call.tool)
    return Answer(ApprovalDecision(False), "error")

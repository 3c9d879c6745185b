"""The protocol of a user interface that asks a person, sync and async, and a scripted one for tests.

A UI gets one request at a time and returns a decision. It knows nothing of modes, memory or the framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Literal, Protocol

from signoff.approvals.model import ApprovalDecision, ApprovalRequest
from signoff.dataclass import dataclass

ApprovalMode = Literal["interactive", "auto_approve", "auto_deny"]


class ApprovalUI(Protocol):
    """Asks a person about one call and waits for the decision: a prompt, a dialog, a web page."""

    def choose(self, request: ApprovalRequest) -> ApprovalDecision: ...


class AsyncApprovalUI(Protocol):
    """The async form of `ApprovalUI`. The async functions and `run_with_approval_sync` accept it."""

    async def choose(self, request: ApprovalRequest) -> ApprovalDecision: ...


class ApprovalUIWithMode(Protocol):
    """A UI whose `choose` takes the mode as well. It is only asked in mode `interactive`."""

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision: ...


class AsyncApprovalUIWithMode(Protocol):
    """The async form of `ApprovalUIWithMode`."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision: ...


SyncApprovalUI = ApprovalUI | ApprovalUIWithMode
AnyApprovalUI = SyncApprovalUI | AsyncApprovalUI | AsyncApprovalUIWithMode

ScriptedAnswer = ApprovalDecision | bool | Callable[[ApprovalRequest], ApprovalDecision]


def _nothing() -> list[ApprovalRequest]:
    return []


@dataclass
class ScriptedUI:
    """A UI for tests: it decides from a script and records the requests that it got.

    An entry of `answers` is a decision, True, False, or a function of the request. When none is left, it rejects with a
    note that says so. A test with too few entries therefore fails closed.
    """

    answers: Iterable[ScriptedAnswer] = ()
    asked: list[ApprovalRequest] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        self._left = list(self.answers)

    def choose(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        if not self._left:
            return ApprovalDecision(False, "the script has no answer left")
        answer = self._left.pop(0)
        if isinstance(answer, bool):
            return ApprovalDecision(answer)
        return answer if isinstance(answer, ApprovalDecision) else answer(request)


@dataclass
class AsyncScriptedUI:
    """The async form of `ScriptedUI`."""

    answers: Iterable[ScriptedAnswer] = ()
    asked: list[ApprovalRequest] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        self._script = ScriptedUI(self.answers, self.asked)

    async def choose(self, request: ApprovalRequest) -> ApprovalDecision:
        return self._script.choose(request)

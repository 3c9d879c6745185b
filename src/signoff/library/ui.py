"""Who is asked: the protocol of a user interface, sync and async, and a scripted one to test with.

A UI sees one request at a time and hands back a decision. It knows nothing of modes, memory or the framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from signoff.approvals.model import ApprovalDecision, ApprovalRequest


class ApprovalUI(Protocol):
    """Asks a person about one call and waits for the answer: a prompt, a dialog, a web page."""

    def choose(self, request: ApprovalRequest) -> ApprovalDecision: ...


class AsyncApprovalUI(Protocol):
    """The same for a UI that awaits. The async functions and `run_with_approval_sync` take it."""

    async def choose(self, request: ApprovalRequest) -> ApprovalDecision: ...


AnyApprovalUI = ApprovalUI | AsyncApprovalUI

ScriptedAnswer = ApprovalDecision | bool | Callable[[ApprovalRequest], ApprovalDecision]


def _nothing() -> list[ApprovalRequest]:
    return []


@dataclass
class ScriptedUI:
    """A UI for tests: it answers from a script and records what it was asked.

    An answer is a decision, True, False, or a function of the request. When the script has run out it rejects, with a
    note that says so: a test that forgot an answer fails closed.
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
    """The async twin of `ScriptedUI`."""

    answers: Iterable[ScriptedAnswer] = ()
    asked: list[ApprovalRequest] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        self._script = ScriptedUI(self.answers, self.asked)

    async def choose(self, request: ApprovalRequest) -> ApprovalDecision:
        return self._script.choose(request)

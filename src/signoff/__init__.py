"""Signoff: an AI agent for Discord that asks before it acts. Its approvals are also a library: see docs/library.md.

The library's names are loaded when they are first used, so that importing the package, as the command line does, is
fast and does not load PydanticAI.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from signoff.agent.deps import TurnInfo as TurnInfo
    from signoff.library import (
        AlreadyDecided,
        AnswerField,
        ApprovalDecision,
        ApprovalMemory,
        ApprovalMode,
        ApprovalRequest,
        ApprovalStore,
        ApprovalUI,
        AsyncApprovalUI,
        AsyncScriptedUI,
        BadAnswer,
        CallInfo,
        Context,
        EarlierCall,
        FieldKind,
        Inquiry,
        MemoryBroken,
        Pending,
        Policy,
        Preview,
        Remembered,
        Rule,
        ScriptedUI,
        Signoff,
        StoreBroken,
        StoredRequest,
        Verdict,
        build_approval_requests,
        call_info,
        collect_approvals,
        collect_approvals_sync,
        resume,
        resume_sync,
        run_with_approval,
        run_with_approval_sync,
    )
    from signoff.terminal import TerminalUI as TerminalUI

__version__ = "0.1.0"

__all__ = [
    "AlreadyDecided",
    "AnswerField",
    "ApprovalDecision",
    "ApprovalMemory",
    "ApprovalMode",
    "ApprovalRequest",
    "ApprovalStore",
    "ApprovalUI",
    "AsyncApprovalUI",
    "AsyncScriptedUI",
    "BadAnswer",
    "CallInfo",
    "Context",
    "EarlierCall",
    "FieldKind",
    "Inquiry",
    "MemoryBroken",
    "Pending",
    "Policy",
    "Preview",
    "Remembered",
    "Rule",
    "ScriptedUI",
    "Signoff",
    "StoreBroken",
    "StoredRequest",
    "Verdict",
    "build_approval_requests",
    "call_info",
    "collect_approvals",
    "collect_approvals_sync",
    "resume",
    "resume_sync",
    "run_with_approval",
    "run_with_approval_sync",
]


def __getattr__(name: str) -> Any:
    if name == "TerminalUI":  # a front end, so not part of the library
        return import_module("signoff.terminal").TerminalUI
    if name == "TurnInfo":  # for the agent that the bot runs, so not part of the library either
        return import_module("signoff.agent.deps").TurnInfo
    # Names outside __all__ must fail here, so that `from signoff import cli` then imports the submodule.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("signoff.library"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "TerminalUI", "TurnInfo"])

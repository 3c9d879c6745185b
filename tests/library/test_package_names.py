"""The promised names, written out: the other tests read `__all__`, which could lose a name."""

from __future__ import annotations

import signoff

PROMISED = {
    *("ApprovalDecision", "ApprovalMemory", "ApprovalMode", "ApprovalRequest", "ApprovalUI", "AsyncApprovalUI"),
    *(
        "AsyncScriptedUI",
        "CallInfo",
        "Context",
        "EarlierCall",
        "MemoryBroken",
        "Policy",
        "Preview",
        "Remembered",
        "Rule",
        "ScriptedUI",
        "TerminalUI",
        "Verdict",
    ),
    *("build_approval_requests", "call_info", "collect_approvals", "collect_approvals_sync"),
    *("run_with_approval", "run_with_approval_sync", "Signoff", "ApprovalStore", "StoredRequest", "Pending"),
    *("resume", "resume_sync", "AlreadyDecided", "StoreBroken"),
    *("AnswerField", "BadAnswer", "FieldKind", "Inquiry"),
}


def test_no_promised_name_is_lost() -> None:
    assert {*signoff.__all__, "TerminalUI"} == PROMISED
    assert all(getattr(signoff, name) is not None for name in PROMISED)

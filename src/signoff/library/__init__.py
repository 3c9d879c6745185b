"""Approvals for any PydanticAI agent, from any Python program: no Discord, and no database but a file.

`from signoff import ...` offers these names, and docs/library.md describes them. The package asks through a UI that
the caller supplies. It knows neither front ends nor the store. Only `signoff/__init__.py` imports it.
"""

from signoff.approvals.inquiries import AnswerField, BadAnswer, FieldKind, Inquiry
from signoff.approvals.model import ApprovalDecision, ApprovalRequest, Verdict
from signoff.approvals.policy import Context, EarlierCall, Policy, Rule
from signoff.gate.pending_call import CallInfo, Preview, call_info
from signoff.library.capability import Signoff
from signoff.library.collect import build_approval_requests, collect_approvals, collect_approvals_sync
from signoff.library.memory import ApprovalMemory, MemoryBroken, Remembered
from signoff.library.resume import resume, resume_sync
from signoff.library.run import run_with_approval, run_with_approval_sync
from signoff.library.store import ApprovalStore
from signoff.library.stored_gate import Pending
from signoff.library.stored_rows import AlreadyDecided, StoreBroken, StoredRequest
from signoff.library.ui import ApprovalMode, ApprovalUI, AsyncApprovalUI, AsyncScriptedUI, ScriptedUI

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

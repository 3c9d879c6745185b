"""The framework's deferred calls as requests that a person can read. Asks nobody and decides nothing."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ToolCallPart

from signoff.approvals.approvers import ASKER
from signoff.approvals.digest import bind
from signoff.approvals.model import ApprovalRequest, CallKey, Place, Ruling, ToolCall, Verdict

LOCAL = Place("local", "local", "local")
"""The place of a program that has no server: whoever runs it asks and decides."""

DEFERRED = Ruling(Verdict.ASK, "the tool asks for approval")


def build_approval_requests(deferred: DeferredToolRequests) -> list[ApprovalRequest]:
    """One request, with an id of its own, for every call that waits for approval, in the order of the calls.

    The arguments are those of the model, as the framework hands them out: `run_with_approval` shows validated ones.
    Raises ValueError for arguments that no person could be shown.
    """
    return [read_request(call, deferred.metadata.get(call.tool_call_id)) for call in deferred.approvals]


def read_request(call: ToolCallPart, metadata: Mapping[str, Any] | None) -> ApprovalRequest:
    try:
        args = call.args_as_dict(raise_if_invalid=True)
        return build_request(
            bind(ToolCall(CallKey("", 0, call.tool_call_id), call.tool_name, args, ""), LOCAL), metadata
        )
    except (ValueError, TypeError, AssertionError, RecursionError) as error:
        raise ValueError(f"the arguments of {call.tool_name} cannot be shown to a person: {error}") from error


def build_request(call: ToolCall, metadata: Mapping[str, Any] | None, ruling: Ruling = DEFERRED) -> ApprovalRequest:
    said = dict(metadata or {})
    return ApprovalRequest(
        id=secrets.token_hex(8),
        call=call,
        why=ruling.reason,
        approvers=(ASKER,) if ruling.approvers is None else ruling.approvers,
        metadata=said,
        message=ruling.message,
        preview=str(said.get("diff") or said.get("preview") or ""),
        held=ruling.held,
    )

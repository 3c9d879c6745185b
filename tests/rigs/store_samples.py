"""Rows to write in tests: every builder takes the fields that matter to the test and fills in the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    CallKey,
    Choice,
    Place,
    RequestState,
    Settlement,
    ToolCall,
)
from signoff.turns.model import Turn

ASKER = Actor(id="u1", name="Ada", server="s1", roles=frozenset({"r2", "r1"}), manages_server=True)
APPROVER = Actor(id="u2", name="Bob", server="s1", roles=frozenset({"r9"}))


def a_place(conversation: str = "c1") -> Place:
    return Place(server="s1", channel="ch1", conversation=conversation)


def a_turn(turn_id: str = "t1", **changes: Any) -> Turn:
    conversation = changes.pop("conversation", f"c-{turn_id}")
    asker = changes.pop("asker", ASKER.id)
    turn = Turn(
        id=turn_id,
        place=a_place(conversation),
        message=f"m-{turn_id}",
        asker=replace(ASKER, id=asker),
        text="please look",
        created=100.0,
    )
    return replace(turn, **changes)


def a_request(request_id: str = "q1", **changes: Any) -> ApprovalRequest:
    key = changes.pop("key", CallKey("c1", 3, f"call-{request_id}"))
    args = changes.pop("args", {"path": "notes.txt", "lines": [1, 2.5, None, True]})
    request = ApprovalRequest(
        id=request_id,
        call=ToolCall(key=key, tool="delete_file", args=args, schema="sha256:aa", digest="sha256:bb"),
        why="it deletes",
        approvers=("role:1", "asker"),
        metadata={"reason": "cleaning up"},
    )
    return replace(request, **changes)


def a_batch(batch_id: str = "b1", *requests: ApprovalRequest, **changes: Any) -> Batch:
    batch = Batch(
        id=batch_id,
        turn="t1",
        place=a_place(),
        asker=ASKER,
        requests=requests or (a_request(f"{batch_id}-q1"),),
        opened=100.0,
        deadline=400.0,
        model_text="I will clean up",
        already_ran=("list_files",),
    )
    return replace(batch, **changes)


def settled(
    request: ApprovalRequest, state: RequestState = RequestState.APPROVED, at: float = 200.0
) -> ApprovalRequest:
    choice = {RequestState.APPROVED: Choice.ACCEPT, RequestState.REJECTED: Choice.REJECT}.get(state)
    by = APPROVER if choice else None
    return replace(request, state=state, settlement=Settlement(choice=choice, by=by, at=at, note="fine"))

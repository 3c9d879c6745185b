"""A call on its way to a card: its preview, its terms, the request that people will see, and what they decided.

A tool offers a preview with `metadata={"preview": f}`, where `f(ctx, **arguments)`, sync or async, returns text or a
`Preview`. Operands are the things that the call would touch, each with a digest of its state. The gate compares them
before the call runs, and asks again if one of them has changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic_ai import RunContext, ToolDefinition

from signoff.approvals.containment import answered
from signoff.approvals.inquiries import Inquiry
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Edit,
    JsonObject,
    Place,
    RequestKind,
    RequestState,
    Ruling,
    ToolCall,
)
from signoff.approvals.tool_description import ToolDescription
from signoff.dataclass import dataclass
from signoff.gate import wording

if TYPE_CHECKING:
    from signoff.gate.delegation import Delegation

P = TypeVar("P")
CallTool = Callable[[RunContext[Any], dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Preview:
    text: str
    operands: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name of each thing that the call would touch -> digest of its state."""
    diff_of: str = ""
    """The argument that the text shows as a diff, so that the card need not show it again. See `own_preview`.

    Names that each end in a comma (`"old,new,"`): the text is the diff that these arguments make.
    """


@dataclass(frozen=True, slots=True)
class CallInfo:
    """A tool finds this in `ctx.tool_call_metadata`: where the call comes from, and the operands of its preview."""

    place: Place
    asker: Actor
    operands: Mapping[str, str] = field(default_factory=dict[str, str])
    approved_by: tuple[str, ...] = ()
    """Who approved the call, in words; empty if nobody was asked."""


Previewer = Callable[..., str | Preview | Awaitable[str | Preview]]
_OWN_PREVIEWS: set[object] = set()


def own_preview(previewer: P) -> P:
    """Mark a preview function of Signoff's own tools: only these may replace an argument on the card by a diff.

    A plugin's preview never hides an argument, no matter what it returns. See docs/decisions/014.
    """
    _OWN_PREVIEWS.add(previewer)
    return previewer


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call with everything that its tool would run with."""

    ctx: RunContext[Any]
    tool_def: ToolDefinition
    args: dict[str, Any]
    run: CallTool
    call: ToolCall
    edit: Edit | None = None
    decided: bool = False
    """Whether people were asked about the call, and have decided."""
    delegates: bool = False
    """Whether the tool is known to run agents."""
    inside: Delegation | None = None
    """The call whose tool makes this one."""
    only_asks: bool = False
    """Whether the call does nothing but ask people, so that it needs no approval."""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that cannot run before somebody has decided."""

    call: ToolCall
    ruling: Ruling
    kind: RequestKind = RequestKind.CALL
    metadata: JsonObject = field(default_factory=dict[str, Any])
    """The metadata of the tool's `ApprovalRequired(metadata=...)`."""
    preview: str = ""
    edit: Edit | None = None
    """Set if a person had already changed the arguments."""
    description: ToolDescription = field(default_factory=ToolDescription)
    diff_of: str = ""
    """The argument that the preview shows as a diff."""
    path: tuple[str, ...] = ()
    """The names of the agents inside tools that made the call; empty: the turn's own agent made it."""
    inquiry: Inquiry | None = None
    """What the call asks people, if it needs an answer."""

    def request(self, ruling: Ruling, approvers: tuple[str, ...]) -> ApprovalRequest:
        """Return the request that people see, with the terms of this ruling."""
        return ApprovalRequest(
            id=secrets.token_hex(8),
            call=self.call,
            why=ruling.reason,
            approvers=approvers,
            kind=self.kind,
            metadata=self.metadata,
            quorum=ruling.quorum,
            four_eyes=ruling.four_eyes,
            message=ruling.message,
            preview=self.preview,
            edit=self.edit and replace(self.edit, voided=()),
            held=ruling.held,
            description=self.description,
            diff_of=self.diff_of,
            by_server=ruling.by_server,
            path=self.path,
            inquiry=self.inquiry,
        )


def call_info(ctx: RunContext[Any]) -> CallInfo | None:
    """Return the CallInfo of the running tool; None if it does not run behind Signoff's gate."""
    return ctx.tool_call_metadata if isinstance(ctx.tool_call_metadata, CallInfo) else None


async def preview_of(tool_def: ToolDefinition, ctx: RunContext[Any], args: Mapping[str, Any]) -> Preview:
    """Return the tool's own preview; an empty one if it offers none. If the preview function raises, so does this."""
    previewer = (tool_def.metadata or {}).get("preview")
    if not callable(previewer):
        return Preview("")
    shown = await answered(cast(Previewer, previewer), ctx, **args)
    made = shown if isinstance(shown, Preview) else Preview(shown)
    texts: list[object] = [made.text, *made.operands, *made.operands.values()]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a preview is text, and so are its operands and their digests")
    is_own = getattr(cast(object, previewer), "__func__", previewer) in _OWN_PREVIEWS
    return made if is_own else replace(made, diff_of="")


def may_still_run(request: ApprovalRequest) -> bool:
    return request.state in (RequestState.PENDING, RequestState.APPROVED)


def keeps_edit(request: ApprovalRequest) -> bool:
    """Whether the call has the edited arguments. A call whose server asked had them, whatever people answered."""
    return may_still_run(request) or bool(request.inquiry and request.inquiry.server)


def said_yes(request: ApprovalRequest | None) -> bool:
    """Whether the tool may treat the call as approved. Never for a held call: nobody was asked about it."""
    return bool(request and request.state is RequestState.APPROVED and not request.held)


def approved_by(request: ApprovalRequest | None) -> tuple[str, ...]:
    """Return who approved the call, for a tool that has to say so elsewhere."""
    if request is None or not said_yes(request) or request.settlement is None:
        return ()
    people = {vote.by.id: vote.by for vote in request.votes}
    if request.settlement.by is not None:
        people[request.settlement.by.id] = request.settlement.by
    if people:
        return tuple(f"{person.name} ({person.id})" for person in people.values())
    grant = request.settlement.grant
    return (f"an earlier decision of {grant.by.name} ({grant.by.id})" if grant else "the approval mode",)


def is_answered(request: ApprovalRequest, words: JsonObject, view: Preview) -> bool:
    """Whether asking again is pointless: nothing has changed, and the approver has already read the tool's words.

    Other words do not help if no person approved: automatic approvals could then repeat without end.
    """
    by_person = request.settlement is not None and request.settlement.by is not None
    repeated = request.why == wording.ASKED and words == request.metadata
    nothing_new = repeated or not by_person
    return nothing_new and view.operands == request.call.operands

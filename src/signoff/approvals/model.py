"""Calls, requests, batches, people and decisions as frozen dataclasses.

Knows nothing of Discord, PydanticAI or SQL. Ids are strings, times are Unix seconds, arguments are JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, Literal

from signoff.approvals.coverage import EXACT, Coverage
from signoff.approvals.inquiries import Inquiry
from signoff.approvals.tool_description import ToolDescription
from signoff.dataclass import dataclass

JsonObject = Mapping[str, Any]
PAGE = 4
"""Questions on one page of a card."""

DIRECT = "dm"
"""The server id of direct messages."""

OVERAGE = "signoff:overage"
"""The `schema` of a call that asks to go beyond a budget. No tool has it: theirs are hexadecimal."""
SPEND_MORE = "spend_more"
"""The name of such a call on the card. Rules may name it: they choose the approvers, or deny every overage."""


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class RequestState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class RequestKind(StrEnum):
    CALL = "call"
    """The call has not run: ask before it does."""
    MAY_HAVE_RUN = "may_have_run"
    """The process died during the call: ask whether it ran, and whether to run it again."""
    ANSWER = "answer"
    """The call needs an answer, not an approval: ask for it with a form."""

    @property
    def no(self) -> Choice:
        """The choice that runs nothing."""
        return CHOICES[self][-1]


class Choice(StrEnum):
    """The possible decisions about a request."""

    ACCEPT = "accept"
    REJECT = "reject"
    RAN = "ran"
    RERUN = "rerun"
    SKIP = "skip"
    ANSWER = "answer"
    DECLINE = "decline"

    @property
    def state(self) -> RequestState:
        goes_on = self in (Choice.ACCEPT, Choice.RERUN, Choice.ANSWER)
        return RequestState.APPROVED if goes_on else RequestState.REJECTED

    @property
    def fits(self) -> RequestKind:
        return next(kind for kind, choices in CHOICES.items() if self in choices)


CHOICES = {
    RequestKind.CALL: (Choice.ACCEPT, Choice.REJECT),
    RequestKind.MAY_HAVE_RUN: (Choice.RAN, Choice.RERUN, Choice.SKIP),
    RequestKind.ANSWER: (Choice.ANSWER, Choice.DECLINE),
}
"""Kind of a request -> the choices about it, the one that runs nothing last."""
ENDED_AS = {Choice.ANSWER: "answered", Choice.DECLINE: "declined"}
"""Choice -> how the request ended, where its state does not tell."""


class Remember(StrEnum):
    """How far a decision is remembered, narrowest first."""

    NONE = "none"
    SESSION = "session"
    ALWAYS = "always"

    @property
    def reach(self) -> int:
        return list(Remember).index(self)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation lives: the server, the channel or thread to write to, and the conversation's own id."""

    server: str
    channel: str
    conversation: str

    @property
    def is_direct(self) -> bool:
        return self.server == DIRECT


@dataclass(frozen=True, slots=True)
class Actor:
    """A snapshot of a person. Authority is always checked on a fresh snapshot."""

    id: str
    name: str
    server: str
    roles: frozenset[str] = frozenset()
    manages_server: bool = False
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class CallKey:
    """Identifies a call. Models reuse call ids, so the position of the response is part of the key."""

    conversation: str
    position: int
    call_id: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call with its final arguments: validated, and with defaults filled in."""

    key: CallKey
    tool: str
    args: JsonObject
    schema: str
    """Digest of the tool's name, source and parameter schema."""
    digest: str = ""
    """The digest that a decision is bound to; see `digest.bind`."""
    operands: Mapping[str, str] = field(default_factory=dict[str, str])
    """Each thing that the call would touch, such as a file -> digest of its state. Checked again before the call."""

    @property
    def is_overage(self) -> bool:
        """Whether this is no call of the model: a budget is used up, and people are asked for more."""
        return self.schema == OVERAGE


@dataclass(frozen=True, slots=True)
class Escalation:
    """If nobody has settled a request after this many seconds, these may decide it too."""

    after: float
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ruling:
    """The policy's verdict on one call, with the reason for the card."""

    verdict: Verdict
    reason: str
    approvers: tuple[str, ...] | None = None
    timeout: float | None = None
    quorum: int = 1
    four_eyes: bool = False
    reminder: float | None = None
    """Post a reminder this many seconds before the deadline."""
    ping: bool = False
    """Whether the reminder pings the approver roles."""
    message: str = ""
    """The rule's message to the approvers."""
    relaxable: bool = False
    """Whether a server rule may loosen this ruling."""
    held: bool = False
    """Whether the call needs no approval by itself and only waits for its siblings."""
    by_server: bool = False
    """Whether a server rule contributed to this ruling."""
    notify: tuple[str, ...] | None = None
    """The ways to tell the approvers when the card opens, see `notify.py`; None: not said."""
    escalate: Escalation | None = None
    words: str = ""
    """The reason that the tool's own condition gave: untrusted, since it may repeat arguments."""
    answerers: tuple[str, ...] | None = None
    """Who may answer what the call asks people; None: not said."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Defaults for rulings that ask. Quorum and four eyes are the minimum for every card."""

    approvers: tuple[str, ...] = ("manage_server",)
    timeout: float = 300.0
    quorum: int = 1
    four_eyes: bool = False
    reminder: float | None = None
    ping: bool = False
    notify: tuple[str, ...] | None = None
    escalate: Escalation | None = None
    answerers: tuple[str, ...] = ("asker", "manage_server")
    """Who may answer what a call asks people, if the call itself needs no approval."""

    def fill(self, ruling: Ruling) -> Ruling:
        """Return the ruling with these terms where it leaves them open."""
        return replace(
            ruling,
            approvers=self.approvers if ruling.approvers is None else ruling.approvers,
            timeout=self.timeout if ruling.timeout is None else ruling.timeout,
            quorum=max(self.quorum, ruling.quorum),
            four_eyes=self.four_eyes or ruling.four_eyes,
            reminder=self.reminder if ruling.reminder is None else ruling.reminder,
            ping=self.ping or ruling.ping,
            notify=self.notify if ruling.notify is None else ruling.notify,
            # Approvers that a server rule chose are not widened by the operator's default.
            escalate=ruling.escalate or (None if ruling.by_server and ruling.approvers else self.escalate),
        )

    def fill_answer(self, ruling: Ruling) -> Ruling:
        """Return the terms on which people answer what this call asks them. One answer is enough.

        A call that needs approval is answered by those who may approve it: an answer says what the call does, just as
        its arguments do.
        """
        if ruling.verdict is Verdict.ASK and ruling.answerers is None:
            return replace(self.fill(ruling), quorum=1)
        answerers = self.answerers if ruling.answerers is None else ruling.answerers
        ruling = replace(ruling, approvers=answerers, four_eyes=False, ping=False)
        return replace(replace(self, four_eyes=False, ping=False, escalate=None).fill(ruling), quorum=1)


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's accept. A request may need several."""

    by: Actor
    at: float
    remember: Remember = Remember.NONE


@dataclass(frozen=True, slots=True)
class Edit:
    """A person changed the arguments before the call ran."""

    original: JsonObject
    """The arguments that the model sent, before all edits."""
    original_digest: str
    by: Actor
    at: float
    voided: tuple[Actor, ...] = ()
    """People whose votes this edit voided."""
    earlier: tuple[str, ...] = ()
    """The ids of the people who edited the call before."""

    @property
    def editors(self) -> frozenset[str]:
        return frozenset((*self.earlier, self.by.id))


@dataclass(frozen=True, slots=True)
class GrantNote:
    """What the card of a call says about a grant: the decision about the call made it, or it decided the call."""

    grant: str
    by: Actor
    """The person whose decision is remembered."""
    until: float
    here: bool
    """Whether it holds in one conversation only."""
    named: tuple[str, ...] | None = None
    """The arguments that must be the same, if the others are free. None: exactly one call."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a request ended."""

    choice: Choice | None
    """None: the deadline passed or the request was cancelled."""
    by: Actor | None
    at: float
    note: str = ""
    remember: Remember = Remember.NONE
    """How far this decision was remembered."""
    coverage: Coverage = EXACT
    """What is remembered. Used when the request is settled, and not stored: the grant has it."""
    grant: GrantNote | None = None
    """The grant that this decision made or, if nobody decided, the grant that settled the request."""
    answer: JsonObject | None = None
    """The answer to an inquiry, checked: name of each field -> its value."""


class RunState(StrEnum):
    """How far an approved call has come."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    MAY_HAVE_RUN = "may_have_run"
    """The process died or the turn was stopped during the call."""
    NOT_RUN = "not_run"
    """The turn has gone on without it."""


@dataclass(frozen=True, slots=True)
class CallRun:
    """The run of an approved call, as the journal knows it."""

    state: RunState
    started: float | None = None
    ended: float | None = None
    line: str = ""
    """The beginning of the result or of the failure: untrusted, but with its secrets already masked."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One call on a card."""

    id: str
    call: ToolCall
    why: str
    """Why this call is on a card: trusted text."""
    approvers: tuple[str, ...]
    kind: RequestKind = RequestKind.CALL
    metadata: JsonObject = field(default_factory=dict[str, Any])
    """The metadata of the tool's ApprovalRequired: untrusted."""
    state: RequestState = RequestState.PENDING
    settlement: Settlement | None = None
    quorum: int = 1
    """How many people have to accept."""
    four_eyes: bool = False
    """Whether the asker is barred from deciding."""
    message: str = ""
    """The rule's message to the approvers: trusted."""
    preview: str = ""
    """The tool's preview of the change, such as a diff."""
    held: bool = False
    """Whether the call needs no approval by itself and only waits for its siblings."""
    missing: tuple[str, ...] = ()
    """The missing approvers among `approvers`, as `role:ID` or `user:ID`."""
    votes: tuple[Vote, ...] = ()
    void: tuple[Vote, ...] = ()
    """Votes that no longer count: a later check found that these people may no longer decide."""
    edit: Edit | None = None
    description: ToolDescription = field(default_factory=ToolDescription)
    """What the tool says about itself: untrusted, for the card only."""
    diff_of: str = ""
    """The argument that `preview` shows as a diff; empty if none. Only Signoff's own tools set it: see decision 014."""
    by_server: bool = False
    """Whether a server rule made it ask. Used when the batch is opened, and not stored."""
    run: CallRun | None = None
    """The run of the approved call; None before it. The store reads it from the journal and never writes it."""
    escalate_to: tuple[str, ...] = ()
    """Who may decide too, once the request is escalated."""
    escalate_at: float | None = None
    """When the request is escalated; None: never, or it was escalated already."""
    path: tuple[str, ...] = ()
    """The names of the agents inside tools that made the call, outermost first; empty: the turn's own agent made it."""
    inquiry: Inquiry | None = None
    """The question and the form, if the call needs an answer."""
    drafts: Mapping[str, JsonObject] = field(default_factory=dict[str, "JsonObject"])
    """Person id -> what they have filled in so far, for a form of several parts."""

    @property
    def ended_as(self) -> str:
        """The request's state or, if people answered or declined, that word."""
        choice = self.settlement.choice if self.settlement else None
        return ENDED_AS.get(choice, self.state.value) if choice else self.state.value

    @property
    def shown_tool(self) -> str:
        """The tool with the agents that lead to it, for people: `researcher › bash`."""
        path = self.path if len(self.path) <= 3 else (self.path[0], "…", self.path[-1])
        return " › ".join((*path, self.call.tool))

    # The names that programs written for the library's first design use.

    @property
    def tool_name(self) -> str:
        return self.call.tool

    @property
    def args(self) -> JsonObject:
        return self.call.args

    @property
    def tool_call_id(self) -> str:
        return self.call.key.call_id

    @property
    def summary(self) -> str:
        """The tool's description of the call: its summary, reason or path, in that order."""
        for name in ("summary", "reason", "path"):
            if self.metadata.get(name):
                return str(self.metadata[name])
        return ""

    @property
    def shown_preview(self) -> str:
        """The tool's preview, followed by the diff or preview of its `ApprovalRequired` if that text differs."""
        raised = str(self.metadata.get("diff") or self.metadata.get("preview") or "")
        return "\n\n".join(dict.fromkeys(text for text in (self.preview, raised) if text))

    @property
    def diffed(self) -> str:
        """The argument that the card shows only as a diff; empty if it shows every argument itself."""
        is_whole = self.preview and self.shown_preview == self.preview
        return self.diff_of if is_whole and isinstance(self.call.args.get(self.diff_of), str) else ""

    @property
    def shown_as_effect(self) -> tuple[str, ...]:
        """The arguments that the card shows only by their effect: the diff of the files that they change."""
        names = tuple(self.diff_of.split(",")[:-1])
        is_whole = self.preview and self.shown_preview == self.preview
        return names if is_whole and not self.edit and all(name in self.call.args for name in names) else ()

    @property
    def escalated(self) -> bool:
        return bool(self.escalate_to) and self.escalate_at is None

    @property
    def current_approvers(self) -> tuple[str, ...]:
        """The specifications of the people who may decide now."""
        return tuple(dict.fromkeys((*self.approvers, *self.escalate_to))) if self.escalated else self.approvers

    @property
    def called(self) -> str:
        """The digest of the call as the model made it."""
        return self.edit.original_digest if self.edit else self.call.digest


@dataclass(frozen=True, slots=True)
class CardCopy:
    """A message in an approvals channel that shows the same card, with the same buttons."""

    channel: str
    message: str


@dataclass(frozen=True, slots=True)
class Batch:
    """All requests of one model response: one card, one deadline."""

    id: str
    turn: str
    place: Place
    asker: Actor
    requests: tuple[ApprovalRequest, ...]
    opened: float
    deadline: float
    model_text: str = ""
    """The model's text beside its calls: untrusted."""
    already_ran: tuple[str, ...] = ()
    """Tools of the same response that had run before the card was made."""
    card_message: str | None = None
    """The id of the message that shows the card, once it is posted."""
    card_final: bool = False
    """Whether that message shows the settled state, and how each approved call ended."""
    revision: int = 0
    """The number of edits. An accept counts only if the clicked card showed this revision."""
    remind_at: float | None = None
    ping: bool = False
    notify: tuple[str, ...] = ()
    """The ways to tell the approvers when the card opens, see `notify.py`."""
    untold: bool = False
    """Whether approvers still have to be told: of the card, or of an escalation."""
    copies: tuple[CardCopy, ...] = ()

    @property
    def messages(self) -> tuple[CardCopy, ...]:
        """Every message that shows the card, the one in the conversation first."""
        own = () if self.card_message is None else (CardCopy(self.place.channel, self.card_message),)
        return (*own, *self.copies)

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        return tuple(r for r in self.requests if r.state is RequestState.PENDING)

    @property
    def settled(self) -> bool:
        return not self.pending

    @property
    def is_overage(self) -> bool:
        return any(request.call.is_overage for request in self.requests)

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to these calls: all are settled, and the approved ones have run or will not."""
        approved = (r for r in self.requests if r.state is RequestState.APPROVED and r.inquiry is None)
        return self.settled and all(r.run and r.run.state is not RunState.RUNNING for r in approved)

    @property
    def questions(self) -> tuple[ApprovalRequest, ...]:
        """The requests that ask by themselves."""
        return tuple(r for r in self.requests if not r.held)

    @property
    def open_questions(self) -> tuple[ApprovalRequest, ...]:
        return tuple(r for r in self.pending if not r.held)

    @property
    def held(self) -> tuple[ApprovalRequest, ...]:
        """The requests that need no approval by themselves and are settled together with the questions."""
        return tuple(r for r in self.requests if r.held)

    @property
    def open_held(self) -> tuple[ApprovalRequest, ...]:
        return tuple(r for r in self.pending if r.held)

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.questions) // PAGE))

    def page(self, number: int) -> tuple[ApprovalRequest, ...]:
        """The questions on one page of the card."""
        return self.questions[number * PAGE : (number + 1) * PAGE]


@dataclass(frozen=True, slots=True)
class Pause:
    """An admin paused this server: nothing new starts there."""

    server: str
    by: Actor
    at: float


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """The library's decision about one request, returned by its UI."""

    approved: bool
    note: str = ""
    override_args: JsonObject | None = None
    remember: Literal["none", "session", "always"] = "none"
    answer: JsonObject | None = None
    """The answer, if the request has an `inquiry`: name of each field -> its value."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one decision: the batch after it, and the requests that it settled or voted for."""

    batch: Batch
    settled: tuple[ApprovalRequest, ...] = ()
    voted: tuple[ApprovalRequest, ...] = ()
    """Requests that this person accepted and that still lack votes."""
    late: bool = False
    """Nothing was open any more, or the deadline had passed."""

"""Plain data: a turn and its states, and the possible results of one step of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Literal

from signoff.approvals.model import Actor, ApprovalRequest, Batch, CallKey, Place
from signoff.dataclass import dataclass


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


LIVE = (TurnState.QUEUED, TurnState.RUNNING, TurnState.WAITING)
"""Turns that have not ended."""


MOVES: Mapping[TurnState, frozenset[TurnState]] = {
    TurnState.QUEUED: frozenset({TurnState.RUNNING, TurnState.STOPPED}),
    TurnState.RUNNING: frozenset(
        {TurnState.WAITING, TurnState.DONE, TurnState.FAILED, TurnState.STOPPED, TurnState.QUEUED}
    ),
    TurnState.WAITING: frozenset({TurnState.RUNNING, TurnState.FAILED, TurnState.STOPPED}),
    TurnState.DONE: frozenset(),
    TurnState.FAILED: frozenset(),
    TurnState.STOPPED: frozenset(),
}
"""The legal moves. The store refuses any other. A turn goes back to the queue if its place changes before its step."""


@dataclass(frozen=True, slots=True)
class TurnFile:
    """A file that came with a mention: its contents, or the problem why they were not read. The model gets either."""

    name: str
    size: int
    media_type: str = ""
    """`text/plain` or the type of an image. Empty if the file was not read."""
    data: bytes = b""
    problem: str = ""

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that a mention replies to. The text is empty if Discord does not show it."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One mention on its way to a reply. The id is derived from the message, so a replayed event is the same turn."""

    id: str
    place: Place
    message: str
    asker: Actor
    text: str
    """The asker's own words. It is empty if they sent only files or a reply."""
    created: float
    state: TurnState = TurnState.QUEUED
    prompted: bool = False
    """Whether the conversation already holds this turn's prompt."""
    rounds: int = 0
    """How many batches this turn has opened; part of the reply's nonce."""
    batch: str | None = None
    """The id of the batch that the turn waits for, or waited for last."""
    reply: str | None = None
    """The final text, stored with the end of the turn: the agent's reply if the turn is done, else a plain notice."""
    reply_posted: bool = False
    ended: float | None = None
    """When the final text was stored. None before that, and for turns of earlier versions."""
    quoted: Quoted | None = None
    files: tuple[TurnFile, ...] = ()
    """Only for `insert_turn`. The store does not load them with the turn; see `TurnTx.files_of`."""
    asked: float | None = None
    """When the asker wrote, if the bot was offline then and found the mention later."""
    status_message: str | None = None
    """The id of the message that shows how the run is going; empty while it is posted for the first time."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One message of a conversation as the agent package stores it; opaque here."""

    position: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Summary:
    """A text that a run reads instead of the first messages of a long conversation."""

    upto: int
    """How many messages it stands for."""
    text: str


@dataclass(frozen=True, slots=True)
class Admission:
    """The result of submitting a mention: started, queued, refused, or known already."""

    kind: Literal["started", "queued", "duplicate", "refused"]
    text: str = ""
    """The notice for the asker, as plain text; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Load:
    """How many turns have not ended yet, as a new one comes in."""

    of_person: int
    in_conversation: int
    queued_in_conversation: int


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one model response used."""

    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    """In US dollars; None if it is not known."""
    at: float


class CallState(StrEnum):
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It ended, and nobody knows whether it ran: the connection to its server was lost."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The journal's entry for one call."""

    key: CallKey
    tool: str
    digest: str
    state: CallState
    result: bytes | None = None
    request: str = ""
    """The id of the approved request that this start used up; empty if it needed none."""
    started: float | None = None
    line: str = ""
    """The beginning of the result or of the failure, with its secrets masked, for people."""

    @property
    def ended(self) -> bool:
        return self.state is not CallState.STARTED

    @property
    def words(self) -> str:
        """The result as text, for people and models; not for replaying it."""
        return (self.result or b"").decode(errors="replace")


@dataclass(frozen=True, slots=True)
class KnownCalls:
    """What the store knew about the calls of a conversation when a step began. The step itself adds to it."""

    conversation: str
    position: int
    """The position of the newest response that has any record or request. Nothing is known about later ones."""
    calls: Mapping[str, tuple[CallRecord | None, ApprovalRequest | None]]
    """Call id -> its record and the newest request about it, for the calls of that response."""

    def are_about(self, key: CallKey) -> bool:
        return key.conversation == self.conversation and key.position >= self.position

    def has_none(self, key: CallKey) -> bool:
        """Whether the call is of a response that came after the step began."""
        return key.conversation == self.conversation and key.position > self.position

    def of(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        return (None, None) if self.has_none(key) else self.calls.get(key.call_id, (None, None))


@dataclass(frozen=True, slots=True)
class StepInput:
    """All that a step reads before it begins, from one transaction: the one that claims the turn, if possible."""

    history: Sequence[HistoryEntry]
    summary: Summary | None
    files: Sequence[TurnFile]
    """The files of a turn whose prompt the conversation does not hold yet."""
    inner_requests: int
    """How many model requests the agents inside the turn's tools have made."""
    known: KnownCalls


@dataclass(frozen=True, slots=True)
class Notice:
    """A message that tells people about an open card. It is removed or changed when the card is settled."""

    batch: str
    kind: str
    """`ping`, `dm`, `reminder`, or `escalation` and a number."""
    channel: str
    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The run ended with a reply."""

    text: str
    history: tuple[HistoryEntry, ...] = ()
    uses: tuple[Callable[[], ModelUse], ...] = ()
    """What the last responses used, if that is not stored yet. A price may take time to find: call them in a thread."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run needs people: a batch to open."""

    batch: Batch


Step = Finished | Waiting

"""The interfaces that the driver needs: rows for turns, a runner that advances them, and a front end for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from signoff.approvals.automatic import OwnMode
from signoff.approvals.model import Batch, CallKey, Pause, Place
from signoff.approvals.ports import DeskTx
from signoff.turns.budgets import BudgetTx
from signoff.turns.model import (
    CallRecord,
    HistoryEntry,
    Load,
    ModelUse,
    Notice,
    Step,
    StepInput,
    Summary,
    Turn,
    TurnFile,
    TurnState,
)
from signoff.turns.progress import RunStatus

T = TypeVar("T")


class TurnTx(DeskTx, BudgetTx, Protocol):
    """One transaction over turns, conversations, the journal and the desk's rows together."""

    def turn(self, turn_id: str) -> Turn | None: ...

    def is_running(self, turn_id: str) -> bool: ...

    def insert_turn(self, turn: Turn) -> bool:
        """Store a turn with its files. Return False if the turn is already there, as after a replayed event."""
        ...

    def files_of(self, turn_id: str) -> Sequence[TurnFile]:
        """Return the files that came with a turn, in their order."""
        ...

    def set_files(self, turn_id: str, files: Sequence[TurnFile], at: float) -> None:
        """Replace the files that came with a turn."""
        ...

    def move(self, turn_id: str, old: TurnState, new: TurnState) -> bool:
        """Compare and set the state. Return False if it was not `old`. Raise ValueError for an illegal move."""
        ...

    def relocate(self, turn_id: str, place: Place) -> None:
        """Move the turn to another place, if it is still queued."""
        ...

    def await_batch(self, turn_id: str, batch_id: str) -> None:
        """Count one more round and remember the batch that the turn waits for."""
        ...

    def finish(self, turn_id: str, old: TurnState, new: TurnState, reply: str, at: float | None = None) -> bool:
        """Move the turn to its last state, as `move` does, with its final text and the time."""
        ...

    def set_reply_posted(self, turn_id: str) -> None: ...

    def set_status(self, turn_id: str, message: str | None) -> None:
        """Note the message that shows how the run is going; empty while it is posted, None if there is none."""
        ...

    def clear_status(self, turn_id: str, message: str) -> None:
        """Note that this status message was removed. Does nothing if the turn has another one by now."""
        ...

    def left_statuses(self) -> Sequence[Turn]:
        """Return waiting turns whose status message was not removed yet."""
        ...

    def turns_in(self, *states: TurnState) -> Sequence[Turn]:
        """Oldest first."""
        ...

    def unposted_replies(self) -> Sequence[Turn]:
        """Return ended turns whose reply was not posted yet."""
        ...

    def unfinished_cards(self) -> Sequence[Batch]:
        """Return open batches without a card, and settled ones whose card does not show that yet."""
        ...

    def batches_of(self, turn_id: str) -> Sequence[Batch]:
        """Return all batches of a turn, oldest first."""
        ...

    def settled_by_grants(self, turn_id: str) -> Sequence[Batch]:
        """Return the batches of a turn that got no card, because remembered decisions settled them."""
        ...

    def add_notice(self, notice: Notice) -> None: ...

    def notices_of(self, batch_id: str) -> Sequence[Notice]: ...

    def drop_notice(self, notice: Notice) -> None: ...

    def untold(self) -> Sequence[Batch]:
        """Return batches with a card about which approvers still have to be told, open ones first.

        The settled ones were settled while approvers were told, so that a copy may have been posted but not noted.
        """
        ...

    def outlived_notices(self) -> Sequence[Batch]:
        """Return settled batches that still have notices."""
        ...

    def active(self, *, asker: str | None = None, conversation: str | None = None) -> int:
        """Count the turns that are running or waiting, of this person or in this conversation."""
        ...

    def queued(self, *, asker: str | None = None, conversation: str | None = None) -> int: ...

    def load(self, asker: str, conversation: str) -> Load:
        """Count the turns that are queued, running or waiting, of this person and in this conversation."""
        ...

    def next_startable(self, per_person: int, skip: Collection[str] = ()) -> Turn | None:
        """Return the oldest queued turn that may run now, except those in `skip`.

        Its conversation has no active turn, its asker has fewer than `per_person`, and its server is not paused.
        """
        ...

    def pauses(self) -> Sequence[Pause]: ...

    def resumable(self) -> Sequence[Turn]:
        """Return waiting turns whose batch is settled, as after a crash between a decision and the next step."""
        ...

    def history(self, conversation: str) -> Sequence[HistoryEntry]: ...

    def save_history(self, conversation: str, entries: Sequence[HistoryEntry]) -> None:
        """Insert or replace the given positions, and delete all positions above the highest one."""
        ...

    def save_summary(self, conversation: str, summary: Summary) -> None:
        """Insert or replace the summary of this conversation."""
        ...

    def set_prompted(self, turn_id: str) -> None: ...

    def own_mode(self, turn_id: str) -> OwnMode | None:
        """Return the mode of the schedule that started the turn; None if a person did."""
        ...

    def add_use(self, turn: Turn, use: ModelUse) -> None:
        """Note what a model response of this turn used."""
        ...

    def step_input(self, turn: Turn) -> StepInput:
        """Return all that a step of this turn reads before it begins."""
        ...

    def call(self, key: CallKey) -> CallRecord | None: ...

    def put_call(self, record: CallRecord, turn_id: str, at: float) -> None:
        """Insert or replace the journal's record of this call."""
        ...

    def drop_call(self, key: CallKey) -> None: ...

    def begin_inner_run(self, conversation: str, call: CallKey, turn_id: str, agent: str) -> None:
        """Note that an agent runs inside the call, unless that is known. See `gate.delegation`."""
        ...

    def set_inner_run(self, conversation: str, *, requests: int | None = None, ended: bool = False) -> None:
        """Note how many model requests the run has made, or that it has ended."""
        ...

    def has_inner_runs(self, call: CallKey) -> bool: ...

    def open_inner_runs(self, call: CallKey) -> Collection[str]:
        """Return the conversations of the runs inside the call that have not ended."""
        ...


class TurnStore(Protocol):
    async def run(self, work: Callable[[TurnTx], T]) -> T:
        """Run `work` in one transaction on the writer thread; durable when the await returns."""
        ...


class Progress(Protocol):
    """What a run reports while it works. Every method returns at once, and none raises."""

    def thinking(self) -> None:
        """The model is asked."""
        ...

    def writing(self, words: str) -> None:
        """The model's response goes on with these words."""
        ...

    def started(self, key: CallKey, tool: str) -> None: ...

    def ended(self, key: CallKey, *, failed: bool = False) -> None:
        """The call has ended, and the journal has its result."""
        ...

    def withdrawn(self, key: CallKey) -> None:
        """The call did not run after all: its tool asked."""
        ...


class Runner(Protocol):
    async def begin(self, turn: Turn, given: StepInput) -> None:
        """Ask the model for a turn whose first step begins soon. Until `advance`, nothing is shown and no tool is run.

        It stores nothing but what a run used whose step never comes. It may do nothing, and it raises nothing.
        """
        ...

    async def advance(self, turn: Turn, progress: Progress | None = None, given: StepInput | None = None) -> Step:
        """Run or resume a turn until it is done or waiting. Raises TurnFailed with a text for the asker.

        `given`: what the claim of the turn has read; without it, the runner reads that itself.
        """
        ...

    def pause(self, server: str) -> None:
        """Start no further tool and no further model request of this server."""
        ...

    def resume(self, server: str) -> None: ...

    def turn_ended(self, turn: Turn) -> None:
        """Give up what still goes on for a turn that has ended, or that moves to another place."""
        ...

    async def quiesce(self, seconds: float) -> None:
        """Start no further tool, and wait at most `seconds` for running ones."""
        ...


class FrontEnd(Protocol):
    """The driver's way to people. Every method may be called again after a crash and must then do no harm.

    After the front end is closed, a call to it cancels the calling task. The next start of the program calls again.
    """

    async def post_card(self, batch: Batch) -> str:
        """Show the card and return its message id. Raises CardFailed with a reason for people to read.

        It is CardDelayed if the same call may succeed later.
        """
        ...

    async def refresh_card(self, batch: Batch) -> None:
        """Make the posted card and its copies show the batch as it stands now; does nothing if the card was deleted.

        Raises CopiesRefused if only copies cannot be changed, now or later.
        """
        ...

    async def retire_card(self, batch: Batch) -> None:
        """Replace the old card by a note that it was posted again; does nothing if it was deleted."""
        ...

    async def remind(self, batch: Batch) -> str | None:
        """Tell those who may decide that a card is still open. Ping them if the batch says so.

        Returns the id of the message, which is removed when the card is settled; None if there is none to remove.
        """
        ...

    async def repost_card(self, batch: Batch) -> str:
        """Show an open card again, at the end of its channel, and return the new message id. The old one stays."""
        ...

    async def reply(self, turn: Turn, text: str) -> None:
        """Post the end of a turn, in place of its status message if it has one.

        Repeating it for the same turn and round posts nothing new.

        Raises Undeliverable if it would be refused every time.

        If the turn's state is `done`, the text is the agent's reply. Any other text is plain and shown as it is.
        """
        ...

    async def show_status(self, turn: Turn, status: RunStatus) -> str:
        """Show what the run is doing, in the message `turn.status_message` or, if there is none, in a new one.

        Returns the message's id. Posting again for the same turn and round posts nothing new. The reply takes this
        message's place. Raises if the status cannot be shown.
        """
        ...

    async def remove_status(self, turn: Turn) -> None:
        """Delete the message `turn.status_message`; does nothing if it was deleted."""
        ...

    async def notice(self, turn: Turn, text: str) -> None:
        """Post a short notice about a turn that has not ended: plain text, shown as it is."""
        ...

    def working(self, turn: Turn) -> AbstractAsyncContextManager[None]:
        """Show that the run is under way, for example as typing, until the context ends."""
        ...

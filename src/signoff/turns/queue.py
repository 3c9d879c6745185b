"""Limits on turns: whether a mention starts, is queued or is refused, which turn is next, and when a turn must end.

Counts rows inside the caller's transaction. Knows no tasks: the driver runs the turns that are claimed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from signoff.approvals.model import Batch, RequestState
from signoff.dataclass import dataclass
from signoff.turns import messages
from signoff.turns.model import Admission, Turn, TurnState
from signoff.turns.ports import TurnTx


@dataclass(frozen=True, slots=True)
class QueueLimits:
    per_person: int = 3
    queued_per_person: int = 5
    queued_per_conversation: int = 5
    rejected_cards: int = 3
    """A turn ends after so many cards in a row of which nothing was accepted."""

    def admit(self, tx: TurnTx, turn: Turn) -> Admission:
        """Store the turn, unless it is known already or the queue is full."""
        load = tx.load(turn.asker.id, turn.place.conversation)
        if (
            load.of_person >= self.per_person + self.queued_per_person
            or load.queued_in_conversation >= self.queued_per_conversation
        ):
            if tx.turn(turn.id):
                return Admission("duplicate")
            return Admission("refused", "Too many mentions are queued. I did not take this one: ask again later.")
        if not tx.insert_turn(turn):
            return Admission("duplicate")
        if pause := tx.pause_of(turn.place.server):
            return Admission("queued", f"Queued: {pause.by.name} has paused me in this server.")
        if load.in_conversation:
            return Admission("queued", f"Queued: {load.in_conversation} before it in this conversation.")
        if load.of_person >= self.per_person:
            return Admission("queued", f"Queued: {self.per_person} of your runs are under way.")
        return Admission("started")

    def claim(self, tx: TurnTx, admitted: Mapping[str, str]) -> Turn | None:
        """Claim the next turn that may run, by compare-and-set. None: nothing may run now.

        `admitted`: turns whose thread is still being opened -> asker whose place is reserved (empty: none). They are
        skipped.
        """
        promised = Counter(admitted.values())
        skip = set(admitted)
        while turn := tx.next_startable(self.per_person, skip):
            # A place that is reserved for an admitted turn is not given to another one.
            if tx.active(asker=turn.asker.id) + promised[turn.asker.id] < self.per_person:
                return tx.turn(turn.id) if tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING) else None
            skip.add(turn.id)
        return None

    def end_of(self, tx: TurnTx, batch: Batch) -> str:
        """Return why the turn of this batch must end; empty if it goes on."""
        return messages.rejected(self.rejected_cards) if self.must_end(tx, batch) else ""

    def must_end(self, tx: TurnTx, batch: Batch) -> bool:
        """Whether people have accepted nothing for so long that the model must not ask again.

        Only cards count that people could see. A batch that a mode or a remembered decision settled has none.
        """
        if _accepted(batch):
            return False
        seen = [one for one in tx.batches_of(batch.turn) if one.card_message]
        return len(seen) >= self.rejected_cards and not any(map(_accepted, seen[-self.rejected_cards :]))


def _accepted(batch: Batch) -> bool:
    return any(request.state is RequestState.APPROVED for request in batch.requests)

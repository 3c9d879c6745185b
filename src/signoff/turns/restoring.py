"""Makes a database that was restored from a backup safe to start with.

Since the backup was made, its open requests may have been decided, their calls may have run, and grants may have been
revoked. So every turn that was under way is ended, every open request is cancelled and every grant is revoked: people
are asked again. Mentions that were sent before now are not looked for, since they may have been answered, and no
schedule makes up for a run that came due before now.
"""

from __future__ import annotations

from typing import Protocol

from signoff.approvals.desk import Desk
from signoff.dataclass import dataclass
from signoff.turns.listening import ListeningTx
from signoff.turns.model import LIVE, TurnState
from signoff.turns.ports import TurnTx
from signoff.turns.schedules import ScheduleTx

REASON = "my database was restored from a backup, and this may have been decided and run since"
REPLY = (
    "My database was restored from a backup that holds this request as unfinished. It may have been finished since; "
    "nothing further will run. Mention me again if something is left to do."
)


class RestoreTx(TurnTx, ListeningTx, ScheduleTx, Protocol):
    """One transaction over turns, requests, listening and schedules."""


@dataclass(frozen=True, slots=True)
class Restored:
    turns: int
    requests: int
    grants: int


def end_open_work(tx: RestoreTx, desk: Desk, now: float, grants: int) -> Restored:
    """End everything that is open. `grants`: how many grants the caller revoked in the same transaction."""
    requests = 0
    turns = tx.turns_in(*LIVE)
    for turn in turns:
        tx.finish(turn.id, turn.state, TurnState.STOPPED, REPLY)
        tx.set_status(turn.id, None)  # since the backup, that message may have become the real reply
        data = {"who": "restore", "was": turn.state}
        tx.audit("stopped", turn.place.server, turn.id, "signoff", data, now)
        batch = tx.batch(turn.batch) if turn.batch else None
        if batch and not batch.settled:
            requests += len(desk.cancel_in(tx, batch, now, REASON)[1])
    counts = {"turns": len(turns), "requests": requests, "grants": grants}
    tx.audit("restored", "", "", "signoff", counts, now)
    tx.set_listened_until(now)
    tx.skip_schedules(now)
    return Restored(len(turns), requests, grants)

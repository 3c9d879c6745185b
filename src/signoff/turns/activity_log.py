"""Writes one log line for each event of a turn, with ids and numbers only: no names, no texts, no arguments.

docs/operations.md lists the lines and their fields. Programs read them, so a field keeps its name and its meaning.
"""

from __future__ import annotations

import logging
from dataclasses import field

from signoff.approvals.model import Batch
from signoff.dataclass import dataclass
from signoff.text.log_lines import note
from signoff.turns.activity import BatchOpened, CallEnded, Event, ModelUsed, TurnEnded, TurnStarted
from signoff.turns.model import Turn, TurnState

log = logging.getLogger("signoff.turns")


@dataclass
class _Tally:
    """What a turn has used since this process started."""

    model_requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tools: int = 0


@dataclass
class ActivityLog:
    _tallies: dict[str, _Tally] = field(default_factory=dict[str, _Tally])
    """Turn id -> its tally, for turns that have not ended."""

    def __call__(self, event: Event) -> None:
        match event:
            case TurnStarted(turn):
                late = turn.created - turn.asked if turn.asked is not None else None
                note(log, "turn_started", {**_where(turn), "late": late})
            case BatchOpened(batch):
                _note_requests(batch)
            case CallEnded(turn, tool, request, result, seconds):
                self._tally(turn).tools += 1
                used = request or None
                about = {"tool": tool, "request": used, "result": result, "seconds": seconds}
                note(log, "tool_ended", {**_where(turn), **about})
            case ModelUsed(turn):
                tally = self._tally(turn)
                tally.model_requests += event.requests
                tally.input_tokens += event.input_tokens
                tally.output_tokens += event.output_tokens
            case TurnEnded(turn):
                self._note_end(event)

    def _note_end(self, event: TurnEnded) -> None:
        tally = self._tallies.pop(event.turn.id, _Tally())
        failed = event.state is TurnState.FAILED
        fields = {
            **_where(event.turn),
            "state": event.state.value,
            "seconds": event.seconds,
            "model_requests": tally.model_requests,
            "input_tokens": tally.input_tokens,
            "output_tokens": tally.output_tokens,
            "tools": tally.tools,
            "batches": event.turn.rounds,
            "cause": type(_cause(event.error)).__name__ if event.error else None,
        }
        note(log, "turn_ended", fields, level=logging.ERROR if failed else logging.INFO, error=event.error)

    def _tally(self, turn: Turn) -> _Tally:
        return self._tallies.setdefault(turn.id, _Tally())


def _note_requests(batch: Batch) -> None:
    for request in batch.requests:
        fields = {
            "request": request.id,
            "batch": batch.id,
            "turn": batch.turn,
            "server": batch.place.server,
            "channel": batch.place.channel,
            "person": batch.asker.id,
            "tool": request.call.tool,
            "held": request.held,
            "digest": request.call.digest[:12],
            "seconds_left": batch.deadline - batch.opened,
        }
        note(log, "request_opened", fields)


def _where(turn: Turn) -> dict[str, str]:
    """Return the ids that every line about a turn has."""
    return {"turn": turn.id, "server": turn.place.server, "channel": turn.place.channel, "person": turn.asker.id}


def _cause(error: BaseException | None) -> BaseException | None:
    """Return the error that a person has to look at: a failed turn only wraps it."""
    return error.__cause__ if error is not None and error.__cause__ is not None else error

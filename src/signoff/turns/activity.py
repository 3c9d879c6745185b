"""What happens to turns, as events: a turn starts, asks, runs tools, uses the model and ends.

The driver and the runner tell; listeners write the log and count. A listener changes nothing, and one that fails is
logged. Decisions are told by the desk, as `tool_approval` events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import field
from typing import Literal

from signoff.approvals.model import Batch
from signoff.dataclass import dataclass
from signoff.turns.model import Turn, TurnState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn: Turn


@dataclass(frozen=True, slots=True)
class BatchOpened:
    """A batch is stored. Its requests may already be settled, by a mode or a grant."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class CallEnded:
    turn: Turn
    tool: str
    request: str
    """The id of the approved request; empty if the call needed none."""
    result: Literal["done", "failed", "unknown"]
    """`unknown`: nobody knows whether the call ran, for example because its MCP server died."""
    seconds: float


@dataclass(frozen=True, slots=True)
class ModelUsed:
    """What one step of a turn used of the model, also if the step failed."""

    turn: Turn
    requests: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class TurnEnded:
    turn: Turn
    state: TurnState
    seconds: float
    """Seconds since the mention was stored, with the time that people took to decide."""
    error: BaseException | None = None


Event = TurnStarted | BatchOpened | CallEnded | ModelUsed | TurnEnded
Listener = Callable[[Event], None]


@dataclass
class Activity:
    listeners: list[Listener] = field(default_factory=list[Listener])

    def tell(self, event: Event) -> None:
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed at %s; the turn goes on", type(event).__name__)

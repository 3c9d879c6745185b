"""The dependencies of a run: `[agent] deps` names a function that makes them, once for each step of a turn.

A turn that waited for a decision goes on with a new step, so the function is called again then, also after a restart.
It is other people's code: it runs away from the bot's event loop, under the time limit of a tool, and its failure ends
the turn with one sentence.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from pydantic_ai.exceptions import ToolFailed

from signoff.approvals.containment import answered, described
from signoff.approvals.model import Actor, Place
from signoff.dataclass import dataclass
from signoff.errors import TurnFailed
from signoff.gate.tool_slots import ToolSlots

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """Whose turn it is, for the function that makes the dependencies."""

    asker: Actor
    """The person who mentioned the bot: `id`, `name`, and the ids of their `roles`."""
    place: Place
    """The ids of the `server`, of the `channel` or thread, and of the `conversation`."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The values of `[agent.settings]`. Each call gets a copy."""


@dataclass(frozen=True, slots=True)
class DepsMaker:
    """Makes the dependencies of each step."""

    target: str
    """`module:function`, as written in signoff.toml."""
    function: Callable[[TurnInfo], Any]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    async def make(self, asker: Actor, place: Place, slots: ToolSlots) -> Any:
        """Return the dependencies. Raises TurnFailed."""
        info = TurnInfo(asker, place, copy.deepcopy(dict(self.settings)))
        try:
            return await slots.in_time("it", answered(self.function, info), self.target)
        except Exception as error:
            log.warning("[agent] deps = %s failed: %s", self.target, described(error), exc_info=error)
            late = isinstance(error, ToolFailed) and isinstance(error.__cause__, TimeoutError)
            # Everybody in the channel reads the sentence, so the error's own text stays in the log.
            why = "took too long" if late else f"failed ({type(error).__name__})"
            kept = "Nothing further was run. Please tell the operator."
            raise TurnFailed(f"The agent's dependencies could not be made: {self.target} {why}. {kept}") from error


def takes_info(function: Callable[..., Any]) -> bool:
    """Whether the function can be called with one argument."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        return True  # a function of C may not say what it takes
    return True

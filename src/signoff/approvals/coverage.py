"""How much a remembered decision covers: exactly one call, or a tool with some arguments the same and the rest free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Coverage:
    named: tuple[str, ...] | None = None
    """The arguments that must be the same; all others are free. None: exactly this call, with all its arguments."""
    seconds: float | None = None
    """How long it holds; None: as long as the operator permits."""

    @property
    def is_wide(self) -> bool:
        """Whether it takes more than remembering one call in one place: arguments are free, or its end was chosen."""
        return self.named is not None or self.seconds is not None

    def covered(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call that must be the same."""
        return args if self.named is None else {name: args[name] for name in self.named if name in args}


EXACT = Coverage()

"""Regular expressions that are compiled when they are first used.

Signoff has a hundred of them, and compiling them took a seventh of the time in which its modules load. The bot compiles
the rest when it is online: see `warm_up`.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast

_made: list[_LazyPattern] = []


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Stand for `re.compile(pattern, flags)`. Use it through its methods: functions of `re` do not take it."""
    made = _LazyPattern(pattern, flags)
    _made.append(made)
    return cast("re.Pattern[str]", made)


def compile_patterns() -> None:
    """Compile all expressions of the modules that are loaded, so that the first text does not wait for them."""
    for made in _made:
        _ = made.compiled


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        """Return the method of the compiled one, and keep it, so that it is found as fast as any from then on."""
        if name.startswith("__"):
            raise AttributeError(name)  # whoever copies one asks for these before it has a pattern
        found = getattr(self.compiled, name)
        setattr(self, name, found)
        return found

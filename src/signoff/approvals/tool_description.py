"""What a tool says about itself, as a card shows it. It is text of the tool's author or of an MCP server.

It is for reading only: no digest, rule or grant depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolDescription:
    sentence: str = ""
    """The first sentence of the tool's description: untrusted."""
    title: str = ""
    """The title that an MCP server gives its tool: untrusted."""
    from_mcp: bool = False
    trusted: bool = False
    """Whether the operator trusts the MCP server that says this."""
    hints: tuple[str, ...] = ()
    """The hints of an MCP server about its tool, in our words, such as `read-only`."""
    order: tuple[str, ...] = ()
    """The names of the arguments, in the order of the tool's schema."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Argument name -> its default in the tool's schema. Empty for tools of MCP servers."""

    def ordered(self, names: Collection[str]) -> list[str]:
        """Return the names of arguments in the tool's own order, then the others by name."""
        known = [name for name in self.order if name in names]
        return [*known, *sorted(set(names) - set(known))]

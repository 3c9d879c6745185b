"""What a tool says about itself: its description for the card, and its marks for rules.

A description is text of the tool's author or of an MCP server, and for reading only: no digest, rule or grant depends
on it. It also keeps what rules read, for a card that is judged again when the tool itself is not at hand. No digest or
grant depends on marks, either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any

from signoff.dataclass import dataclass

MARKS = ("read_only", "acts", "destructive", "idempotent")
_DANGERS = ("destructive", "acts")


@dataclass(frozen=True, slots=True)
class Marks:
    """What a tool is marked as. None: its author does not say. Use `read` to make one."""

    read_only: bool | None = None
    """It changes nothing, so it may run twice."""
    acts: bool | None = None
    """It changes something outside of the conversation."""
    destructive: bool | None = None
    """What it does may not be undone."""
    idempotent: bool | None = None
    """A second run with the same arguments has no further effect."""
    own: bool = False
    """Whether Signoff itself or a plugin of the operator defines the tool."""
    contradiction: str = ""
    """The marks that cannot both be true. The more dangerous one counts."""

    @classmethod
    def read(cls, said: Mapping[str, object], *, own: bool = False) -> Marks:
        """Read mark name -> value.

        A danger counts if its value is true in any way, a harmless mark only if it is True.
        """
        read = {name: _value(name, said.get(name)) for name in MARKS}
        dangers = [name for name in _DANGERS if read[name]]
        contradiction = f"read_only and {dangers[0]}" if read["read_only"] and dangers else ""
        if dangers:
            read["read_only"], read["acts"] = False, True
        elif read["read_only"]:
            read["acts"] = read["destructive"] = False
        elif read["read_only"] is False and read["acts"] is None:
            read["acts"] = True
        return cls(**read, own=own, contradiction=contradiction)


UNMARKED = Marks()


def _value(name: str, said: object) -> bool | None:
    if said is None or isinstance(said, bool):
        return said
    return True if name in _DANGERS and said else None


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
    marks: Marks = UNMARKED
    """What rules about marks read."""
    shell: tuple[str, ...] = ()
    """The arguments that the tool declares to be shell commands."""

    def ordered(self, names: Collection[str]) -> list[str]:
        """Return the names of arguments in the tool's own order, then the others by name."""
        known = [name for name in self.order if name in names]
        return [*known, *sorted(set(names) - set(known))]

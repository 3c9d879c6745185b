"""The steps of a dialogue: what is shown, and what a person types, views or edits. `console` and `ui` perform them."""

from __future__ import annotations

from rich.console import RenderableType

from signoff.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Ask:
    """A prompt for a line. The result is the typed line."""

    prompt: str = ""
    """If empty, the code that performs the dialogue uses its own prompt."""


@dataclass(frozen=True, slots=True)
class Show:
    what: RenderableType


@dataclass(frozen=True, slots=True)
class View:
    """Text to be paged. The result is a non-empty string if the reader reached the end."""

    text: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Text to be edited. The result is the changed text; empty if nothing was changed."""

    text: str


Step = Ask | Show | View | Rewrite

"""Text that cannot control a terminal: the last check before the screen, and blocks of quoted text with a gutter.

Text from others arrives here with its hidden characters already visible. `Inert` checks every piece again before it is
written, so that no escape sequence, carriage return or bidi control gets through if some code forgot to check. This
module does not know cards.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from signoff.dataclass import dataclass
from signoff.text.visible import escape, is_hidden

GUTTER = "│ "
CONTINUED = "┊ "
"""Marks the continuation of a line, so that one long line cannot pass for several."""
TAB = 4


@dataclass(frozen=True, slots=True)
class Inert:
    """A renderable without its control characters and links."""

    inner: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, _ in console.render(self.inner, options):
            # Rich's control segments have no text to keep, and nothing printed here moves the cursor.
            yield Segment(harmless(text), style.update_link(None) if style and style.link else style)


def harmless(text: str) -> str:
    hidden = {ord(c): escape(c) for c in set(text) if c == "\t" or is_hidden(c)}
    return text.translate(hidden) if hidden else text


@dataclass(frozen=True, slots=True)
class Block:
    """Quoted text, unchanged: every line behind a gutter, and no line wider than the screen."""

    text: str
    diff: bool = False
    """Whether the text is a diff, whose lines are coloured by their first characters."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.rows(options.max_width)

    def rows(self, width: int) -> Iterator[Text]:
        """Yield the rows for a screen of this width."""
        width = max(width - len(GUTTER), 8)
        for line in self.text.split("\n"):
            style = _diff_style(line) if self.diff else Style.null()
            for number, piece in enumerate(chop(line.expandtabs(TAB), width)):
                row = Text(no_wrap=True, overflow="ignore")
                yield row.append(CONTINUED if number else GUTTER, "dim").append(piece, style)


def chop(line: str, width: int) -> Iterator[str]:
    """Cut the line into pieces that fit on every terminal.

    Terminals disagree about the width of characters beyond ASCII, so each of these counts as two cells.
    """
    start = used = 0
    for index, char in enumerate(line):
        cells = 1 if char.isascii() else 2
        if used + cells > width:
            yield line[start:index]
            start, used = index, 0
        used += cells
    yield line[start:]


def _diff_style(line: str) -> Style:
    for beginning, colour in (("@@", "cyan"), ("+", "green"), ("-", "red")):
        if line.startswith(beginning):
            return Style(color=colour)
    return Style.null()

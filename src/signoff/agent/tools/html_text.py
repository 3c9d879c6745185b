"""A program of its own: reads a web page in HTML from its standard input and writes its text.

A page can be made so that reading it takes very long, so it is not read in the bot's process. The bot kills this
program after a time limit.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

_SKIPPED = {"script", "style", "noscript", "template", "svg", "head", "iframe", "object"}
_BLOCKS = {
    *("p", "div", "br", "li", "ul", "ol", "tr", "table", "section", "article", "header", "footer", "pre", "h1", "h2"),
    *("h3", "h4", "h5", "h6", "blockquote", "hr", "dd", "dt"),
}


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skipping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self._skipping.clear()  # the end of the head may be left out
        if self._skipping or tag in _SKIPPED:
            self._skipping += [tag] if tag in _SKIPPED else []
            return
        self.parts.append("\n" if tag in _BLOCKS else "")
        self.parts.append("- " if tag == "li" else "")
        target = dict(attrs).get("href") if tag == "a" else None
        if target and target.startswith(("https://", "http://")) and len(target) < 500:
            self.parts.append(f"<{target}> ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipping:
            while self._skipping.pop() != tag:
                pass
        elif tag in _BLOCKS and not self._skipping:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.parts.append(data)


def text_of(html: str) -> str:
    """Return the text of a page, one line per block."""
    reader = _Text()
    reader.feed(html)
    reader.close()
    lines = (re.sub(r"[ \t\r\f\v]+", " ", line).strip() for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


if __name__ == "__main__":
    sys.stdout.buffer.write(text_of(sys.stdin.buffer.read().decode(errors="replace")).encode(errors="replace"))

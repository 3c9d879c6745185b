"""Render the reply as text with headings, lists, tables and code, but without links and hidden characters.

Hidden characters are made visible only after the markdown is parsed, because parsing turns an entity such as `&#8238;`
into its character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown, TextElement
from rich.padding import Padding

from signoff.terminal.sanitize import Block
from signoff.text.visible import visible
from signoff.turns.messages import SILENT

INDENT = 2
"""Only our own output begins in the first column, so no reply can pass for a card or a prompt."""


class CodeBlock(TextElement):
    """Code without highlighting: the model names the language, and a highlighter would be one more thing to trust."""

    style_name = "markdown.code_block"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Block(self.text.plain.rstrip("\n"))


class Reply(Markdown):
    elements = {**Markdown.elements, "fence": CodeBlock, "code_block": CodeBlock}  # noqa: RUF012 - rich's own shape

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
        self.parsed = _made_visible(parser.parse(text))


def render_reply(text: str) -> RenderableType:
    small = re.sub(r"^-# ", "", text, flags=re.MULTILINE)  # Discord's mark for small text
    return Padding(Reply(small.strip() or SILENT), (0, 0, 0, INDENT))


def _made_visible(tokens: Sequence[Token]) -> list[Token]:
    for token in tokens:
        token.content = _shown(token.content)
        for name, value in token.attrs.items():
            token.attrs[name] = _shown(value) if isinstance(value, str) else value
        if token.type == "image":
            # No image is loaded, so its address is shown.
            token.type, token.tag = "text", ""
            token.content = f"[image: {token.content}] ({token.attrs.get('src', '')})"
            token.children = None
        if token.type == "softbreak":
            token.type = "hardbreak"  # models break lines on purpose
        if token.children:
            token.children = _made_visible(token.children)
    return list(tokens)


def _shown(text: str) -> str:
    return visible(text).text

"""Parses code in a text as Discord's client does: its rules for blocks, inline code and escapes."""

from __future__ import annotations

import re
from typing import NamedTuple

BLOCK = re.compile(r"```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE)
INLINE = re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)")
ESCAPE = re.compile(r"\\([^0-9A-Za-z\s])")
MARKUP = re.compile(
    r"<@[!&]?\d+>|<#\d+>|<t:-?\d+(?::\w)?>|<a?:\w+:\d+>|<https?://[^>]*>|@everyone|@here|https?://\S|\[[^\]]*\]\([^)]*\)"
    r"|\|\||~~|__|\*|^\s*(?:#{1,3} |-# |> |>>> |- |\d+\. )",
    re.MULTILINE,
)
"""Markup that takes effect in text that is outside of code and not escaped."""


class Piece(NamedTuple):
    kind: str
    text: str
    language: str = ""


def read(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    position = 0
    while position < len(text):
        if found := BLOCK.match(text, position):
            pieces.append(Piece("block", found[2], found[1] or ""))
        elif found := INLINE.match(text, position):
            pieces.append(Piece("inline", found[2]))
        elif found := ESCAPE.match(text, position):
            pieces.append(Piece("escaped", found[1]))
        else:
            pieces.append(Piece("plain", text[position]))
            position += 1
            continue
        position = found.end()
    return pieces


def shown(text: str) -> str:
    """Return the text that a reader sees outside of blocks."""
    return "".join(piece.text for piece in read(text) if piece.kind != "block")


def live(text: str) -> str:
    """Return the text where markup takes effect: neither code nor escaped. Escaped characters leave a gap."""
    return "".join(piece.text if piece.kind == "plain" else "\x00" for piece in read(text))

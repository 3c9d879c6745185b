"""Text for Discord's markdown: our own text is escaped except for bold; other text goes into code it cannot break.

Discord's client behaves as follows, with these consequences:
- Only ``` fences a block, however many backticks follow, and the next ``` ends it. So a run of three or more backticks
  in quoted text is broken up with a visible escape, and a note says so. An invisible character would work too, but a
  card must not contain hidden characters.
- Letters right behind the fence are a language, so a line break always follows it.
- Line breaks at both ends of a block are dropped, and a block of nothing else swallows its own closing fence. So words
  take their place.
- A backslash makes any punctuation plain.
This module knows neither the wording of cards nor components.
"""

from __future__ import annotations

import re

from signoff.cards.model import Code, Line, Moment, Person, RoleRef
from signoff.text.patterns import lazy_pattern

FENCE = "```"
BLANK_LINE = "*(a blank line)*"
BACKTICK = r"\u{0060}"
BACKTICK_NOTE = rf"{BACKTICK} stands for a backtick."

_MARKUP = lazy_pattern(r"[\\`*_~|<>#\[\]@]|:(?=//|\w|\Z)")
_LIST = lazy_pattern(r"^(\s*)([-+]|\d+\.)", re.MULTILINE)
_BOLD = lazy_pattern(r"\*\*([^*\n]+)\*\*")
_INERT = lazy_pattern(r"(?! *(?:[-+]|[0-9]+\.))(?:[A-Za-z0-9 ,.;'()·…+/-]|:(?= ))*+")
"""One line without any markup, as most texts are."""
_RUN = lazy_pattern(r"`{3,}")
_NOT_IN_CODE = lazy_pattern(r"[\x00-\x1f\x7f\u0085\u2028\u2029`]")
_ID = lazy_pattern(r"[0-9]{1,20}")


def escape(text: str) -> str:
    """Escape the text, so that no markup, mention, link, heading or list in it takes effect."""
    if _INERT.fullmatch(text):
        return text
    plain = _MARKUP.sub(r"\\\g<0>", text)
    return _LIST.sub(lambda match: match[1] + match[2][:-1] + "\\" + match[2][-1], plain)


def trusted(text: str) -> str:
    """Write our own text on one line. Bold stays bold; everything else is escaped."""
    if _INERT.fullmatch(text):
        return text
    flat = " ".join(text.splitlines())
    parts: list[str] = []
    end = 0
    for bold in _BOLD.finditer(flat):
        parts += [escape(flat[end : bold.start()]), "**", escape(bold[1]), "**"]
        end = bold.end()
    return "".join((*parts, escape(flat[end:])))


def line(parts: Line) -> str:
    return "".join([trusted(part) if isinstance(part, str) else _inline(part) for part in parts])


def _inline(part: Person | RoleRef | Moment | Code) -> str:
    match part:
        case Person(id=identifier, name=name):
            return f"<@{identifier}>" if _ID.fullmatch(identifier) else code(name)
        case RoleRef(id=identifier):
            return f"<@&{identifier}>" if _ID.fullmatch(identifier) else code(identifier)
        case Moment(at=at):
            return f"<t:{int(at)}:R>"
        case Code(text=text):
            return code(text)


def code(text: str) -> str:
    """Quote a short text as inline code, on one line."""
    flat = _NOT_IN_CODE.sub(lambda match: f"\\u{{{ord(match[0]):04X}}}", text)
    # Discord does not show blanks alone as inline code.
    return f"`{flat}`" if flat.strip() else "`(blank)`"


def block(text: str, language: str = "") -> tuple[str, str]:
    """Quote a text as a code block. Return the block and a note about it, empty if none is needed.

    `language` is our own text.
    """
    if not text:
        return "*(empty)*", ""
    body = text.strip("\n")
    if not body:
        return f"*({_breaks(len(text))} and nothing else)*", ""
    notes: list[str] = []
    if before := len(text) - len(text.lstrip("\n")):
        notes.append(f"Begins with {_breaks(before)}.")
    if after := len(text) - len(text.rstrip("\n")):
        notes.append(f"Ends with {_breaks(after)}.")
    if not body.strip():
        notes.append("Blanks only.")
    inert = _RUN.sub(lambda run: "".join("`" if i % 3 < 2 else BACKTICK for i in range(len(run[0]))), body)
    if inert != body:
        notes.append(BACKTICK_NOTE)
    return f"{FENCE}{language}\n{inert}\n{FENCE}", " ".join(notes)


def _breaks(count: int) -> str:
    return "a line break" if count == 1 else f"{count} line breaks"

"""The arguments that an edit changed: what the model asked for beside what runs, each line of text once. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from signoff.cards.layout import Value, argument, argument_label
from signoff.cards.line_changes import compare, name_new_lines
from signoff.text.patterns import lazy_pattern

ORIGINAL, EDITED, REMOVED, ADDED = " (original, does not run)", " (edited)", " (original, removed)", " (added)"
"""Label endings for edited arguments. A name is one word or in quotation marks, so no name can imitate them."""
ORIGINAL_LINES = " (lines that the edit replaced)"
"""Label ending for the lines of the model that the edit took out, if the diff of the write shows all others."""
AS_CHANGES = " (edited: - is the original, + runs)"
"""Label ending for a text of several lines with both versions."""
_LINE = lazy_pattern(r"[^\n]*\n|[^\n]+")


def changed_values(name: str, before: Any, now: Any) -> list[tuple[Value, str]]:
    """Return an argument that an edit changed: both values or, if they have several lines, one text with both.

    Each value comes with the ending of its label.
    """
    old, new = argument(name, before), argument(name, now)
    if "\n" not in old.text + new.text or bool(old.kind) != bool(new.kind):
        return [(old, ORIGINAL), (new, EDITED)]
    lines = [sign + line for sign, line in compare(old.lines, new.lines)]
    return [(replace(new, text="\n".join(lines), diff=True), AS_CHANGES)]


def removed_lines(name: str, before: Any, now: str) -> list[tuple[Value, str]]:
    """Return the lines that an edit took out of a text that is shown as a diff, and the ending of their label.

    The list is empty if the edit took out none.
    """
    if not isinstance(before, str):
        return [(argument(name, before), ORIGINAL)]
    old = _LINE.findall(before)
    removed = [line for sign, line in compare(old, _LINE.findall(now)) if sign == "-"]
    label, cut = argument_label(name)
    ending = ORIGINAL if len(removed) == len(old) else ORIGINAL_LINES
    text = "".join(removed)
    # Blank lines keep their breaks: there is nothing else to show.
    text = text.removesuffix("\n") if text.strip("\n") else text
    return [(Value(label, text, label_cut=cut), ending)] if removed else []


def note_on_edit(before: str, now: str) -> str:
    """Say which lines of the text come from the edit."""
    lines = name_new_lines(compare(_LINE.findall(before), _LINE.findall(now)))
    return f"{lines} by the edit" if lines else "lines were removed by the edit"

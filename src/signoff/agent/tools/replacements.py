"""Replaces pieces of a text, each of which must be found exactly once. Pure. The errors are for the model."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.dataclass import dataclass

LARGEST = 1024 * 1024
"""Most characters of a file, also between two replacements."""


class NotApplicable(ValueError):
    """An edit or a patch does not fit the file. The text says why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Replacement:
    old: str
    new: str
    everywhere: bool = False


def replaced(path: str, text: str, replacements: Sequence[Replacement]) -> str:
    """Return the text after all replacements, each made in the result of those before it. Raises NotApplicable."""
    for number, one in enumerate(replacements, 1):
        which = "" if len(replacements) == 1 else f"edit {number}: "
        if not one.old:
            raise NotApplicable(f"{which}old_text is empty; to write a whole file, use the tool write")
        if one.old == one.new:
            raise NotApplicable(f"{which}old_text and new_text are the same, so nothing would change")
        count = text.count(one.old)
        if not count:
            hint = " The file has Windows line endings (CRLF)." if "\r\n" in text and "\n" in one.old else ""
            raise NotApplicable(f'{which}old_text is not in "{path}"; read the file and copy the text exactly.{hint}')
        if count > 1 and not one.everywhere:
            raise NotApplicable(
                f'{which}old_text is in "{path}" {count} times; give more of the lines around it, or set replace_all'
            )
        size = len(text) + count * (len(one.new) - len(one.old))
        if size > LARGEST:  # said before it is made: a few doublings would fill the memory
            raise NotApplicable(f'{which}"{path}" would have {size} characters, and {LARGEST} are allowed')
        text = text.replace(one.old, one.new)
    return text

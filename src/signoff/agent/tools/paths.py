"""Checks the paths for file tools: plain relative paths, with exactly one spelling per file.

Works on text alone and reads no file. One spelling matters because people write rules about paths: a rule for
`config/app.env` must not be bypassed with `./config//app.env`. The workspace checks the files themselves, links above
all.
"""

from __future__ import annotations

import re
import unicodedata

from signoff.text.visible import is_hidden

RESERVED = ".signoff-"
"""The prefix of our own temporary files."""
LONGEST_NAME = 255
LONGEST_PATH = 1024
DEEPEST = 16

_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.I)


class BadPath(ValueError):
    """A path is refused. The text says why, for the model and for people, and repeats no hidden characters."""


def split_path(path: str) -> tuple[str, ...]:
    """Return the names of the folders and of the file, in order. Raises BadPath."""
    if odd := next((char for char in path if is_hidden(char) or char in "\t\n"), None):
        raise BadPath(f"a path must not have hidden or control characters, and this one has U+{ord(odd):04X}")
    if not path:
        raise BadPath("the path is empty: name a file, for example notes/today.txt")
    if len(path.encode()) > LONGEST_PATH:
        raise BadPath(f"the path is longer than {LONGEST_PATH} bytes")
    if path.startswith(("/", "~")) or "\\" in path:
        raise BadPath("only paths inside the workspace are taken: relative, with / between names, without ~ or \\")
    if unicodedata.normalize("NFC", path) != path:
        raise BadPath("the path has letters made of parts: write each accented letter as one character (NFC)")
    names = tuple(path.split("/"))
    if len(names) > DEEPEST:
        raise BadPath(f"the path has {len(names)} parts, {DEEPEST} are allowed")
    for name in names:
        _check_name(name)
    return names


def _check_name(name: str) -> None:
    if name == "..":
        raise BadPath("a path must not have .. in it: nothing outside the workspace can be reached")
    if name in ("", "."):
        raise BadPath("write the path in its shortest form, without ./ and // and without / at its end")
    if len(name.encode()) > LONGEST_NAME:
        raise BadPath(f"a name in the path is {len(name.encode())} bytes long, {LONGEST_NAME} are allowed")
    if name != name.strip(" ") or name.endswith("."):
        raise BadPath("a name must not begin or end with a space, or end with a dot")
    if name.lower().startswith(RESERVED):
        raise BadPath(f"names that begin with {RESERVED} are kept for unfinished files")
    if _DEVICES.fullmatch(name):
        raise BadPath(f'the name "{name}" is that of a device on some systems: choose another')

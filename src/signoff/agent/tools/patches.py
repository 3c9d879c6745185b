"""Reads a unified diff and applies it to texts. Pure: knows no files, and takes no path that the workspace would not.

Only changes of content are taken: a patch that renames, copies, changes modes or carries binary data is refused as a
whole. The line numbers of a hunk are a hint. Its lines decide where it belongs, and they must be found in one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import islice

from signoff.agent.tools.paths import BadPath, split_path
from signoff.agent.tools.replacements import NotApplicable
from signoff.dataclass import dataclass

MOST_FILES = 50
MOST_LINES = 20_000
MOST_SEARCHED = 20_000_000
"""Lines that are compared, per file, to find hunks that are not at the line that they name."""
NOTHING = "/dev/null"
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*")
_REFUSED = re.compile(r"(?:rename|copy) (?:from|to) |(?:old|new) mode |GIT binary patch|Binary files ")
_IGNORED = re.compile(r"diff --git |index [0-9a-f]+\.\.|(?:new|deleted) file mode |similarity index |```")
_NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Hunk:
    line: int
    """The number of its first line in the old file, as the patch says."""
    old: tuple[str, ...]
    """Lines with their ends."""
    new: tuple[str, ...]


@dataclass(slots=True)
class FilePatch:
    path: str
    creates: bool = False
    deletes: bool = False
    hunks: list[Hunk] = field(default_factory=list[Hunk])


def parse_patch(patch: str) -> list[FilePatch]:
    """Return the changes, one per file. Raises NotApplicable."""
    lines = patch.split("\n")
    if len(lines) > MOST_LINES:
        raise NotApplicable(f"the patch has {len(lines)} lines, and {MOST_LINES} are allowed")
    files: list[FilePatch] = []
    number = 0
    while number < len(lines):
        line = lines[number].rstrip("\r")
        if _REFUSED.match(line):
            raise NotApplicable(
                f'line {number + 1}: renames, copies, modes and binary data are not taken ("{line[:60]}")'
            )
        if line.startswith("--- ") and number + 1 < len(lines) and lines[number + 1].startswith("+++ "):
            files.append(_header(line, lines[number + 1].rstrip("\r")))
            number += 2
        elif _HUNK.fullmatch(line):
            if not files:
                raise NotApplicable(f"line {number + 1}: a hunk before any --- and +++ lines")
            hunk, number = _hunk(lines, number)
            files[-1].hunks.append(hunk)
        elif not line.strip() or _IGNORED.match(line):
            number += 1
        else:
            raise NotApplicable(f'line {number + 1} is not part of a unified diff: "{line[:60]}"')
    _check(files)
    return files


def _check(files: Sequence[FilePatch]) -> None:
    if not files:
        raise NotApplicable("the patch changes no file: it needs --- and +++ lines and hunks that begin with @@")
    if len(files) > MOST_FILES:
        raise NotApplicable(f"the patch changes {len(files)} files, and {MOST_FILES} are allowed")
    names = [file.path for file in files]
    for file in files:
        if names.count(file.path) > 1:
            raise NotApplicable(f'the patch changes "{file.path}" twice; write its hunks below one header')
        if not file.hunks:
            raise NotApplicable(f'the patch has no hunk for "{file.path}"')


def _header(old: str, new: str) -> FilePatch:
    before, after = _path(old[4:]), _path(new[4:])
    if before == after == NOTHING:
        raise NotApplicable("a file cannot be /dev/null on both sides")
    if NOTHING not in (before, after) and before != after:
        raise NotApplicable(f'"{before}" would become "{after}": renames are not taken')
    path = after if before == NOTHING else before
    try:
        split_path(path)
    except BadPath as refusal:
        raise NotApplicable(f"{refusal}") from None
    return FilePatch(path, creates=before == NOTHING, deletes=after == NOTHING)


def _path(text: str) -> str:
    path = text.split("\t", 1)[0].rstrip()
    return path[2:] if path.startswith(("a/", "b/")) else path


def _hunk(lines: Sequence[str], start: int) -> tuple[Hunk, int]:
    head = _HUNK.fullmatch(lines[start].rstrip("\r"))
    assert head
    olds, news = int(head[2] or 1), int(head[4] or 1)
    old: list[str] = []
    new: list[str] = []
    number = start + 1
    while number < len(lines) and (len(old) < olds or len(new) < news or lines[number].startswith("\\")):
        line = lines[number]
        sign, text = line[:1], f"{line[1:]}\n"
        if line.startswith(_NO_END[:12]):
            _cut_end(lines[number - 1][:1], old, new)
        elif sign == "-":
            old.append(text)
        elif sign == "+":
            new.append(text)
        elif sign == " " or line in ("", "\r"):  # some editors cut the space of an empty line
            old.append(text)
            new.append(text)
        else:
            raise NotApplicable(f'line {number + 1}: a line of a hunk begins with " ", "-" or "+"')
        number += 1
    if (len(old), len(new)) != (olds, news):
        counted = f"-{olds} +{news} but has -{len(old)} +{len(new)} lines"
        raise NotApplicable(f"line {start + 1}: the hunk says {counted}; correct its numbers")
    return Hunk(int(head[1]), tuple(old), tuple(new)), number


def _cut_end(sign: str, old: list[str], new: list[str]) -> None:
    for side, signs in ((old, "- "), (new, "+ ")):
        if sign in signs and side:
            side[-1] = side[-1].removesuffix("\n")


def patched(file: FilePatch, text: str) -> str:
    """Return the text after the hunks of one file. Raises NotApplicable."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    result: list[str] = []
    done = searched = 0
    for count, hunk in enumerate(file.hunks, 1):
        name = f'hunk {count} of "{file.path}"'
        if not _is_where_it_says(lines, hunk, done):
            searched += len(lines) * len(hunk.old)
            if searched > MOST_SEARCHED:
                raise NotApplicable(f"{name} is not at the line that it names, and the file is too long to search it")
        at = _place(lines, hunk, done, name)
        result += lines[done:at]
        result += hunk.new
        done = at + len(hunk.old)
    rest = [*result, *lines[done:]]
    if any(not line.endswith("\n") for line in rest[:-1]):
        raise NotApplicable(f'a hunk of "{file.path}" would join two lines: the line before it has no line break')
    return "".join(rest)


def _place(lines: Sequence[str], hunk: Hunk, after: int, name: str) -> int:
    """Return the index of the hunk's first line, not before `after`."""
    if not hunk.old:
        if hunk.line < after or hunk.line > len(lines):
            raise NotApplicable(f"{name} has no line of the old file and names line {hunk.line}, which does not fit")
        return hunk.line
    if _is_where_it_says(lines, hunk, after):
        return hunk.line - 1
    places = list(islice(_places(lines, hunk.old, after), 2))
    if len(places) == 1:
        return places[0]
    if not places:
        raise NotApplicable(f"the lines of {name} are not in the file; read it and copy them exactly")
    raise NotApplicable(f"the lines of {name} are in the file more than once, and not at the line that it names")


def _is_where_it_says(lines: Sequence[str], hunk: Hunk, after: int) -> bool:
    stated = hunk.line - 1
    return stated >= after and tuple(lines[stated : stated + len(hunk.old)]) == hunk.old


def _places(lines: Sequence[str], wanted: Sequence[str], after: int) -> Iterator[int]:
    first, count = wanted[0], len(wanted)
    for index in range(after, len(lines) - count + 1):
        if lines[index] == first and tuple(lines[index : index + count]) == tuple(wanted):
            yield index

"""The preview of a write: a diff from which the new file can be rebuilt, for any two files."""

from __future__ import annotations

import hashlib
import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.agent.tools.diffs import LARGEST, describe_change
from signoff.agent.tools.workspace import Present, digest_of
from tests.rigs.files import FileRig

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def present(data: bytes) -> Present:
    return Present(digest_of(data), len(data), data)


def change(old: str | None, new: str, path: str = "x.txt") -> str:
    return describe_change(path, Present() if old is None else present(old.encode()), new.encode())


def apply(old: str, diff: str) -> str:
    """Apply a diff as `patch` does, without any tolerance."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", old)
    made, at = "", 0
    rows = re.findall(r"[^\n]*\n|[^\n]+", diff if diff.endswith("\n") else diff + "\n")
    for number, row in enumerate(rows):
        bare = number + 1 < len(rows) and rows[number + 1].startswith("\\ No newline")
        text = row[1:].removesuffix("\n") if bare else row[1:]
        if found := HUNK.match(row):
            start = int(found[1]) - (found[2] != "0")
            made += "".join(lines[at:start])
            at = start
        elif row[0] in " -":
            assert lines[at] == text
            at += 1
        if row[0] in " +" and not row.startswith(("+++ ", "--- ")):
            made += text
    return made + "".join(lines[at:])


LINE = st.sampled_from(["a", "b", "", "\r", "c\r", "d\x0be", "\u2028", "+", "---", "@@ -1 +1 @@", "\\ No newline"])
TEXT = st.builds(lambda lines, end: "\n".join(lines) + end, st.lists(LINE, max_size=12), st.sampled_from(["", "\n"]))


@given(old=TEXT, new=TEXT)
def test_the_diff_makes_the_new_file_of_the_old_one(old: str, new: str) -> None:
    shown = change(old, new)
    if old == new:
        assert shown.startswith("No change: ")
        return
    words, _, diff = shown.partition("\n--- a/x.txt\n+++ b/x.txt\n")
    assert words.startswith("Changes x.txt: ")
    assert apply(old, diff) == new


@given(new=TEXT)
def test_a_new_file_is_all_plus(new: str) -> None:
    words, _, diff = change(None, new).partition("\n--- /dev/null\n+++ b/x.txt\n")
    assert words.startswith("New file x.txt: ")
    assert apply("", diff) == new
    assert not re.search(r"^[- ]", diff, re.M)


@pytest.mark.slow
def test_git_takes_it(tmp_path: Path) -> None:
    old = "".join(f"line {n}\n" for n in range(40))
    new = old.replace("line 5\n", "line five\n").replace("line 30\nline 31\n", "").removesuffix("\n") + "!"
    (tmp_path / "x.txt").write_text(old)
    shown = change(old, new)
    assert shown.startswith(
        "Changes x.txt: 4 lines removed, 2 lines added.\n--- a/x.txt\n+++ b/x.txt\n@@ -3,7 +3,7 @@\n"
    )
    assert shown.endswith("-line 39\n+line 39!\n\\ No newline at end of file")
    command = ["git", "apply", "--verbose", "-"]
    subprocess.run(command, cwd=tmp_path, input=shown + "\n", text=True, check=True, capture_output=True)
    assert (tmp_path / "x.txt").read_text() == new


def test_a_lost_newline_at_the_end_is_seen() -> None:
    assert change("a\nb\n", "a\nb").endswith("@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file")
    assert change("a", "a\n").endswith("-a\n\\ No newline at end of file\n+a")


def test_line_endings_are_said_in_words_and_stay_in_the_lines() -> None:
    shown = change("a\r\nb\r\n", "a\nb\n")
    assert "Line endings: 2 CRLF and 0 LF now, 0 CRLF and 2 LF after." in shown
    assert "-a\r\n-b\r\n+a\n+b" in shown
    assert "Line endings: 1 CRLF and 1 LF." in change(None, "a\r\nb\n")
    assert "Line endings" not in change("a\nb\n", "a\nc\n")


def test_an_empty_file_is_said_to_be() -> None:
    assert change(None, "") == "New file x.txt: 0 lines, 0 bytes."
    assert change("", "") == "No change: x.txt has exactly this content already (0 bytes)."
    assert change("a\n", "").endswith("@@ -1 +0,0 @@\n-a")


async def test_of_what_is_no_text_or_too_large_both_sides_are_named_by_digest(tmp_path: Path) -> None:
    rig = FileRig(tmp_path)
    large = b"x" * (LARGEST + 1)
    for old, why in ((b"\0\xff", "is not text"), (large, "is too large to be compared here")):
        rig.put("x.bin", old)
        shown = await rig.show("x.bin", "new")
        assert shown.text == (
            f"Replaces x.bin, which {why}.\nnow:   {len(old)} bytes, sha256 {hashlib.sha256(old).hexdigest()}\n"
            "after: 3 bytes"
        )
        assert shown.operands == {"x.bin": hashlib.sha256(old).hexdigest()}
    created = await rig.show("new.txt", large.decode())
    assert created.text.startswith("Creates new.txt, which is too large to be compared here.\nnow:   absent\nafter: ")
    assert "which is not text" in (await rig.show("new.bin", "a\0b")).text


@pytest.mark.parametrize("kind", ["same lines", "few kinds", "all differ", "one in the middle"])
def test_no_content_makes_the_comparison_slow(kind: str) -> None:
    number = LARGEST // 4
    old = {"same lines": "a\n" * number, "few kinds": "a\nb\n" * (number // 2)}.get(
        kind, "".join(f"{n:02x}\n" for n in range(number // 2))
    )
    new = {"same lines": "a\n" * (number - 7) + "b\n" * 7, "few kinds": "b\na\na\n" * (number // 3)}.get(
        kind, old.replace("0", "z") if kind == "all differ" else old.replace("\n1f4\n", "\n?\n")
    )
    began = time.perf_counter()
    shown = change(old, new)
    assert time.perf_counter() - began < 5
    assert apply(old, shown.partition("+++ b/x.txt\n")[2]) == new

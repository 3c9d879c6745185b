"""Unified diffs: those that git makes apply, and hostile ones are refused."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.agent.tools.patches import MOST_LINES, parse_patch, patched
from signoff.agent.tools.replacements import NotApplicable

HEAD = "--- a/x.txt\n+++ b/x.txt\n"
LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "-\n", "+++ b/y\n", "@@ -1 +1 @@\n", "é\r\n"]), max_size=12)


def apply(patch: str, text: str) -> str:
    [file] = parse_patch(patch)
    return patched(file, text)


@given(LINES, LINES)
def test_the_diff_of_two_texts_makes_one_of_the_other(old: list[str], new: list[str]) -> None:
    diff = "".join(difflib.unified_diff(old, new, "a/x.txt", "b/x.txt"))
    if diff:
        assert apply(diff, "".join(old)) == "".join(new)


def test_the_end_of_a_file_without_a_line_break_is_kept() -> None:
    mark = "\\ No newline at end of file\n"
    assert apply(f"{HEAD}@@ -1 +1 @@\n-a\n{mark}+b\n{mark}", "a") == "b"
    assert apply(f"{HEAD}@@ -1 +1 @@\n-a\n{mark}+b\n", "a") == "b\n"
    with pytest.raises(NotApplicable, match="are not in the file"):
        apply(f"{HEAD}@@ -1 +1 @@\n-a\n+b\n", "a")
    with pytest.raises(NotApplicable, match="would join two lines"):
        apply(f"{HEAD}@@ -1 +1 @@\n-a\n+b\n{mark}", "a\nc\n")


def test_wrong_line_numbers_do_not_matter_if_the_lines_are_there_once() -> None:
    assert apply(f"{HEAD}@@ -90 +90 @@\n-b\n+c\n", "a\nb\n") == "a\nc\n"
    with pytest.raises(NotApplicable, match="more than once"):
        apply(f"{HEAD}@@ -90 +90 @@\n-b\n+c\n", "b\nb\n")
    assert apply(f"{HEAD}@@ -2 +2 @@\n-b\n+c\n", "b\nb\n") == "b\nc\n"


def test_a_patch_for_a_long_file_is_applied_or_refused_at_once() -> None:
    """Each hunk was searched in the whole file: 200 of them took two minutes, before anybody was asked."""
    hunks = "".join(f"@@ -{line} +{line} @@\n-\n+x\n" for line in range(1, 1001))
    assert apply(HEAD + hunks, "\n" * 300_000).startswith("x\n" * 1000 + "\n")
    with pytest.raises(NotApplicable, match=r"hunk 1 .* is not at the line that it names, and the file is too long"):
        apply(HEAD + "@@ -1,200 +1,1 @@\n" + "-\n" * 199 + "-a\n+x\n", "\n" * 300_000)


def test_the_lines_of_git_around_a_diff_are_passed_over() -> None:
    git = "diff --git a/x.txt b/x.txt\nindex 123abc..456def 100644\n"
    assert apply(f"{git}{HEAD}@@ -1 +1 @@ def f():\n-a\n+b\n", "a\n") == "b\n"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "changes no file"),
        ("hello", "not part of a unified diff"),
        ("@@ -1 +1 @@\n-a\n+b\n", "before any ---"),
        (HEAD, "no hunk"),
        (f"{HEAD}@@ -1,9 +1 @@\n-a\n+b\n", "says -9 +1 but has"),
        (f"{HEAD}@@ -1 +1 @@\n*a\n", "begins with"),
        (f"{HEAD}@@ -99999999999999 +1 @@\n-a\n", "not part of"),
        (f"{HEAD}@@ -5,0 +6 @@\n+b\n", "does not fit"),
        (f"{HEAD}@@ -1 +1 @@\n-a\n+b\n{HEAD}@@ -1 +1 @@\n-b\n+c\n", "twice"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "renames are not taken"),
        ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+b\n", "on both sides"),
        ("--- a/dev/../../x\n+++ b/dev/../../x\n@@ -1 +1 @@\n-a\n+b\n", "must not have .."),
        ("--- a//etc/passwd\n+++ b//etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "only paths inside the workspace"),
        ("--- C:\\x\n+++ C:\\x\n@@ -1 +1 @@\n-a\n+b\n", "only paths inside the workspace"),
        ("diff --git a/x b/y\nrename from x\nrename to y\n", "renames, copies, modes"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "renames, copies, modes"),
        ("GIT binary patch\nliteral 3\n", "renames, copies, modes"),
        (HEAD + "\n" * MOST_LINES, f"lines, and {MOST_LINES} are allowed"),
        ("".join(f"--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-a\n+b\n" for n in range(51)), "51 files, and 50 are allowed"),
    ],
)
def test_a_patch_that_is_none_or_hostile_is_refused(patch: str, words: str) -> None:
    with pytest.raises(NotApplicable) as refused:
        apply(patch, "a\n")
    assert words in str(refused.value)

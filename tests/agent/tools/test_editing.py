"""The tools that change files: the diff on the card, what is written, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import ApprovalRequired
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools import several_files
from signoff.agent.tools.handles import NotTaken
from signoff.agent.tools.replacements import LARGEST, NotApplicable, Replacement, replaced
from tests.rigs.files import tree
from tests.rigs.workspace_bench import WorkspaceRig

SERVER = "def start():\n    return 1\n\n\ndef stop():\n    return 1\n"
PATCH = """\
--- a/server.py
+++ b/server.py
@@ -1,2 +1,2 @@
 def start():
-    return 1
+    return 2
--- /dev/null
+++ b/tests/new.py
@@ -0,0 +1 @@
+import server
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
"""
PATHS = ["server.py", "tests/new.py", "old.txt"]


@pytest.fixture
def rig(tmp_path: Path) -> WorkspaceRig:
    rig = WorkspaceRig(tmp_path / "workspace")
    rig.put("server.py", SERVER)
    rig.put("old.txt", "old\n")
    return rig


async def test_an_edit_shows_its_diff_and_is_made_once_accepted(rig: WorkspaceRig) -> None:
    args = {"path": "server.py", "old_text": "start():\n    return 1", "new_text": "start():\n    return 2"}
    shown = await rig.preview("edit", **args)
    assert shown.text.startswith(
        "Changes server.py: 1 line removed, 1 line added.\n--- a/server.py\n+++ b/server.py\n@@"
    )
    assert "-    return 1\n+    return 2\n" in shown.text
    assert shown.diff_of == "old_text,new_text,"
    assert list(shown.operands) == ["server.py"]
    assert (rig.home / "server.py").read_text() == SERVER, "a preview changes nothing"
    said = await rig.agreed("edit", shown.operands, **args)
    assert said == f"Changed server.py: {len(SERVER)} bytes before, {len(SERVER)} now."
    assert (rig.home / "server.py").read_text() == SERVER.replace("1", "2", 1)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("return 1", 'is in "server.py" 2 times; give more of the lines around it, or set replace_all'),
        ("return 3", 'is not in "server.py"; read the file'),
        ("", "old_text is empty"),
        ("new", "are the same"),
    ],
)
async def test_an_edit_that_does_not_fit_is_refused_before_anybody_is_asked(
    rig: WorkspaceRig, old: str, words: str
) -> None:
    for ask in (rig.preview, rig.call):
        with pytest.raises(ToolFailed, match="Nothing was changed: ") as refused:
            await ask("edit", path="server.py", old_text=old, new_text="new")
        assert words in str(refused.value)
    with pytest.raises(ToolFailed, match="There is no file"):
        await rig.preview("edit", path="gone.py", old_text="a", new_text="b")
    assert (rig.home / "server.py").read_text() == SERVER


async def test_every_occurrence_is_replaced_if_that_is_asked_for(rig: WorkspaceRig) -> None:
    await rig.call("edit", path="server.py", old_text="return 1", new_text="return 9", replace_all=True)
    assert (rig.home / "server.py").read_text() == SERVER.replace("1", "9")


async def test_several_edits_are_all_made_or_none(rig: WorkspaceRig) -> None:
    first = {"old_text": "start", "new_text": "begin"}
    with pytest.raises(ToolFailed, match="edit 2: old_text is not in"):
        await rig.call("multi_edit", path="server.py", edits=[first, {"old_text": "start", "new_text": "x"}])
    with pytest.raises(ToolFailed, match="no edit in the list"):
        await rig.call("multi_edit", path="server.py", edits=[])
    assert (rig.home / "server.py").read_text() == SERVER
    edits = [first, {"old_text": "begin", "new_text": "run"}, {"old_text": "stop", "new_text": "end"}]
    shown = await rig.preview("multi_edit", path="server.py", edits=edits)
    assert shown.diff_of == "edits,"
    assert shown.text.count("\n@@") == 1
    await rig.agreed("multi_edit", shown.operands, path="server.py", edits=edits)
    assert (rig.home / "server.py").read_text() == SERVER.replace("start", "run").replace("stop", "end")


async def test_a_patch_changes_creates_and_deletes_files_with_one_diff(rig: WorkspaceRig) -> None:
    shown = await rig.preview("apply_patch", path=PATHS, patch=PATCH)
    assert [line for line in shown.text.splitlines() if line[:1].isalpha()] == [
        "Changes server.py: 1 line removed, 1 line added.",
        "New file tests/new.py: 1 line, 14 bytes.",
        "Deletes old.txt: 1 line, 4 bytes.",
    ]
    assert (shown.diff_of, set(shown.operands)) == ("patch,", {"server.py", "tests/new.py", "old.txt"})
    said = await rig.agreed("apply_patch", shown.operands, path=PATHS, patch=PATCH)
    assert said.splitlines()[1:] == ["Created tests/new.py: 0 bytes before, 14 now.", "Deleted old.txt."]
    assert (rig.home / "server.py").read_text() == SERVER.replace("1", "2", 1)
    assert (rig.home / "tests/new.py").read_text() == "import server\n"
    assert not (rig.home / "old.txt").exists()


@pytest.mark.parametrize("paths", [[], PATHS[:2], [*PATHS, "x"], PATHS[::-1]])
async def test_a_patch_changes_only_files_that_its_argument_path_lists(rig: WorkspaceRig, paths: list[str]) -> None:
    """Otherwise a patch would be a way past every rule about `path`."""
    before = tree(rig.home)
    for ask in (rig.preview, rig.call):
        with pytest.raises(
            ToolFailed, match=r"path must list the files of the patch in its order: server\.py, tests/new"
        ):
            await ask("apply_patch", path=paths, patch=PATCH)
    assert tree(rig.home) == before


async def test_a_file_that_changed_since_the_card_is_not_changed_and_asked_about_again(rig: WorkspaceRig) -> None:
    shown = await rig.preview("apply_patch", path=PATHS, patch=PATCH)
    rig.put("tests/new.py", "somebody's")
    before = tree(rig.home)
    with pytest.raises(ToolFailed, match="exists already"):
        await rig.agreed("apply_patch", shown.operands, path=PATHS, patch=PATCH)
    (rig.home / "tests/new.py").unlink()
    rig.put("server.py", f"# {SERVER}")
    with pytest.raises(ApprovalRequired) as asked:
        await rig.agreed(
            "apply_patch",
            shown.operands,
            path=PATHS,
            patch=PATCH.replace("@@ -1,2 +1,2 @@\n def start():\n", "@@ -2 +2 @@\n"),
        )
    assert asked.value.metadata
    assert "server.py has changed since it was approved" in asked.value.metadata["summary"]
    with pytest.raises(ApprovalRequired):
        await rig.agreed("edit", {}, path="old.txt", old_text="old", new_text="new")
    rig.put("server.py", SERVER)
    rig.put("tests/new.py", "somebody's")
    assert tree(rig.home) == before


async def test_if_one_file_cannot_be_written_none_is(rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(rig.home)
    real = several_files.replace_file

    def failing(folder: int, name: str, data: bytes, old: object) -> None:
        if name == "new.py":
            raise NotTaken("the disk is full")
        real(folder, name, data, old)  # type: ignore[arg-type]

    monkeypatch.setattr(several_files, "replace_file", failing)
    with pytest.raises(ToolFailed, match="the disk is full"):
        await rig.call("apply_patch", path=PATHS, patch=PATCH)
    (rig.home / "tests").rmdir()
    assert tree(rig.home) == before


async def test_a_file_that_changes_at_the_last_moment_is_asked_about_again(
    rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = await rig.preview("edit", path="old.txt", old_text="old", new_text="new")
    real = several_files.look_from

    def late(*args: object) -> object:
        rig.put("old.txt", "other\n")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(several_files, "look_from", late)
    with pytest.raises(ApprovalRequired):
        await rig.agreed("edit", shown.operands, path="old.txt", old_text="old", new_text="new")
    assert (rig.home / "old.txt").read_text() == "other\n"


@pytest.mark.parametrize("path", ["../out.txt", "/etc/passwd", "link.txt", "folder/x", ".signoff-x", "a/./b", "~/x"])
async def test_no_edit_and_no_patch_leaves_the_workspace(rig: WorkspaceRig, tmp_path: Path, path: str) -> None:
    """Rows 23 and 25."""
    outside = tmp_path / "out.txt"
    outside.write_text("old\n")
    (rig.home / "link.txt").symlink_to(outside)
    (rig.home / "folder").symlink_to(tmp_path)
    patches = [f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+new\n"]
    patches += [
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n",
        f"--- {path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n",
    ]
    for patch in patches:
        with pytest.raises(ToolFailed):
            await rig.preview("apply_patch", path=[path], patch=patch)
        with pytest.raises(ToolFailed):
            await rig.call("apply_patch", path=[path], patch=patch)
    with pytest.raises(ToolFailed):
        await rig.call("edit", path=path, old_text="old", new_text="new")
    assert outside.read_text() == "old\n"
    assert not (tmp_path / "x").exists()


async def test_a_change_that_would_fill_the_workspace_is_refused(
    rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.agent.tools.workspace.QUOTA", 200)
    before = tree(rig.home)
    with pytest.raises(ToolFailed, match="bytes are left"):
        await rig.call("edit", path="server.py", old_text="start", new_text="x" * 300)
    assert tree(rig.home) == before


async def test_a_large_or_binary_file_is_not_hidden_behind_a_diff_that_is_none(rig: WorkspaceRig) -> None:
    rig.put("large.txt", "x\n" * 100_000 + "end\n")
    shown = await rig.preview("edit", path="large.txt", old_text="end", new_text="fin")
    assert (shown.diff_of, "too large to be compared" in shown.text) == ("", True)
    rig.put("b.bin", b"\xff")
    with pytest.raises(ToolFailed, match="not UTF-8"):
        await rig.preview("edit", path="b.bin", old_text="a", new_text="b")


def test_replacements_that_would_fill_the_memory_are_refused_before_they_are_made() -> None:
    """Forty doublings of one letter have a terabyte."""
    with pytest.raises(NotApplicable, match=rf'edit 21: "x" would have {2 * LARGEST} characters'):
        replaced("x", "a", [Replacement("a", "aa", everywhere=True)] * 22)

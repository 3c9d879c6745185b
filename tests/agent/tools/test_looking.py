"""The tools that look at a workspace: what they find, what they refuse, and that nothing hangs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools import looking
from tests.rigs.workspace_bench import WorkspaceRig


@pytest.fixture
def rig(tmp_path: Path) -> WorkspaceRig:
    return WorkspaceRig(tmp_path / "workspace")


async def test_a_part_of_a_file_is_read_by_line_numbers(rig: WorkspaceRig) -> None:
    rig.put("a.txt", "one\ntwo\nthree\r\nfour")
    assert await rig.call("read", path="a.txt") == "a.txt: 4 lines, 19 bytes in all.\none\ntwo\nthree\r\nfour"
    part = await rig.call("read", path="a.txt", first_line=2, lines=2)
    assert part == "a.txt: lines 2 to 3 of 4, 19 bytes in all.\ntwo\nthree\r\n"
    with pytest.raises(ToolFailed, match="has 4 lines, so there is no line 9"):
        await rig.call("read", path="a.txt", first_line=9)
    rig.put("b.bin", b"a\0b")
    with pytest.raises(ToolFailed, match="not UTF-8 text"):
        await rig.call("read", path="b.bin")


async def test_a_folder_is_listed_without_following_links(rig: WorkspaceRig) -> None:
    rig.put("src/a.py", "12345")
    rig.put("src/deep/b.py", "")
    (rig.home / "src/out").symlink_to("/etc")
    assert await rig.call("list_dir") == "src/"
    assert (await rig.call("list_dir", path="src")).splitlines() == [
        "src/a.py (5 bytes)",
        "src/deep/",
        "src/out (a link, which is not followed)",
    ]
    with pytest.raises(ToolFailed, match='There is no folder "gone"'):
        await rig.call("list_dir", path="gone")
    (rig.home / "empty").mkdir()
    assert await rig.call("list_dir", path="empty") == "empty is empty."


async def test_a_name_that_is_no_text_is_listed_with_escapes(rig: WorkspaceRig) -> None:
    rig.put("a.txt", "")
    (rig.home / os.fsdecode(b"b\xff")).touch()
    (rig.home / "c (5 bytes)\nd").touch()
    wanted = ["a.txt (0 bytes)", "b\\udcff (0 bytes)", "c (5 bytes)\\nd (0 bytes)"]
    assert sorted((await rig.call("list_dir")).split("\n")) == wanted
    assert sorted((await rig.call("glob", pattern="**")).split("\n")) == wanted


async def test_files_are_found_by_patterns(rig: WorkspaceRig) -> None:
    for path in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/d.txt"):
        rig.put(path, "")
    (rig.home / "link.py").symlink_to("a.py")

    async def names(pattern: str) -> list[str]:
        return [line.partition(" (")[0] for line in (await rig.call("glob", pattern=pattern)).splitlines()]

    assert await names("*.py") == ["a.py"]
    assert await names("**/*.py") == ["a.py", "src/b.py", "src/deep/c.py"]
    assert await names("src/**") == ["src/b.py", "src/deep/c.py", "src/deep/d.txt"]
    assert await names("src/*/[cd].*") == ["src/deep/c.py", "src/deep/d.txt"]
    assert await names("nothing*") == ["No file matches nothing*."]
    with pytest.raises(ToolFailed, match="too many wildcards"):
        await names("**/**/**/**/x")


@pytest.mark.slow
async def test_lines_are_found_with_their_numbers(rig: WorkspaceRig) -> None:
    rig.put("a.py", "import os\n\ndef health():\n    return 'ok'\n")
    rig.put("src/b.py", "def Health(): pass\n" + "y" * 1000 + " health\n")
    rig.put("c.bin", b"health\0")
    found = await rig.call("grep", pattern=r"def \w+\(", files="**/*.py")
    assert found.splitlines() == ["a.py:3: def health():", "src/b.py:1: def Health(): pass"]
    long = (await rig.call("grep", pattern="health", files="src/*", ignore_case=True)).splitlines()
    assert (long[0], long[1][-6:], len(long)) == ("src/b.py:1: def Health(): pass", " [cut]", 2)
    assert await rig.call("grep", pattern="nowhere") == "No line of 2 files matches nowhere."
    with pytest.raises(ToolFailed, match="not a regular expression"):
        await rig.call("grep", pattern="(")
    rig.put("many.txt", "x\n" * 300)
    assert (await rig.call("grep", pattern="x", files="many.txt")).splitlines()[200:] == [
        "There are more than 200 matches; the rest is left out."
    ]


@pytest.mark.slow
async def test_a_warning_and_escaped_characters_do_not_break_a_search(
    rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python warns about [[:alpha:]], and writes each of these characters as twelve bytes of JSON."""
    rig.put("a.txt", "a:]\n")
    assert await rig.call("grep", pattern="[[:alpha:]]") == "a.txt:1: a:]"
    rig.put("wide.txt", ("\N{GRINNING FACE}" * 300 + "\n") * 200)
    assert len((await rig.call("grep", pattern=".", files="wide.txt")).splitlines()) == 200
    monkeypatch.setattr(looking, "QUOTA", 100)
    with pytest.raises(ToolFailed, match="Name fewer with files"):
        await rig.call("grep", pattern=".")


@pytest.mark.slow
async def test_a_pattern_that_takes_for_ever_is_stopped_and_the_bot_goes_on(
    rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "SEARCH_SECONDS", 0.5)
    rig.put("a.txt", "a" * 60 + "b")
    with pytest.raises(ToolFailed, match=r"took longer than 0\.5 s. Write a simpler pattern"):
        await rig.call("grep", pattern="(a+)+$")


@pytest.mark.slow
async def test_what_a_link_leads_to_is_neither_read_nor_searched(rig: WorkspaceRig, tmp_path: Path) -> None:
    """Row 23: a command may have made links. No later tool follows them."""
    outside = tmp_path / "outside.txt"
    outside.write_text("the bot's token")
    rig.put("inside.txt", "nothing")
    (rig.home / "soft.txt").symlink_to(outside)
    (rig.home / "folder").symlink_to(tmp_path)
    (rig.home / "proc").symlink_to("/proc/self")
    os.link(outside, rig.home / "hard.txt")
    for path in ("soft.txt", "hard.txt", "folder/outside.txt", "proc/environ", "/proc/self/environ", "../outside.txt"):
        with pytest.raises(ToolFailed, match="Refused"):
            await rig.call("read", path=path)
    assert await rig.call("grep", pattern="token|PATH") == "No line of 1 files matches token|PATH."
    assert "outside" not in await rig.call("glob", pattern="**")
    with pytest.raises(ToolFailed, match="Refused"):
        await rig.call("list_dir", path="folder")


async def test_reading_makes_nothing(rig: WorkspaceRig) -> None:
    assert await rig.call("list_dir") == "The workspace is empty."
    assert await rig.call("glob", pattern="**") == "No file matches **."
    assert not rig.root.exists()

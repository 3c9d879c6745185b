"""The limits of paths and files in the workspace, and who shares a workspace with whom."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools import workspace
from signoff.agent.tools.paths import BadPath, split_path
from signoff.approvals.model import DIRECT
from tests.rigs.files import FileRig, tree

REFUSED = [
    "",
    "/etc/passwd",
    "/proc/self/environ",
    "../100/x",
    "..",
    "a/../../x",
    "a/..",
    "~/x",
    "~root/x",
    ".",
    "./x",
    "a/./x",
    "a//x",
    "a/",
    "//x",
    "a\\x",
    "..\\x",
    "C:\\x",
    "a\0b",
    "a\nb",
    "a\tb",
    "a\x1b[2Jb",
    "a\x7fb",
    "a\u202eb",
    "a\u200bb",
    "a\u00a0b",
    "a\ufe0fb",
    "a\ud800b",
    "a\U000e0041b",
    " a",
    "a /b",
    "a.",
    "a/b. /c",
    "e\u0301",
    ".signoff-0123",
    "a/.Signoff-x",
    "nul",
    "a/CON.txt",
    "x" * 256,
    "é" * 128,
    "a/" * 16 + "x",
    "/".join(["x" * 200] * 6),
]


@pytest.fixture
def rig(tmp_path: Path) -> FileRig:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("secret")
    (tmp_path / "workspace/100200300400500600").mkdir(parents=True)
    return FileRig(tmp_path / "workspace")


async def refused(rig: FileRig, path: str, words: str = "") -> None:
    """Check that reading, previewing and writing all refuse the path, and that nothing changes anywhere."""
    before = tree(rig.root.parent)
    with pytest.raises(ToolFailed, match=words):
        rig.read(path)
    with pytest.raises(ToolFailed, match=words):
        await rig.show(path, "new")
    with pytest.raises(ToolFailed, match=words):
        rig.allowed(path, "new")
    with pytest.raises(ToolFailed, match=words):
        rig.accepted(path, "new", {path: "absent"})
    assert tree(rig.root.parent) == before


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: ascii(path)[:30])
async def test_a_path_that_is_not_plain_is_refused_whatever_was_approved(rig: FileRig, path: str) -> None:
    await refused(rig, path, r"^Refused: .*\.$")


@pytest.mark.parametrize(
    "path", ["x", "a/b/c.txt", ".env", "naïve/日本語.md", "a b.txt", "x" * 255, "...x", "a..b", "nulls"]
)
async def test_a_plain_path_is_taken(rig: FileRig, path: str) -> None:
    rig.accepted(path, "new", (await rig.show(path, "new")).operands)
    assert (rig.home / path).read_text() == "new"
    assert rig.read(path).endswith("\nnew")


@given(st.lists(st.sampled_from(["a", "B", "..", ".", "", "/", "~", "e\u0301", "é", " ", "\\"]), max_size=5))
def test_a_path_that_is_taken_has_one_spelling(parts: list[str]) -> None:
    path = "/".join(parts)
    try:
        names = split_path(path)
    except BadPath:
        return
    assert "/".join(names) == path == os.path.normpath(path)


@pytest.mark.parametrize("target", ["outside", "../../outside", "100200300400500600/inner", "/proc/self"])
async def test_a_link_is_not_followed_anywhere_on_the_way(rig: FileRig, target: str) -> None:
    rig.put("inner/secret.txt", "inner")
    place = rig.root / target if target.startswith("1") else rig.root.parent / target if target == "outside" else target
    (rig.home / "link").symlink_to(place)
    (rig.home / "deep").mkdir()
    (rig.home / "deep/link").symlink_to(place)
    for path in ("link/secret.txt", "deep/link/secret.txt", "link/new.txt", "link/environ", "link"):
        await refused(rig, path, "link")


@pytest.mark.parametrize(
    "target", ["../../outside/secret.txt", "/etc/passwd", "/proc/self/environ", "gone", "inner.txt"]
)
async def test_a_file_that_is_a_link_is_neither_read_nor_written(rig: FileRig, target: str) -> None:
    rig.put("inner.txt", "inner")
    (rig.home / "x.txt").symlink_to(target)
    await refused(rig, "x.txt", "is a symbolic link")


async def test_the_servers_own_folder_may_not_be_a_link(rig: FileRig) -> None:
    rig.home.rmdir()
    rig.home.symlink_to(rig.root.parent / "outside")
    await refused(rig, "secret.txt", "is a symbolic link or not a folder")


async def test_pipes_sockets_devices_and_folders_are_no_files(rig: FileRig) -> None:
    os.mkfifo(rig.home / "pipe")
    (rig.home / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        place = os.open(rig.home, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{place}/socket")
        os.close(place)
        for name, words in (
            ("pipe", "a pipe"),
            ("socket", "a pipe"),
            ("folder", "is a folder"),
            ("pipe/x", "not a folder"),
        ):
            await refused(rig, name, words)
    try:
        os.mknod(rig.home / "device", 0o20600, os.makedev(1, 5))
    except PermissionError:
        return
    await refused(rig, "device", "a device")


async def test_a_hard_link_is_refused_since_its_other_name_may_lie_outside(rig: FileRig) -> None:
    os.link(rig.root.parent / "outside/secret.txt", rig.home / "x.txt")
    await refused(rig, "x.txt", "one file with 2 names")


async def test_a_file_is_no_folder(rig: FileRig) -> None:
    rig.put("x.txt", "x")
    await refused(rig, "x.txt/y.txt", "not a folder")


async def test_no_server_and_no_person_sees_the_files_of_another(rig: FileRig) -> None:
    root = rig.root
    others = [FileRig(root, "1"), FileRig(root, "2"), FileRig(root, DIRECT, "1"), FileRig(root, DIRECT, "2")]
    for number, other in enumerate(others):
        with pytest.raises(ToolFailed, match="There is no file"):
            other.read("x.txt")
        other.accepted("x.txt", f"of {number}", (await other.show("x.txt", f"of {number}")).operands)
    assert [other.read("x.txt")[-4:] for other in others] == ["of 0", "of 1", "of 2", "of 3"]
    assert sorted(p.name for p in root.iterdir()) == ["1", rig.server, "2", "dm-1", "dm-2"]


@pytest.mark.parametrize("server", ["", "..", ".", "a/b", "/", "dm-1", "a\0", "x" * 65, "１"])
async def test_a_server_whose_id_is_no_plain_name_has_no_workspace(tmp_path: Path, server: str) -> None:
    for odd in (FileRig(tmp_path, server), FileRig(tmp_path, DIRECT, server)):
        with pytest.raises(ToolFailed, match="has no workspace"):
            odd.allowed("x.txt", "x")
        with pytest.raises(ToolFailed, match="has no workspace"):
            odd.read("x.txt")
        with pytest.raises(ToolFailed, match="has no workspace"):
            await odd.show("x.txt", "x")
    assert tree(tmp_path) == {}


def test_a_workspace_holds_so_much_and_no_more(rig: FileRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "QUOTA", workspace.MB)
    rig.allowed("a", "x" * 600_000)
    with pytest.raises(ToolFailed, match=r"may hold 1 MB in all, and 448576 bytes are left"):
        rig.allowed("b/c", "x" * 448_577)
    assert not (rig.home / "b").exists()
    rig.allowed("b/c", "x" * 448_576)
    with pytest.raises(ToolFailed, match="and 0 bytes are left"):
        rig.allowed("d", "x")
    with pytest.raises(ToolFailed, match="and 600000 bytes are left"):
        rig.allowed("a", "x" * 600_001)
    assert "Wrote" in rig.allowed("a", "y" * 600_000), "a file that does not grow has space"
    assert "Wrote" in rig.allowed("a", "")
    FileRig(rig.root, "2").allowed("a", "x" * 600_000)


def test_a_workspace_has_so_many_files_and_no_more(rig: FileRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MOST_ENTRIES", 5)
    rig.allowed("a/b/c", "x")
    with pytest.raises(ToolFailed, match="has its 5 files and folders already"):
        rig.allowed("d/e/f", "x")
    assert not (rig.home / "d").exists()
    rig.allowed("d/e", "x")
    with pytest.raises(ToolFailed, match="has its 5 files"):
        rig.allowed("f", "x")


def test_a_file_larger_than_a_workspace_is_left_alone(rig: FileRig) -> None:
    with rig.put("x.bin", "x").open("wb") as file:
        file.truncate(workspace.QUOTA + 1)
    with pytest.raises(ToolFailed, match="larger than a whole workspace"):
        rig.allowed("x.bin", "x")


def test_a_disk_that_fails_is_words_for_the_model(rig: FileRig) -> None:
    rig.home.rmdir()
    rig.root.rmdir()
    rig.root.write_text("a file where the folder should be")
    for call in (lambda: rig.read("x.txt"), lambda: rig.allowed("x.txt", "x")):
        with pytest.raises(ToolFailed, match=r'"x\.txt" could not be used: '):
            call()

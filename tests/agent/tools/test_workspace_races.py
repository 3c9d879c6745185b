"""The workspace while others change it: links swapped in, two writers at once, and a process killed during a write."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import ApprovalRequired
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.workspace import Changed, Workspace, digest_of
from tests.rigs.files import FileRig, tree

KILLED = """
import os, signal, sys
from pathlib import Path
from signoff.agent.tools.workspace import Workspace

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

os.rename = die
Workspace(Path(sys.argv[1]), "1").write("notes.txt", b"new", None)
"""


@pytest.fixture
def rig(tmp_path: Path) -> FileRig:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("secret")
    return FileRig(tmp_path / "workspace")


def swap(place: Path, target: Path, stop: threading.Event, swaps: list[int]) -> None:
    """Repeat until stopped: move the file or folder aside, put a link in its place, and move it back."""
    aside = place.with_name("aside")
    while not stop.is_set():
        with suppress(OSError):
            place.rename(aside)
            place.symlink_to(target)
        swaps[0] += place.is_symlink()
        if place.is_dir() and not place.is_symlink():  # a writer has created it again meanwhile
            shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            place.unlink()
        with suppress(OSError):
            aside.rename(place)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "path"), [("folder", "folder/secret.txt"), ("secret.txt", "secret.txt")])
def test_a_link_swapped_in_at_any_moment_leads_nowhere(rig: FileRig, name: str, path: str) -> None:
    outside = rig.root.parent / "outside"
    rig.put(path, "inside")
    target = outside if name == "folder" else outside / "secret.txt"
    stop, swaps, outcomes = threading.Event(), [0], Counter[str]()
    thread = threading.Thread(target=swap, args=(rig.home / name, target, stop, swaps))
    thread.start()
    try:
        began, number = time.monotonic(), 0
        # On a busy machine one of the two threads may hardly run, so the loop may take longer.
        while (took := time.monotonic() - began) < 1.5 or (took < 30 and not (outcomes["a link"] and outcomes["read"])):
            number += 1
            try:
                if number % 3:
                    assert "secret" not in rig.read(path).partition("\n")[2]
                    outcomes["read"] += 1
                else:
                    rig.allowed(path, f"inside {number}")
                    outcomes["written"] += 1
            except ApprovalRequired:
                outcomes["changed meanwhile"] += 1
            except ToolFailed as refusal:
                outcomes["a link" if "link" in refusal.message else "absent"] += 1
    finally:
        stop.set()
        thread.join()
    assert swaps[0]
    assert outcomes["a link"], outcomes
    assert outcomes["read"], outcomes
    assert tree(outside) == {"secret.txt": ((outside / "secret.txt").lstat().st_mode, b"secret")}


@pytest.mark.parametrize("kind", ["link", "pipe", "hard link"])
def test_what_takes_the_files_place_after_it_was_looked_at_is_not_opened(
    rig: FileRig, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file, secret = rig.put("x.txt", "inside"), rig.root.parent / "outside/secret.txt"
    really = os.stat

    def exchange(*args: Any, **kwargs: Any) -> os.stat_result:
        found = really(*args, **kwargs)
        if args[0] == "x.txt":
            file.unlink()
            {"link": file.symlink_to, "hard link": file.hardlink_to, "pipe": lambda _: os.mkfifo(file)}[kind](secret)
        return found

    monkeypatch.setattr(os, "stat", exchange)
    with pytest.raises(ToolFailed, match="Refused"):
        rig.read("x.txt")


def test_of_two_accepted_writes_to_one_file_one_is_asked_about_again(rig: FileRig) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            path = f"{number}.txt"
            contents = [f"{number} by {writer}" for writer in range(8)]

            def write(content: str, path: str = path) -> str:
                try:
                    return rig.accepted(path, content, {path: "absent"})
                except ApprovalRequired:
                    return "asked again"

            said = list(pool.map(write, contents))
            assert said.count("asked again") == 7
            [winner] = [content for content, words in zip(contents, said, strict=True) if words.startswith("Wrote")]
            assert (rig.home / path).read_text() == winner


def test_a_change_during_the_write_itself_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space, file = Workspace(tmp_path, "1"), tmp_path / "1/x.txt"
    space.write("x.txt", b"old", None)
    really = os.fsync

    def meanwhile(handle: int) -> None:
        really(handle)
        if os.readlink(f"/proc/self/fd/{handle}").rpartition("/")[2].startswith(".signoff-"):
            file.write_bytes(b"by an editor")

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(Changed):
        space.write("x.txt", b"new", digest_of(b"old"))
    assert os.listdir(tmp_path / "1") == ["x.txt"]
    assert file.read_bytes() == b"by an editor"


@pytest.mark.slow
def test_killed_before_the_rename_the_old_file_is_whole_and_the_rest_is_cleared_away(tmp_path: Path) -> None:
    space = Workspace(tmp_path, "1")
    space.write("notes.txt", b"old", None)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (tmp_path / "1/notes.txt").read_bytes() == b"old"
    [left] = set(os.listdir(tmp_path / "1")) - {"notes.txt"}
    assert left.startswith(".signoff-")
    assert (tmp_path / "1" / left).read_bytes() == b"new"
    space.write("other.txt", b"x", None)
    assert sorted(os.listdir(tmp_path / "1")) == ["notes.txt", "other.txt"]


NAMES = st.sampled_from(
    [
        "a",
        "b",
        "..",
        ".",
        "",
        "/",
        "outside",
        "secret.txt",
        "link",
        "up",
        "100200300400500600",
        "workspace",
        "1",
        "\0",
        "~",
    ]
)
PATHS = st.one_of(st.lists(NAMES, max_size=6).map("/".join), st.text(max_size=20), st.just("/proc/self/environ"))


@given(st.lists(st.tuples(PATHS, st.sampled_from(["read", "allowed", "accepted"])), max_size=8))
def test_no_path_ever_touches_anything_outside(steps: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        rig, other = FileRig(top / "workspace"), FileRig(top / "workspace", "1")
        for canary in (top / "outside/secret.txt", top / "secret.txt", top / "workspace/secret.txt"):
            canary.parent.mkdir(parents=True, exist_ok=True)
            canary.write_text("canary")
        other.put("secret.txt", "canary")
        rig.put("a/b", "mine")
        (rig.home / "link").symlink_to(top / "outside")
        (rig.home / "a/up").symlink_to("..")

        def around() -> dict[str, object]:
            mine = str(rig.home.relative_to(top))
            return {path: what for path, what in tree(top).items() if not path.startswith(f"{mine}/")}

        before = around()
        for path, step in steps:
            try:
                if step == "read":
                    assert "canary" not in rig.read(path)
                elif step == "allowed":
                    rig.allowed(path, "new")
                else:
                    rig.accepted(path, "new", {path: "absent"})
            except (ToolFailed, ApprovalRequired):
                pass
        assert around() == before

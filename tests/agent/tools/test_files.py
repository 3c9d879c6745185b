"""read_file and write_file: what people and the model see, and the files on disk afterwards."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pydantic_ai import ApprovalRequired
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.files import READ_AT_MOST, WRITE_AT_MOST
from signoff.approvals.model import Verdict
from signoff.gate.declarations import declaration, is_read_only
from signoff.gate.pending_call import Preview
from tests.rigs.files import FileRig, context


@pytest.fixture
def rig(tmp_path: Path) -> FileRig:
    return FileRig(tmp_path / "workspace")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_reading_never_asks_and_writing_always_does(rig: FileRig) -> None:
    reading, writing = rig.tools.reading().tool_def, rig.tools.writing().tool_def
    assert (reading.name, declaration(reading), is_read_only(reading)) == ("read_file", Verdict.ALLOW, True)
    assert (writing.name, declaration(writing), is_read_only(writing)) == ("write_file", Verdict.ASK, False)
    assert callable((writing.metadata or {}).get("preview"))
    assert set(writing.parameters_json_schema["properties"]) == {"path", "content"}


async def test_a_file_is_shown_then_written_then_read(rig: FileRig) -> None:
    shown = await rig.show("config/app.env", "PORT=8080\n")
    assert shown == Preview(
        "New file config/app.env: 1 line, 10 bytes.\n--- /dev/null\n+++ b/config/app.env\n@@ -0,0 +1 @@\n+PORT=8080",
        {"config/app.env": "absent"},
        diff_of="content",
    )
    assert not rig.root.exists()
    assert rig.accepted("config/app.env", "PORT=8080\n", shown.operands) == (
        "Wrote config/app.env: 10 bytes; a new file."
    )
    assert rig.read("config/app.env") == "config/app.env: 1 line, 10 bytes.\nPORT=8080\n"
    assert (rig.home / "config/app.env").read_bytes() == b"PORT=8080\n"


async def test_what_is_new_is_for_the_bots_account_alone_and_a_mode_is_kept(rig: FileRig) -> None:
    rig.allowed("a/new.txt", "x")
    assert (rig.home / "a/new.txt").stat().st_mode & 0o7777 == 0o600
    assert (rig.home / "a").stat().st_mode & 0o7777 == 0o700
    assert rig.home.stat().st_mode & 0o7777 == 0o700
    script = rig.put("run.sh", "old")
    script.chmod(0o4755)
    rig.allowed("run.sh", "new")
    assert script.stat().st_mode & 0o7777 == 0o755, "the mode stays, but no new content runs as another account"


async def test_a_file_that_changed_after_the_card_is_not_written_and_asked_about_again(rig: FileRig) -> None:
    file = rig.put("notes.txt", "one\n")
    shown = await rig.show("notes.txt", "two\n")
    assert shown.operands == {"notes.txt": digest("one\n")}
    for other in ("one and a half\n", ""):
        file.write_text(other)
        with pytest.raises(ApprovalRequired) as asked:
            rig.accepted("notes.txt", "two\n", shown.operands)
        assert asked.value.metadata
        assert "notes.txt has changed since it was approved" in asked.value.metadata["summary"]
        assert file.read_text() == other
        assert list(rig.home.iterdir()) == [file]
    file.unlink()
    with pytest.raises(ApprovalRequired):
        rig.accepted("notes.txt", "two\n", shown.operands)
    assert not file.exists()
    again = await rig.show("notes.txt", "two\n")
    rig.accepted("notes.txt", "two\n", again.operands)
    assert file.read_text() == "two\n"


async def test_a_file_that_appeared_after_the_card_is_not_overwritten(rig: FileRig) -> None:
    shown = await rig.show("deep/notes.txt", "mine")
    file = rig.put("deep/notes.txt", "somebody's")
    with pytest.raises(ApprovalRequired):
        rig.accepted("deep/notes.txt", "mine", shown.operands)
    assert file.read_text() == "somebody's"


def test_accepted_without_knowing_what_the_file_was_like_asks_again(rig: FileRig) -> None:
    file = rig.put("notes.txt", "one")
    for seen in ({}, {"other.txt": digest("one")}):
        with pytest.raises(ApprovalRequired):
            rig.accepted("notes.txt", "two", seen)
    assert file.read_text() == "one"


def test_a_rule_that_allows_writes_whatever_was_there(rig: FileRig) -> None:
    rig.put("notes.txt", "one")
    assert rig.allowed("notes.txt", "three") == "Wrote notes.txt: 5 bytes; before it was 3 bytes."


async def test_what_is_there_already_is_not_written_again(rig: FileRig) -> None:
    file = rig.put("notes.txt", "same\n")
    before = file.stat()
    shown = await rig.show("notes.txt", "same\n")
    assert shown.text == "No change: notes.txt has exactly this content already (5 bytes)."
    assert "Nothing to do" in rig.accepted("notes.txt", "same\n", shown.operands)
    assert "Nothing to do" in rig.accepted("notes.txt", "same\n", {"notes.txt": "absent"})
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "0 lines, 0 bytes"), ("a", "1 line, 1 bytes"), ("a\nb", "2 lines, 3 bytes"), ("a\n\n", "2 lines, 3 bytes")],
)
def test_lines_are_counted_as_people_count_them(rig: FileRig, content: str, said: str) -> None:
    rig.put("x.txt", content)
    assert rig.read("x.txt") == f"x.txt: {said}.\n{content}"


def test_of_a_long_file_the_head_is_read_and_the_rest_counted(rig: FileRig) -> None:
    rig.put("long.txt", "x" + "é" * READ_AT_MOST)
    header, text = rig.read("long.txt").split("\n", 1)
    size, shown = 1 + 2 * READ_AT_MOST, READ_AT_MOST - 1
    assert header == f"long.txt: only the first {shown} of {size} bytes (1 line); {size - shown} are missing."
    assert text == "x" + "é" * ((shown - 1) // 2)
    rig.put("exact.txt", "x" * READ_AT_MOST)
    assert rig.read("exact.txt").startswith(f"exact.txt: 1 line, {READ_AT_MOST} bytes.")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b", b"\x89PNG\r\n", "é".encode()[:1], b"\xed\xa0\x80"])
def test_what_is_not_text_is_not_read(rig: FileRig, data: bytes) -> None:
    rig.put("x.bin", data)
    with pytest.raises(ToolFailed, match=rf'"x\.bin" is not UTF-8 text \({len(data)} bytes\)'):
        rig.read("x.bin")


def test_what_is_not_there_is_said(rig: FileRig) -> None:
    for path in ("gone.txt", "gone/gone.txt"):
        with pytest.raises(ToolFailed, match="There is no file"):
            rig.read(path)
    assert not rig.root.exists(), "reading makes nothing"


async def test_content_that_is_too_long_or_no_text_is_refused_before_anybody_is_asked(rig: FileRig) -> None:
    for content, words in (("x" * (WRITE_AT_MOST + 1), "1048577 bytes, and 1048576 are allowed"), ("\ud800", "surrog")):
        with pytest.raises(ToolFailed, match=words):
            await rig.show("x.txt", content)
        with pytest.raises(ToolFailed, match=words):
            rig.allowed("x.txt", content)
    assert not rig.root.exists()
    assert "Wrote" in rig.allowed("x.txt", "x" * WRITE_AT_MOST)


async def test_without_knowing_the_server_nothing_is_touched(rig: FileRig) -> None:
    rig.put("notes.txt", "secret")
    for unknown in (None, {"place": "x"}, "100"):
        ctx = context(unknown, approved=True)
        with pytest.raises(ToolFailed, match="nobody says which server"):
            rig.tools.read_file(ctx, "notes.txt")
        with pytest.raises(ToolFailed, match="nobody says which server"):
            rig.tools.write_file(ctx, "notes.txt", "x")
        with pytest.raises(ToolFailed, match="nobody says which server"):
            await rig.tools.preview_write(ctx, "notes.txt", "x")
    assert (rig.home / "notes.txt").read_text() == "secret"

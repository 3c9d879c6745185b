"""delete_file and rotate_log: what people see on the card, and the files on disk afterwards."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pydantic_ai import ApprovalRequired, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.housekeeping import HousekeepingTools
from signoff.approvals.model import Verdict
from signoff.gate.declarations import declaration
from signoff.gate.pending_call import Preview, preview_of
from tests.rigs.files import FileRig, context

LOG = "logs/app.log"
TEXT = "one line of a log\n" * 500


@pytest.fixture
def rig(tmp_path: Path) -> FileRig:
    return FileRig(tmp_path / "workspace")


@pytest.fixture
def tools(rig: FileRig) -> HousekeepingTools:
    return HousekeepingTools(rig.root)


async def shown(tool: Tool[object], rig: FileRig, path: str = LOG) -> Preview:
    return await preview_of(tool.tool_def, context(rig.info()), {"path": path})


def test_both_always_ask(tools: HousekeepingTools) -> None:
    assert [declaration(tool.tool_def) for tool in (tools.deleting(), tools.rotating())] == [Verdict.ASK, Verdict.ASK]


async def test_a_file_is_shown_then_deleted(rig: FileRig, tools: HousekeepingTools) -> None:
    file = rig.put(LOG, TEXT)
    card = await shown(tools.deleting(), rig)
    assert "for good" in card.text
    assert f"{len(TEXT)} bytes" in card.text
    assert file.exists()
    said = tools.delete_file(context(rig.info(card.operands), approved=True), LOG)
    assert said == f"Deleted {LOG}: {len(TEXT)} bytes are free again, and its content is lost."
    assert not file.exists()


async def test_a_log_is_compressed_and_nothing_is_lost(rig: FileRig, tools: HousekeepingTools) -> None:
    file = rig.put(LOG, TEXT)
    rig.put(f"{LOG}.1.gz", "an older archive")
    card = await shown(tools.rotating(), rig)
    assert "Nothing is lost" in card.text
    said = tools.rotate_log(context(rig.info(card.operands), approved=True), LOG)
    assert f"{LOG}.2.gz" in said
    assert gzip.decompress((rig.home / f"{LOG}.2.gz").read_bytes()).decode() == TEXT
    assert (rig.home / f"{LOG}.1.gz").read_text() == "an older archive"
    assert file.read_bytes() == b""


@pytest.mark.parametrize("name", ["delete_file", "rotate_log"])
async def test_a_file_that_changed_after_the_card_is_left_alone(
    rig: FileRig, tools: HousekeepingTools, name: str
) -> None:
    file = rig.put(LOG, TEXT)
    tool, call = (
        (tools.deleting(), tools.delete_file) if name == "delete_file" else (tools.rotating(), tools.rotate_log)
    )
    card = await shown(tool, rig)
    file.write_text("something else")
    with pytest.raises(ApprovalRequired) as asked:
        call(context(rig.info(card.operands), approved=True), LOG)
    assert asked.value.metadata
    assert "has changed since it was approved" in asked.value.metadata["summary"]
    with pytest.raises(ApprovalRequired):
        call(context(rig.info(), approved=True), LOG)  # accepted, but nobody knows what was shown
    assert file.read_text() == "something else"
    assert [entry.name for entry in file.parent.iterdir()] == ["app.log"]


@pytest.mark.parametrize("path", ["../app.log", "/etc/passwd", "logs/missing.log", "logs"])
async def test_other_paths_are_refused_before_anybody_is_asked(
    rig: FileRig, tools: HousekeepingTools, path: str
) -> None:
    rig.put(LOG, TEXT)
    for tool, call in ((tools.deleting(), tools.delete_file), (tools.rotating(), tools.rotate_log)):
        with pytest.raises(ToolFailed):
            await shown(tool, rig, path)
        with pytest.raises(ToolFailed):
            call(context(rig.info()), path)
    assert (rig.home / LOG).read_text() == TEXT


async def test_a_link_is_neither_followed_nor_deleted(rig: FileRig, tools: HousekeepingTools, tmp_path: Path) -> None:
    outside = tmp_path / "outside.log"
    outside.write_text("not yours")
    rig.put(LOG, TEXT)
    link = rig.home / "logs/link.log"
    link.symlink_to(outside)
    for call in (tools.delete_file, tools.rotate_log):
        with pytest.raises(ToolFailed, match="symbolic link"):
            call(context(rig.info()), "logs/link.log")
    assert outside.read_text() == "not yours"
    assert link.is_symlink()


def test_an_empty_log_has_nothing_to_rotate(rig: FileRig, tools: HousekeepingTools) -> None:
    rig.put(LOG, "")
    with pytest.raises(ToolFailed, match="nothing to rotate"):
        tools.rotate_log(context(rig.info()), LOG)

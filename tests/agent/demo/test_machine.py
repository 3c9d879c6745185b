"""The simulated machine: each incident begins with a full disk, and nothing that people work on is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.demo.full_log import LOG, MACHINE, full_log
from signoff.agent.demo.machine import Machine, machine_tools
from signoff.agent.tools.housekeeping import HousekeepingTools
from signoff.approvals.model import Verdict
from signoff.gate.declarations import declaration
from signoff.gate.pending_call import preview_of
from tests.rigs.files import FileRig, context


@pytest.fixture
def rig(tmp_path: Path) -> FileRig:
    return FileRig(tmp_path / "workspace")


def check(rig: FileRig, host: str = MACHINE) -> str:
    return Machine(rig.root).check_disk(context(rig.info()), host)


def test_looking_never_asks(tmp_path: Path) -> None:
    assert [declaration(tool.tool_def) for tool in machine_tools(tmp_path)] == [Verdict.ALLOW]


@pytest.mark.parametrize("end", ["missing", "deleted", "rotated"])
async def test_the_disk_is_full_again_however_the_last_incident_ended(rig: FileRig, end: str) -> None:
    cleaning = HousekeepingTools(rig.root)
    if end != "missing":
        check(rig)
        tool = cleaning.deleting() if end == "deleted" else cleaning.rotating()
        shown = await preview_of(tool.tool_def, context(rig.info()), {"path": LOG})
        accepted = context(rig.info(shown.operands))
        (cleaning.delete_file if end == "deleted" else cleaning.rotate_log)(accepted, LOG)
        assert not (rig.home / LOG).exists() or not (rig.home / LOG).read_bytes()
    said = check(rig)
    assert (rig.home / LOG).read_bytes() == full_log()
    assert f"{LOG}, {len(full_log())} bytes" in said
    assert "simulated" in said
    assert (rig.home / f"{LOG}.1.gz").exists() == (end == "rotated")


async def test_a_card_about_the_log_stays_valid_while_somebody_looks(rig: FileRig) -> None:
    check(rig)
    cleaning = HousekeepingTools(rig.root)
    shown = await preview_of(cleaning.deleting().tool_def, context(rig.info()), {"path": LOG})
    check(rig)
    assert "Deleted" in cleaning.delete_file(context(rig.info(shown.operands)), LOG)


def test_another_machine_is_not_invented(rig: FileRig) -> None:
    with pytest.raises(ToolFailed, match="only web-1"):
        check(rig, "db-1")

"""The rules of the coding helper's example: commands that look need no card, and no tool evades the second look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signoff.agent.setup import build_policy
from signoff.approvals.model import CallKey, ToolCall, Verdict
from signoff.approvals.policy import Context, Ruling
from signoff.config.schema import load_config
from tests.conftest import ADA, PLACE

EXAMPLE = Path(__file__).parents[3] / "examples" / "coding_helper" / "signoff.toml"


async def ruling(tool: str, **args: Any) -> Ruling:
    policy = build_policy(load_config(EXAMPLE, required=True))
    call = ToolCall(CallKey("c", 0, "0"), tool, args, "schema")
    return await policy.decide(call, Verdict.ASK, Context(PLACE, ADA, shell=("command",)))


@pytest.mark.parametrize("command", ["git status", "git diff --stat", "git log --oneline", "ls", "ls -l src"])
async def test_looking_needs_no_card(command: str) -> None:
    assert (await ruling("bash", command=command)).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "git difftool -y -x 'touch x'",
        "git diff --output=server.py",
        "git diff --ext-diff",
        "git log -1 --output=server.py",
        "git -c core.fsmonitor=./x status",
        "lsattr -R",
    ],
)
async def test_a_command_that_can_write_or_run_another_asks(command: str) -> None:
    assert (await ruling("bash", command=command)).verdict is Verdict.ASK


@pytest.mark.parametrize("tool", ["write", "edit", "multi_edit", "apply_patch"])
async def test_settings_take_two_people_whatever_tool_changes_them(tool: str) -> None:
    paths = ["a.py", "pyproject.toml"] if tool == "apply_patch" else "pyproject.toml"
    assert (await ruling(tool, path=paths)).four_eyes
    assert not (await ruling(tool, path="a.py")).four_eyes

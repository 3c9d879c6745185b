"""From signoff.toml to a running agent: imported agents, policies, and the printed line for each tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic_ai
import pytest

from signoff.agent.setup import Brain
from signoff.approvals.model import Verdict
from signoff.config.schema import Config, load_config
from signoff.errors import ConfigError


def configured(folder: Path, text: str) -> Config:
    (folder / "signoff.toml").write_text(text, encoding="utf-8")
    return load_config(folder / "signoff.toml", required=True)


def test_each_tool_has_a_verdict_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pydantic_ai import Tool\n"
        "def odd(n: int) -> int:\n    return n\n"
        "def shut(n: int) -> int:\n    return n\n"
        "tools = [Tool(odd, metadata={'approval': lambda args, context: True}), shut]\n"
    )
    config = configured(
        tmp_path,
        '[tools]\nplugins = ["mine.py"]\n[[rules]]\ntool = "shut"\nverdict = "deny"\n'
        '[[rules]]\ntool = "roll_*"\nverdict = "ask"\nwhen = { sides = "6" }\n',
    )
    lines = dict(line.split(": ", 1) for line in Brain.build(config, "demo").verdicts)
    assert lines["test_discord_approval"] == "ask (declared)"
    assert lines["shut"] == "deny (rule)"
    assert lines["odd"] == lines["roll_dice"] == "depends on its arguments"
    assert lines["current_time"].startswith("allow")


def test_the_framework_prints_no_banner_between_the_lines_of_a_chat() -> None:
    assert pydantic_ai.BANNER_ENABLED is False


def test_undeclared_tools_ask_if_the_operator_says_so(tmp_path: Path) -> None:
    brain = Brain.build(configured(tmp_path, '[tools]\nundeclared = "ask"\n'), "demo")
    assert brain.policy.undeclared is Verdict.ASK


def test_an_existing_agent_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "existing_agent_module.py").write_text(
        "from pydantic_ai import Agent\nfrom pydantic_ai.models.test import TestModel\n"
        "def look(where: str) -> str:\n    return where\n"
        "support = Agent(TestModel(), name='support', tools=[look])\nwrong = 5\n"
    )
    brain = Brain.build(configured(tmp_path, '[agent]\nimport = "existing_agent_module:support"\n'), "demo")
    assert brain.agent.name == "support"
    assert brain.verdicts == ("look: ask (declares nothing)",)
    assert [(tool.name, tool.arguments) for tool in brain.tools] == [("look", ("where",))]


@pytest.mark.parametrize(
    "target", ["existing_agent_module:wrong", "existing_agent_module:gone", "no_such_module_here:x"]
)
def test_an_import_that_is_no_agent_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Any) -> None:
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "existing_agent_module.py").write_text("wrong = 5\n")
    with pytest.raises(ConfigError) as caught:
        Brain.build(configured(tmp_path, f'[agent]\nimport = "{target}"\n'), "demo")
    assert target in str(caught.value)
    assert "\n" not in str(caught.value)

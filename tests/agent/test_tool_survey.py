"""The tools that are known before a run, and names that collide."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from signoff.agent.setup import Brain
from signoff.agent.tool_survey import Survey, survey
from signoff.commands.check import findings_at_start
from signoff.config.findings import Severity
from signoff.config.schema import Config, load_config
from signoff.errors import ConfigError
from signoff.settings import Settings
from tests.rigs.setup_mistakes import colliding, server

PREFIXED = (
    "from pydantic_ai.toolsets import FunctionToolset\n"
    "def dice(count: int) -> int:\n    return count\n"
    "tools = [FunctionToolset([dice]).prefixed('roll')]\n"
)
FAILING = (
    "from pydantic_ai.toolsets import FunctionToolset, WrapperToolset\n"
    "class Failing(WrapperToolset):\n"
    "    async def get_tools(self, ctx):\n        raise ValueError('not now')\n"
    "tools = [Failing(FunctionToolset())]\n"
)
CAPABLE = (
    "from pydantic_ai import Agent\n"
    "from pydantic_ai.capabilities import AbstractCapability\n"
    "from pydantic_ai.toolsets import FunctionToolset\n"
    "def measure(count: int) -> int:\n    return count\n"
    "class Measuring(AbstractCapability):\n"
    "    def get_toolset(self):\n        return FunctionToolset([measure])\n"
    "agent = Agent(capabilities=[Measuring()])\n"
)


def configured(folder: Path, text: str) -> Config:
    (folder / "signoff.toml").write_text(text, encoding="utf-8")
    return load_config(folder / "signoff.toml", required=True)


def with_plugin(folder: Path, code: str, more: str = "") -> Config:
    (folder / "mine.py").write_text(code)
    return configured(folder, f'[tools]\nplugins = ["mine.py"]\n{more}')


async def surveyed(config: Config) -> Survey:
    return await survey(Brain.build(config, "demo"), config, keep_running=False)


async def test_the_arguments_and_the_verdict_of_each_tool_are_known() -> None:
    known = await surveyed(Config())
    assert known.known.others == ()
    arguments = {tool.name: sorted(tool.arguments or {}) for tool in known.known.tools}
    assert arguments["write_file"] == ["content", "path"]
    assert known.verdicts["write_file"] == "ask (declared)"
    assert (known.findings, known.collisions(Config())) == ([], [])


async def test_a_toolset_whose_tool_has_a_taken_name_stops_the_start(tmp_path: Path) -> None:
    """Attack 41: PydanticAI notices this only at each request, which then fails."""
    config = with_plugin(tmp_path, PREFIXED)
    (finding,) = (await surveyed(config)).collisions(config)
    assert str(finding).startswith(f"{tmp_path}/signoff.toml:2: two tools are called roll_dice: one of Signoff itself")
    assert "rename one of them" in finding.remedy
    with pytest.raises(ConfigError, match="two tools are called roll_dice"):
        await findings_at_start(Settings(), config, Brain.build(config, "demo"))


@pytest.mark.long
@pytest.mark.slow
async def test_an_mcp_tool_with_the_name_of_a_plugins_tool_stops_the_start(tmp_path: Path) -> None:
    """Attack 41."""
    colliding(tmp_path)
    config = load_config(tmp_path / "signoff.toml", required=True)
    with pytest.raises(ConfigError) as caught:
        await findings_at_start(Settings(), config, Brain.build(config, "demo"))
    line = str(caught.value)
    assert line.startswith(f"{tmp_path}/signoff.toml:3: two tools are called shop_refund: one of my_tools.py, one of")
    assert 'give [mcp.shop] another NAME or prefix, or leave "refund" out of its tools' in line


@pytest.mark.slow
async def test_a_plugins_toolset_and_an_mcp_server_may_collide_too(tmp_path: Path) -> None:
    plugin = (
        "from pydantic_ai.toolsets import FunctionToolset\n"
        "def refund() -> int: ...\n"
        "tools = [FunctionToolset([refund]).prefixed('shop')]\n"
    )
    config = with_plugin(tmp_path, plugin, server("shop", tmp_path))
    (finding,) = (await surveyed(config)).collisions(config)
    assert "one of [mcp.shop]" in finding.problem


@pytest.mark.slow
async def test_the_tools_of_a_server_that_answers_are_known_at_the_start(tmp_path: Path) -> None:
    config = configured(tmp_path, server("shop", tmp_path))
    brain = Brain.build(config, "demo")
    assert "shop_refund" not in {tool.name for tool in brain.tools}
    assert await findings_at_start(Settings(), config, brain) == []
    assert "shop_refund" in {tool.name for tool in brain.tools}


async def test_the_tools_of_an_imported_agents_capabilities_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "agent_with_capability.py").write_text(CAPABLE)
    known = await surveyed(configured(tmp_path, '[agent]\nimport = "agent_with_capability:agent"\n'))
    assert known.findings == []
    assert known.verdicts == {"measure": "ask (declares nothing)"}


async def test_a_toolset_that_does_not_list_its_tools_is_only_noted(tmp_path: Path) -> None:
    config = with_plugin(tmp_path, FAILING, '[[rules]]\ntool = "anything"\nverdict = "deny"\n')
    known = await surveyed(config)
    (finding,) = known.findings
    assert finding.severity is Severity.NOTE
    assert "ValueError: not now" in finding.problem
    assert known.known.others == ("",), "a rule may be about one of its tools"

"""Which workspace tools are offered, what each declares, and what the start says if one cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.agent.setup import Brain
from signoff.agent.tools.workspace_set import workspace_tools
from signoff.approvals.model import Verdict
from signoff.config.schema import WORKSPACE_TOOLS, Config, load_config, parse_config
from signoff.errors import ConfigError
from signoff.gate.declarations import declaration, is_read_only, shell_arguments

GROUP = {"read", "list_dir", "glob", "grep", "todo", "write", "edit", "multi_edit", "apply_patch"}
ASKING = {"bash", "write", "edit", "multi_edit", "apply_patch"}


def configured(folder: Path, tools: str) -> Config:
    (folder / "signoff.toml").write_text(f"[tools]\n{tools}\n", encoding="utf-8")
    return load_config(folder / "signoff.toml", required=True)


def offered(config: Config) -> set[str]:
    return {tool.name for tool in workspace_tools(config)}


def test_the_group_has_neither_commands_nor_the_web_and_a_checker_only_if_one_is_named(tmp_path: Path) -> None:
    assert Config().tools.workspace_tools == frozenset(), "none is on by default"
    assert offered(configured(tmp_path, 'enable = ["workspace"]')) == GROUP
    assert offered(configured(tmp_path, 'enable = ["read", "web_fetch"]')) == {"read", "web_fetch"}
    checked = 'enable = ["workspace"]\ndiagnostics = ["true"]\nsandbox = "off"'
    assert offered(configured(tmp_path, checked)) == {*GROUP, "diagnostics"}


@pytest.mark.slow
def test_acting_asks_and_looking_never_does(tmp_path: Path) -> None:
    """With `undeclared = "ask"` too. Each says what it is for, with every parameter."""
    names = ", ".join(f'"{name}"' for name in WORKSPACE_TOOLS)
    config = configured(tmp_path, f'enable = [{names}]\nundeclared = "ask"\ndiagnostics = ["true"]')
    tools = workspace_tools(config)
    assert tuple(tool.name for tool in tools) == WORKSPACE_TOOLS
    assert {one.name for one in tools if declaration(one.tool_def) is Verdict.ASK} == ASKING
    assert {one.name for one in tools if declaration(one.tool_def) is Verdict.ALLOW} == {*WORKSPACE_TOOLS} - ASKING
    assert {one.name for one in tools if is_read_only(one.tool_def)} == {*WORKSPACE_TOOLS} - ASKING
    assert {one.name: shell_arguments(one.tool_def) for one in tools if shell_arguments(one.tool_def)} == {
        "bash": ("command",)
    }
    for tool in tools:
        assert tool.tool_def.description
        for parameter in tool.tool_def.parameters_json_schema["properties"].values():
            assert parameter.get("description"), tool.name
    lines = dict(line.split(": ", 1) for line in Brain.build(config, "demo").verdicts)
    assert (lines["bash"], lines["read"]) == ("ask (declared)", "allow (declared)")


def test_a_checker_that_is_not_named_stops_the_start(tmp_path: Path) -> None:
    config = configured(tmp_path, 'enable = ["diagnostics"]')
    with pytest.raises(ConfigError, match=r"no checker is named; write for example diagnostics = "):
        Brain.build(config, "demo")
    problems: list[object] = []
    Brain.build(config, "demo", problems)  # type: ignore[arg-type]
    assert len(problems) == 1, "signoff check goes on and lists it"


def test_a_missing_sandbox_stops_the_start_with_the_line_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.agent.tools.isolation._find_bubblewrap", lambda environment: "")
    with pytest.raises(ConfigError, match=r"signoff\.toml:2: the tool bash needs bubblewrap, which is not installed"):
        Brain.build(configured(tmp_path, 'enable = ["bash"]'), "demo")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('enable = ["bahs"]', "bash"),
        ('sandbox = "maybe"', '"required", "if available" or "off"'),
        ("network = 1", "true or false"),
        ('sandbox_reads = ["relative"]', "a list of absolute folders"),
        ('diagnostics = "ruff"', 'a list, for example ["ruff", "check"]'),
        ("shell = { run = 5 }", 'tool = "argument"'),
    ],
)
def test_a_wrong_value_is_named_with_what_to_write(line: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(f"[tools]\n{line}")
    assert "signoff.toml:2: [tools] " in str(refused.value)
    assert words in str(refused.value)


def test_the_operators_shell_arguments_reach_the_policy(tmp_path: Path) -> None:
    config = configured(tmp_path, 'shell = { "box_*" = ["command", "script"] }')
    assert Brain.build(config, "demo").policy.shell == {"box_*": ("command", "script")}

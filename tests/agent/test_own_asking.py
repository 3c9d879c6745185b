"""What asks is summed up before a run: also for tools whose own code asks for some arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.agent.setup import Brain
from signoff.agent.tool_survey import survey
from signoff.commands.check import VERDICTS
from signoff.config.schema import Config, load_config

DEPENDS = "depends on its arguments"
PLUGIN = """
from pydantic_ai import ApprovalRequired, Tool, exceptions
from pydantic_ai.toolsets import FunctionToolset


def direct(n: int) -> int:
    if n > 5:
        raise ApprovalRequired()
    return n


async def by_module(n: int) -> int:
    raise exceptions.ApprovalRequired()


def by_helper(n: int) -> int:
    return _checked(n)


def _checked(n: int) -> int:
    return _raised(n) if n > 5 else n


def _raised(n: int) -> int:
    return by_helper(direct(n))


def inside(n: int) -> int:
    def check() -> None:
        raise ApprovalRequired()

    check()
    return n


class Shop:
    def method(self, n: int) -> int:
        raise ApprovalRequired()


def quiet(n: int) -> int:
    return n


def in_toolset(n: int) -> int:
    return direct(n)


tools = [direct, by_module, by_helper, inside, Shop().method, quiet, FunctionToolset([in_toolset]).prefixed("my")]
"""


def configured(folder: Path, rules: str = "") -> Config:
    (folder / "mine.py").write_text(PLUGIN, encoding="utf-8")
    (folder / "signoff.toml").write_text(f'[tools]\nplugins = ["mine.py"]\n{rules}', encoding="utf-8")
    return load_config(folder / "signoff.toml", required=True)


async def verdicts(config: Config) -> dict[str, str]:
    return dict((await survey(Brain.build(config, "demo"), config, keep_running=False)).verdicts)


async def test_a_tool_whose_code_raises_asks_depending_on_its_arguments(tmp_path: Path) -> None:
    said = await verdicts(configured(tmp_path))
    for name in ("post_announcement", "direct", "by_module", "by_helper", "inside", "method", "my_in_toolset"):
        assert said[name] == DEPENDS, name
    for name in ("quiet", "roll_dice", "current_time"):
        assert said[name].startswith("allow ("), name
    at_start = dict(line.split(": ", 1) for line in Brain.build(configured(tmp_path), "demo").verdicts)
    assert (at_start["direct"], at_start["post_announcement"]) == (DEPENDS, DEPENDS)


@pytest.mark.parametrize(
    ("tool", "rules", "expected"),
    [
        ("direct", [("ask", "")], "ask (rule)"),
        ("direct", [("deny", "")], "deny (rule)"),
        ("direct", [("allow", "")], DEPENDS),
        ("quiet", [("allow", "")], "allow (rule)"),
        ("quiet", [("ask", "5")], DEPENDS),
        ("quiet", [("deny", "5")], "allow or deny, by its arguments"),
        ("quiet", [("allow", "5"), ("ask", "")], "ask (rule; rules on its arguments apply too)"),
        ("quiet", [("deny", "5"), ("ask", "")], DEPENDS),
        ("quiet", [("ask", "5"), ("deny", "")], "deny (rule; rules on its arguments apply too)"),
        ("test_discord_approval", [("ask", "5")], "ask (declared; rules on its arguments apply too)"),
        ("test_discord_approval", [("allow", "5")], DEPENDS),
    ],
)
async def test_rules_and_code_together(tmp_path: Path, tool: str, rules: list[tuple[str, str]], expected: str) -> None:
    argument = "test_parameter" if tool.startswith("test") else "n"
    written: list[str] = []
    for verdict, only in rules:
        condition = f'when = {{ {argument} = "{only}" }}\n' if only else ""
        written.append(f'[[rules]]\ntool = "{tool}"\nverdict = "{verdict}"\n{condition}')
    said = (await verdicts(configured(tmp_path, "\n".join(written))))[tool]
    assert said == expected
    assert said.split()[0] in VERDICTS, "the summary counts it"

"""What a start loads. Everything here is counted in modules, not in seconds."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs import command_line

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "main.py"
NOWHERE = {"DISCORD_TOKEN": "x.y.z", "DISCORD_API_URL": "http://127.0.0.1:9/api/v10"}
"""A bot with these settings starts completely, and ends because nobody answers its login."""
AGENT = """
import gc, json
from pathlib import Path
import discord
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent, login = Agent(TestModel()), discord.Client.login

async def seen(client, token):
    Path("seen.json").write_text(json.dumps([gc.isenabled(), gc.get_freeze_count(), len(gc.get_objects())]))
    await login(client, token)

discord.Client.login = seen
"""
FOR_FEW = {
    *("anthropic", "click", "dotenv", "fastmcp", "google", "groq", "markdown_it", "mcp", "mistralai", "openai"),
    *("pydantic_ai_harness", "pydantic_settings", "pygments", "rich", "shellingham", "typer", "uvicorn", "yaml"),
    *("aiohttp.web", "discord_sandbox"),
    *("signoff.agent.tools.servers", "signoff.agent.tools.workspace_set", "signoff.bot.servers", "signoff.library"),
    *("signoff.servers.model", "signoff.telemetry.http", "signoff.terminal"),
    *("cronsim", "signoff.agent.mcp", "signoff.agent.prices", "signoff.bot.checkup", "signoff.config.problems"),
    *("signoff.store.checkup", "signoff.text.lookalikes", "signoff.turns.cron"),
}
"""Packages and modules that a bot with the demo model and no MCP server has no use for."""


def loaded(folder: Path, *arguments: str, code: int = 0, **settings: str) -> set[str]:
    """Run `main.py ARGUMENTS` as a process of its own and return the names of the modules that it imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DISCORD_", "SIGNOFF_"))}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", MAIN, *arguments],
        cwd=folder,
        env=environment | settings,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def among(modules: set[str], packages: set[str]) -> set[str]:
    """Return those of the packages of which something is loaded."""
    return {package for package in packages if any(f"{module}.".startswith(f"{package}.") for module in modules)}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["audit", "--help"], ["restore", "--help"]])
def test_help_and_version_load_no_part_of_the_bot(tmp_path: Path, arguments: list[str]) -> None:
    modules = loaded(tmp_path, *arguments)
    assert "signoff.cli" in modules
    ours = {"signoff.agent", "signoff.approvals", "signoff.bot", "signoff.config", "signoff.settings", "signoff.store"}
    assert among(modules, ours | {"aiohttp", "asyncio", "discord", "pydantic_ai", "sqlite3"}) == set()


@pytest.mark.slow
def test_the_version_needs_no_parser(tmp_path: Path) -> None:
    assert among(loaded(tmp_path, "version"), {"pydantic", "rich", "typer"}) == set()


@pytest.mark.slow
def test_the_bot_loads_nothing_that_only_few_need(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "discord", code=1, **NOWHERE)
    assert {"signoff.bot.client", "signoff.agent.demo.model", "signoff.agent.tools"} <= modules
    assert among(modules, FOR_FEW) == set()


@pytest.mark.long
@pytest.mark.slow
def test_a_bot_with_an_agent_of_its_own_loads_neither_the_demo_nor_our_tools(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "signoff.toml").write_text('[agent]\nimport = "my_agent:agent"\n', encoding="utf-8")
    modules = loaded(tmp_path, "discord", code=1, **NOWHERE)
    assert among(modules, FOR_FEW | {"signoff.agent.demo", "signoff.agent.tools"}) == set()
    collecting, frozen, others = json.loads((tmp_path / "seen.json").read_text(encoding="utf-8"))
    assert collecting, "garbage must be collected once everything is loaded"
    assert others < frozen / 10, "collections must leave out what was loaded at the start"


def test_garbage_is_collected_again_after_a_start_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "signoff.toml").write_text("nonsense", encoding="utf-8")
    ended = command_line.run(tmp_path, "discord", environment=NOWHERE, monkeypatch=monkeypatch, capfd=capfd)
    assert (ended.code, gc.isenabled()) == (1, True)

"""The sandbox's README: it names everything public, and its examples run as they are written."""

import asyncio
import inspect
import os
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import discord_sandbox
from discord_sandbox import (
    Button,
    Outcome,
    Person,
    Place,
    Plan,
    SandboxClient,
    SandboxProcess,
    SandboxServer,
    SeenMessage,
    discord_py,
    pytest_plugin,
    sandbox_process,
)
from discord_sandbox.__main__ import parse

README = Path(discord_sandbox.__file__).with_name("README.md").read_text(encoding="utf-8")
SPOKEN = " ".join(re.findall(r"`[^`\n]+`", re.sub(r"```.*?```", "", README, flags=re.DOTALL)))
"""Everything in backticks outside of the code blocks."""
PATIENCE = 120.0


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def block(language: str, with_text: str) -> str:
    (found,) = [text for text in blocks(language) if with_text in text]
    return found


def public_members(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]


def is_named(name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", SPOKEN) is not None


@pytest.mark.parametrize("module", [discord_sandbox, discord_py, pytest_plugin], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_readme(module: object) -> None:
    assert [name for name in module.__all__ if not is_named(name)] == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Button, Outcome, Person, Place, Plan, SandboxClient, SandboxProcess, SeenMessage])
def test_every_public_member_is_in_the_readme(kind: type) -> None:
    own = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    names = {*public_members(kind), *own} - {"line"}
    assert len(names) > 2
    assert [name for name in names if not is_named(name)] == []


def test_the_servers_members_and_parameters_are_in_the_readme() -> None:
    parameters = list(inspect.signature(SandboxServer).parameters)
    assert [name for name in [*public_members(SandboxServer), *parameters] if not is_named(name)] == []


def test_every_option_of_the_command_line_is_in_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert len(options) > 10
    assert [option for option in options if f"`{option}" not in SPOKEN] == []


def test_every_public_function_and_method_has_a_docstring() -> None:
    kinds = [Outcome, Person, Plan, SandboxClient, SandboxProcess, SandboxServer, SeenMessage]
    objects = {name: getattr(discord_sandbox, name) for name in discord_sandbox.__all__ if name != "discord_py"}
    for kind in kinds:
        objects |= {f"{kind.__name__}.{name}": getattr(kind, name) for name in public_members(kind)}
    callables = {name: thing for name, thing in objects.items() if callable(thing)}
    assert [name for name, thing in callables.items() if not inspect.getdoc(thing)] == []


async def execute(*command: str, folder: Path, **variables: str) -> str:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("SLIPCOVER", "PYTEST"))}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=folder,
        env=outside | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await asyncio.wait_for(process.communicate(), PATIENCE))[0].decode()
    assert process.returncode == 0, output
    return output


@pytest.mark.slow
async def test_the_discord_py_bot_runs_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(block("python", "class Greeting"), encoding="utf-8")
    variables = dict(re.findall(r"export (\w+)=(\S+)", block("sh", "python bot.py")))
    async with sandbox_process() as server, server.client() as sandbox:
        where = server.api_url.partition("//")[2].partition("/")[0]
        assert Plan.token == variables["DISCORD_TOKEN"]
        variables = {name: value.replace("127.0.0.1:9000", where) for name, value in variables.items()}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "bot.py", cwd=tmp_path, env=os.environ | variables
        )
        try:
            await sandbox.wait_for_bot(timeout=PATIENCE)
            await sandbox.settings(interaction_deadline=PATIENCE)
            max_ = await sandbox.person("Max")
            await max_.say("general", f"{sandbox.mention} hello")
            greeting = await max_.wait_for_message("general", lambda m: m.buttons, timeout=PATIENCE)
            await asyncio.sleep(1)  # discord.py registers the button only after its own request was answered
            assert (await max_.click(greeting, "Wave back")).text == "Max waves"
            assert (await max_.run("general", "roll", sides=1)).text == "You rolled 1"
        finally:
            process.kill()
            await process.wait()


@pytest.mark.slow
async def test_the_pytest_example_runs_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(block("python", "class Greeting"), encoding="utf-8")
    (tmp_path / "conftest.py").write_text(block("python", "pytest_plugins"), encoding="utf-8")
    (tmp_path / "test_bot.py").write_text(block("python", "test_the_bot_greets"), encoding="utf-8")
    said = await execute("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", folder=tmp_path)
    assert "1 passed" in said


@pytest.mark.slow
async def test_the_client_example_runs_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(block("python", "Hello everyone"), encoding="utf-8")
    assert await execute("example.py", folder=tmp_path) == "Ada Hello everyone\n"


async def test_the_faults_example_runs_as_it_is_written(sandbox: SandboxClient) -> None:
    lines = block("python", "sandbox.fault").splitlines()
    scope: dict[str, object] = {}
    exec("async def example(sandbox):\n" + "\n".join(f"    {line}" for line in lines), scope)
    await scope["example"](sandbox)  # type: ignore[operator]
    assert (await sandbox.settings())["clock_shift"] == 86_400

"""The sandbox is an independent package: it knows nothing of the bot, and reports a guide file that it cannot use."""

import json
import re
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

import discord_sandbox
from discord_sandbox import SandboxServer
from discord_sandbox.web import BadGuide, Guide
from discord_sandbox.web.markdown import render
from signoff.commands.sandbox_guide import guide

SOURCE = Path(discord_sandbox.__file__).parent
STEP = {"id": "hello", "title": "Say hello", "short": "Hello", "text": "hello", "then": "It says **hello**."}


def test_no_file_mentions_signoff() -> None:
    """Only the README says where the package comes from."""
    files = [file for file in SOURCE.rglob("*") if file.suffix in (".py", ".js", ".css", ".html", ".svg")]
    assert len(files) > 60
    assert [file.name for file in files if re.search("signoff", file.read_text(encoding="utf-8"), re.IGNORECASE)] == []


@pytest.mark.slow
def test_it_starts_without_the_bots_packages() -> None:
    """In a fresh process, the command line loads no part of Signoff and no Discord library."""
    script = (
        "import sys, discord_sandbox.__main__\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted({'signoff', 'discord', 'pydantic_ai', 'pydantic', 'pytest'} & loaded))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout == "[]\n"


async def _page_guide(server: SandboxServer) -> dict[str, object]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(server.page_url) as response:
            assert response.status == 200
        async with browser.get(f"{server.url}/page/people/Ada/state") as response:
            return (await response.json())["guide"]


async def test_the_page_gets_the_suggestions_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "guide.json"
    texts = {"channel": "Try this:", "direct": "Hello", "mark": "check", "people": {"admin": "may do all"}}
    file.write_text(json.dumps(texts | {"steps": [STEP]}), encoding="utf-8")
    async with SandboxServer(guide=Guide.read(file, restarts=True)) as server:
        shown = await _page_guide(server)
    assert shown == texts | {"steps": [STEP | {"then": render(STEP["then"])}], "restarts": True}


async def test_without_a_file_the_page_has_no_suggestions() -> None:
    async with SandboxServer() as server:
        shown = await _page_guide(server)
    assert (shown["steps"], shown["restarts"]) == ([], False)


def test_signoffs_suggestions_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "guide.json").write_text(json.dumps(guide(20)), encoding="utf-8")
    read = Guide.read(tmp_path / "guide.json")
    steps = {step["id"]: step for step in read.steps}
    assert list(steps) == [
        "incident",
        "approve",
        "reject",
        "batch",
        "write",
        "question",
        "elsewhere",
        "timeout",
        "direct",
    ]
    assert "20 seconds" in steps["timeout"]["then"]
    assert set(read.people) == {"admin", "approver", "member", "outsider"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read"),
        ("{", "cannot be read"),
        (json.dumps({"steps": [STEP, {"id": "x", "title": 3}]}), "step 1 needs a text for title, short, text, then"),
    ],
)
@pytest.mark.slow
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str | None, problem: str) -> None:
    file = tmp_path / "guide.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(BadGuide, match=problem):
        Guide.read(file)
    command = [sys.executable, "-m", "discord_sandbox", "--port", "0", "--guide", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("the sandbox cannot start: ")
    assert "Traceback" not in ended.stderr

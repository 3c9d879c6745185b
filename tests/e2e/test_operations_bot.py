"""The example of an operations bot, played to its end: two MCP servers as processes, a commit on a card, a denied call.

The bot, the sandbox's Discord, the servers and the repository are real. Only the model is a script.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.rigs.live_bot import ROOT, Rig, rig
from tests.rigs.openai_server import Call, OpenAIServer, Say, openai_server, tool_results

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

EXAMPLE = ROOT / "examples" / "operations_bot"


@dataclass
class Stage:
    rig: Rig
    provider: OpenAIServer
    services: Path

    def git(self, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=self.services, check=True, capture_output=True, text=True).stdout


def call(tool: str, number: int = 0, /, **args: Any) -> Call:
    return Call(tool, json.dumps(args), f"call_{number}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("operations")
    async with openai_server() as provider, rig(folder, start=False) as live:
        (folder / "signoff.toml").write_text((EXAMPLE / "signoff.toml").read_text(encoding="utf-8"), encoding="utf-8")
        stage = Stage(live, provider, folder / "services")
        stage.services.mkdir()
        stage.git("init", "--quiet")
        stage.git("config", "user.name", "Ada")
        stage.git("config", "user.email", "ada@example.org")
        (stage.services / "web.conf").write_text("port = 8080\n")
        stage.git("add", ".")
        live.environment |= {"SIGNOFF_MODEL": "openai-chat:some-model", "OPENAI_BASE_URL": provider.url}
        live.environment |= {
            "OPENAI_API_KEY": "test-key-of-nobody",
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        }
        await live.start()
        yield stage


async def test_looking_never_asks_a_commit_does_and_another_branch_is_denied(stage: Stage) -> None:
    where = {"repo_path": str(stage.services)}
    stage.provider.play(
        Say(calls=(call("git_git_status", 0, **where), call("time_get_current_time", 1, timezone="UTC"))),
        Say(calls=(call("git_git_checkout", **where, branch_name="other"),)),
        Say("I will commit it.", (call("git_git_commit", **where, message="Open the port"),)),
        Say("It is committed."),
    )
    asked = await stage.rig.ask("commit what is left")
    card = await stage.rig.card(asked.id)
    looked = tool_results(stage.provider.requests[1])
    assert "web.conf" in looked["call_0"]
    assert "UTC" in looked["call_1"]
    assert "people do this on their own machines" in tool_results(stage.provider.requests[2])["call_0"]
    assert "git_git_commit" in card.text
    assert "Open the port" in card.text
    await stage.rig.people["Ada"].click(card, "Accept")
    await stage.rig.sees(asked.id, "It is committed.")
    assert stage.git("log", "--format=%s").split("\n") == ["Open the port", ""]

"""The example of a coding helper, played to its end: read, search, an edit and a command on cards, and the reply.

The bot, the sandbox's Discord, the OpenAI client, the files and bubblewrap are real. Only the model is a script.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import ROOT, Rig, rig
from tests.rigs.openai_server import Call, OpenAIServer, Say, openai_server, tool_results

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

EXAMPLE = ROOT / "examples" / "coding_helper"
OLD = '        return 200, "hello"\n'
NEW = f'{OLD}    if path == "/health":\n        return 200, "ok"\n'


@dataclass
class Stage:
    rig: Rig
    provider: OpenAIServer
    project: Path

    async def ask(self, text: str, *answers: Say) -> SeenMessage:
        self.provider.play(*answers)
        return await self.rig.ask(text)

    async def accept(self, asked: SeenMessage, after: int = 0) -> SeenMessage:
        card = await self.rig.card(asked.id, after=after)
        assert not (await self.rig.people["Ada"].click(card, "Accept")).failed
        return card

    @property
    def results(self) -> dict[str, str]:
        return tool_results(self.provider.requests[-1])


def call(tool: str, number: int = 0, /, **args: Any) -> Call:
    return Call(tool, json.dumps(args), f"call_{number}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("helper")
    async with openai_server() as provider, rig(folder, start=False) as live:
        # The tests of the project need a Python, which need not be one of the system's.
        config = (EXAMPLE / "signoff.toml").read_text(encoding="utf-8")
        reads = f'sandbox_reads = ["{sys.base_prefix}"]\nworkspace = '
        (folder / "signoff.toml").write_text(config.replace("workspace = ", reads, 1), encoding="utf-8")
        project = folder / "workspace" / str(await live.sandbox.guild_id())
        shutil.copytree(EXAMPLE / "project", project)
        live.environment |= {"SIGNOFF_MODEL": "openai-chat:some-model", "OPENAI_BASE_URL": provider.url}
        live.environment |= {"OPENAI_API_KEY": "test-key-of-nobody"}
        await live.start()
        yield Stage(live, provider, project)


async def test_a_health_check_is_added_and_the_tests_are_run(stage: Stage) -> None:
    edit = {"path": "server.py", "old_text": OLD, "new_text": NEW}
    asked = await stage.ask(
        "add a health check to server.py and run the tests",
        Say("I look at it.", (call("read", 0, path="server.py"), call("grep", 1, pattern="health", files="*.py"))),
        Say("It needs a path.", (call("edit", **edit),)),
        Say(calls=(call("bash", command="python3 -m unittest -v"),)),
        Say("The health check is there, and both tests pass."),
    )
    first = await stage.accept(asked)
    looked = tool_results(stage.provider.requests[1])
    assert OLD in looked["call_0"]
    assert 'respond("/health")' in looked["call_1"]
    assert "Tool Approval Required" in first.text
    assert "server.py: 0 lines removed, 2 lines added." in first.text
    assert '+    if path == "/health":\n+        return 200, "ok"' in first.text
    assert first.text.count('"hello"') == 1, "the texts of the edit are shown once, as a diff"

    second = await stage.accept(asked, first.id)
    assert "python3 -m unittest -v" in second.text
    assert "Runs in a sandbox, no network." in second.text
    assert NEW in (stage.project / "server.py").read_text(encoding="utf-8"), "the first card was accepted"
    await stage.rig.sees(asked.id, "The health check is there, and both tests pass.")
    assert stage.results["call_0"].startswith("Exit code 0, in a sandbox, no network.\n")
    assert "Ran 2 tests" in stage.results["call_0"]
    assert stage.results["call_0"].endswith("OK")
    await stage.rig.closed(first, "APPROVED by")
    await stage.rig.closed(second, "APPROVED by")


async def test_a_rejected_edit_changes_nothing(stage: Stage) -> None:
    before = (stage.project / "server.py").read_text(encoding="utf-8")
    edit = call("edit", path="server.py", old_text="hello", new_text="goodbye", replace_all=True)
    asked = await stage.ask("say goodbye", Say(calls=(edit,)), Say("Then I leave it."))
    card = await stage.rig.card(asked.id)
    await stage.rig.people["Ada"].click(card, "Reject")
    await stage.rig.sees(asked.id, "Then I leave it.")
    assert (stage.project / "server.py").read_text(encoding="utf-8") == before


async def test_the_rules_for_commands_see_words(stage: Stage) -> None:
    asked = await stage.ask(
        "look around",
        Say(calls=(call("bash", command="ls"),)),
        Say(calls=(call("bash", command="git 'push' --force"),)),
        Say(calls=(call("bash", command="ls; echo $DISCORD_TOKEN; cat ../../signoff.toml; cat /proc/*/environ"),)),
        Say("That is all."),
    )
    card = await stage.accept(asked)
    assert "echo $DISCORD_TOKEN" in card.text, "neither ls nor git push had a card"
    assert "test_server.py" in tool_results(stage.provider.requests[1])["call_0"]
    assert "people push and delete" in tool_results(stage.provider.requests[2])["call_0"]
    await stage.rig.sees(asked.id, "That is all.")
    token = stage.rig.environment["DISCORD_TOKEN"]
    assert token not in stage.results["call_0"]
    assert "instructions" not in stage.results["call_0"]

"""An imported agent with a shell tool that declares nothing, behind the running bot: attack row 50."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.live_bot import Rig, rig

pytestmark = pytest.mark.slow

AGENT = """
import pathlib
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

def bash(command: str) -> str:
    "Run a command."
    pathlib.Path("ran.txt").write_text(command)
    return "it ran"

def look() -> str:
    "Look around."
    pathlib.Path("looked.txt").write_text("yes")
    return "all is well"

async def model(messages, info):
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        yield "done"
    elif "look" in str(messages[-1].parts[-1].content):
        yield {0: DeltaToolCall(name="look", json_args="{}", tool_call_id="look")}
    else:
        yield {0: DeltaToolCall(name="bash", json_args='{"command": "rm -rf build"}', tool_call_id="bash")}

agent = Agent(FunctionModel(stream_function=model), tools=[bash, Tool(look, metadata={"read_only": True})])
"""


class ImportingRig(Rig):
    def configure(self, text: str = "") -> None:
        (self.folder / "helper_with_a_shell.py").write_text(AGENT, encoding="utf-8")
        (self.folder / "signoff.toml").write_text('[agent]\nimport = "helper_with_a_shell:agent"\n', encoding="utf-8")


async def test_a_shell_that_declares_nothing_waits_for_a_person(tmp_path: Path) -> None:
    async with rig(tmp_path, kind=ImportingRig) as live:
        asked = await live.ask("clean up")
        card = await live.card(asked.id)
        assert "the tool declares nothing and no rule matches" in card.text
        assert "rm -rf build" in card.text
        assert not (tmp_path / "ran.txt").exists()
        await live.people["Ada"].click(card, "Accept")
        await live.closed(card, "APPROVED by")
        await live.ended(asked)
        assert (tmp_path / "ran.txt").read_text() == "rm -rf build"
        read = await live.ask("look")
        await live.ended(read)  # without a card
        assert (tmp_path / "looked.txt").exists()

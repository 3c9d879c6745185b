"""An existing agent runs as it is: with its dependencies, its model, and plugins and MCP servers beside it."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models.test import TestModel

from signoff.agent.deps import DepsMaker, TurnInfo
from signoff.agent.plugins import load_plugins
from signoff.agent.runner import AgentRunner
from signoff.agent.setup import Brain
from signoff.agent.tool_survey import survey
from signoff.approvals.model import Actor, Choice
from signoff.config.schema import load_config
from signoff.errors import ConfigError, TurnFailed
from signoff.gate.tool_slots import ToolSlots
from signoff.gate.tool_threads import ToolThreads
from signoff.turns.model import Finished, Step, TurnState, Waiting
from tests.conftest import MAX, PLACE
from tests.rigs.gate_bench import Bench, accept, batch_of, edit
from tests.rigs.scripted import Answer, Script, calls

SHOP = Path(__file__).parents[1] / "rigs" / "shop_tools.py"
IMPORT = 'import = "MODULE:agent"'
DEPS = f'{IMPORT}\ndeps = "MODULE:NAME"'
_numbers = itertools.count()

AGENT = """
from dataclasses import dataclass
from pydantic_ai import Agent, RunContext

@dataclass
class Deps:
    who: str
    currency: str

made = []

def make_deps(info):
    made.append(info)
    return Deps(info.asker.name, info.settings["currency"])

agent = Agent(deps_type=Deps, output_type=[str])

@agent.tool(requires_approval=True)
def refund(ctx: RunContext[Deps], amount: int) -> str:
    return f"{ctx.deps.who} gets {amount} {ctx.deps.currency}"
"""


@dataclass
class Project:
    """A folder with signoff.toml and a module that it names."""

    folder: Path
    module: str

    def write(self, code: str, toml: str) -> None:
        """Write both files. `MODULE` in the text stands for the module's name."""
        (self.folder / f"{self.module}.py").write_text(code)
        (self.folder / "signoff.toml").write_text(toml.replace("MODULE", self.module))

    def brain(self, code: str, toml: str) -> Brain:
        self.write(code, toml)
        return Brain.build(load_config(self.folder / "signoff.toml", required=True), "demo")

    @property
    def code(self) -> Any:
        return sys.modules[self.module]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = Project(tmp_path, f"imported_project_{next(_numbers)}")
    yield found
    sys.modules.pop(found.module, None)


async def run(bench: Bench, brain: Brain, answers: list[Answer], **fields: Any) -> Step:
    """Take the turn of the bench with this agent and a scripted model."""
    bench.script = Script(answers)
    extras = replace(brain.extras, model=bench.script.model())
    bench.runner = AgentRunner(brain.agent, bench.store, bench.clock, brain.policy, extras=extras, **fields)
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    return await bench.advance()


def text_of(step: Step) -> str:
    assert isinstance(step, Finished), step
    return step.text


WITH_DEPS = '[agent]\nimport = "MODULE:agent"\ndeps = "MODULE:make_deps"\n[agent.settings]\ncurrency = "EUR"\n'


async def test_dependencies_are_made_for_the_asker_and_the_settings(bench: Bench, project: Project) -> None:
    brain = project.brain(AGENT, WITH_DEPS)
    step = await run(bench, brain, [calls(("refund", {"amount": 5})), "done"])
    assert [request.call.tool for request in batch_of(step).requests] == ["refund"]
    assert text_of(await accept(bench, step)) == "done "
    assert bench.script.results == {"call_0": "Max gets 5 EUR"}
    first, second = project.code.made
    assert first == second == TurnInfo(MAX, PLACE, {"currency": "EUR"}), "a resumed turn makes them again"
    assert first.settings is not second.settings


async def test_an_edited_call_is_tried_with_dependencies_too(bench: Bench, project: Project) -> None:
    code = AGENT.replace(
        "@agent.tool(requires_approval=True)",
        "def check(ctx, amount: int) -> None:\n    assert ctx.deps.currency\n"
        "@agent.tool(requires_approval=True, args_validator=check)",
    )
    step = await run(bench, project.brain(code, WITH_DEPS), [calls(("refund", {"amount": 5})), "done"])
    await edit(bench, step, {"amount": 7})
    await accept(bench, step)
    assert "Max gets 7 EUR" in bench.script.results["call_0"]


async def test_plugins_get_dependencies_without_an_imported_agent(bench: Bench, project: Project) -> None:
    code = (
        "def make_deps(info):\n    return info.place.channel\n"
        "from pydantic_ai import RunContext\n"
        "def where(ctx: RunContext[str]) -> str:\n    return ctx.deps\ntools = [where]\n"
    )
    toml = f'[agent]\ndeps = "MODULE:make_deps"\n[tools]\nplugins = ["{project.module}.py"]\n'
    assert text_of(await run(bench, project.brain(code, toml), [calls(("where", {})), "done"])) == "done "
    assert bench.script.results == {"call_0": PLACE.channel}


def failing(info: TurnInfo) -> Any:
    raise KeyError("secret-of-the-database")


async def async_failing(info: TurnInfo) -> Any:
    sys.exit(3)


async def slow(info: TurnInfo) -> Any:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("function", "why"),
    [(failing, "failed (KeyError)"), (async_failing, "failed (Overreach)"), (slow, "took too long")],
)
async def test_dependencies_that_fail_end_the_turn_with_one_sentence(
    bench: Bench, project: Project, function: Callable[[TurnInfo], Any], why: str
) -> None:
    brain = project.brain(AGENT, WITH_DEPS)
    brain = replace(brain, extras=replace(brain.extras, deps=DepsMaker("mine:make_deps", function)))
    with pytest.raises(TurnFailed) as caught:
        await run(bench, brain, ["never asked"], slots=ToolSlots(0.05 if function is slow else 30.0))
    kept = "Nothing further was run. Please tell the operator."
    assert str(caught.value) == f"The agent's dependencies could not be made: mine:make_deps {why}. {kept}"
    assert bench.script.asked == []


@pytest.mark.parametrize("is_async", [True, False])
async def test_dependencies_are_made_away_from_the_event_loop(is_async: bool) -> None:
    def sync(info: TurnInfo) -> int:
        return threading.get_ident()

    async def coroutine(info: TurnInfo) -> int:
        return threading.get_ident()

    maker = DepsMaker("mine:make_deps", coroutine if is_async else sync)
    assert await maker.make(MAX, PLACE, ToolSlots(5, threads=ToolThreads())) != threading.get_ident()


async def test_an_agent_without_a_model_gets_the_one_of_the_settings(project: Project) -> None:
    brain = project.brain("from pydantic_ai import Agent\nagent = Agent()\n", f"[agent]\n{IMPORT}\n")
    assert brain.extras.model is not None
    assert brain.extras.model.model_name == "demo"


async def test_an_agent_keeps_its_own_model(project: Project) -> None:
    brain = project.brain(
        "from pydantic_ai import Agent\nagent = Agent('test')\n", '[agent]\nimport = "MODULE:agent"\n'
    )
    assert brain.extras.model is None
    assert isinstance(brain.agent.model, TestModel)


PLUGIN = """
from pydantic_ai import Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import FunctionToolset

ran, events = [], []

def shout(text: str) -> str:
    ran.append(text)
    return text.upper()

class Loud(AbstractCapability):
    def get_toolset(self):
        return FunctionToolset([Tool(shout, requires_approval=True)])

    def get_instructions(self):
        return "Be loud."

    async def after_tool_execute(self, ctx, *, call, tool_def, args, result):
        return f"{result}!" if isinstance(result, str) else result

def whisper(text: str) -> str:
    return text.lower()

tools = [whisper]
capabilities = [Loud()]

def on_tool_approval(event):
    events.append(event)
"""


async def test_plugins_and_their_capabilities_work_beside_an_imported_agent(bench: Bench, project: Project) -> None:
    (project.folder / "loud.py").write_text(PLUGIN)
    brain = project.brain(AGENT, WITH_DEPS + '[tools]\nplugins = ["loud.py"]\n')
    (listener,) = brain.listeners
    ran = sys.modules[listener.__module__].ran
    asked = calls(("shout", {"text": "Hey"}), ("whisper", {"text": "Hey"}))
    step = await run(bench, brain, [asked, "done"])
    assert [(one.call.tool, one.held) for one in batch_of(step).requests] == [("shout", False), ("whisper", True)]
    assert ran == [], "a tool of a capability passes the gate"
    await edit(bench, step, {"text": "Ho"})
    await accept(bench, step)
    assert '"result":"HO"' in bench.script.results["call_0"]
    assert bench.script.results["call_1"] == "hey!"
    assert ran == ["Ho"]
    assert any("Be loud." in str(message) for message in bench.script.asked[0])


async def test_a_plugins_capability_works_with_our_own_agent(bench: Bench, project: Project) -> None:
    toml = f'[tools]\nplugins = ["{project.module}.py"]\n'
    step = await run(
        bench, project.brain(PLUGIN.replace("tools = [whisper]", ""), toml), [calls(("shout", {"text": "a"})), "x"]
    )
    assert [one.call.tool for one in batch_of(step).requests] == ["shout"]
    await bench.decide(step, Choice.REJECT)
    assert bench.script.results["call_0"].startswith("Rejected by user Ada")


async def test_a_tool_of_the_agents_own_capability_passes_the_gate(bench: Bench, project: Project) -> None:
    code = PLUGIN + "from pydantic_ai import Agent\nagent = Agent(capabilities=[Loud()])\n"
    step = await run(
        bench, project.brain(code, '[agent]\nimport = "MODULE:agent"\n'), [calls(("shout", {"text": "a"})), "x"]
    )
    assert [one.call.tool for one in batch_of(step).requests] == ["shout"]
    assert project.code.ran == []
    await accept(bench, step)
    assert project.code.ran == ["a"]


async def test_two_tools_of_one_name_are_found_at_the_start(project: Project) -> None:
    (project.folder / "more.py").write_text("def refund(amount: int) -> int:\n    return amount\ntools = [refund]\n")
    config_text = WITH_DEPS + '[tools]\nplugins = ["more.py"]\n'
    brain = project.brain(AGENT, config_text)
    config = load_config(project.folder / "signoff.toml", required=True)
    (finding,) = (await survey(brain, config, keep_running=False)).collisions(config)
    assert "signoff.toml:7: two tools are called refund: one of more.py" in str(finding)


@pytest.mark.long
@pytest.mark.slow
async def test_an_mcp_server_works_beside_an_imported_agent(bench: Bench, project: Project) -> None:
    command = json.dumps([sys.executable, str(SHOP), str(project.folder / "ledger")])
    brain = project.brain(AGENT, f"{WITH_DEPS}[mcp.shop]\ncommand = {command}\n")
    step = await run(bench, brain, [calls(("shop_refund", {"order": "A1", "amount": 5})), "done"])
    assert [one.call.tool for one in batch_of(step).requests] == ["shop_refund"]
    await accept(bench, step)
    assert "A1" in (project.folder / "ledger").read_text()


NATIVE = (
    "from pydantic_ai import Agent\nfrom pydantic_ai.capabilities import WebSearch, NativeTool\n"
    "from pydantic_ai.native_tools import CodeExecutionTool\n"
)


@pytest.mark.parametrize(
    ("code", "keys", "words"),
    [
        ("", IMPORT, 'MODULE has no agent; write "module:agent" with a name that it defines'),
        ("agent = 5", IMPORT, "is not a PydanticAI agent but a int; name the agent itself"),
        ("import no_such_package", IMPORT, "MODULE.py:1: ModuleNotFoundError: No module"),
        ("x = 1\n1 / 0", IMPORT, "cannot be loaded: MODULE.py:2: ZeroDivisionError"),
        ("x = (", IMPORT, "cannot be loaded: MODULE.py:1: SyntaxError"),
        (AGENT, IMPORT, 'needs deps of the type Deps; write deps = "module:make_deps"'),
        (AGENT, DEPS.replace("NAME", "nothing"), 'MODULE has no nothing; write "module:make'),
        (AGENT, DEPS.replace("MODULE:NAME", "nowhere_at_all:x"), "there is no module nowhere_at_all; write"),
        (AGENT, DEPS.replace("NAME", "made"), "not a function but a list; write def made(info)"),
        (
            AGENT + "def two(info, more):\n    pass\n",
            DEPS.replace("NAME", "two"),
            "cannot be called with one argument; write def two(info): ...",
        ),
        (
            NATIVE + "agent = Agent(capabilities=[NativeTool(CodeExecutionTool())])",
            IMPORT,
            "has a tool that the model's provider runs, past every approval: code_execution; give it",
        ),
        (NATIVE + "agent = Agent(capabilities=[WebSearch()])", IMPORT, "past every approval: web_search"),
        (
            "from pydantic_ai import Agent, BinaryImage\nagent = Agent(output_type=BinaryImage | str)",
            IMPORT,
            "may end with an image, which the model's provider makes and nobody would see; leave BinaryImage out",
        ),
        (
            "from pydantic_ai import Agent, PendingModelResponse as P\nagent = Agent(output_type=[str, P])",
            IMPORT,
            "may end with a PendingModelResponse, which nobody would pick up; leave it out",
        ),
    ],
)
def test_what_cannot_run_is_said_at_the_start_with_its_place(
    project: Project, code: str, keys: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        project.brain(code, f"[agent]\n{keys}\n")
    line = 3 if "deps" in keys else 2
    assert str(caught.value).startswith(f"{project.folder}/signoff.toml:{line}: [agent] ")
    assert words.replace("MODULE", project.module) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "tools = []\ncapabilities = 5",
            "mine.py:2: capabilities is a int; write a list: capabilities = [",
        ),
        ("tools = []\ncapabilities = [5]", "mine.py:2: entry 1 of capabilities is a int; write a list"),
        (NATIVE + "capabilities = [WebSearch()]", "mine.py:4: has a tool that the model's provider runs"),
    ],
)
def test_a_plugins_capability_that_cannot_be_used_is_one_line(tmp_path: Path, code: str, words: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(ConfigError) as caught:
        load_plugins(["mine.py"], tmp_path, capabilities=[])
    assert str(caught.value).startswith(words)


async def test_a_turn_of_somebody_else_gets_dependencies_of_their_own(bench: Bench, project: Project) -> None:
    olga = Actor("5", "Olga", PLACE.server, roles=frozenset({"77"}))
    bench.turn = replace(bench.turn, asker=olga)
    step = await run(bench, project.brain(AGENT, WITH_DEPS), [calls(("refund", {"amount": 1})), "done"])
    assert isinstance(step, Waiting)
    assert project.code.made[0].asker.roles == {"77"}

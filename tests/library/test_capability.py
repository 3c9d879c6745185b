"""`Signoff` as a capability: every way to run an agent goes through the gate, and each run has its own state."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from signoff import (
    ApprovalDecision,
    ApprovalRequest,
    AsyncScriptedUI,
    Policy,
    Rule,
    ScriptedUI,
    Signoff,
    Verdict,
    run_with_approval,
    run_with_approval_sync,
)
from signoff.agent.runner import AgentRunner
from signoff.approvals.model import Actor, Place
from signoff.gate.dry_run import DryRun
from signoff.turns.model import Waiting
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import Box, Script, calls
from tests.rigs.talk import play
from tests.rigs.ways_to_run import by_events, by_iter, by_stream


def protected(box: Box, name: str = "danger") -> Tool[Any]:
    return Tool(box.tool(name), requires_approval=True)


def gated(*answers: Any, box: Box, ui: Any, **options: Any) -> tuple[Agent[Any, Any], Script]:
    return play(*answers, tools=[protected(box), box.tool("safe")], capabilities=[Signoff(ui=ui)], **options)


CALL = calls(("danger", {"value": "x"}), ("safe", {}))


async def by_run(agent: Agent[Any, Any]) -> Any:
    return (await agent.run("go")).output


@pytest.mark.parametrize("drive", [by_run, by_stream, by_events, by_iter])
@pytest.mark.parametrize(("answer", "ran"), [(True, ["danger", "safe"]), (False, [])])
async def test_every_way_to_run_an_agent_asks(drive: Any, answer: bool, ran: list[str]) -> None:
    box, ui = Box(), ScriptedUI([answer])
    agent, script = gated(CALL, "done", box=box, ui=ui)
    assert (await drive(agent)).strip() == "done"
    assert [request.call.args for request in ui.asked] == [{"value": "x", "other": None}]
    assert sorted(tool for tool, *_ in box.ran) == ran
    assert set(script.results) == {"call_0", "call_1"}


@pytest.mark.parametrize(("answer", "ran"), [(True, ["danger", "safe"]), (False, [])])
async def test_a_call_after_streamed_text_is_asked_about_and_not_lost(answer: bool, ran: list[str]) -> None:
    # `run_stream` takes the text as the final result. Deferred calls would then vanish without a trace.
    box, ui = Box(), ScriptedUI([answer])
    response = calls(("danger", {"value": "x"}), ("safe", {}), say="On it.")
    agent, _ = gated(response, "done", box=box, ui=ui)
    async with agent.run_stream("go") as result:
        assert (await result.get_output()).strip() == "On it."
    assert [request.call.tool for request in ui.asked] == ["danger"]
    assert sorted(tool for tool, *_ in box.ran) == ran
    told = {part.tool_name for part in result.all_messages()[-1].parts if isinstance(part, ToolReturnPart)}
    assert told == {"danger", "safe"}


async def test_calls_after_streamed_text_are_told_from_those_of_the_response_before() -> None:
    # Both responses use the same call ids. The first question was accepted, the second one is rejected.
    box, ui = Box(), ScriptedUI([True, False])
    agent, _ = gated(CALL, calls(("danger", {"value": "y"}), ("safe", {}), say="And now."), box=box, ui=ui)
    async with agent.run_stream("go") as result:
        await result.get_output()
    assert [request.args["value"] for request in ui.asked] == ["x", "y"]
    assert sorted(box.ran) == [("danger", "x", None), ("safe", "default", None)]


async def test_a_call_after_streamed_text_can_be_edited() -> None:
    box = Box()
    ui = ScriptedUI([ApprovalDecision(True, override_args={"value": "edited"}), True])
    response = calls(("danger", {"value": "x"}), ("danger", {"value": "y"}), say="On it.")
    agent, _ = gated(response, box=box, ui=ui)
    async with agent.run_stream("go") as result:
        await result.get_output()
    assert sorted(value for _, value, _ in box.ran) == ["edited", "y"]


async def test_an_edit_after_streamed_text_does_not_count_as_another_call() -> None:
    # Ten calls are allowed, and the edited one is validated a second time.
    box = Box()
    ui = ScriptedUI([ApprovalDecision(True, override_args={"value": "edited"}), *[True] * 9])
    danger = Tool(box.tool("danger"), requires_approval=True, sequential=True)
    response = calls(*(("danger", {"value": str(number)}) for number in range(10)), say="On it.")
    agent, _ = play(response, tools=[danger], capabilities=[Signoff(ui=ui)])
    async with agent.run_stream("go") as result:
        await result.get_output()
    assert [value for _, value, _ in box.ran] == ["edited", *(str(number) for number in range(1, 10))]


@dataclass
class Here:
    """A UI that notes the thread in which it was asked."""

    thread: threading.Thread | None = None

    def choose(self, request: ApprovalRequest) -> ApprovalDecision:
        self.thread = threading.current_thread()
        return ApprovalDecision(True)


def streamed_in_sync_code(agent: Agent[Any, Any]) -> None:
    with agent.run_stream_sync("go") as result:
        result.get_output()


@pytest.mark.parametrize("drive", [lambda agent: agent.run_sync("go"), streamed_in_sync_code])
def test_sync_code_is_asked_in_its_own_thread(drive: Any) -> None:
    box, ui = Box(), Here()
    agent, _ = gated(CALL, "done", box=box, ui=ui)
    drive(agent)
    assert ui.thread is threading.current_thread()
    assert len(box.ran) == 2


async def test_async_code_asks_a_sync_ui_in_another_thread() -> None:
    box, ui = Box(), Here()
    agent, _ = gated(CALL, "done", box=box, ui=ui)
    await agent.run("go")
    assert ui.thread is not threading.current_thread()


def test_sync_code_takes_an_async_ui_too() -> None:
    box = Box()
    agent, _ = gated(CALL, "done", box=box, ui=AsyncScriptedUI([True]))
    agent.run_sync("go")
    assert len(box.ran) == 2


async def test_fifty_concurrent_runs_of_one_agent_do_not_share_anything() -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        number = str(messages[0].parts[-1].content)  # pyright: ignore[reportAttributeAccessIssue]
        # Every run uses the same call id, so any state that two runs shared would mix them up.
        return ModelResponse(parts=[ToolCallPart("danger", {"value": number}, "call_0")])

    class Even:
        async def choose(self, request: ApprovalRequest) -> ApprovalDecision:
            await asyncio.sleep(0)
            return ApprovalDecision(int(request.args["value"]) % 2 == 0)

    box = Box()
    signoff = Signoff(ui=Even())
    agent = Agent(FunctionModel(model), tools=[protected(box)], capabilities=[signoff])
    results = await asyncio.gather(*(agent.run(str(number)) for number in range(50)))
    assert sorted(int(value) for _, value, _ in box.ran) == list(range(0, 50, 2))
    for number, result in enumerate(results):
        told = [part for part in result.all_messages()[-2].parts if isinstance(part, ToolReturnPart)]
        assert [part.content == f"danger did {number}" for part in told] == [number % 2 == 0]
    assert "_of_runs={}" in repr(signoff.capabilities)  # nothing is left of the runs


async def test_an_agent_with_a_signoff_is_asked_about_once_by_run_with_approval() -> None:
    box, own, other = Box(), ScriptedUI([True]), ScriptedUI([True])
    agent, _ = gated(CALL, "done", box=box, ui=own)
    await run_with_approval(agent, "go", ui=other)
    assert (len(own.asked), len(other.asked)) == (0, 1)
    assert len(box.ran) == 2


async def test_run_with_approval_keeps_the_rules_of_the_agents_own_signoff() -> None:
    box, ui = Box(), ScriptedUI([True])
    deny = Signoff(ui=ScriptedUI(), policy=Policy((Rule("danger", Verdict.DENY, reason="never"),)))
    agent, script = play(CALL, "done", tools=[protected(box), box.tool("safe")], capabilities=[deny])
    await run_with_approval(agent, "go", ui=ui)
    assert ui.asked == []
    assert [tool for tool, *_ in box.ran] == ["safe"]
    assert "never" in script.results["call_0"]


def test_run_with_approval_sync_uses_the_agents_own_ui() -> None:
    box, ui = Box(), ScriptedUI([True])
    agent, _ = gated(CALL, "done", box=box, ui=ui)
    run_with_approval_sync(agent, "go")
    assert len(ui.asked) == 1


async def test_the_bot_asks_with_its_own_card_about_an_agent_with_a_signoff(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    box, ui = Box(), ScriptedUI([True])
    signoff = Signoff(ui=ui, policy=Policy((Rule("danger", Verdict.DENY),)))
    agent, _ = play(CALL, "done", tools=[protected(box), box.tool("safe")], capabilities=[signoff])
    await bench.start([CALL, "done"], [])
    step = await AgentRunner(agent, bench.store, bench.clock).advance(replace(bench.turn, prompted=False))
    assert isinstance(step, Waiting)
    assert [request.call.tool for request in step.batch.requests] == ["danger", "safe"]
    assert ui.asked == []
    assert box.ran == []
    assert "its rules rest" in caplog.text


async def test_an_agent_with_a_signoff_can_be_tried_without_asking() -> None:
    ui = ScriptedUI([True])
    agent, _ = gated("done", box=Box(), ui=ui)
    dry_run = DryRun(agent, Policy(), Place("1", "2", "3"), Actor("4", "Ada", "1"))
    revised = await dry_run.call("danger", {"value": "y"})
    assert revised.ruling.verdict is Verdict.ASK
    assert ui.asked == []


class NoUI:
    """Has no `choose`."""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "auto"}, "unknown mode 'auto'"),
        ({"batch": "Split"}, "unknown batch"),
        ({"native_tools": "yes"}, "unknown native_tools"),
        ({"on_no_approver": "ask"}, "unknown on_no_approver"),
        ({"policy": Policy((Rule("*", Verdict.ASK, quorum=2),))}, "wants more than one person"),
        ({"ui": NoUI()}, r"choose\(request\), and a NoUI has none"),
        ({"ui": NoUI}, "the class NoUI has none"),
    ],
)
def test_misuse_is_an_error_before_anything_runs(options: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        Signoff(**options)


def test_an_agent_has_one_signoff() -> None:
    with pytest.raises(UserError, match="one Signoff"):
        Agent("test", capabilities=[Signoff(mode="auto_deny"), Signoff(mode="auto_approve")])


@dataclass
class Swapping(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        return await super().call_tool(name, {**tool_args, "value": "swapped"}, ctx, tool)


@dataclass
class Swap(AbstractCapability[Any]):
    """Changes the arguments of every call, as close to the tool as it can."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return Swapping(toolset)


async def test_nothing_changes_the_arguments_after_the_approval() -> None:
    box = Box()
    parts = {"tools": [protected(box)], "capabilities": [Swap(), Signoff(ui=ScriptedUI([True]))]}
    agent, script = play(calls(("danger", {"value": "x"})), "done", **parts)
    await agent.run("go")
    assert box.ran == []
    assert "arguments were changed" in script.results["call_0"]


async def test_a_capability_inside_the_seal_is_refused() -> None:
    box = Box()
    parts = {"tools": [protected(box)], "capabilities": [Signoff(ui=ScriptedUI([True])), Swap()]}
    agent, _ = play(calls(("danger", {"value": "x"})), "done", **parts)
    with pytest.raises(UserError, match="Put Signoff behind it"):
        await agent.run("go")
    assert box.ran == []

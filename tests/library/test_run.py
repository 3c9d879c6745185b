"""Real agent runs: who is asked, what runs, and what the model is told."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    AsyncScriptedUI,
    Policy,
    Rule,
    ScriptedUI,
    Verdict,
    run_with_approval,
    run_with_approval_sync,
)
from tests.rigs.scripted import Answer, Box, calls
from tests.rigs.talk import external, play


def protected(box: Box, name: str = "danger") -> Tool[Any]:
    return Tool(box.tool(name), requires_approval=True)


async def test_an_approved_call_runs_once_with_the_arguments_that_were_shown() -> None:
    box, ui = Box(), ScriptedUI([True])
    agent, script = play(calls(("danger", '{"value": "x"}')), "done", tools=[protected(box)])
    result = await run_with_approval(agent, "go", ui=ui)
    assert result.output == "done"
    assert box.ran == [("danger", "x", None)]
    assert ui.asked[0].call.args == {"value": "x", "other": None}
    assert script.results == {"call_0": "danger did x"}
    assert [type(message).__name__ for message in result.new_messages()] == ["ModelRequest", "ModelResponse"] * 2


async def test_a_rejected_call_does_not_run_and_the_model_is_told_why() -> None:
    box = Box()
    agent, script = play(calls(("danger", {})), "done", tools=[protected(box)])
    result = await run_with_approval(agent, "go", ui=ScriptedUI([ApprovalDecision(False, "not today")]))
    assert result.output == "done"
    assert box.ran == []
    assert script.results == {"call_0": "Rejected by user: the call was not run. Reason: not today"}


async def test_a_tool_that_asks_by_itself_shows_its_metadata_and_then_runs_as_approved() -> None:
    approved: list[bool] = []

    def resize(ctx: RunContext[Any], gigabytes: int) -> str:
        if gigabytes > 100 and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "costs money", "diff": "-100\n+200"})
        approved.append(ctx.tool_call_approved)
        return "resized"

    ui = ScriptedUI([True])
    agent, _ = play(calls(("resize", {"gigabytes": 5})), calls(("resize", {"gigabytes": 200})), "done", tools=[resize])
    await run_with_approval(agent, "go", ui=ui)
    assert approved == [False, True]
    assert [(request.summary, request.preview) for request in ui.asked] == [("costs money", "-100\n+200")]


async def test_several_rounds_with_the_same_call_id() -> None:
    box, ui = Box(), ScriptedUI([True, False, True])
    answers: list[Answer] = [calls(("danger", {"value": str(n)}), ids=["call_0"]) for n in range(3)]
    agent, _ = play(*answers, "done", tools=[protected(box)])
    assert (await run_with_approval(agent, "go", ui=ui)).output == "done"
    assert [value for _, value, _ in box.ran] == ["0", "2"]


async def test_all_calls_of_a_response_are_decided_before_one_runs() -> None:
    box = Box()

    def look(_: Any) -> ApprovalDecision:
        assert box.ran == []
        return ApprovalDecision(True)

    agent, script = play(
        calls(("danger", {"value": "a"}), ("safe", {}), ("danger", {"value": "b"})),
        "done",
        tools=[protected(box), box.tool("safe")],
    )
    ui = ScriptedUI([look, False])
    await run_with_approval(agent, "go", ui=ui)
    assert sorted(box.ran) == [("danger", "a", None), ("safe", "default", None)]
    assert [request.call.tool for request in ui.asked] == ["danger", "danger"]
    assert sorted(script.results) == ["call_0", "call_1", "call_2"]


async def test_a_call_of_a_later_response_does_not_wait_for_an_earlier_one() -> None:
    box, ui = Box(), ScriptedUI([True])
    agent, _ = play(calls(("danger", {})), calls(("safe", {})), "done", tools=[protected(box), box.tool("safe")])
    await run_with_approval(agent, "go", ui=ui)
    assert [tool for tool, *_ in box.ran] == ["danger", "safe"]
    assert len(ui.asked) == 1


async def test_split_lets_the_others_run_unasked() -> None:
    box, ui = Box(), ScriptedUI([False])
    agent, _ = play(calls(("danger", {}), ("safe", {})), "done", tools=[protected(box), box.tool("safe")])
    await run_with_approval(agent, "go", ui=ui, batch="split")
    assert [tool for tool, *_ in box.ran] == ["safe"]
    assert [request.call.tool for request in ui.asked] == ["danger"]


async def test_a_held_call_whose_tool_asks_by_itself_is_asked_about_with_its_metadata() -> None:
    box = Box()

    def picky(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "picky"})
        box.ran.append(("picky",))
        return "ok"

    ui = ScriptedUI([True, False])
    agent, script = play(calls(("danger", {}), ("picky", {})), "done", tools=[protected(box), picky])
    await run_with_approval(agent, "go", ui=ui)
    assert [(request.call.tool, request.summary) for request in ui.asked] == [("danger", ""), ("picky", "picky")]
    assert box.ran == [("danger", "default", None)]
    assert script.results["call_1"].startswith("Rejected by user")


REMEMBER = ApprovalDecision(True, remember="session")


async def remembering(decision: ApprovalDecision, tool: str = "danger") -> ApprovalMemory:
    memory = ApprovalMemory()
    agent, _ = play(calls((tool, {})), "done", tools=[protected(Box(), tool)])
    await run_with_approval(agent, "go", ui=ScriptedUI([decision]), memory=memory)
    return memory


@pytest.mark.parametrize(
    ("options", "ran"),
    [
        ({"mode": "auto_deny"}, []),
        ({"mode": "auto_approve"}, ["danger", "safe"]),
        ({}, []),
        ({"on_no_approver": "approve"}, ["danger", "safe"]),
        ({"ui": ScriptedUI([]), "max_rounds": 0}, []),
    ],
)
@pytest.mark.parametrize("beside", [(), (("final_result", {"response": 1}),)])
async def test_a_held_call_follows_the_questions_where_nobody_is_asked(
    options: dict[str, Any], ran: list[str], beside: Any
) -> None:
    box = Box()
    agent, _ = play(
        calls(("danger", {}), ("safe", {}), *beside),
        calls(("final_result", {"response": 1})),
        tools=[protected(box), box.tool("safe")],
        output_type=int,
    )
    await run_with_approval(agent, "go", **options)
    assert sorted(tool for tool, *_ in box.ran) == ran


@pytest.mark.parametrize("approved", [True, False])
async def test_a_held_call_follows_a_question_that_memory_decides(approved: bool) -> None:
    box, ui = Box(), ScriptedUI([])
    memory = await remembering(ApprovalDecision(approved, remember="session"))
    agent, _ = play(calls(("danger", {}), ("safe", {})), "done", tools=[protected(box), box.tool("safe")])
    await run_with_approval(agent, "go", ui=ui, memory=memory)
    assert sorted(tool for tool, *_ in box.ran) == (["danger", "safe"] if approved else [])
    assert ui.asked == []


async def test_a_call_does_not_wait_beside_one_that_only_asks_people() -> None:
    box, ui = Box(), ScriptedUI([ApprovalDecision(True, answer={"value": "here"})])
    agent, _ = play(calls(("far", {}), ("safe", {})), "done", tools=[box.tool("safe")], toolsets=[external("far")])
    policy = Policy((Rule("safe", Verdict.ALLOW),), undeclared=Verdict.ASK)
    await run_with_approval(agent, "go", ui=ui, policy=policy)
    assert [tool for tool, *_ in box.ran] == ["safe"]
    assert [request.held for request in ui.asked] == [False]


async def test_a_call_waits_if_one_of_the_others_is_asked_about() -> None:
    box, ui = Box(), ScriptedUI([False])
    agent, _ = play(
        calls(("danger", {}), ("danger", {"value": "x"}), ("safe", {})),
        "done",
        tools=[protected(box), box.tool("safe")],
    )
    await run_with_approval(agent, "go", ui=ui, memory=await remembering(REMEMBER))
    assert [(request.call.args["value"], request.held) for request in ui.asked] == [("x", False)]
    assert sorted(tool for tool, *_ in box.ran) == ["danger", "safe"]


@pytest.mark.parametrize("beside", [(), (("final_result", {"response": 1}),)])
@pytest.mark.parametrize("first", ["danger", "safe"])
async def test_a_held_call_is_not_run_if_nothing_of_its_response_was_accepted(first: str, beside: Any) -> None:
    box, ui = Box(), ScriptedUI([False])
    names = ("danger", "safe") if first == "danger" else ("safe", "danger")
    agent, _ = play(
        calls(*((name, {}) for name in names), *beside),
        calls(("final_result", {"response": 1})),
        tools=[protected(box), box.tool("safe")],
        output_type=int,
    )
    result = await asyncio.wait_for(run_with_approval(agent, "go", ui=ui), 20)
    assert [request.call.tool for request in ui.asked] == ["danger"]
    assert box.ran == []
    parts = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert any(part.tool_name == "safe" and "you may call it again" in str(part.content) for part in parts)


@pytest.mark.parametrize("options", [{"ui": ScriptedUI([False])}, {}])
async def test_a_call_that_nobody_saw_is_not_approved_if_its_tool_asks_by_itself(options: dict[str, Any]) -> None:
    ran: list[bool] = []

    def picky(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "picky"})
        ran.append(True)
        return "ok"

    memory = await remembering(REMEMBER)
    agent, _ = play(calls(("danger", {}), ("picky", {})), "done", tools=[protected(Box()), picky])
    events: list[Any] = []
    await run_with_approval(agent, "go", memory=memory, on_event=events.append, **options)
    assert ran == []
    heard = [(event["how"], event["approved"]) for event in events if event["tool"] == "picky"]
    assert heard[0] == ("held", True)
    assert [approved for how, approved in heard if how != "held"] == [False]


async def test_approved_calls_run_concurrently() -> None:
    barrier = asyncio.Barrier(2)

    async def meet() -> str:
        await asyncio.wait_for(barrier.wait(), 10)
        return "met"

    agent, script = play(calls(("meet", {}), ("meet", {})), "done", tools=[Tool(meet, requires_approval=True)])
    await run_with_approval(agent, "go", ui=ScriptedUI([True, True]))
    assert script.results == {"call_0": "met", "call_1": "met"}


class Report(BaseModel):
    text: str


async def test_the_agent_keeps_its_own_output_type_and_validators() -> None:
    box = Box()
    agent, _ = play(
        calls(("danger", {})),
        calls(("final_result", {"text": "draft"})),
        calls(("final_result", {"text": "ok"})),
        tools=[protected(box)],
        output_type=Report,
    )

    @agent.output_validator
    def check(output: Report) -> Report:
        if output.text == "draft":
            raise ModelRetry("no drafts")
        return output

    result = await run_with_approval(agent, "go", ui=ScriptedUI([True]))
    assert result.output == Report(text="ok")
    assert len(box.ran) == 1


@pytest.mark.parametrize("order", [("danger", "final_result"), ("final_result", "danger")])
@pytest.mark.parametrize("strategy", ["graceful", "exhaustive"])
async def test_a_call_beside_the_final_result_is_asked_about_and_not_dropped(
    order: tuple[str, ...], strategy: Any
) -> None:
    args: dict[str, dict[str, Any]] = {"danger": {"value": "x"}, "final_result": {"text": "ok"}}
    for answer, ran in ((True, [("danger", "y", None)]), (False, [])):
        box = Box()
        ui = ScriptedUI([ApprovalDecision(answer, override_args={"value": "y"})])
        agent, _ = play(
            calls(*((name, args[name]) for name in order)),
            tools=[protected(box)],
            output_type=Report,
            end_strategy=strategy,
        )
        result = await run_with_approval(agent, "go", ui=ui)
        assert result.output == Report(text="ok")
        assert len(ui.asked) == 1
        assert box.ran == ran
        told = [part for part in result.all_messages()[-1].parts if getattr(part, "tool_name", "") == "danger"]
        assert len(told) == 1


async def test_an_agent_that_defers_to_its_caller_needs_no_caller() -> None:
    box = Box()
    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)], output_type=[str, DeferredToolRequests])
    assert (await run_with_approval(agent, "go", ui=ScriptedUI([True]))).output == "done"
    assert len(box.ran) == 1


async def test_the_ui_gives_the_results_of_external_calls() -> None:
    box, ui = Box(), ScriptedUI([ApprovalDecision(True, answer={"value": "done by hand"}), True])
    agent, script = play(calls(("far", {}), ("danger", {})), "done", tools=[protected(box)], toolsets=[external("far")])
    assert (await run_with_approval(agent, "go", ui=ui)).output == "done"
    assert script.results["call_0"] == "done by hand"
    assert len(box.ran) == 1


async def test_nobody_to_ask_rejects_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    agent, script = play(calls(("danger", {})), "done", tools=[protected(box)])
    assert (await run_with_approval(agent, "go")).output == "done"
    assert box.ran == []
    assert "nobody is there" in script.results["call_0"]
    assert "nobody is there to approve danger" in caplog.text


@pytest.mark.parametrize(("mode", "times"), [("auto_approve", 1), ("auto_deny", 0)])
async def test_modes(mode: Any, times: int) -> None:
    box, ui = Box(), ScriptedUI([])
    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)])
    await run_with_approval(agent, "go", ui=ui, mode=mode)
    assert len(box.ran) == times
    assert ui.asked == []


async def test_memory_answers_for_the_validated_arguments() -> None:
    box, memory = Box(), ApprovalMemory()
    ui = ScriptedUI([ApprovalDecision(True, remember="session")])
    spelt_out, left_out = {"value": "x", "other": None}, {"value": "x"}
    agent, _ = play(calls(("danger", left_out)), calls(("danger", spelt_out)), "done", tools=[protected(box)])
    await run_with_approval(agent, "go", ui=ui, memory=memory)
    assert len(box.ran) == 2
    assert len(ui.asked) == 1


async def test_rounds_are_bounded_and_then_nobody_is_asked() -> None:
    box, ui = Box(), ScriptedUI([True] * 5)
    answers: list[Answer] = [calls(("danger", {"value": str(n)}), ("danger", {"value": "z"})) for n in range(4)]
    agent, script = play(*answers, "done", tools=[protected(box)])
    assert (await run_with_approval(agent, "go", ui=ui, max_rounds=2)).output == "done"
    assert len(ui.asked) == 4
    assert len(box.ran) == 4
    assert "too often" in script.results["call_0"]


async def test_an_agent_that_shortens_its_history_is_counted_all_the_same() -> None:
    box, ui = Box(), ScriptedUI([True] * 5)
    agent, _ = play(
        calls(("danger", {"value": "0"}), ids=["a"]),
        calls(("safe", {}), ids=["b"]),
        calls(("danger", {"value": "1"}), ids=["c"]),
        "done",
        tools=[protected(box), box.tool("safe")],
        capabilities=[ProcessHistory(lambda messages: messages[-1:])],
    )
    await run_with_approval(agent, "go", ui=ui, max_rounds=1)
    assert [request.call.tool for request in ui.asked] == ["danger"]
    assert [tool for tool, *_ in box.ran] == ["danger", "safe"]


async def test_history_deps_and_limits_reach_the_agent() -> None:
    async def whoami(ctx: RunContext[str]) -> str:
        return ctx.deps

    agent, script = play("hello", calls(("whoami", {})), "done", tools=[Tool(whoami, requires_approval=True)])
    first = await run_with_approval(agent, "hi")
    ui = AsyncScriptedUI([True])
    second = await run_with_approval(agent, "who", ui=ui, deps="ada", message_history=first.all_messages())
    assert script.results == {"call_0": "ada"}
    assert len(second.all_messages()) == 6
    with pytest.raises(UsageLimitExceeded):
        await run_with_approval(agent, "x", usage_limits=UsageLimits(request_limit=0))


async def test_a_history_that_ends_in_open_calls_goes_on_at_those_calls() -> None:
    box, ui = Box(), ScriptedUI([True])
    agent, script = play(
        calls(("danger", {"value": "x"})), "done", tools=[protected(box)], output_type=[str, DeferredToolRequests]
    )
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    result = await run_with_approval(agent, message_history=paused.all_messages(), ui=ui)
    assert result.output == "done"
    assert box.ran == [("danger", "x", None)]
    assert len(script.asked) == 2


def test_the_sync_function_asks_in_the_callers_thread() -> None:
    box, where = Box(), list[Any]()

    def here(_: Any) -> ApprovalDecision:
        where.append(threading.current_thread())
        return ApprovalDecision(True)

    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)])
    assert run_with_approval_sync(agent, "go", ui=ScriptedUI([here])).output == "done"
    assert where == [threading.current_thread()]
    assert len(box.ran) == 1


def test_the_sync_function_takes_an_async_ui_too() -> None:
    box = Box()
    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)])
    run_with_approval_sync(agent, "go", ui=AsyncScriptedUI([True]))
    assert len(box.ran) == 1


async def test_a_tools_own_exception_ends_the_run_as_it_does_without_approvals() -> None:
    def fail() -> str:
        raise ZeroDivisionError

    agent, _ = play(calls(("fail", {})), "done", tools=[Tool(fail, requires_approval=True)])
    with pytest.raises(ZeroDivisionError):
        await run_with_approval(agent, "go", ui=ScriptedUI([True]))


async def test_a_streaming_handler_sees_the_run() -> None:
    box, seen = Box(), list[str]()

    async def watch(ctx: Any, events: Any) -> None:
        async for event in events:
            seen.append(type(event).__name__)

    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)])
    await run_with_approval(agent, "go", ui=ScriptedUI([True]), event_stream_handler=watch)
    assert len(box.ran) == 1
    assert "DeferredToolRequestsEvent" in seen
    assert "FunctionToolResultEvent" in seen


@dataclass
class Busy:
    """A UI that counts how many questions it is asked at once."""

    open: int = 0
    most: int = 0

    async def choose(self, request: Any) -> ApprovalDecision:
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.3)
        self.open -= 1
        return ApprovalDecision(True)


async def test_sub_agents_ask_through_the_same_ui_one_question_at_a_time() -> None:
    box, ui = Box(), Busy()

    async def delegate(name: str) -> str:
        child, _ = play(calls(("danger", {"value": name})), f"{name} done", tools=[protected(box)])
        return (await run_with_approval(child, "go", ui=ui)).output

    agent, script = play(calls(("delegate", {"name": "a"}), ("delegate", {"name": "b"})), "done", tools=[delegate])
    await run_with_approval(agent, "go", ui=ui)
    assert script.results == {"call_0": "a done", "call_1": "b done"}
    assert ui.most == 1
    assert len(box.ran) == 2


async def test_an_agent_inside_a_tool_asks_through_the_ui_of_the_run_without_being_changed() -> None:
    box, ui = Box(), ScriptedUI([True, False])
    answers = calls(("danger", {"value": "1"})), calls(("danger", {"value": "2"}), ("banned", {}))
    child, heard = play(*answers, "child done", tools=[protected(box), box.tool("banned")], name="helper")

    async def delegate() -> str:
        return (await child.run("go")).output

    agent, script = play(calls(("delegate", {})), "done", tools=[delegate])
    await run_with_approval(agent, "go", ui=ui, policy=Policy((Rule("banned", Verdict.DENY),)))
    assert [request.shown_tool for request in ui.asked] == ["helper › danger", "helper › danger"]
    assert box.ran == [("danger", "1", None)]
    assert "Rejected" in heard.results["call_0"]
    assert "Not allowed" in heard.results["call_1"]
    assert script.results == {"call_0": "child done"}


async def test_questions_of_agents_inside_tools_count_for_max_rounds() -> None:
    box, ui = Box(), ScriptedUI([True])
    child, _ = play(calls(("danger", {"value": "1"})), calls(("danger", {"value": "2"})), "end", tools=[protected(box)])

    async def delegate() -> str:
        return (await child.run("go")).output

    wanted = calls(("delegate", {})), calls(("danger", {"value": "3"}))
    agent, _ = play(*wanted, "done", tools=[delegate, protected(box)])
    await run_with_approval(agent, "go", ui=ui, max_rounds=1)
    assert box.ran == [("danger", "1", None)]


@dataclass
class Advised:
    """A UI that first runs its own agent to look into the request, and asks about that agent's calls too."""

    box: Box
    asked: list[str] = field(default_factory=list[str])

    def adviser(self) -> Agent[Any, Any]:
        return play(calls(("peek", {})), "looks fine", tools=[protected(self.box, "peek")])[0]

    async def choose(self, request: Any) -> ApprovalDecision:
        self.asked.append(request.call.tool)
        if request.call.tool == "danger":
            await run_with_approval(self.adviser(), "may it run?", ui=self)
        return ApprovalDecision(True)


class SyncAdvised(Advised):
    def choose(self, request: Any) -> Any:
        return asyncio.run(asyncio.wait_for(super().choose(request), 10))


@pytest.mark.parametrize("kind", [Advised, SyncAdvised])
async def test_a_ui_that_runs_an_agent_does_not_wait_for_itself(kind: type[Advised]) -> None:
    box = Box()
    ui = kind(box)
    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)])
    await asyncio.wait_for(run_with_approval(agent, "go", ui=ui), 20)
    assert ui.asked == ["danger", "peek"]
    assert [tool for tool, *_ in box.ran] == ["peek", "danger"]


async def test_an_agent_without_anything_to_ask_runs_as_ever() -> None:
    agent = Agent(TestModel(custom_output_text="hi"), tools=[])
    assert (await run_with_approval(agent, "go")).output == "hi"


@pytest.mark.parametrize("options", [{"batch": "Split"}, {"native_tools": "yes"}, {"mode": "auto"}])
async def test_a_misspelt_option_is_an_error(options: dict[str, Any]) -> None:
    agent, _ = play("done", tools=[])
    with pytest.raises(ValueError, match="unknown"):
        await run_with_approval(agent, "go", **options)

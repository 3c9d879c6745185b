"""Edits inside a run: the approved arguments run, are remembered and are announced, and siblings do not suffer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability

from signoff import ApprovalDecision, ApprovalMemory, ApprovalRequest, Preview, ScriptedUI, run_with_approval
from signoff.gate import tool_slots
from tests.rigs.scripted import calls
from tests.rigs.talk import play


def edited(n: int) -> ApprovalDecision:
    return ApprovalDecision(True, override_args={"n": n})


class Dial:
    """A tool `turn` that records every number it ran with, and raises for approval once if `twice` is set."""

    def __init__(self, *, twice: bool = False) -> None:
        self.ran: list[int] = []
        self.raises = twice

    def tool(self, metadata: dict[str, Any] | None = None, *, asks: bool = True) -> Tool[Any]:
        def turn(n: int) -> str:
            if self.raises:
                self.raises = False
                raise ApprovalRequired(metadata={"reason": "are you sure?"})
            self.ran.append(n)
            return f"turned to {n}"

        return Tool(turn, requires_approval=asks, metadata=metadata)


def rest() -> str:
    return "rested"


class DefersWhileValidated(AbstractCapability[Any]):
    """A capability that defers the value 1 when its arguments are validated, before the gate sees the call."""

    async def after_tool_validate(self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any) -> Any:
        if args["n"] == 1:
            raise ApprovalRequired
        return args


class DefersBeforeTheGate(AbstractCapability[Any]):
    """A capability that defers every call once, after it was validated."""

    async def before_tool_execute(self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any) -> Any:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return args


async def test_an_edit_that_another_hook_defers_is_refused_and_the_models_arguments_do_not_run() -> None:
    dial, events = Dial(), list[dict[str, Any]]()
    agent, script = play(calls(("turn", {"n": 9})), "done", tools=[dial.tool()], capabilities=[DefersWhileValidated()])
    await run_with_approval(agent, "go", ui=ScriptedUI([edited(1)]), on_event=events.append)
    assert dial.ran == []
    assert "do not fit the tool" in script.results["call_0"]
    assert [(event["approved"], event["override_args"]) for event in events] == [(False, None)]


async def test_an_accept_after_an_edit_is_remembered_for_the_edited_arguments() -> None:
    dial, memory = Dial(twice=True), ApprovalMemory()
    agent, _ = play(calls(("turn", {"n": 9})), "done", tools=[dial.tool()])
    ui = ScriptedUI([edited(1), ApprovalDecision(True, remember="session")])
    await run_with_approval(agent, "go", ui=ui, memory=memory)
    assert dial.ran == [1]
    assert [entry.args for entry in memory.list()] == [{"n": 1}]


async def test_a_second_edit_still_announces_the_models_own_arguments() -> None:
    dial, events = Dial(twice=True), list[dict[str, Any]]()
    agent, _ = play(calls(("turn", {"n": 9})), "done", tools=[dial.tool()])
    await run_with_approval(agent, "go", ui=ScriptedUI([edited(1), edited(2)]), on_event=events.append)
    assert dial.ran == [2]
    assert [(event["arguments"], event["override_args"]) for event in events] == [
        ({"n": 9}, {"n": 1}),
        ({"n": 9}, {"n": 2}),
    ]


async def test_a_held_call_runs_beside_a_question_that_no_longer_had_to_ask_once_edited() -> None:
    dial = Dial()
    tool = dial.tool({"approval": lambda args, context: args["n"] > 5}, asks=False)
    agent, script = play(calls(("turn", {"n": 9}), ("rest", {})), "done", tools=[tool, rest])
    await run_with_approval(agent, "go", ui=ScriptedUI([edited(1)]))
    assert dial.ran == [1]
    assert script.results["call_1"] == "rested"


@pytest.mark.parametrize("hook", [False, True], ids=["edited", "deferred by a hook"])
async def test_a_call_with_a_preview_is_asked_about_once_and_shown_with_it(hook: bool) -> None:
    async def preview(ctx: RunContext[Any], n: int) -> Preview:
        return Preview(f"the dial goes to {n}", {"dial": f"was {n}"})

    dial, ui = Dial(), ScriptedUI([True if hook else edited(1)])
    capabilities = [DefersBeforeTheGate()] if hook else []
    tool = dial.tool({"preview": preview})
    agent, _ = play(calls(("turn", {"n": 9})), "done", tools=[tool], capabilities=capabilities)
    await run_with_approval(agent, "go", ui=ui)
    assert dial.ran == [9 if hook else 1]
    assert [request.preview for request in ui.asked] == ["the dial goes to 9"]


async def test_a_hook_deferred_call_whose_preview_fails_is_refused() -> None:
    def preview(ctx: RunContext[Any], n: int) -> str:
        raise OSError("no dial")

    dial, ui = Dial(), ScriptedUI([True])
    capabilities = [DefersBeforeTheGate()]
    agent, script = play(
        calls(("turn", {"n": 9})), "done", tools=[dial.tool({"preview": preview})], capabilities=capabilities
    )
    await run_with_approval(agent, "go", ui=ui)
    assert dial.ran == []
    assert ui.asked == []
    assert "its preview failed" in script.results["call_0"]


# A response that also calls an output tool: its questions are asked while its other calls are under way


class SlowUI:
    def __init__(self, decision: ApprovalDecision) -> None:
        self.decision = decision

    async def choose(self, request: ApprovalRequest) -> ApprovalDecision:
        await asyncio.sleep(1)
        return self.decision


@pytest.mark.slow
@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("batch", ["hold", "split"])
@pytest.mark.parametrize("decision", [ApprovalDecision(True), edited(3)], ids=["accepted", "edited"])
async def test_siblings_neither_time_out_nor_are_rejected_while_a_person_is_asked(
    independent: bool, batch: Any, decision: ApprovalDecision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_slots, "CHECK_SECONDS", 0.5)
    dial, rested = Dial(), list[str]()

    def rest() -> str:
        rested.append("rested")
        return "rested"

    response = calls(("turn", {"n": 9}), ("rest", {}), ("final_result", {"response": 7}))
    tool = dial.tool({"independent": independent})
    agent, _ = play(response, tools=[tool, rest], output_type=int, end_strategy="exhaustive")
    result = await run_with_approval(agent, "go", ui=SlowUI(decision), batch=batch)
    assert result.output == 7
    assert dial.ran == [3 if decision.override_args else 9]
    assert rested == ["rested"]

"""Only what was shown runs, whatever hooks, handlers, validators and models do to a call."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel
from pydantic_ai import ApprovalRequired, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, HandleDeferredToolCalls, NativeTool
from pydantic_ai.exceptions import CallDeferred, UserError
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset

from signoff import ApprovalDecision, ApprovalMemory, Policy, Rule, ScriptedUI, Verdict, run_with_approval
from tests.rigs.scripted import Box, calls
from tests.rigs.talk import play


def protected(box: Box) -> Tool[Any]:
    return Tool(box.tool("danger"), requires_approval=True)


def at_most_fifty(value: int) -> int:
    return min(value, 50)


async def test_the_approver_sees_the_validated_arguments() -> None:
    ran: list[int] = []

    def pay(amount: Annotated[int, AfterValidator(at_most_fifty)], currency: str = "EUR") -> str:
        ran.append(amount)
        return "paid"

    ui = ScriptedUI([True])
    agent, _ = play(calls(("pay", {"amount": "100"})), "done", tools=[Tool(pay, requires_approval=True)])
    await run_with_approval(agent, "go", ui=ui)
    assert ui.asked[0].call.args == {"amount": 50, "currency": "EUR"}
    assert ran == [50]


_drift = itertools.count(1)


def drift(_: int) -> int:
    return next(_drift)


async def test_arguments_that_come_out_differently_each_time_are_refused() -> None:
    ran: list[int] = []

    def pay(amount: Annotated[int, AfterValidator(drift)]) -> str:
        ran.append(amount)
        return "paid"

    ui = ScriptedUI([True])
    agent, script = play(calls(("pay", {"amount": 1})), "done", tools=[Tool(pay, requires_approval=True)])
    await run_with_approval(agent, "go", ui=ui)
    assert ui.asked == []
    assert ran == []
    assert "validating them a second time gives other arguments" in script.results["call_0"]


@dataclass
class Meddler(AbstractCapability[Any]):
    """Changes the arguments of a call, as a hook or as a wrapper around the toolset."""

    where: str

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        return {**args, "value": "meddled"} if self.where == "hook" else args

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        return MeddlingToolset(toolset) if self.where == "wrapper" else None


@dataclass
class MeddlingToolset(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {**tool_args, "value": "meddled"}, ctx, tool)


async def test_what_a_hook_makes_of_the_arguments_is_what_is_shown() -> None:
    box, ui = Box(), ScriptedUI([True])
    agent, _ = play(calls(("danger", {"value": "x"})), "done", tools=[protected(box)], capabilities=[Meddler("hook")])
    await run_with_approval(agent, "go", ui=ui)
    assert ui.asked[0].call.args["value"] == "meddled"
    assert box.ran == [("danger", "meddled", None)]


async def test_arguments_that_are_changed_behind_the_gate_are_refused() -> None:
    box, ui = Box(), ScriptedUI([True])
    agent, script = play(calls(("danger", {"value": "x"})), "done", tools=[protected(box)])
    await run_with_approval(agent, "go", ui=ui, capabilities=[Meddler("wrapper")])
    assert ui.asked[0].call.args["value"] == "x"
    assert box.ran == []
    assert "changed" in script.results["call_0"]


@dataclass
class Eager(HandleDeferredToolCalls[Any]):
    """The agent's own handler, which asks to run first."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")


async def approve_all(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
    return requests.build_results(approve_all=True)


@pytest.mark.parametrize("kind", [HandleDeferredToolCalls, Eager])
async def test_a_handler_of_the_agents_own_approves_nothing(kind: Any) -> None:
    box, ui = Box(), ScriptedUI([False])
    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)], capabilities=[kind(handler=approve_all)])
    await run_with_approval(agent, "go", ui=ui)
    assert len(ui.asked) == 1
    assert box.ran == []


class Twice(AbstractCapability[Any]):
    """Runs its inner handler twice, as a retrying layer would."""

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        await handler(args)
        return await handler(args)


async def test_an_approval_is_used_up_by_one_execution() -> None:
    box, ui = Box(), ScriptedUI([True, False])
    agent, _ = play(calls(("danger", {})), "done", tools=[protected(box)], capabilities=[Twice()])
    await run_with_approval(agent, "go", ui=ui)
    assert len(ui.asked) == 2
    assert len(box.ran) == 1


async def test_a_validator_that_asks_shows_validated_arguments() -> None:
    box, ui = Box(), ScriptedUI([True])

    def check(ctx: RunContext[Any], value: str = "default", other: str | None = None) -> None:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "the validator asks"})

    agent, _ = play(calls(("look", "{}")), "done", tools=[Tool(box.tool("look"), args_validator=check)])
    await run_with_approval(agent, "go", ui=ui)
    assert (ui.asked[0].summary, ui.asked[0].call.args) == ("the validator asks", {"value": "default", "other": None})
    assert ui.asked[0].why == "the tool itself asks, for these arguments"
    assert len(box.ran) == 1


async def test_a_toolset_that_asks_is_asked_about() -> None:
    box, ui = Box(), ScriptedUI([False])
    guarded = FunctionToolset([box.tool("look")]).approval_required(lambda ctx, tool, args: args["value"] == "x")
    agent, _ = play(calls(("look", {"value": "x"})), "done", tools=[], toolsets=[guarded])
    await run_with_approval(agent, "go", ui=ui)
    assert len(ui.asked) == 1
    assert box.ran == []


async def test_a_tool_that_never_stops_asking_is_not_asked_about_for_ever() -> None:
    def nag() -> str:
        raise ApprovalRequired

    ui = ScriptedUI([True] * 9)
    agent, script = play(calls(("nag", {})), "done", tools=[nag])
    assert (await run_with_approval(agent, "go", ui=ui)).output == "done"
    assert len(ui.asked) == 1
    assert "asks again although it was approved" in script.results["call_0"]


async def test_an_approval_is_no_answer_for_a_tool_that_runs_elsewhere() -> None:
    def far() -> str:
        raise CallDeferred

    agent, script = play(calls(("far", {})), "done", tools=[Tool(far, requires_approval=True)])
    assert (await run_with_approval(agent, "go", ui=ScriptedUI([True, True]))).output == "done"
    assert "there is no answer" in script.results["call_0"]


async def test_the_same_id_on_both_sides_of_a_final_result_runs_nothing() -> None:
    box, ui = Box(), ScriptedUI([True, True])
    response = calls(("danger", {"value": "a"}), ("final_result", {"response": 1}), ("danger", {"value": "b"}))
    for part in response.tool_calls[::2]:
        part.tool_call_id = "same"
    agent, _ = play(response, tools=[protected(box)], output_type=int)
    assert (await run_with_approval(agent, "go", ui=ui)).output == 1
    assert box.ran == []
    assert ui.asked == []


async def test_arguments_that_cannot_be_shown_do_not_run() -> None:
    ran: list[Any] = []

    def store(value: float) -> str:
        ran.append(value)
        return "stored"

    ui = ScriptedUI([True])
    agent, script = play(calls(("store", {"value": "NaN"})), "done", tools=[Tool(store, requires_approval=True)])
    await run_with_approval(agent, "go", ui=ui)
    assert ran == []
    assert ui.asked == []
    assert "cannot be shown" in script.results["call_0"]


async def test_tools_that_the_provider_executes_are_refused_unless_allowed() -> None:
    agent, _ = play("done", tools=[], capabilities=[NativeTool(WebSearchTool())])
    with pytest.raises(UserError, match="bypass every approval"):
        await run_with_approval(agent, "go")
    assert (await run_with_approval(agent, "go", native_tools="allow")).output == "done"


def pay_tool(ran: list[Any]) -> Tool[Any]:
    def pay(amount: int, currency: str = "EUR") -> str:
        ran.append((amount, currency))
        return "paid"

    return Tool(pay, requires_approval=True)


async def test_edited_arguments_run_validated_and_are_remembered_as_they_ran() -> None:
    ran: list[Any] = []
    events: list[Any] = []
    memory = ApprovalMemory()
    ui = ScriptedUI([ApprovalDecision(True, override_args={"amount": "5"}, remember="session"), False])
    agent, script = play(
        calls(("pay", {"amount": 100})),
        calls(("pay", {"amount": 100})),
        calls(("pay", {"amount": 5})),
        "done",
        tools=[pay_tool(ran)],
    )
    await run_with_approval(agent, "go", ui=ui, memory=memory, on_event=events.append)
    assert ran == [(5, "EUR"), (5, "EUR")]
    assert [request.call.args["amount"] for request in ui.asked] == [100, 100]
    assert [entry.args for entry in memory.list()] == [{"amount": 5, "currency": "EUR"}]
    assert events[0]["arguments"] == {"amount": 100, "currency": "EUR"}
    assert events[0]["override_args"] == {"amount": 5, "currency": "EUR"}
    assert script.results == {"call_0": "paid"}


class Order(BaseModel):
    amount: int
    currency: str = "EUR"


async def test_arguments_in_one_model_are_shown_and_edited_as_the_schema_has_them() -> None:
    ran: list[Order] = []

    def order(order: Order) -> str:
        ran.append(order)
        return "ordered"

    ui = ScriptedUI([lambda request: ApprovalDecision(True, override_args={**request.call.args, "amount": 5})])
    agent, _ = play(calls(("order", {"amount": 100})), "done", tools=[Tool(order, requires_approval=True)])
    await run_with_approval(agent, "go", ui=ui)
    assert ui.asked[0].call.args == {"amount": 100, "currency": "EUR"}
    assert ran == [Order(amount=5)]


@pytest.mark.parametrize("edited", [{"amount": "a lot"}, {}, {"amount": 1, "to": "eve"}])
async def test_edited_arguments_that_do_not_fit_the_tool_are_rejected(edited: dict[str, Any]) -> None:
    ran: list[Any] = []
    memory = ApprovalMemory()
    ui = ScriptedUI([ApprovalDecision(True, override_args=edited, remember="session")])
    agent, script = play(calls(("pay", {"amount": 100})), "done", tools=[pay_tool(ran)])
    assert (await run_with_approval(agent, "go", ui=ui, memory=memory)).output == "done"
    assert ran == []
    assert "do not fit the tool" in script.results["call_0"]
    assert memory.list() == ()


async def test_edited_arguments_pass_the_tools_own_validator() -> None:
    ran: list[Any] = []

    def check(ctx: RunContext[Any], amount: int, currency: str = "EUR") -> None:
        if amount > 1000:
            raise ModelRetry("too much")

    tool = pay_tool(ran)
    tool.args_validator = check
    ui = ScriptedUI([ApprovalDecision(True, override_args={"amount": 5000})])
    agent, script = play(calls(("pay", {"amount": 100})), "done", tools=[tool])
    await run_with_approval(agent, "go", ui=ui)
    assert ran == []
    assert "too much" in script.results["call_0"]


def rule(verdict: Verdict, **when: str) -> Rule:
    return Rule("pay", verdict, {name: (glob,) for name, glob in when.items()}, reason="house rule")


@pytest.mark.parametrize("beside", [(), (("final_result", {"response": 1}),)])
async def test_edited_arguments_pass_the_policy(beside: Any) -> None:
    ran: list[Any] = []
    events: list[Any] = []
    memory = ApprovalMemory()
    edit = ApprovalDecision(True, override_args={"amount": 5, "currency": "USD"}, remember="session")
    agent, _ = play(
        calls(("pay", {"amount": 5}), *beside),
        calls(("final_result", {"response": 1})),
        tools=[pay_tool(ran)],
        output_type=int,
    )
    policy = Policy((rule(Verdict.DENY, currency="USD"),))
    result = await run_with_approval(
        agent, "go", ui=ScriptedUI([edit]), memory=memory, policy=policy, on_event=events.append
    )
    assert result.output == 1
    assert ran == []
    assert [(event["approved"], event["how"], event["note"]) for event in events] == [(False, "policy", "house rule")]
    assert memory.list() == ()


@pytest.mark.parametrize("mode", ["interactive", "auto_approve"])
async def test_a_deny_rule_wins_over_everything(mode: Any) -> None:
    ran: list[Any] = []
    events: list[Any] = []
    ui = ScriptedUI([True])
    agent, script = play(calls(("pay", {"amount": 5})), "done", tools=[pay_tool(ran)])
    policy = Policy((rule(Verdict.DENY), rule(Verdict.ALLOW)))
    await run_with_approval(agent, "go", ui=ui, mode=mode, policy=policy, on_event=events.append)
    assert ran == []
    assert ui.asked == []
    assert script.results == {"call_0": "Not allowed: house rule. The call was not run."}
    assert [(event["approved"], event["by"], event["how"]) for event in events] == [(False, None, "policy")]


async def test_rules_see_validated_arguments_and_allow_or_ask() -> None:
    ran: list[Any] = []
    ui = ScriptedUI([False])
    policy = Policy((rule(Verdict.ALLOW, currency="EUR"), rule(Verdict.ASK, amount="1??")))
    agent, _ = play(calls(("pay", {"amount": 5})), calls(("pay", {"amount": "100"})), "done", tools=[pay_tool(ran)])
    await run_with_approval(agent, "go", ui=ui, policy=policy)
    assert ran == [(5, "EUR")]
    assert [(request.call.args["amount"], request.why) for request in ui.asked] == [(100, "house rule")]


async def test_a_predicate_of_the_tool_decides_what_asks() -> None:
    box, ui = Box(), ScriptedUI([False])
    tool = Tool(box.tool("look"), metadata={"approval": lambda args, context: args["value"] == "x"})
    agent, _ = play(calls(("look", {"value": "y"})), calls(("look", {"value": "x"})), "done", tools=[tool])
    await run_with_approval(agent, "go", ui=ui)
    assert box.ran == [("look", "y", None)]
    assert len(ui.asked) == 1


async def test_undeclared_tools_may_be_made_to_ask() -> None:
    box, ui = Box(), ScriptedUI([False])
    agent, _ = play(calls(("look", {})), "done", tools=[box.tool("look")])
    await run_with_approval(agent, "go", ui=ui, policy=Policy(undeclared=Verdict.ASK))
    assert box.ran == []


@pytest.mark.parametrize("more", [{"quorum": 2}, {"four_eyes": True}])
async def test_a_rule_that_wants_several_people_is_refused_before_anything_runs(more: dict[str, Any]) -> None:
    agent, script = play("done", tools=[])
    with pytest.raises(ValueError, match="more than one person"):
        await run_with_approval(agent, "go", policy=Policy((Rule("*", Verdict.ASK, **more),)))
    assert script.asked == []

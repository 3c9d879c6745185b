"""Agents that an agent's other code runs: output functions, validators, previews. The rules hold for them, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool

from signoff import ApprovalDecision, ApprovalRequest, Signoff
from signoff.agent.runner import AgentRunner, Extras
from signoff.approvals.model import Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.turns.model import TurnState
from tests.rigs.gate_bench import Bench, protected
from tests.rigs.scripted import Answer, Box, Script, calls

NO_FREE = Policy((Rule("free", Verdict.DENY),))
Run = Callable[[str], Awaitable[str]]


def child(box: Box) -> tuple[Run, Script]:
    """Return how to run an agent that makes a denied call, a call that asks and then one that is allowed."""
    first = calls(("free", {"value": "denied"}), ("danger", {"value": "asks"}))
    script = Script([first, calls(("harmless", {"value": "allowed"})), "the end"])
    agent = Agent(script.model(), name="kid", tools=[box.tool("free"), protected(box), box.tool("harmless")])

    async def run(prompt: str) -> str:
        return (await agent.run(prompt)).output

    return run, script


def from_an_output_function(run: Run, box: Box) -> tuple[list[Answer], dict[str, Any]]:
    async def hand_off(topic: str) -> str:
        return await run(topic)

    return [calls(("final_result", {"topic": "t"}))], {"output_type": hand_off}


def from_an_arguments_validator(run: Run, box: Box) -> tuple[list[Answer], dict[str, Any]]:
    async def check(ctx: RunContext[Any], value: str, other: str | None = None) -> None:
        await run(value)

    return [calls(("own", {"value": "t"})), "done"], {"tools": [Tool(box.tool("own"), args_validator=check)]}


def from_a_condition(run: Run, box: Box) -> tuple[list[Answer], dict[str, Any]]:
    async def condition(args: Any, context: Any) -> bool:
        return not await run("t")

    return [calls(("own", {"value": "t"})), "done"], {
        "tools": [Tool(box.tool("own"), metadata={"approval": condition})]
    }


async def advance(bench: Bench, agent: Agent[Any, Any]) -> None:
    bench.runner = AgentRunner(agent, bench.store, bench.clock, policy=NO_FREE, extras=Extras(own_output=True))
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    await bench.advance()


@pytest.mark.parametrize("place", [from_an_output_function, from_an_arguments_validator, from_a_condition])
async def test_an_agent_that_no_tool_runs_passes_the_gate_and_asks_nobody(bench: Bench, place: Any) -> None:
    """Attack row 49."""
    run, script = child(bench.box)
    answers, options = place(run, bench.box)
    await advance(bench, Agent(Script(answers).model(), **options))
    assert [value for tool, value, _ in bench.box.ran if tool != "own"] == ["allowed"]
    told = str(script.asked[1][-1])
    assert "Not allowed" in told
    assert "nobody can be asked" in told
    given = await bench.store.run(lambda tx: tx.step_input(bench.turn))
    assert given.inner_requests >= 3, "its model requests count for the turn"


async def test_an_output_validator_may_run_an_agent(bench: Bench) -> None:
    run, _ = child(bench.box)
    agent = Agent(Script(["text"]).model())

    @agent.output_validator
    async def check(output: str) -> str:
        return await run(output)

    await advance(bench, agent)
    assert bench.box.ran == [("harmless", "allowed", None)]


class Asked:
    def __init__(self) -> None:
        self.tools: list[str] = []

    async def choose(self, request: ApprovalRequest) -> ApprovalDecision:
        self.tools.append(request.shown_tool)
        return ApprovalDecision(True)


async def test_the_library_asks_about_an_agent_of_an_output_function() -> None:
    box, ui = Box(), Asked()
    run, _ = child(box)
    answers, options = from_an_output_function(run, box)
    agent = Agent(Script(answers).model(), capabilities=[Signoff(ui=ui, policy=NO_FREE)], **options)
    assert (await agent.run("go")).output.strip() == "the end"
    assert ui.tools == ["kid › danger"]
    assert sorted(value for _, value, _ in box.ran) == ["allowed", "asks"]

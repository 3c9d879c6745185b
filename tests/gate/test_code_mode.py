"""Tools of pydantic-ai-harness that call other tools or run agents: each call inside them passes the gate."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai_harness.code_mode import CodeMode
from pydantic_ai_harness.subagents import SubAgent, SubAgents

from signoff import ApprovalDecision, ApprovalRequest, run_with_approval
from signoff.agent.runner import AgentRunner, Extras
from signoff.approvals.clicks import Click
from signoff.approvals.model import Choice, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.turns.model import Finished, Step, TurnState
from tests.conftest import ADA, PLACE
from tests.rigs.gate_bench import Bench, batch_of, protected
from tests.rigs.scripted import Box, Script, calls

CODE = """
import asyncio
first = await free(value="0")
second, third = await asyncio.gather(danger(value="1"), danger(value="2"))
fourth = await danger(value=third)
[first, second, third, fourth]
"""


def shown(step: Step) -> list[str]:
    return [f"{request.shown_tool} {request.call.args['value']}" for request in batch_of(step).requests]


def tools(box: Box) -> list[Any]:
    return [protected(box), box.tool("free")]


def in_code(code: str) -> Any:
    return calls(("run_code", {"code": code}))


async def test_each_call_of_the_code_passes_the_gate_and_runs_once(bench: Bench) -> None:
    step = await bench.start([in_code(CODE), "done"], tools(bench.box), capabilities=[CodeMode()])
    assert shown(step) == ["run_code › danger 1", "run_code › danger 2"]
    assert bench.box.ran == [("free", "0", None)]
    # Another process takes over.
    assert bench.runner
    again = Agent(bench.script.model(), tools=tools(bench.box), capabilities=[CodeMode()])
    bench.runner = AgentRunner(again, bench.store, bench.clock)
    step = await bench.decide(step, Choice.ACCEPT)
    assert shown(step) == ["run_code › danger danger did 2"]
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert [value for _, value, _ in bench.box.ran] == ["0", "1", "2", "danger did 2"]
    told = '["free did 0","danger did 1","danger did 2","danger did danger did 2"]'
    assert bench.script.results == {"call_0": told}
    assert len(bench.script.asked) == 2


async def test_the_code_mode_of_a_plugin_may_call_tools_that_ask(bench: Bench) -> None:
    bench.script = Script([in_code("await danger(value='1')"), "done"])
    agent = Agent(bench.script.model(), tools=tools(bench.box))
    bench.runner = AgentRunner(agent, bench.store, bench.clock, extras=Extras(capabilities=(CodeMode(),)))
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    step = await bench.advance()
    assert shown(step) == ["run_code › danger 1"]
    assert isinstance(await bench.decide(step, Choice.ACCEPT), Finished)
    assert bench.script.results == {"call_0": "danger did 1"}


async def test_the_code_is_told_about_calls_that_were_denied_or_rejected(bench: Bench) -> None:
    code = """
said = []
try:
    await free(value="x")
except RuntimeError as error:
    said.append(str(error))
try:
    await danger(value="x")
except RuntimeError as error:
    said.append(str(error))
said
"""
    policy = Policy((Rule("free", Verdict.DENY),))
    step = await bench.start([in_code(code), "done"], tools(bench.box), capabilities=[CodeMode()], policy=policy)
    step = await bench.decide(step, Choice.REJECT)
    assert isinstance(step, Finished)
    assert bench.box.ran == []
    told = bench.script.results["call_0"]
    assert "Not allowed" in told
    assert "Rejected by user Ada" in told


async def test_a_rule_about_the_code_itself_holds(bench: Bench) -> None:
    policy = Policy((Rule("run_code", Verdict.DENY),))
    await bench.start([in_code(CODE), "done"], tools(bench.box), capabilities=[CodeMode()], policy=policy)
    assert bench.box.ran == []
    assert "Not allowed" in bench.script.results["call_0"]


async def test_code_that_was_approved_is_not_asked_about_again(bench: Bench) -> None:
    policy = Policy((Rule("run_code", Verdict.ASK),))
    step = await bench.start([in_code(CODE), "done"], tools(bench.box), capabilities=[CodeMode()], policy=policy)
    cards: list[list[str]] = []
    while not isinstance(step, Finished):
        cards.append([request.shown_tool for request in batch_of(step).requests])
        step = await bench.decide(step, Choice.ACCEPT)
    assert cards == [["run_code"], ["run_code › danger"] * 2, ["run_code › danger"]]
    assert len(bench.box.ran) == 4


async def test_code_that_makes_other_calls_the_second_time_runs_none_of_them_twice(bench: Bench) -> None:
    def chance() -> str:
        return str(random.random())

    code = """
said = ""
try:
    await free(value=await chance())
    await danger(value="x")
except Exception as error:
    said = str(error)
said
"""

    def unsteady(value: str) -> str:
        bench.box.ran.append(("free", value, None))
        return value

    unsteady.__name__ = "free"
    # The record of `chance` is thrown away between the two runs: its result changes, as that of a clock would.
    step = await bench.start(
        [in_code(code), "done"], [protected(bench.box), unsteady, chance], capabilities=[CodeMode()]
    )
    first = batch_of(step).requests[0].call.key
    gone = first.__class__(first.conversation, first.position, "call_0__1")
    await bench.store.run(lambda tx: tx.drop_call(gone))
    await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel))
    await bench.advance()
    assert len(bench.box.ran) == 1
    assert "another call" in str(bench.script.asked[-1][-1])


async def test_the_library_asks_about_each_call_of_the_code() -> None:
    box, asked = Box(), list[str]()

    class Yes:
        def choose(self, request: ApprovalRequest) -> ApprovalDecision:
            asked.append(str(request.call.args["value"]))
            return ApprovalDecision(True)

    script = Script([in_code(CODE), "done"])
    agent = Agent(script.model(), tools=tools(box), capabilities=[CodeMode()])
    await run_with_approval(agent, "go", ui=Yes())
    assert sorted(asked) == ["1", "2", "danger did 2"]
    assert len(box.ran) == 4


async def test_sub_agents_of_the_harness_share_one_card(bench: Bench) -> None:
    scripts = [Script([calls(("danger", {"value": name})), f"{name} done"]) for name in ("researcher", "reviewer")]
    agents = [
        SubAgent(Agent(script.model(), name=name, tools=tools(bench.box)))
        for name, script in zip(("researcher", "reviewer"), scripts, strict=True)
    ]
    wanted = calls(
        ("delegate_task", {"agent_name": "researcher", "task": "t"}),
        ("danger", {"value": "own"}),
        ("delegate_task", {"agent_name": "reviewer", "task": "t"}),
    )
    step = await bench.start([wanted, "done"], tools(bench.box), capabilities=[SubAgents(agents=agents)])
    assert shown(step) == ["researcher › danger researcher", "danger own", "reviewer › danger reviewer"]
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert len(bench.box.ran) == 3
    assert [len(script.asked) for script in scripts] == [2, 2]
    assert bench.script.results["call_0"] == "researcher done"


async def test_code_that_fails_is_explained_and_may_be_corrected(bench: Bench) -> None:
    step = await bench.start([in_code("1 / 0"), in_code("6 * 7"), "done"], tools(bench.box), capabilities=[CodeMode()])
    assert isinstance(step, Finished)
    explained = str(bench.script.asked[1][-1])
    assert "ZeroDivisionError" in explained
    assert "ToolRetryError" not in explained
    assert bench.script.results == {"call_0": "42"}


@pytest.mark.parametrize("early", [{"eager": True}, {"speculate": ["danger", "free"]}])
async def test_code_that_would_start_before_the_gate_knows_of_it_runs_no_tool(bench: Bench, early: Any) -> None:
    await bench.start([in_code(CODE), "done"], tools(bench.box), capabilities=[CodeMode(**early)])
    assert bench.box.ran == []

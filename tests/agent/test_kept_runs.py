"""Runs that wait in memory for a decision: when they are kept, and that they go on as a run from the store would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelOverloadedError
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from signoff.agent.kept_runs import KeptRuns, can_be_kept, is_plain_text
from signoff.agent.runner import AgentRunner
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import Choice, Ruling, ToolCall, Verdict
from signoff.approvals.policy import Context, Declaration, Policy, Rule
from signoff.gate.tool_slots import ToolSlots
from signoff.store import Store
from signoff.turns.model import Finished, Step, TurnState, Waiting
from signoff.turns.progress import Unseen
from tests.conftest import ADA, PLACE, HandClock, make_turn
from tests.rigs.gate_bench import Bench, batch_of, edit, protected
from tests.rigs.scripted import Answer, Box, Script, calls

ASK: Answer = calls(("danger", {"value": "x"}))


class CountingAgent(Agent[Any, Any]):
    """Counts its runs."""

    runs = 0

    async def run(self, *args: Any, **options: Any) -> Any:
        self.runs += 1
        return await super().run(*args, **options)


async def begun(bench: Bench, answers: list[Answer], tools: list[Any], **fields: Any) -> tuple[CountingAgent, Step]:
    """Start the turn with an agent that counts its runs."""
    bench.script = Script(answers)
    agent = CountingAgent(bench.script.model(), tools=tools)
    bench.runner = AgentRunner(agent, bench.store, bench.clock, **fields)
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    return agent, await bench.advance()


@pytest.fixture
def one(store: Store, clock: HandClock) -> Bench:
    """A bench that keeps runs."""
    return Bench(store, clock, Desk(store, clock))


def waiting_runs() -> list[str]:
    """Return the runs of this loop that have not ended."""
    return [task.get_name() for task in asyncio.all_tasks() if "_output" in repr(task.get_coro())]


async def settle_down() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# When a run is kept


async def test_a_decision_continues_the_run_that_waits_for_it(one: Bench) -> None:
    agent, step = await begun(one, [ASK, ASK, "done"], [protected(one.box)])
    step = await one.decide(step, Choice.ACCEPT)
    assert isinstance(await one.decide(step, Choice.REJECT), Finished)
    assert agent.runs == 1
    assert one.box.ran == [("danger", "x", None)]
    assert waiting_runs() == []


@pytest.mark.parametrize("kept", [KeptRuns(most=0), KeptRuns(seconds=0.0)], ids=["none is kept", "it took too long"])
async def test_a_run_that_was_dropped_is_run_again_from_the_store(one: Bench, kept: KeptRuns) -> None:
    agent, step = await begun(one, [ASK, "done"], [protected(one.box)], kept=kept)
    await asyncio.sleep(0.01)
    assert waiting_runs() == []
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert agent.runs == 2
    assert one.box.ran == [("danger", "x", None)]
    assert len(one.script.asked) == 2


async def test_the_oldest_run_is_dropped_for_a_new_one(store: Store, clock: HandClock) -> None:
    kept, box = KeptRuns(most=1), Box()
    agent = CountingAgent(Script([ASK]).model(), tools=[protected(box)])
    runner = AgentRunner(agent, store, clock, kept=kept)
    batches: list[str] = []
    for number in range(2):
        turn = make_turn(place=replace(PLACE, conversation=f"thread {number}"))
        await store.run(lambda tx, turn=turn: tx.insert_turn(turn))
        step = await runner.advance(turn, Unseen())
        batches.append(batch_of(step).id)
    await settle_down()
    assert len(waiting_runs()) == 1
    assert kept.take(batches[0]) is None
    newest = kept.take(batches[1])
    assert newest
    newest.drop()
    await newest.ended()


async def test_a_run_ends_with_its_turn(one: Bench) -> None:
    _, step = await begun(one, [ASK, "done"], [protected(one.box)])
    assert one.runner
    assert len(waiting_runs()) == 1
    turn = await one.store.run(lambda tx: tx.turn(one.turn.id))
    assert turn
    assert turn.batch == batch_of(step).id
    one.runner.turn_ended(turn)
    await settle_down()
    assert waiting_runs() == []


async def test_nothing_is_kept_after_the_runner_was_told_to_stop(one: Bench) -> None:
    _, step = await begun(one, [ASK, "done"], [protected(one.box)])
    assert one.runner
    await one.runner.quiesce(0)
    assert waiting_runs() == []
    assert one.runner.kept.take(batch_of(step).id) is None


async def test_a_step_that_is_cancelled_ends_its_run_and_waits_for_that(one: Bench) -> None:
    started, ended = asyncio.Event(), list[str]()

    async def slow(value: str) -> str:
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            ended.append("ended")
        return value

    slots = ToolSlots(threads=None)
    _, step = await begun(
        one, [calls(("slow", {"value": "x"})), "done"], [Tool(slow, requires_approval=True)], slots=slots
    )
    await one.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel))
    going_on = asyncio.create_task(one.advance())
    await started.wait()
    going_on.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going_on
    assert ended == ["ended"]
    assert waiting_runs() == []


async def test_a_failure_after_the_decision_is_tried_again_from_the_store(one: Bench) -> None:
    failures = [ModelOverloadedError("scripted", "busy", retry_after=0.0)]

    class Flaky(Script):
        def next(self, messages: list[Any]) -> Any:
            if len(self.asked) == 1 and failures:
                raise failures.pop()
            return super().next(messages)

    one.script = Flaky([ASK, "done"])
    agent = CountingAgent(one.script.model(), tools=[protected(one.box)])
    one.runner = AgentRunner(agent, one.store, one.clock)
    await one.store.run(lambda tx: tx.insert_turn(one.turn))
    await one.store.run(lambda tx: tx.move(one.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    step = await one.advance()
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert agent.runs == 2
    assert one.box.ran == [("danger", "x", None)]


# Which runs are kept


def _static() -> str:
    return "the same in each step"


async def _hidden(ctx: RunContext[Any], tool_def: ToolDefinition) -> ToolDefinition | None:
    return tool_def


class OwnToolset(FunctionToolset[Any]):
    """May hold a connection while it is open."""


class OwnCapability(AbstractCapability[Any]):
    """May hold a lock while the run lasts."""


@pytest.mark.parametrize(
    ("agent", "is_kept"),
    [
        (Agent(tools=[_static]), True),
        (Agent(toolsets=[FunctionToolset([_static])]), True),
        (Agent(tools=[Tool(_static, prepare=_hidden)]), False),
        (Agent(toolsets=[OwnToolset([_static])]), False),
        (Agent(toolsets=[FunctionToolset([_static]).prefixed("a")]), False),
        (Agent(tools=[_static], capabilities=[OwnCapability()]), False),
        (Agent(tools=[_static], max_concurrency=1), False),
        (Agent(tools=[_static], output_type=int), False),
    ],
)
def test_only_a_run_that_holds_nothing_is_kept(agent: Agent[Any, Any], is_kept: bool) -> None:
    assert can_be_kept(agent, ()) is is_kept
    assert not can_be_kept(agent, (OwnToolset([_static]),))


def test_an_agent_with_an_output_validator_keeps_its_own_output() -> None:
    agent: Agent[Any, str] = Agent()
    assert is_plain_text(agent)
    agent.output_validator(lambda output: output)
    assert not is_plain_text(agent)


# It goes on as a run from the store would


class Changing:
    """A policy whose rules change between the card and the decision."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules

    async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling:
        return await Policy(self.rules).decide(call, declaration, context)


async def test_a_rule_made_after_the_card_still_stops_the_call(one: Bench) -> None:
    policy = Changing()
    agent, step = await begun(one, [ASK, "done"], [protected(one.box)], policy=policy)
    policy.rules = (Rule("danger", Verdict.DENY, reason="no longer"),)
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert agent.runs == 1
    assert one.box.ran == []
    assert "no longer" in one.script.results["call_0"]


async def test_a_validator_is_not_told_that_a_call_is_approved_by_the_framework_alone(one: Bench) -> None:
    """The framework marks every call as approved that it calls again, also one that people have not approved."""
    marks: list[bool] = []

    def check(ctx: RunContext[Any], value: str) -> None:
        marks.append(ctx.tool_call_approved)

    def preview(ctx: RunContext[Any], value: str) -> str:
        marks.append(ctx.tool_call_approved)
        return "this is what it does"

    def danger(ctx: RunContext[Any], value: str) -> str:
        marks.append(ctx.tool_call_approved)
        return "did it"

    tool = Tool(danger, requires_approval=True, args_validator=check, metadata={"preview": preview})
    agent, step = await begun(one, [ASK, "done"], [tool])
    seen = len(marks)
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert agent.runs == 1
    assert seen > 0
    assert marks == [False] * (len(marks) - 1) + [True]  # only the tool, which people have approved


async def test_what_a_step_used_is_told_once(one: Bench) -> None:
    from signoff.turns.activity import Activity, ModelUsed

    told: list[Any] = []
    _, step = await begun(one, [ASK, "done"], [protected(one.box)], activity=Activity([told.append]))
    await one.decide(step, Choice.ACCEPT)
    assert [event.requests for event in told if isinstance(event, ModelUsed)] == [1, 1]


def asking_itself(box: Box) -> Tool[Any]:
    def danger(ctx: RunContext[Any], value: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "it is risky"})
        box.ran.append(("danger", value, None))
        return "did it"

    return Tool(danger)


def retried(box: Box) -> Tool[Any]:
    def danger(value: str) -> str:
        box.ran.append(("danger", value, None))
        raise ModelRetry("no such value")

    return Tool(danger, requires_approval=True, max_retries=1)


def failing(box: Box) -> Tool[Any]:
    return Tool(box.tool("danger", lambda value: 1 / 0), requires_approval=True)


def plain(box: Box) -> Tool[Any]:
    return Tool(box.tool("plain"))


TWO = calls(("danger", {"value": "x"}), ("plain", {"value": "y"}), ("danger", {"value": "z"}))
ACCEPT, REJECT = Choice.ACCEPT, Choice.REJECT
Decide = Callable[[Bench, Step], Any]


async def each(bench: Bench, step: Step) -> None:
    """Accept the first question and reject the others."""
    for number, request in enumerate(batch_of(step).requests):
        if not request.held:
            choice = REJECT if number else ACCEPT
            await bench.desk.decide(Click(request.id, choice, ADA, PLACE.channel))


async def accept_all(bench: Bench, step: Step) -> None:
    await bench.desk.decide(Click(batch_of(step).id, ACCEPT, ADA, PLACE.channel))


async def reject_all(bench: Bench, step: Step) -> None:
    await bench.desk.decide(Click(batch_of(step).id, REJECT, ADA, PLACE.channel))


async def expire(bench: Bench, step: Step) -> None:
    bench.clock.at = batch_of(step).deadline + 1
    await bench.desk.expire_due()


async def change(bench: Bench, step: Step) -> None:
    await edit(bench, step, {"value": "edited"})
    await bench.desk.decide(Click(batch_of(step).id, ACCEPT, ADA, PLACE.channel, revision=1))


STORIES: dict[str, tuple[list[Answer], list[Callable[[Box], Tool[Any]]], Decide]] = {
    "accepted": ([ASK, "done"], [protected], accept_all),
    "rejected": ([ASK, "done"], [protected], reject_all),
    "expired": ([ASK, "done"], [protected], expire),
    "edited": ([ASK, "done"], [protected], change),
    "one of several": ([TWO, ASK, "done"], [protected, plain], each),
    "all of several": ([TWO, "done"], [protected, plain], accept_all),
    "none of several": ([TWO, ASK, "done"], [protected, plain], reject_all),
    "the tool asks": ([ASK, TWO, "done"], [asking_itself, plain], accept_all),
    "the tool fails": ([ASK, ASK, "done"], [failing], accept_all),
    "the tool refuses again and again": ([ASK, ASK, ASK, ASK, "done"], [retried], accept_all),
    "with words": ([calls(("danger", {"value": "x"}), say="I will."), "done"], [protected], accept_all),
}


@pytest.mark.parametrize("hold", [True, False], ids=["hold", "split"])
@pytest.mark.parametrize("story", STORIES)
async def test_both_ways_lead_to_the_same(tmp_path: Any, clock: HandClock, story: str, hold: bool) -> None:
    """Play each story with runs that wait in memory and with runs from the store: all that is left is the same."""
    played = [await _play(f"sqlite:///{tmp_path}/{most}.db", story, most, hold) for most in (100, 0)]
    (runs_kept, *kept), (runs_stored, *stored) = played
    assert kept == stored
    some_ran_before = story == "the tool asks" or (not hold and "several" in story)
    assert runs_kept < runs_stored or some_ran_before


async def _play(url: str, story: str, most: int, hold: bool) -> list[Any]:
    """Return the number of runs, the end of the turn, what the tools did, and what model and store were told."""
    answers, tools, decide = STORIES[story]
    clock = HandClock()
    async with await Store.open(url) as store:
        bench = Bench(store, clock, Desk(store, clock))
        made = [make(bench.box) for make in tools]
        agent, step = await begun(bench, list(answers), made, kept=KeptRuns(most=most), hold=hold)
        rounds = 0
        while isinstance(step, Waiting):
            rounds += 1
            await decide(bench, step)
            step = await bench.advance()
        assert isinstance(step, Finished)
        history = await store.run(lambda tx: tx.history(PLACE.conversation))
        stored = [_plain(entry.body) for entry in [*history, *step.history]]
        asked = [_plain(ModelMessagesTypeAdapter.dump_json(messages)) for messages in bench.script.asked]
        record = await store.run(
            lambda tx: tx.db.all("SELECT conversation, position, call_id, tool, digest, state, line FROM calls")
        )
        audit = await store.run(lambda tx: tx.db.all("SELECT kind, tool, actor FROM audit ORDER BY seq"))
        return [agent.runs, step.text, bench.box.ran, rounds, stored, asked, sorted(record), audit]


def _plain(body: bytes) -> Any:
    """Return messages without the times and ids that differ in each run."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(one) for key, one in value.items() if key not in ("timestamp", "run_id")}
        return [clean(one) for one in value] if isinstance(value, list) else value

    return clean(json.loads(body))

"""Runs that wait in memory for a decision: when they are kept, and that they go on as a run from the store would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, ModelRetry, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, Instrumentation, ToolSearch
from pydantic_ai.exceptions import ModelOverloadedError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ThinkingPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from signoff.agent.deps import DepsMaker
from signoff.agent.kept_runs import LARGEST, KeptRuns, can_be_kept
from signoff.agent.outputs import is_plain_text
from signoff.agent.runner import AgentRunner, Extras
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import Choice, Ruling, ToolCall, Verdict
from signoff.approvals.policy import Context, Declaration, Policy, Rule
from signoff.gate.tool_slots import ToolSlots
from signoff.store import Store
from signoff.turns.activity import Activity, ModelUsed
from signoff.turns.model import Finished, Step, Turn, TurnFile, TurnState, Waiting
from signoff.turns.progress import Unseen
from tests.conftest import ADA, PLACE, HandClock, make_turn
from tests.rigs.gate_bench import Bench, batch_of, edit, protected
from tests.rigs.scripted import Answer, Box, Script, calls

ASK: Answer = calls(("danger", {"value": "x"}))


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The prompts of all runs; the prompt is empty if a run begins with open calls."""
    begun, run = list[str](), Agent.run

    async def counting(self: Any, prompt: Any = None, **options: Any) -> Any:
        begun.append(str(prompt or ""))
        return await run(self, prompt, **options)

    monkeypatch.setattr(Agent, "run", counting)
    return begun


async def begun(bench: Bench, answers: list[Answer], tools: list[Any], **fields: Any) -> Step:
    """Start the turn."""
    bench.script = Script(answers)
    return await begun_with(bench, Agent(bench.script.model(), tools=tools), **fields)


async def begun_with(bench: Bench, agent: Agent[Any, Any], **fields: Any) -> Step:
    bench.runner = AgentRunner(agent, bench.store, bench.clock, **fields)
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    return await bench.advance()


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


# What takes part in a run


@pytest.mark.parametrize(
    ("extras", "expected"),
    [(Extras(), ["WaitingGate"]), (Extras(capabilities=(AbstractCapability(),)), ["Gate", "Saver", "Seal"])],
    ids=["nobody else's code", "a capability between gate and seal"],
)
async def test_the_gate_of_a_run_without_code_of_others_is_saver_and_seal_too(
    one: Bench, extras: Extras, expected: list[str]
) -> None:
    """Each capability costs every step of a run, and each generator around its events costs every event."""
    seen: list[AbstractCapability[Any]] = []

    def look(ctx: RunContext[Any]) -> str:
        assert ctx.root_capability
        ctx.root_capability.apply(seen.append)
        return "seen"

    await begun(one, [calls(("look", {})), "done"], [look], extras=extras, hold=False)
    ours = [part for part in seen if type(part).__module__.startswith("signoff.")]
    assert [type(part).__name__ for part in ours] == expected
    stream: Any = object()
    ctx: Any = None
    assert all(part.wrap_run_event_stream(ctx, stream=stream) is stream for part in ours)


# When a run is kept


async def test_a_decision_continues_the_run_that_waits_for_it(one: Bench, runs: list[str]) -> None:
    step = await begun(one, [ASK, ASK, "done"], [protected(one.box)])
    step = await one.decide(step, Choice.ACCEPT)
    assert isinstance(await one.decide(step, Choice.REJECT), Finished)
    assert runs == ["hello"]
    assert one.box.ran == [("danger", "x", None)]
    assert waiting_runs() == []


@pytest.mark.parametrize("kept", [KeptRuns(most=0), KeptRuns(seconds=0.0)], ids=["none is kept", "it took too long"])
async def test_a_run_that_was_dropped_is_run_again_from_the_store(one: Bench, runs: list[str], kept: KeptRuns) -> None:
    step = await begun(one, [ASK, "done"], [protected(one.box)], kept=kept)
    await asyncio.sleep(0.01)
    assert waiting_runs() == []
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert runs == ["hello", ""]
    assert one.box.ran == [("danger", "x", None)]
    assert len(one.script.asked) == 2


async def test_the_oldest_run_is_dropped_for_a_new_one(store: Store, clock: HandClock) -> None:
    kept, turns = KeptRuns(most=1), list[Turn]()
    runner = AgentRunner(Agent(Script([ASK]).model(), tools=[protected(Box())]), store, clock, kept=kept)
    for number in range(2):
        turn = make_turn(place=replace(PLACE, conversation=f"thread {number}"))
        await store.run(lambda tx, turn=turn: tx.insert_turn(turn))
        turns.append(replace(turn, batch=batch_of(await runner.advance(turn, Unseen())).id))
    await settle_down()
    assert len(waiting_runs()) == 1
    assert kept.take(turns[0]) is None
    newest = kept.take(turns[1])
    assert newest
    newest.drop()
    await settle_down()
    assert waiting_runs() == []


async def test_a_run_whose_conversation_is_long_is_not_kept(one: Bench, runs: list[str]) -> None:
    """There may be a hundred of them."""
    step = await begun(one, [calls(("danger", {"value": "x" * LARGEST})), "done"], [protected(one.box)])
    await settle_down()
    assert waiting_runs() == []
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert runs == ["hello", ""]


async def test_a_run_with_an_image_is_not_kept(one: Bench) -> None:
    picture = TurnFile("a.png", 4, "image/png", b"\x89PNG")
    one.turn = replace(one.turn, files=(picture,))
    one.script = Script([ASK, "done"])
    await one.store.run(lambda tx: tx.insert_turn(one.turn))
    await one.store.run(lambda tx: tx.set_files(one.turn.id, [picture], 0.0))
    await one.store.run(lambda tx: tx.move(one.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    one.runner = AgentRunner(Agent(one.script.model(), tools=[protected(one.box)]), one.store, one.clock)
    assert isinstance(await one.advance(), Waiting)
    await settle_down()
    assert waiting_runs() == []


async def test_a_run_ends_with_its_turn(one: Bench) -> None:
    await begun(one, [ASK, "done"], [protected(one.box)])
    assert one.runner
    assert len(waiting_runs()) == 1
    one.runner.turn_ended(one.turn)
    await settle_down()
    assert waiting_runs() == []


async def test_a_turn_whose_batch_was_not_stored_keeps_one_run(one: Bench, runs: list[str]) -> None:
    """The store failed, so the same step is taken again."""
    await begun(one, [ASK, "done"], [protected(one.box)])
    await one.store.run(lambda tx: tx.db.change("UPDATE turns SET batch = NULL"))
    step = await one.advance()
    await settle_down()
    assert len(waiting_runs()) == 1
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert len(runs) == 2
    assert waiting_runs() == []


async def test_nothing_is_kept_after_the_runner_was_told_to_stop(one: Bench, runs: list[str]) -> None:
    step = await begun(one, [ASK, ASK, "done"], [protected(one.box)])
    assert one.runner
    await one.runner.kept.close(1.0)
    assert waiting_runs() == []
    step = await one.decide(step, Choice.ACCEPT)
    await settle_down()
    assert waiting_runs() == []
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert len(runs) == 3


async def test_a_step_that_is_cancelled_twice_ends_its_run_and_waits_for_that(one: Bench) -> None:
    """Somebody stops the turn, and the bot is shut down while its tool cleans up."""
    started, cleaning, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def slow(value: str) -> str:
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            cleaning.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("ended")
        return value

    tools, slots = [Tool(slow, requires_approval=True)], ToolSlots(threads=None)
    step = await begun(one, [calls(("slow", {"value": "x"})), "done"], tools, slots=slots)
    await one.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel))
    async with asyncio.timeout(10):
        going_on = asyncio.create_task(one.advance())
        await started.wait()
        going_on.cancel()
        await cleaning.wait()
        going_on.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going_on
    assert ended == ["ended"]
    assert waiting_runs() == []


async def test_a_failure_after_the_decision_is_tried_again_from_the_store(one: Bench, runs: list[str]) -> None:
    failures = [ModelOverloadedError("scripted", "busy", retry_after=0.0)]

    class Flaky(Script):
        def next(self, messages: list[Any]) -> Any:
            if len(self.asked) == 1 and failures:
                raise failures.pop()
            return super().next(messages)

    one.script = Flaky([ASK, "done"])
    step = await begun_with(one, Agent(one.script.model(), tools=[protected(one.box)]))
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert runs == ["hello", ""]
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


class OwnAgent(Agent[Any, Any]):
    """May hold a lock while the run lasts, and read its output."""


def _listening() -> Agent[Any, Any]:
    agent = Agent(tools=[_static])

    @agent.on_event
    async def listen(ctx: RunContext[Any], event: Any) -> None:
        pass

    return agent


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
        (Agent(tools=[_static], capabilities=[Instrumentation()]), False),
        (Agent(tools=[_static], capabilities=[ToolSearch(strategy=lambda ctx, queries, tools: [])]), False),
        (_listening(), False),
        (OwnAgent(tools=[_static]), False),
        (Agent(tools=[_static], output_type=int), False),
    ],
)
def test_only_a_run_that_holds_nothing_is_kept(agent: Agent[Any, Any], is_kept: bool) -> None:
    assert can_be_kept(agent, ()) is is_kept
    assert not can_be_kept(agent, (OwnToolset([_static]),))


def test_a_run_that_is_traced_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(tools=[_static])
    assert can_be_kept(agent, ())
    monkeypatch.setattr(Agent, "_instrument_default", True)  # as Agent.instrument_all() does
    assert not can_be_kept(agent, ())


@pytest.mark.parametrize(
    "extras",
    [Extras(capabilities=(OwnCapability(),)), Extras(deps=DepsMaker("a:b", lambda info: None))],
    ids=["a plugin's capability", "dependencies"],
)
async def test_a_run_with_code_of_the_operator_is_not_kept(one: Bench, runs: list[str], extras: Extras) -> None:
    step = await begun(one, [ASK, "done"], [protected(one.box)], extras=extras)
    await settle_down()
    assert waiting_runs() == []
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert runs == ["hello", ""]


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


async def test_a_rule_made_after_the_card_still_stops_the_call(one: Bench, runs: list[str]) -> None:
    policy = Changing()
    step = await begun(one, [ASK, "done"], [protected(one.box)], policy=policy)
    policy.rules = (Rule("danger", Verdict.DENY, reason="no longer"),)
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert runs == ["hello"]
    assert one.box.ran == []
    assert "no longer" in one.script.results["call_0"]


async def test_a_validator_is_not_told_that_the_framework_approved_a_call(one: Bench, runs: list[str]) -> None:
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
    step = await begun(one, [ASK, "done"], [tool])
    seen = len(marks)
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert runs == ["hello"]
    assert seen > 0
    assert marks == [False] * (len(marks) - 1) + [True]  # only the tool, which people have approved


class Noting(Unseen):
    """Notes which step thinks and writes."""

    def __init__(self, step: int, noted: list[int]) -> None:
        self.step, self.noted = step, noted

    def thinking(self) -> None:
        self.noted.append(self.step)

    def writing(self, words: str) -> None:
        self.noted.append(self.step)


async def test_each_step_reports_to_its_own_status_message(one: Bench) -> None:
    noted: list[int] = []
    one.progress = Noting(1, noted)
    step = await begun(one, [ASK, "done"], [protected(one.box)])
    before, one.progress = len(noted), Noting(2, noted)
    await one.decide(step, Choice.ACCEPT)
    assert set(noted[:before]) == {1}
    assert set(noted[before:]) == {2}


async def test_a_tool_that_asks_after_its_agent_did_shows_its_own_question(one: Bench) -> None:
    inner = Script([calls(("deep", {"value": "1"})), "inner done"])

    async def danger(ctx: RunContext[Any], value: str) -> str:
        found = await Agent(inner.model(), tools=[protected(one.box, "deep")], name="inner").run(value)
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return found.output

    step = await begun(one, [ASK, "done"], [Tool(danger)])
    assert [request.call.tool for request in batch_of(step).requests] == ["deep"]
    step = await one.decide(step, Choice.ACCEPT)
    assert [request.call.tool for request in batch_of(step).requests] == ["danger"]


async def test_what_a_step_used_is_told_once(one: Bench) -> None:
    told: list[Any] = []
    step = await begun(one, [ASK, "done"], [protected(one.box)], activity=Activity([told.append]))
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


def only_thinks() -> ModelResponse:
    return ModelResponse(parts=[ThinkingPart("hmm")])


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
    "the model only thinks": ([only_thinks(), ASK, only_thinks(), "done"], [protected], accept_all),
    "with words": ([calls(("danger", {"value": "x"}), say="I will."), "done"], [protected], accept_all),
}


@pytest.mark.parametrize("hold", [True, False], ids=["hold", "split"])
@pytest.mark.parametrize("story", STORIES)
async def test_both_ways_lead_to_the_same(tmp_path: Any, runs: list[str], story: str, hold: bool) -> None:
    """Play each story with runs that wait in memory and with runs from the store: all that is left is the same."""
    played = [await _play(f"sqlite:///{tmp_path}/{most}.db", story, most, hold, runs) for most in (100, 0)]
    (runs_kept, *kept), (runs_stored, *stored) = played
    assert kept == stored
    starts_anew = "thinks" in story or story == "the tool asks" or (not hold and "several" in story)
    assert runs_kept < runs_stored or starts_anew


async def _play(url: str, story: str, most: int, hold: bool, runs: list[str]) -> list[Any]:
    """Return the number of runs, the end of the turn, what the tools did, and what model and store were told."""
    answers, tools, decide = STORIES[story]
    clock = HandClock()
    async with await Store.open(url) as store:
        bench = Bench(store, clock, Desk(store, clock))
        made = [make(bench.box) for make in tools]
        before = len(runs)
        step = await begun(bench, list(answers), made, kept=KeptRuns(most=most), hold=hold)
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
        return [len(runs) - before, step.text, bench.box.ran, rounds, stored, asked, sorted(record), audit]


def _plain(body: bytes) -> Any:
    """Return messages without the times and ids that differ in each run."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(one) for key, one in value.items() if key not in ("timestamp", "run_id")}
        return [clean(one) for one in value] if isinstance(value, list) else value

    return clean(json.loads(body))

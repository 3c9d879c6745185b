"""Agents that run inside a tool: they share the gate, the card and the limits of the call that runs them."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import ModelOverloadedError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from signoff.agent import failures
from signoff.agent.runner import Limits
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import Refused
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Choice, Remember, RequestState, RunState, Terms, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.approvals.server_rules import Rulebook
from signoff.approvals.todays_rules import TodaysRules
from signoff.errors import TurnFailed
from signoff.gate.delegation import is_inside
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import Finished, Step, TurnState
from tests.conftest import ADA, PLACE, SERVER
from tests.rigs.gate_bench import Bench, batch_of, edit, protected
from tests.rigs.scripted import Answer, Script, calls


def child(name: str, answers: list[Answer], tools: list[Any], **options: Any) -> tuple[Agent[Any, Any], Script]:
    script = Script(answers)
    return Agent(script.model(), name=name, tools=tools, **options), script


def shown(step: Step) -> list[str]:
    return [request.shown_tool for request in batch_of(step).requests]


def delegate(name: str, agent: Agent[Any, Any]) -> Callable[..., Any]:
    async def run(topic: str) -> str:
        return (await agent.run(topic)).output

    run.__name__ = name
    return run


async def test_a_call_of_an_agent_inside_a_tool_is_asked_about_with_its_path(bench: Bench) -> None:
    inner, script = child("researcher", [calls(("danger", {"value": "x"})), "found it"], [protected(bench.box)])
    step = await bench.start([calls(("research", {"topic": "t"})), "done"], [delegate("research", inner)])
    assert shown(step) == ["researcher › danger"]
    assert bench.box.ran == []
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert bench.box.ran == [("danger", "x", None)]
    assert bench.script.results == {"call_0": "found it"}
    assert len(script.asked) == 2, "the decision repeats no model request"


async def test_a_rule_denies_a_call_of_an_agent_inside_a_tool(bench: Bench) -> None:
    inner, script = child("researcher", [calls(("free", {"value": "x"})), "ok"], [bench.box.tool("free")])
    policy = Policy((Rule("free", Verdict.DENY),))
    step = await bench.start(
        [calls(("research", {"topic": "t"})), "done"], [delegate("research", inner)], policy=policy
    )
    assert isinstance(step, Finished)
    assert bench.box.ran == []
    assert "Not allowed" in script.results["call_0"]


async def test_agents_in_parallel_and_the_call_beside_them_share_one_card_for_two_rounds(bench: Bench) -> None:
    box = bench.box
    rounds: list[Answer] = [calls(("danger", {"value": "1"})), calls(("danger", {"value": "2"})), "end"]
    first, script_1 = child("one", [*rounds], [protected(box)])
    second, script_2 = child("two", [*rounds], [protected(box)])
    tools = [delegate("ask_one", first), delegate("ask_two", second), protected(box, "own")]
    both = calls(("ask_one", {"topic": "a"}), ("own", {"value": "0"}), ("ask_two", {"topic": "b"}))
    step = await bench.start([both, "done"], tools)
    assert shown(step) == ["one › danger", "own", "two › danger"]
    await bench.desk.decide(Click(batch_of(step).requests[2].id, Choice.REJECT, ADA, PLACE.channel))
    step = await bench.decide(step, Choice.ACCEPT)
    assert shown(step) == ["one › danger", "two › danger"]
    assert [request.call.args["value"] for request in batch_of(step).requests] == ["2", "2"]
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert sorted(box.ran) == [("danger", "1", None), ("danger", "2", None), ("danger", "2", None), ("own", "0", None)]
    assert bench.script.results == {"call_0": "end", "call_1": "own did 0", "call_2": "end"}
    assert (len(script_1.asked), len(script_2.asked), len(bench.script.asked)) == (3, 3, 2)
    assert "Rejected by user Ada" in str(script_2.asked[1][-1])


async def test_an_agent_inside_an_agent_inside_a_tool_asks_on_the_same_card(bench: Bench) -> None:
    box = bench.box
    deepest, script = child("reader", [calls(("danger", {"value": "deep"})), "read"], [protected(box)])
    middle, asked = child(
        "editor",
        [calls(("read", {"topic": "x"}), ("danger", {"value": "own"}), ids=["call_0", "call_1"]), "edited"],
        [delegate("read", deepest), protected(box)],
    )
    step = await bench.start([calls(("work", {"topic": "t"})), "done"], [delegate("work", middle)])
    assert shown(step) == ["editor › reader › danger", "editor › danger"]
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert sorted(box.ran) == [("danger", "deep", None), ("danger", "own", None)]
    assert (len(script.asked), len(asked.asked)) == (2, 2)
    assert asked.results == {"call_0": "read", "call_1": "danger did own"}


async def test_agents_that_one_tool_runs_at_once_ask_together_and_the_one_that_ended_is_not_run_again(
    bench: Bench,
) -> None:
    box = bench.box
    first, script_1 = child("one", [calls(("danger", {"value": "1"})), "end 1"], [protected(box)])
    second, script_2 = child("two", [calls(("danger", {"value": "2"})), "end 2"], [protected(box)])
    third, script_3 = child("three", [calls(("free", {"value": "3"})), "end 3"], [box.tool("free")])

    async def all_of(topic: str) -> str:
        runs = await asyncio.gather(third.run(topic), first.run(topic), second.run(topic))
        return ", ".join(run.output for run in runs)

    step = await bench.start([calls(("all_of", {"topic": "t"})), "done"], [all_of])
    assert sorted(shown(step)) == ["one › danger", "two › danger"]
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert bench.script.results == {"call_0": "end 3, end 1, end 2"}
    assert sorted(box.ran) == [("danger", "1", None), ("danger", "2", None), ("free", "3", None)]
    assert [len(script.asked) for script in (script_1, script_2, script_3)] == [2, 2, 2]


class Found(BaseModel):
    title: str


async def test_the_result_of_an_agent_that_had_ended_keeps_its_type(bench: Bench) -> None:
    """The first agent has ended when the second one asks. It has a structured output and a validator."""
    box = bench.box
    finder, found = child("finder", [calls(("final_result", {"title": "T"}))], [], output_type=Found)
    checked: list[str] = []

    @finder.output_validator
    def check(output: Found) -> Found:
        checked.append(output.title)
        return output

    teller, told = child("teller", ["plain"], [])
    writer, _ = child("writer", [calls(("danger", {"value": "w"})), "written"], [protected(box)])

    async def both(topic: str) -> str:
        first = await finder.run(topic)
        second = await teller.run(topic)
        third = await writer.run(first.output.title)
        return f"{first.output.title} {second.output} {third.output}"

    step = await bench.start([calls(("both", {"topic": "t"})), "done"], [both])
    assert shown(step) == ["writer › danger"]
    step = await bench.decide(step, Choice.ACCEPT)
    assert bench.script.results == {"call_0": "T plain written"}
    assert (len(found.asked), len(told.asked)) == (1, 1)
    assert checked == ["T", "T"], "the agent's own code runs again, the model does not"


@pytest.mark.parametrize("caught", [Exception, BaseException])
async def test_a_tool_that_catches_everything_still_waits(bench: Bench, caught: type[BaseException]) -> None:
    inner, _ = child("one", [calls(("danger", {"value": "x"})), "fine"], [protected(bench.box)])

    async def careful(topic: str) -> str:
        try:
            return (await inner.run(topic)).output
        except caught:
            return "gave up"

    step = await bench.start([calls(("careful", {"topic": "t"})), "done"], [careful])
    assert shown(step) == ["one › danger"]
    await bench.decide(step, Choice.ACCEPT)
    assert bench.script.results == {"call_0": "fine"}
    assert len(bench.box.ran) == 1


async def test_each_way_to_run_an_agent_passes_the_gate(bench: Bench) -> None:
    box = bench.box
    answers: list[Answer] = [calls(("danger", {"value": "x"})), "end"]

    def inner(name: str) -> Agent[Any, Any]:
        return child(name, [*answers], [protected(box)])[0]

    sync, stream, iterated, events = inner("sync"), inner("stream"), inner("iterated"), inner("events")

    def by_sync(topic: str) -> str:
        return sync.run_sync(topic).output

    async def by_stream(topic: str) -> str:
        async with stream.run_stream(topic) as result:
            return await result.get_output()

    async def by_iter(topic: str) -> str:
        async with iterated.iter(topic) as run:
            async for _ in run:
                pass
        assert run.result
        return run.result.output

    async def by_events(topic: str) -> str:
        async with events.run_stream_events(topic) as stream:
            return [event async for event in stream][-1].result.output  # pyright: ignore

    tools = [by_sync, by_stream, by_iter, by_events]
    wanted = calls(*((tool.__name__, {"topic": "t"}) for tool in tools))
    step = await bench.start([wanted, "done"], tools)
    assert shown(step) == ["sync › danger", "stream › danger", "iterated › danger", "events › danger"]
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert len(box.ran) == 4
    assert {text.strip() for text in bench.script.results.values()} == {"end"}


OLD_POOL = ThreadPoolExecutor(1)
"""Its thread is older than every tool call."""


def _in_a_thread(work: Callable[[], str]) -> str:
    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def _in_a_pool(work: Callable[[], str]) -> str:
    with ThreadPoolExecutor() as pool:
        return pool.submit(work).result()


def _in_an_old_pool(work: Callable[[], str]) -> str:
    return OLD_POOL.submit(work).result()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("by", [_in_a_thread, _in_a_pool, _in_an_old_pool])
async def test_an_agent_in_a_thread_that_a_tool_starts_passes_the_gate(
    bench: Bench, by: Callable[[Callable[[], str]], str]
) -> None:
    """Attack row 49: Python starts threads without the context of the tool."""
    OLD_POOL.submit(int).result()
    both = calls(("free", {"value": "denied"}), ("danger", {"value": "asked"}))
    inner, script = child("kid", [both, "ok"], [bench.box.tool("free"), protected(bench.box)])

    def work(topic: str) -> str:
        return by(lambda: inner.run_sync(topic).output)

    policy = Policy((Rule("free", Verdict.DENY),))
    step = await bench.start([calls(("work", {"topic": "t"})), "done"], [work], policy=policy)
    assert shown(step) == ["kid › danger"]
    assert bench.box.ran == []
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert bench.box.ran == [("danger", "asked", None)]
    assert "Not allowed" in script.results["call_0"]
    assert bench.script.results == {"call_0": "ok"}
    assert not OLD_POOL.submit(is_inside).result(), "what others do in the same pool is not inside the tool"


async def test_model_requests_of_agents_inside_tools_count_for_the_turn_through_every_round(bench: Bench) -> None:
    inner, script = child("one", [calls(("danger", {"value": "x"}))], [protected(bench.box)])
    step = await bench.start(
        [calls(("ask", {"topic": "t"})), "done"], [delegate("ask", inner)], limits=Limits(model_requests=4)
    )
    step = await bench.decide(await bench.decide(step, Choice.ACCEPT), Choice.ACCEPT)
    with pytest.raises(TurnFailed, match="4 requests"):
        await bench.decide(step, Choice.ACCEPT)
    assert len(script.asked) == 3
    assert len(bench.script.asked) == 1


async def test_a_remembered_decision_holds_for_agents_inside_tools(bench: Bench) -> None:
    bench.desk = Desk(bench.store, bench.clock, grants=GrantTerms(Remember.SESSION))
    box = bench.box
    inner, _ = child("one", [calls(("danger", {"value": "x"})), "fine"], [own := protected(box)])
    tools = [delegate("ask", inner), own]
    step = await bench.start([calls(("danger", {"value": "x"})), calls(("ask", {"topic": "t"})), "done"], tools)
    here = Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel, remember=Remember.SESSION)
    await bench.desk.decide(here)
    step = await bench.advance()
    batch = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch
    assert batch.settled
    assert batch.requests[0].shown_tool == "one › danger"
    assert isinstance(await bench.advance(), Finished)
    assert len(box.ran) == 2


async def test_a_tool_that_gives_another_prompt_each_time_fails_instead_of_asking_for_ever(bench: Bench) -> None:
    inner, _ = child("one", [calls(("danger", {"value": "x"}))], [protected(bench.box)])

    async def restless() -> str:
        return (await inner.run(secrets.token_hex())).output

    step = await bench.start([calls(("restless", {})), "done"], [restless])
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert "another prompt" in bench.script.results["call_0"]
    assert bench.box.ran == []


async def test_the_time_limit_of_a_tool_leaves_out_the_time_of_its_agents(bench: Bench) -> None:
    async def slow(value: str) -> str:
        await asyncio.sleep(0.25)
        return value

    inner, _ = child("one", [calls(("slow", {"value": str(n)})) for n in range(3)] + ["fine"], [slow])

    async def patient(topic: str) -> str:
        return (await inner.run(topic)).output

    async def lazy(topic: str) -> str:
        output = (await inner.run(topic)).output
        await asyncio.sleep(5)
        return output

    wanted = calls(("patient", {"topic": "t"})), calls(("lazy", {"topic": "t"}))
    began = time.monotonic()
    await bench.start([*wanted, "done"], [patient, lazy], slots=ToolSlots(0.5))
    assert bench.script.asked[1][-1].parts[0].content == "fine"  # pyright: ignore
    assert "did not finish within 0.5 seconds" in bench.script.results["call_0"]
    assert time.monotonic() - began < 5


async def test_a_call_of_an_agent_inside_a_tool_cannot_be_edited(bench: Bench) -> None:
    inner, _ = child("one", [calls(("danger", {"value": "x"})), "fine"], [protected(bench.box)])
    step = await bench.start([calls(("ask", {"topic": "t"})), "done"], [delegate("ask", inner)])
    with pytest.raises(Refused, match="inside a tool"):
        await edit(bench, step, {"value": "y"})
    assert isinstance(await bench.decide(step, Choice.ACCEPT), Finished)


@pytest.mark.parametrize(
    "rule",
    [
        Rule("*", Verdict.ASK, acts=True, quorum=2),
        Rule("danger", Verdict.ASK, when={"value": ("rm *",)}, quorum=2),
    ],
)
async def test_a_rule_that_was_made_meanwhile_holds_for_an_open_call_of_an_agent_inside_a_tool(
    bench: Bench, rule: Rule
) -> None:
    """It may go by the tool's marks or by the words of a shell command, though the tool is not at hand now."""
    said = {"acts": True, "shell": "value"}
    guarded = Tool(bench.box.tool("danger"), requires_approval=True, metadata=said)
    inner, _ = child("one", [calls(("danger", {"value": "ls; rm -r x"})), "fine"], [guarded])
    rulebook = Rulebook(Policy(), bench.store, bench.clock)
    tools = [delegate("ask", inner)]
    step = await bench.start([calls(("ask", {"topic": "t"})), "done"], tools, policy=rulebook)
    assert bench.runner
    bench.desk.todays = TodaysRules(bench.runner, Terms(), bench.clock.now())
    await rulebook.protect(rule, ADA)
    bench.desk.server_rules_changed(SERVER)
    outcome = await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel))
    (request,) = outcome.batch.requests
    assert (request.state, request.quorum) == (RequestState.PENDING, 2)


@pytest.mark.parametrize(
    "rule",
    [
        Rule("*", Verdict.ASK, destructive=True, approvers=("role:9",), quorum=2),
        Rule("wipe", Verdict.ASK, when={"command": ("rm *",)}, approvers=("role:9",), quorum=2),
    ],
)
async def test_todays_rules_hold_for_the_marks_and_the_shell_words_of_a_tool_inside_a_tool(
    bench: Bench, rule: Rule
) -> None:
    def wipe(command: str) -> str:
        return "wiped"

    metadata = {"destructive": True, "shell": "command"}
    tool = Tool(wipe, requires_approval=True, metadata=metadata)
    inner, _ = child("kid", [calls(("wipe", {"command": "cd x; rm y"})), "end"], [tool])
    step = await bench.start([calls(("ask", {"topic": "t"})), "done"], [delegate("ask", inner)])
    batch = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch
    assert bench.runner
    todays = replace(bench.runner, policy=Policy((rule,)))
    (request,) = batch.requests
    ruling = (await todays.revise(batch, request, request.call.args)).ruling
    assert (ruling.approvers, ruling.quorum) == (("role:9",), 2)


@pytest.mark.parametrize(
    ("choice", "ran", "result"),
    [(Choice.ACCEPT, ["deployed"], "deployed"), (Choice.REJECT, ["not deployed"], "not deployed")],
)
async def test_the_output_of_an_agent_inside_a_tool_waits_for_the_calls_beside_it(
    bench: Bench, choice: Choice, ran: list[str], result: str
) -> None:
    """The model wrote that output before it could know the decision."""
    outputs: list[str] = []

    def finish(text: str) -> str:
        outputs.append(text)
        return text

    both = calls(("final_result", {"text": "deployed"}), ("danger", {"value": "1"}))
    answers: list[Answer] = [both, calls(("final_result", {"text": "not deployed"}))]
    inner, _ = child("kid", answers, [protected(bench.box)], output_type=finish)
    step = await bench.start([calls(("ask", {"topic": "t"})), "done"], [delegate("ask", inner)])
    assert shown(step) == ["kid › danger"]
    assert outputs == []
    assert isinstance(await bench.decide(step, choice), Finished)
    assert outputs == ran
    assert bench.script.results == {"call_0": result}


@pytest.mark.parametrize(("failing", "result"), [(2, "fine"), (9, "overloaded")])
async def test_a_model_of_an_agent_inside_a_tool_that_fails_for_a_moment_is_asked_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failing: int, result: str
) -> None:
    monkeypatch.setattr(failures, "RETRY_DELAYS", (0.0,))
    asked: list[int] = []

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(1)
        if len(asked) <= failing:
            raise ModelOverloadedError("m", "overloaded")
        return ModelResponse(parts=[TextPart("fine")])

    inner = Agent(FunctionModel(respond), name="kid")
    tools = [delegate("ask", inner)]
    step = await bench.start([calls(("ask", {"topic": "t"})), "done"], tools, limits=Limits(model_retries=3))
    assert isinstance(step, Finished)
    assert result in bench.script.results["call_0"]
    assert len(asked) == min(failing, 3) + 1


async def test_an_agent_that_a_tool_leaves_running_can_ask_nobody(bench: Bench) -> None:
    gate = asyncio.Event()
    inner, script = child(
        "one", [calls(("wait", {})), calls(("danger", {"value": "x"})), "fine"], [protected(bench.box)]
    )
    running: list[asyncio.Task[Any]] = []

    @inner.tool_plain
    async def wait() -> str:
        await gate.wait()
        return "waited"

    async def begin(topic: str) -> str:
        running.append(asyncio.create_task(inner.run(topic)))
        await asyncio.sleep(0.1)
        return "begun"

    def release() -> str:
        running[0].get_loop().call_soon_threadsafe(gate.set)
        while not running[0].done():
            time.sleep(0.01)
        return "released"

    step = await bench.start([calls(("begin", {"topic": "t"})), calls(("release", {})), "done"], [begin, release])
    assert isinstance(step, Finished)
    assert bench.box.ran == []
    assert "has already ended" in script.results["call_0"]


async def test_a_tool_that_was_approved_is_not_asked_about_again_while_its_agent_asks(bench: Bench) -> None:
    rounds: list[Answer] = [calls(("danger", {"value": "1"})), calls(("danger", {"value": "2"})), "end"]
    inner, _ = child("one", rounds, [protected(bench.box)])
    tool = Tool(delegate("ask", inner), requires_approval=True)
    step = await bench.start([calls(("ask", {"topic": "t"})), "done"], [tool])
    first = batch_of(step).id
    cards: list[list[str]] = []
    while not isinstance(step, Finished):
        cards.append(shown(step))
        step = await bench.decide(step, Choice.ACCEPT)
        await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.RUNNING, TurnState.WAITING))
        batch = await bench.store.run(lambda tx: tx.batch(first))
        assert batch
        assert batch.requests[0].run
        assert batch.requests[0].run.state is (RunState.DONE if isinstance(step, Finished) else RunState.RUNNING)
        await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.WAITING, TurnState.RUNNING))
    assert cards == [["ask"], ["one › danger"], ["one › danger"]]
    assert len(bench.box.ran) == 2


async def test_an_agent_inside_a_tool_may_use_the_model_of_the_turn(bench: Bench) -> None:
    """The connections of a model belong to one loop, and the tools run on another one."""
    loops: list[object] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        loops.append(asyncio.get_running_loop())
        return ModelResponse(parts=[TextPart("fine")])

    inner: Agent[Any, Any] = Agent(FunctionModel(answer), name="one")

    async def ask(topic: str) -> str:
        assert asyncio.get_running_loop() is not here
        return (await inner.run(topic)).output

    here = asyncio.get_running_loop()
    await bench.start([calls(("ask", {"topic": "t"})), "done"], [ask])
    assert bench.script.results == {"call_0": "fine"}
    assert loops == [here]


async def test_each_tool_of_an_agent_inside_a_tool_has_its_own_time_limit(bench: Bench) -> None:
    async def sleepy() -> str:
        await asyncio.sleep(10)
        return "slept"

    inner, script = child("one", [calls(("sleepy", {})), "fine"], [sleepy])
    await bench.start([calls(("ask", {"topic": "t"})), "done"], [delegate("ask", inner)], slots=ToolSlots(0.2))
    assert "did not finish within 0.2 seconds" in script.results["call_0"]
    assert bench.script.results == {"call_0": "fine"}


async def test_a_pause_holds_agents_inside_tools(bench: Bench) -> None:
    slots, box = ToolSlots(), bench.box

    paused, here = asyncio.Event(), asyncio.get_running_loop()

    def pausing() -> str:
        slots.pause(SERVER)
        here.call_soon_threadsafe(paused.set)
        return "paused"

    inner, script = child(
        "one", [calls(("pausing", {})), calls(("free", {"value": "x"})), "fine"], [pausing, box.tool("free")]
    )
    going = asyncio.ensure_future(
        bench.start([calls(("ask", {"topic": "t"})), "done"], [delegate("ask", inner)], slots=slots)
    )
    await asyncio.wait_for(paused.wait(), 10)
    await asyncio.sleep(0.1)
    assert len(script.asked) == 1, "the model is not asked during the pause"
    slots.resume(SERVER)
    assert isinstance(await asyncio.wait_for(going, 10), Finished)
    assert box.ran == [("free", "x", None)]


async def test_a_stopped_turn_ends_the_agents_inside_its_tools(bench: Bench) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    here = asyncio.get_running_loop()

    async def endless() -> str:
        here.call_soon_threadsafe(started.set)
        try:
            await asyncio.sleep(60)
        finally:
            here.call_soon_threadsafe(ended.set)
        return "never"

    inner, script = child("one", [calls(("endless", {})), "fine"], [endless])
    going = asyncio.ensure_future(bench.start([calls(("ask", {"topic": "t"})), "done"], [delegate("ask", inner)]))
    await asyncio.wait_for(started.wait(), 10)
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(going, 10)
    await asyncio.wait_for(ended.wait(), 10)
    assert len(script.asked) == 1


async def test_a_turn_that_was_stopped_meanwhile_starts_no_call_of_an_agent_inside_a_tool(bench: Bench) -> None:
    """The tool catches every error, and its turn still ends as stopped."""
    inner, _ = child("one", [calls(("free", {"value": "x"})), "fine"], [bench.box.tool("free")])

    async def careful(topic: str) -> str:
        await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.RUNNING, TurnState.STOPPED))
        try:
            return (await inner.run(topic)).output
        except Exception:
            return "caught"

    with pytest.raises(TurnFailed, match="the turn was stopped"):
        await bench.start([calls(("careful", {"topic": "t"})), "done"], [careful])
    assert bench.box.ran == []


async def test_a_tool_cannot_open_a_realtime_session(bench: Bench) -> None:
    inner, _ = child("one", ["fine"], [])

    async def talk(topic: str) -> str:
        return str(inner.realtime("openai:gpt-realtime"))

    await bench.start([calls(("talk", {"topic": "t"})), "done"], [talk])
    assert "bypass every approval" in bench.script.results["call_0"]


async def test_a_response_that_reaches_the_limit_of_an_inner_agent_counts(bench: Bench) -> None:
    inner, script = child("researcher", ["many words that cost more than the tool allows"], [])

    async def research(topic: str) -> str:
        return (await inner.run(topic, usage_limits=UsageLimits(output_tokens_limit=1))).output

    step = await bench.start([calls(("research", {"topic": "t"})), "done"], [research])
    assert isinstance(step, Finished)
    assert len(script.asked) == 1
    counted = await bench.store.run(lambda tx: len(tx.db.all("SELECT turn FROM usage")))
    assert counted + len(step.uses) == 3, "two responses of the turn and one of the agent inside the tool"

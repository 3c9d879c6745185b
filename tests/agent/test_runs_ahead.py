"""Runs that are ahead of their first step: the model is asked while the thread is opened, and nothing else happens."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelOverloadedError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from signoff.agent.deps import DepsMaker
from signoff.agent.history import entry_of
from signoff.agent.kept_runs import KeptRuns
from signoff.agent.runner import AgentRunner, Extras
from signoff.approvals.desk import Desk
from signoff.approvals.model import Choice
from signoff.store import Store
from signoff.turns.activity import Activity, Event, ModelUsed
from signoff.turns.budgets import Budget, Budgets, Unit
from signoff.turns.model import Finished, Turn, TurnState, Waiting
from signoff.turns.progress import Changes, RunProgress
from tests.conftest import PLACE, HandClock
from tests.rigs.gate_bench import Bench, batch_of, protected
from tests.rigs.scripted import Answer, Script, calls

LOOK: Answer = calls(("look", {"value": "x"}))
ASK: Answer = calls(("danger", {"value": "x"}))


@dataclass
class Ahead(Bench):
    """One turn that was claimed and whose run is ahead of its step."""

    async def begin(self, answers: list[Answer], tools: list[Any] | None = None, **fields: Any) -> Turn:
        self.script = Script(answers)
        return await self.begin_with(Agent(self.script.model(), tools=tools or []), **fields)

    async def begin_with(self, agent: Agent[Any, Any], **fields: Any) -> Turn:
        """Claim the turn, begin its run, and wait until that can do no more."""
        self.runner = AgentRunner(agent, self.store, self.clock, **fields)
        await self.store.run(lambda tx: tx.insert_turn(self.turn))
        await self.store.run(lambda tx: tx.move(self.turn.id, TurnState.QUEUED, TurnState.RUNNING))
        turn = replace(self.turn, state=TurnState.RUNNING)
        await self.runner.begin(turn, await self.store.run(lambda tx: tx.step_input(turn)))
        await settle_down()
        return turn


@pytest.fixture
def one(store: Store, clock: HandClock) -> Ahead:
    return Ahead(store, clock, Desk(store, clock))


async def settle_down() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


def runs() -> list[str]:
    """Return the runs of this loop that have not ended."""
    return [task.get_name() for task in asyncio.all_tasks() if "_output" in repr(task.get_coro())]


async def test_the_model_is_asked_once_and_nothing_is_stored_or_run_before_the_step(one: Ahead, store: Store) -> None:
    await one.begin([LOOK, "done"], [one.box.tool("look")])
    before = store.commits
    await asyncio.sleep(0.02)
    assert len(one.script.asked) == 1
    assert one.box.ran == []
    assert store.commits == before
    assert await store.run(lambda tx: tx.history(PLACE.conversation)) == []
    assert isinstance(await one.advance(), Finished)
    assert one.box.ran == [("look", "x", None)]
    assert len(one.script.asked) == 2, "the step goes on with the response that was there"


async def test_the_step_asks_people_and_goes_on_after_their_decision(one: Ahead) -> None:
    await one.begin([ASK, "done"], [protected(one.box)])
    step = await one.advance()
    assert [request.call.tool for request in batch_of(step).requests] == ["danger"]
    assert isinstance(await one.decide(step, Choice.ACCEPT), Finished)
    assert one.box.ran == [("danger", "x", None)]
    assert runs() == []


async def test_people_see_every_word_of_a_reply_that_began_before_the_step(one: Ahead) -> None:
    await one.begin(["one two three"])
    one.progress = progress = RunProgress(one.turn.id, one.clock, Changes())
    step = await one.advance()
    assert isinstance(step, Finished)
    assert progress.status().text.split() == ["one", "two", "three"]


async def test_a_turn_that_moves_to_another_place_begins_anew_there(one: Ahead) -> None:
    turn = await one.begin([LOOK, LOOK, "done"], [one.box.tool("look")])
    assert one.runner
    moved = replace(turn, place=replace(PLACE, channel="99", conversation="99"))
    step = await one.runner.advance(moved, given=await one.store.run(lambda tx: tx.step_input(moved)))
    assert isinstance(step, Finished)
    assert len(one.script.asked) == 3
    assert one.box.ran == [("look", "x", None)]
    assert await one.store.run(lambda tx: tx.history(PLACE.conversation)) == []
    await settle_down()
    assert runs() == []


async def test_a_stopped_turn_ends_the_request_that_is_under_way(one: Ahead) -> None:
    cancelled = asyncio.Event()

    async def think(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        yield "done"

    turn = await one.begin_with(Agent(FunctionModel(stream_function=think)))
    assert len(runs()) == 1
    assert one.runner
    one.runner.turn_ended(turn)
    await asyncio.wait_for(cancelled.wait(), 1)
    await settle_down()
    assert runs() == []


async def test_a_program_that_stops_ends_the_run(one: Ahead) -> None:
    await one.begin(["done"])
    assert one.runner
    await one.runner.quiesce(0)
    assert runs() == []


async def test_a_model_that_fails_before_the_step_is_asked_again_by_the_step(
    one: Ahead, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.agent.runner.retry_delay", lambda error, attempt: 0.0)
    failures = [ModelOverloadedError("busy", "test")]

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        if failures:
            raise failures.pop()
        yield "done"

    await one.begin_with(Agent(FunctionModel(stream_function=answer)))
    assert runs() == []
    step = await one.advance()
    assert isinstance(step, Finished)
    assert step.text == "done"
    assert "the model failed turn" in caplog.text


async def test_a_failure_that_nobody_waits_for_is_not_reported_as_forgotten(one: Ahead) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))

    async def fail(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        raise RuntimeError("broken")
        yield ""

    turn = await one.begin_with(Agent(FunctionModel(stream_function=fail)))
    assert one.runner
    one.runner.turn_ended(turn)
    one.runner = None
    await settle_down()
    gc.collect()
    assert reported == []


async def test_a_used_up_budget_asks_people_in_the_step(one: Ahead) -> None:
    budgets = Budgets({(Budget.THREAD, Unit.TOKENS): 0}, overage=100)
    await one.begin(["done"], budgets=budgets)
    assert one.script.asked == []
    step = await one.advance()
    assert isinstance(step, Waiting)
    assert step.batch.is_overage


async def test_a_conversation_that_goes_on_does_not_begin_ahead(one: Ahead) -> None:
    script = Script(["done"])
    runner = AgentRunner(Agent(script.model()), one.store, one.clock)
    spoken = [entry_of(0, ModelRequest.user_text_prompt("hello")), entry_of(1, ModelResponse([TextPart("Hello.")]))]
    await one.store.run(lambda tx: tx.save_history(PLACE.conversation, spoken))
    await runner.begin(one.turn, await one.store.run(lambda tx: tx.step_input(one.turn)))
    await settle_down()
    assert script.asked == []
    assert runs() == []


async def test_a_run_that_cannot_be_kept_does_not_begin_ahead(one: Ahead) -> None:
    await one.begin(["done"], kept=KeptRuns(most=0))
    assert one.script.asked == []
    assert isinstance(await one.advance(), Finished)
    assert len(one.script.asked) == 1


class Canned(AbstractCapability[Any]):
    """Answers in place of the model."""

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> ModelResponse:
        return calls(("look", {"value": "x"}))


async def test_an_agent_with_capabilities_of_its_own_does_not_begin_ahead(one: Ahead) -> None:
    """Such a capability may answer without the gate's hook for responses."""
    script = Script(["done"])
    agent = Agent(script.model(), tools=[one.box.tool("look")], capabilities=[Canned()])
    await one.begin_with(agent, extras=Extras(own_output=True))
    await one.begin([LOOK], [one.box.tool("look")], extras=Extras(capabilities=(Canned(),)))
    assert one.box.ran == []
    assert runs() == []


@pytest.mark.parametrize("answer", [LOOK, "some words"], ids=["a call", "words"])
async def test_the_request_of_a_dropped_run_counts_for_the_budgets(one: Ahead, answer: Answer) -> None:
    turn = await one.begin([answer], [one.box.tool("look")])
    assert one.runner
    one.runner.turn_ended(turn)
    await asyncio.sleep(0.05)
    assert await one.store.run(lambda tx: tx.db.all("SELECT COUNT(*) FROM usage")) == [(1,)]
    assert one.box.ran == []


async def test_the_request_of_a_dropped_run_is_told_before_the_end_of_its_turn(
    one: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Event] = []
    turn = await one.begin(["some words"], activity=Activity([told.append]))
    assert one.runner
    assert told == []
    prices: list[Any] = []
    monkeypatch.setattr(ModelResponse, "cost", lambda response: prices.append(response))
    one.runner.turn_ended(turn)
    assert prices == [], "to find one would hold up the event loop"
    [used] = told
    assert isinstance(used, ModelUsed)
    assert (used.turn, used.requests) == (turn, 1)
    assert used.input_tokens > 0
    assert used.output_tokens > 0


async def test_a_run_that_took_its_step_tells_its_requests_once(one: Ahead) -> None:
    told: list[Event] = []
    turn = await one.begin(["some words"], activity=Activity([told.append]))
    assert one.runner
    await one.advance()
    one.runner.turn_ended(turn)
    assert [event.requests for event in told if isinstance(event, ModelUsed)] == [1]


class Holding(FunctionToolset[Any]):
    """Holds a lock as long as a run lasts."""

    lock = asyncio.Lock()

    async def __aenter__(self) -> Holding:
        await self.lock.acquire()
        return self

    async def __aexit__(self, *args: Any) -> None:
        self.lock.release()


@pytest.mark.parametrize(
    ("agent", "extras"),
    [
        ({"max_concurrency": 1}, Extras()),
        ({"toolsets": [Holding()]}, Extras()),
        ({}, Extras(deps=DepsMaker("a:b", lambda info: None))),
    ],
    ids=["a limit of runs", "a toolset that holds a lock", "dependencies"],
)
async def test_a_run_that_could_hold_up_others_or_knows_its_thread_does_not_begin_ahead(
    one: Ahead, agent: dict[str, Any], extras: Extras
) -> None:
    script = Script(["done"])
    await one.begin_with(Agent(script.model(), **agent), extras=extras)
    assert script.asked == []
    assert runs() == []
    assert isinstance(await one.advance(), Finished)
    assert len(script.asked) == 1

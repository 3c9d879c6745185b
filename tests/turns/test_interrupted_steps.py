"""Steps that are stopped or fail on the way: what they used is counted, and the conversation stays whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, UserPromptPart

from signoff.agent.history import load_messages
from signoff.agent.runner import AgentRunner, Extras
from signoff.approvals.model import Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.errors import StoreError
from signoff.store import Store
from signoff.turns.model import CallState, Turn, TurnState
from tests.conftest import ADA, HandClock
from tests.rigs.driver_office import Office, halts_of, in_thread
from tests.rigs.scripted import Box, Script, calls


class Jobs:
    """Makes named jobs of the store fail so many times, run slowly, or wait for something else first."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail: dict[str, int] = {}
        self.before: dict[str, Callable[[], Any]] = {}
        self.slow: set[str] = set()
        self._run = store.run
        monkeypatch.setattr(store, "run", self.run)

    async def run(self, work: Callable[[Any], Any]) -> Any:
        name = work.__qualname__.removesuffix(".<locals>.work")
        if first := self.before.pop(name, None):
            await first()
        if name in self.slow:
            return await self._run(lambda tx: (time.sleep(0.1), work(tx))[1])
        if self.fail.get(name, 0):
            self.fail[name] -= 1
            raise StoreError("the disk is full")
        return await self._run(work)


@pytest.fixture
def jobs(store: Store, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    return Jobs(store, monkeypatch)


def office_of(store: Store, clock: HandClock, agent: Agent[Any, Any], **options: Any) -> Office:
    return Office(store, clock, runner=AgentRunner(agent, store, clock, **options))  # type: ignore[arg-type]


def agent_of(script: Script, box: Box, **options: Any) -> Agent[Any, Any]:
    return Agent(
        script.model(), tools=[Tool(box.tool("act"), requires_approval=True), Tool(box.tool("look"))], **options
    )


async def used(store: Store) -> int:
    """How many model responses were counted."""
    return await store.run(lambda tx: tx.db.all("SELECT COUNT(*) FROM usage")[0][0])


async def soon(waiting: Any, seconds: float = 5.0) -> None:
    await asyncio.wait_for(waiting, seconds)


# The response and what it used


async def test_what_a_response_used_is_counted_if_its_turn_is_stopped_while_approvers_are_looked_up(
    store: Store, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, script, turn = Box(), Script([calls(("act", {"value": "x"})), "done"]), in_thread(1)
    office = office_of(store, clock, agent_of(script, box))
    looking = asyncio.Event()

    async def slow(batch: Any) -> Any:
        looking.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(type(office.desk), "look_for_approvers", lambda self, batch: slow(batch))
    await office.take(turn)
    await looking.wait()
    await halts_of(office).stop(ADA)
    await office.until(lambda: office.front.replies)
    assert await used(store) == len(script.asked) == 1
    await office.driver.stop(0)


async def test_a_question_that_is_not_stored_at_first_does_not_ask_the_model_for_nothing(
    store: Store, clock: HandClock, jobs: Jobs
) -> None:
    act = calls(("act", {"value": "x"}))
    box, script, turn = Box(), Script([act, act, "done"]), in_thread(1)
    office = office_of(store, clock, agent_of(script, box))
    jobs.fail["Driver._wait_for_people"] = 1
    await office.take(turn)
    await office.until(lambda: office.front.cards)
    assert await used(store) == len(script.asked)
    await office.driver.stop(0)


async def test_what_a_response_used_is_counted_if_its_turn_is_stopped_while_its_call_starts(
    store: Store, clock: HandClock, jobs: Jobs
) -> None:
    box, script, turn = Box(), Script([calls(("look", {"value": "x"})), "done"]), in_thread(1)
    office = office_of(store, clock, agent_of(script, box))
    stopping: list[asyncio.Task[int]] = []

    async def stop_first() -> None:
        commits = store.commits
        stopping.append(asyncio.ensure_future(halts_of(office).stop(ADA)))
        await asyncio.sleep(0)  # its job is in the queue of the store now
        while store.commits == commits:
            time.sleep(0.001)  # noqa: ASYNC251 - the stop is durable, and cancels the step as soon as this loop goes on

    jobs.before["Journal.enter"] = stop_first
    jobs.slow.add("Journal.enter")
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    await asyncio.sleep(0.1)
    assert box.ran == []
    assert await used(store) == len(script.asked) == 1
    await office.driver.stop(0)


class Stumbling(AbstractCapability[Any]):
    """An agent's own capability that turns each failure into its own."""

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> Any:
        raise RuntimeError("stumbled") from error


async def test_what_a_response_used_is_counted_if_a_capability_replaces_the_wait(
    store: Store, clock: HandClock
) -> None:
    box, script, turn = Box(), Script([calls(("act", {"value": "x"})), "done"]), in_thread(1)
    agent = agent_of(script, box, capabilities=[Stumbling()])
    office = office_of(store, clock, agent, extras=Extras(own_output=True))
    await office.take(turn)
    await office.until(lambda: office.front.cards or office.front.replies)
    assert await used(store) == len(script.asked) == 1
    await office.driver.stop(0)


# The result


async def test_a_result_that_was_not_stored_is_not_forgotten_after_a_response_whose_calls_were_refused(
    store: Store, clock: HandClock, jobs: Jobs
) -> None:
    box, turn = Box(), in_thread(1)
    script = Script([calls(("look", {"value": "x"})), calls(("act", {"value": "y"})), "done"])
    office = office_of(store, clock, agent_of(script, box), policy=Policy((Rule("act", Verdict.DENY),)))
    jobs.fail["Journal._end"] = 1
    await office.take(turn)
    await office.until(lambda: office.front.cards or office.front.replies)
    states = await store.run(lambda tx: [row[0] for row in tx.db.all("SELECT state FROM calls WHERE tool = 'look'")])
    # Either people are asked about the call that may have run, or its result is in the record.
    assert office.front.cards or states != [CallState.STARTED]
    await office.driver.stop(0)


# The conversation of a stopped turn


def prompts(messages: Any) -> list[str]:
    return [
        str(part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


def endless_preview() -> tuple[Callable[..., Any], asyncio.Event]:
    """Return a preview that does not end, and the event that says that it has begun."""
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    async def preview(*args: Any, **named: Any) -> str:
        loop.call_soon_threadsafe(begun.set)
        await asyncio.sleep(60)
        return ""

    return preview, begun


async def test_the_next_turn_knows_what_was_asked_before_it_was_stopped(store: Store, clock: HandClock) -> None:
    """The first turn is stopped while its call's preview is made: its response has started nothing."""
    preview, previewing = endless_preview()
    box, script = Box(), Script([calls(("act", {"value": "x"})), "done"])
    agent = Agent(script.model(), tools=[Tool(box.tool("act"), requires_approval=True, metadata={"preview": preview})])
    office = office_of(store, clock, agent)
    first, second = in_thread(1, text="the first wish"), in_thread(1, text="the second wish")
    await stop_the_first(office, first, second, previewing)
    stored = load_messages(await store.run(lambda tx: tx.history(first.place.conversation)))
    await office.driver.stop(0)
    assert ["first" in one or "second" in one for one in prompts(script.asked[-1])] == [True, True]
    assert len(prompts(stored)) == 2


async def stop_the_first(office: Office, first: Turn, second: Turn, previewing: asyncio.Event) -> None:
    """Stop the first turn while its preview is made, and let the second one end."""
    await office.take(first)
    await soon(previewing.wait())
    await office.take(second)
    assert await halts_of(office).stop_turn(ADA, first.id)
    await office.until_state(second, TurnState.DONE)


class Lingering(AbstractCapability[Any]):
    """An agent's own capability that cleans up for a while when a call is cancelled."""

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        try:
            return await handler(args)
        except asyncio.CancelledError:
            await asyncio.sleep(0.5)
            raise


async def test_a_stopped_turn_that_ends_slowly_overwrites_nothing_of_the_next_one(
    store: Store, clock: HandClock
) -> None:
    preview, previewing = endless_preview()
    box, script = Box(), Script([calls(("act", {"value": "x"})), calls(("look", {"value": "y"})), "the last words"])
    tools = [
        Tool(box.tool("act"), requires_approval=True, metadata={"preview": preview}),
        Tool(box.tool("look")),
    ]
    agent = Agent(script.model(), tools=tools, capabilities=[Lingering()])
    office = office_of(store, clock, agent)
    first, second = in_thread(1, text="the first wish"), in_thread(1, text="the second wish")
    await stop_the_first(office, first, second, previewing)
    before = await store.run(lambda tx: tx.history(first.place.conversation))
    await asyncio.sleep(1)
    after = await store.run(lambda tx: tx.history(first.place.conversation))
    await office.driver.stop(0)
    assert "the last words" in str(load_messages(before)[-1])
    assert [entry.body for entry in after] == [entry.body for entry in before]

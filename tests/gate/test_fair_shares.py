"""Fair shares: nobody waits for another person's tools, and nobody can fill the machine with theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.runner import Limits
from signoff.approvals.model import Actor, CallKey
from signoff.gate.tool_slots import ToolShares, ToolSlots
from signoff.turns.model import Finished, Step
from tests.conftest import PLACE, make_turn
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import calls


def bench_of(bench: Bench, person: str, number: int = 0) -> Bench:
    """A turn of this person in a conversation of its own."""
    place = replace(PLACE, conversation=f"{person}-{number}")
    return Bench(
        bench.store, bench.clock, bench.desk, turn=make_turn(place=place, asker=Actor(person, person, PLACE.server))
    )


class Crowd:
    """Counts the sync tools that run at once, and lets them end when the test says so."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.running: dict[str, int] = {}
        """Person -> how many of their tools run."""
        self.most: dict[str, int] = {}
        self._lock = threading.Lock()

    def slow(self, person: str) -> Callable[[], str]:
        def slow() -> str:
            with self._lock:
                self.running[person] = self.running.get(person, 0) + 1
                self.most[person] = max(self.most.get(person, 0), self.running[person])
            self.release.wait(30)
            with self._lock:
                self.running[person] -= 1
            return "slow"

        return slow

    async def until_running(self, person: str, count: int) -> None:
        while self.running.get(person, 0) < count:  # noqa: ASYNC110 - only the threads know
            await asyncio.sleep(0.01)


async def test_nobody_waits_for_the_tools_of_two_people_with_thirty_calls_each(bench: Bench) -> None:
    slots, crowd = ToolSlots(), Crowd()
    ten = [calls(*[("slow", {})] * 10), "done"]

    def start(person: str, number: int) -> asyncio.Task[Step]:
        turn = bench_of(bench, person, number)
        return asyncio.ensure_future(turn.start([*ten], [crowd.slow(person)], slots=slots))

    others = ("eva", "leo", "tim")  # together they would fill a pool of 40 threads
    busy = [start(person, number) for person in ("mia", "noa") for number in range(3)]
    busy += [start(person, 0) for person in others]
    try:
        async with asyncio.timeout(60):
            for person in ("mia", "noa", *others):
                await crowd.until_running(person, 10)
            third = bench_of(bench, "kim")
            step = await third.start([calls(("quick", {})), "done"], [bench.box.tool("quick")], slots=slots)
            assert isinstance(step, Finished)
            assert third.script.results == {"call_0": "quick did default"}
            crowd.release.set()
            ends = await asyncio.gather(*busy)
    finally:
        crowd.release.set()
    assert all(isinstance(end, Finished) for end in ends), "the calls that waited have run, too"
    assert set(crowd.most.values()) == {10}


async def test_the_time_limit_starts_when_the_tool_starts(bench: Bench) -> None:
    def nap() -> str:
        threading.Event().wait(0.3)
        return "rested"

    slots = ToolSlots(0.8, ToolShares(1))
    step = await bench.start([calls(*[("nap", {})] * 6), "done"], [nap], slots=slots, limits=Limits())
    assert isinstance(step, Finished)
    assert set(bench.script.results.values()) == {"rested"}, "the last one waited longer than the limit"


async def test_tools_that_were_given_up_and_still_run_count_and_the_person_is_told(bench: Bench) -> None:
    slots, crowd = ToolSlots(0.2, ToolShares(2)), Crowd()
    try:
        async with asyncio.timeout(20):
            stuck = bench_of(bench, "mia", 1)
            await stuck.start([calls(("slow", {}), ("slow", {})), "done"], [crowd.slow("mia")], slots=slots)
            assert all("did not finish" in told for told in stuck.script.results.values())
            mia, noa = bench_of(bench, "mia", 2), bench_of(bench, "noa", 2)
            await mia.start([calls(("quick", {})), "done"], [bench.box.tool("quick")], slots=slots)
            assert "2 tools that this person started were given up" in mia.script.results["call_0"]
            assert bench.box.ran == []
            await noa.start([calls(("quick", {})), "done"], [bench.box.tool("quick")], slots=slots)
            assert noa.script.results == {"call_0": "quick did default"}
            crowd.release.set()
            later = bench_of(bench, "mia", 3)
            while crowd.running["mia"]:  # noqa: ASYNC110 - only the threads know
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            await later.start([calls(("quick", {})), "done"], [bench.box.tool("quick")], slots=slots)
            assert later.script.results == {"call_0": "quick did default"}
    finally:
        crowd.release.set()


def key(number: int) -> CallKey:
    return CallKey("conversation", 1, f"call_{number}")


async def test_a_call_that_is_cancelled_in_the_queue_leaves_its_place_to_the_next() -> None:
    shares = ToolShares(1)
    await shares.take("mia", key(0))
    waiting = [asyncio.ensure_future(shares.take("mia", key(number))) for number in (1, 2)]
    await asyncio.sleep(0)
    shares.leave("mia", key(0))  # the place goes to the first one, which is cancelled before it runs
    waiting[0].cancel()
    async with asyncio.timeout(5):
        assert await waiting[1] is True
    shares.leave("mia", key(2))
    assert not shares.is_waiting("mia")


async def test_waiting_calls_are_told_when_nothing_can_become_free() -> None:

    shares, endless = ToolShares(1), Future[Any]()
    await shares.take("mia", key(0))
    shares.begun(key(0), endless)
    waiting = asyncio.ensure_future(shares.take("mia", key(1)))
    await asyncio.sleep(0)
    shares.leave("mia", key(0))
    with pytest.raises(ToolFailed, match="still run"):
        await asyncio.wait_for(waiting, 5)


async def test_a_paused_server_takes_no_place_from_its_person(bench: Bench) -> None:
    slots = ToolSlots(shares=ToolShares(1))
    mia = Actor("mia", "mia", "open")
    paused, other = replace(PLACE, server="paused", conversation="p"), replace(PLACE, server="open", conversation="o")
    first = Bench(bench.store, bench.clock, bench.desk, turn=make_turn(place=paused, asker=mia))
    second = Bench(bench.store, bench.clock, bench.desk, turn=make_turn(place=other, asker=mia))
    enter_seen = asyncio.Event()

    class PausingShares(ToolShares):
        async def take(self, person: str, key: CallKey) -> bool:
            waited = await super().take(person, key)
            if key.conversation == "p" and not enter_seen.is_set():
                slots.pause("paused")
                enter_seen.set()
                return True
            return waited

    slots.shares = PausingShares(1)
    held = asyncio.ensure_future(first.start([calls(("one", {})), "done"], [bench.box.tool("one")], slots=slots))
    async with asyncio.timeout(10):
        await enter_seen.wait()
        step = await second.start([calls(("two", {})), "done"], [bench.box.tool("two")], slots=slots)
        assert isinstance(step, Finished)
        slots.resume("paused")
        assert isinstance(await held, Finished)
    assert [entry[0] for entry in bench.box.ran] == ["two", "one"]

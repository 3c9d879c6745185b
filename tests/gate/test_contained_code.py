"""What other people wrote may fail, hang or try to end more than itself: the turn goes on, and what is said is true."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.models import ModelRequestContext

from signoff.approvals.clicks import Click
from signoff.approvals.containment import Overreach, answered, contained
from signoff.approvals.errors import Refused
from signoff.approvals.model import Choice, RequestKind, RequestState, Ruling, ToolCall, Verdict
from signoff.approvals.policy import Context, Declaration, Policy, Rule
from signoff.errors import StoreError, TurnFailed
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import Finished, TurnState
from tests.conftest import ADA, PLACE
from tests.rigs.gate_bench import Bench, Shelf, batch_of, protected
from tests.rigs.scripted import calls


async def cancelled(*args: Any, **named: Any) -> Any:
    inner = asyncio.ensure_future(asyncio.sleep(60))
    inner.cancel()
    await inner


async def leaves(*args: Any, **named: Any) -> Any:
    sys.exit(2)


def leaves_in_a_thread(*args: Any, **named: Any) -> Any:
    sys.exit(2)


ENDINGS = [cancelled, leaves, leaves_in_a_thread]


# What would end more than itself


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_tool_ends_neither_the_process_nor_its_turn(bench: Bench, ending: Any) -> None:
    async with asyncio.timeout(20):
        step = await bench.start([calls(("act", {})), "done"], [Tool(bench.box.tool("act", ending))])
    assert isinstance(step, Finished)
    assert "The tool failed: Overreach: " in bench.script.results["call_0"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("what", ["approval", "preview", "args_validator"])
async def test_nor_does_what_is_asked_before_it_runs(bench: Bench, what: str, ending: Any) -> None:
    named: dict[str, Any] = {what: ending} if what == "args_validator" else {"metadata": {what: ending}}
    tool = Tool(bench.box.tool("act"), requires_approval=what == "preview", **named)
    async with asyncio.timeout(20):
        if what == "preview":
            await bench.start([calls(("act", {})), "done"], [tool])
            assert "its preview failed (Overreach: " in bench.script.results["call_0"]
        else:
            with pytest.raises(TurnFailed, match="Nothing was approved"):
                await bench.start([calls(("act", {})), "done"], [tool])
    assert bench.box.ran == []


async def test_a_turn_does_not_hang_when_a_hook_of_the_agent_is_cancelled(bench: Bench) -> None:
    class Hook(AbstractCapability[Any]):
        async def before_model_request(
            self, ctx: RunContext[Any], request_context: ModelRequestContext
        ) -> ModelRequestContext:
            return await cancelled()

    with pytest.raises(TurnFailed, match="Nothing was approved"):
        await bench.start(["done"], [], capabilities=[Hook()])


async def test_whoever_is_cancelled_stays_cancelled() -> None:
    async def work() -> None:
        with contained():
            await asyncio.sleep(60)

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(Overreach), contained():
        await cancelled()


async def test_however_many_never_end_the_next_one_is_answered() -> None:
    """In a pool of threads they would hold every place of it."""
    end = threading.Event()
    hanging = [asyncio.ensure_future(answered(end.wait)) for _ in range(50)]
    try:
        assert await asyncio.wait_for(answered(lambda: "here"), 20) == "here"
    finally:
        end.set()
        await asyncio.gather(*hanging)


async def hangs(*args: Any, **named: Any) -> None:
    await asyncio.sleep(60)


def hangs_in_a_thread(*args: Any, **named: Any) -> None:
    threading.Event().wait(2)


@pytest.mark.parametrize("slow", [hangs, hangs_in_a_thread])
async def test_a_validator_has_no_longer_than_the_tool(bench: Bench, slow: Any) -> None:
    tool = Tool(bench.box.tool("act"), args_validator=slow)
    async with asyncio.timeout(20):
        step = await bench.start([calls(("act", {})), "done"], [tool], slots=ToolSlots(0.1))
    assert isinstance(step, Finished)
    assert bench.box.ran == []
    assert "the check of its arguments took longer" in bench.script.results["call_0"]


# What has run is not said to have not


@dataclass
class Changing:
    """A policy to which rules are added while calls wait."""

    rules: list[Rule] = field(default_factory=list[Rule])

    async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling:
        return await Policy(tuple(self.rules)).decide(call, declaration, context)


def asks_once_it_runs(ctx: RunContext[Any]) -> str:
    if not ctx.tool_call_approved:
        raise ApprovalRequired
    return "second ran"


SECOND = Tool(asks_once_it_runs, name="second")
DENIED = Rule("first", Verdict.DENY, reason="from now on")


async def test_a_call_that_has_run_keeps_its_result_whatever_the_rules_say_later(bench: Bench) -> None:
    policy = Changing()
    tools = [Tool(bench.box.tool("first")), SECOND]
    step = await bench.start([calls(("first", {}), ("second", {})), "done"], tools, policy=policy)
    assert batch_of(step).already_ran == ("first",)
    policy.rules.append(DENIED)
    await bench.decide(step, Choice.ACCEPT)
    assert bench.script.results == {"call_0": "first did default", "call_1": "second ran"}


async def test_a_call_that_has_run_is_not_checked_against_its_own_effects(bench: Bench) -> None:
    made: list[str] = []

    def create(name: str) -> str:
        made.append(name)
        return f"created {name}"

    def is_free(ctx: RunContext[Any], name: str) -> None:
        if name in made:
            raise ModelRetry(f"{name} exists already")

    tools = [Tool(create, args_validator=is_free), SECOND]
    step = await bench.start([calls(("create", {"name": "x"}), ("second", {})), "done"], tools)
    await bench.decide(step, Choice.ACCEPT)
    assert bench.script.results == {"call_0": "created x", "call_1": "second ran"}
    assert made == ["x"]


async def cut_off(bench: Bench, monkeypatch: pytest.MonkeyPatch, tool: Tool, policy: Changing) -> None:
    """A call that has run and whose result could not be written: only its start is known."""
    real = bench.store.run

    async def run(work: Any) -> Any:
        if "Journal._end" in work.__qualname__:
            raise StoreError("the disk is gone")
        return await real(work)

    monkeypatch.setattr(bench.store, "run", run)
    with pytest.raises(StoreError):
        await bench.start([calls(("first", {"value": "x"})), "done"], [tool], policy=policy)
    monkeypatch.undo()


async def test_a_call_that_was_cut_off_and_is_denied_now_may_have_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Changing()
    await cut_off(bench, monkeypatch, Tool(bench.box.tool("first")), policy)
    policy.rules.append(DENIED)
    await bench.advance()
    assert bench.box.ran == [("first", "x", None)]
    assert bench.script.results["call_0"].startswith(
        "An earlier attempt at this call was cut off and may have run. This time: Not allowed: from now on."
    )


async def test_a_call_that_was_cut_off_and_cannot_be_shown_now_may_have_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(ctx: RunContext[Any], **args: Any) -> str:
        raise ToolFailed("there is nothing to see any more")

    policy = Changing()
    await cut_off(bench, monkeypatch, Tool(bench.box.tool("first"), metadata={"preview": look}), policy)
    policy.rules.append(Rule("first", Verdict.ASK))
    await bench.advance()
    words = "An earlier attempt at this call was cut off and may have run. This time: there is nothing to see any more"
    assert words in bench.script.results["call_0"]


async def test_a_call_that_was_cut_off_and_is_skipped_is_told_as_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cut_off(bench, monkeypatch, Tool(bench.box.tool("first")), Changing())
    step = await bench.advance()
    assert batch_of(step).requests[0].kind is RequestKind.MAY_HAVE_RUN
    await bench.decide(step, Choice.SKIP)
    assert bench.script.results["call_0"].startswith("The bot stopped during this call: it may have run.")


async def test_a_call_that_was_cut_off_is_put_to_people_though_its_effects_stand_in_its_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_new(ctx: RunContext[Any], **args: Any) -> None:
        if bench.box.ran:
            raise ModelRetry("it exists already")

    await cut_off(bench, monkeypatch, Tool(bench.box.tool("first"), args_validator=is_new), Changing())
    step = await bench.advance()
    assert batch_of(step).requests[0].kind is RequestKind.MAY_HAVE_RUN
    await bench.decide(step, Choice.RERUN)
    words = "An earlier attempt at this call was cut off and may have run. This time: it exists already"
    assert words in bench.script.results["call_0"]
    assert bench.box.ran == [("first", "x", None)]


async def test_nothing_starts_in_a_turn_that_is_stopped(bench: Bench) -> None:
    """Not even if the stop is committed while the call is on its way to the journal."""
    policy = Changing()
    ruled = asyncio.Event()

    class Waiting(Changing):
        async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling:
            # The only look at a call that is alone, and the last one before the journal.
            await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.RUNNING, TurnState.STOPPED))
            ruled.set()
            return await policy.decide(call, declaration, context)

    with pytest.raises(TurnFailed, match="the turn was stopped"):
        await bench.start([calls(("act", {})), "done"], [Tool(bench.box.tool("act"))], policy=Waiting())
    assert ruled.is_set()
    assert bench.box.ran == []
    rows = await bench.store.run(lambda tx: tx.audit_page(PLACE.server, limit=9))
    assert "started" not in [row.kind for row in rows]


# Validators that ask


def only_at_home(ctx: RunContext[Any], path: str) -> None:
    if not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"summary": "sure?"})
    if path.startswith("/etc"):
        raise ModelRetry("never in /etc")


def writer(ran: list[str]) -> Tool:
    def act(path: str) -> str:
        ran.append(path)
        return "written"

    return Tool(act, args_validator=only_at_home)


@pytest.mark.parametrize(("path", "runs"), [("/srv/x", True), ("/etc/x", False)])
async def test_what_a_validator_refuses_once_it_is_approved_does_not_run(bench: Bench, path: str, runs: bool) -> None:
    ran: list[str] = []
    step = await bench.start([calls(("act", {"path": path})), "done"], [writer(ran)])
    assert batch_of(step).requests[0].summary == "sure?"
    assert isinstance(await bench.decide(step, Choice.ACCEPT), Finished)
    assert ran == ([path] if runs else [])


async def test_nor_can_it_be_edited_to_that(bench: Bench) -> None:
    ran: list[str] = []
    step = await bench.start([calls(("act", {"path": "/srv/x"})), "done"], [writer(ran)])
    batch = batch_of(step)
    assert bench.runner
    with pytest.raises(Refused, match="never in /etc"):
        await bench.runner.revise(batch, batch.requests[0], {"path": "/etc/x"})
    assert (await bench.runner.revise(batch, batch.requests[0], {"path": "/srv/y"})).call.args == {"path": "/srv/y"}


# Calls that only wait


async def test_a_call_that_waited_for_one_that_failed_before_its_card_runs_unasked(bench: Bench) -> None:
    def refuse(ctx: RunContext[Any], **args: Any) -> str:
        raise ToolFailed("no such place")

    bad = Tool(bench.box.tool("bad"), requires_approval=True, metadata={"preview": refuse})
    step = await bench.start([calls(("bad", {}), ("look", {})), "done"], [bad, Tool(bench.box.tool("look"))])
    (request,) = batch_of(step).requests
    assert (request.call.tool, request.held) == ("look", True)
    kept = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert kept
    assert [r.state for r in kept.requests] == [RequestState.APPROVED]
    assert isinstance(await bench.advance(), Finished)
    assert [name for name, _, _ in bench.box.ran] == ["look"]


async def test_a_waiting_call_that_was_accepted_is_asked_about_again_if_what_it_touches_changes(bench: Bench) -> None:
    shelf = Shelf()
    put = shelf.tool()
    free = Tool(put.function, name="put", takes_ctx=True, metadata=put.metadata)
    step = await bench.start([calls(("put", {"value": "x"}), ("danger", {})), "done"], [free, protected(bench.box)])
    first = batch_of(step).requests[0]
    assert (first.call.tool, first.held) == ("put", True)
    shelf.state = "changed"
    for request in batch_of(step).requests:
        await bench.desk.decide(Click(request.id, Choice.ACCEPT, ADA, PLACE.channel, revision=0))
    again = batch_of(await bench.advance()).requests[0]
    assert (again.call.tool, again.held) == ("put", False)


async def test_the_deadline_is_that_of_the_calls_that_ask(bench: Bench) -> None:
    rule = Rule("danger", Verdict.ASK, timeout=3600.0)
    tools = [protected(bench.box), Tool(bench.box.tool("look"))]
    step = await bench.start([calls(("danger", {}), ("look", {})), "done"], tools, policy=Policy((rule,)))
    batch = batch_of(step)
    assert [request.held for request in batch.requests] == [False, True]
    assert batch.deadline - batch.opened == 3600.0

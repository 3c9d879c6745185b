"""Calls that people edited, calls whose operands changed, and calls on trial: through the real agent and the gate."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

from signoff.agent.runner import AgentRunner
from signoff.approvals.clicks import Click
from signoff.approvals.errors import Refused
from signoff.approvals.model import CallKey, Choice, RequestKind, RequestState, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.gate.book import Go
from signoff.gate.dry_run import DryRun
from signoff.gate.pending_call import CallInfo, Preview
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import CallRecord, CallState, Finished, TurnState, Waiting
from tests.conftest import ADA, MAX, PLACE, make_turn
from tests.rigs.gate_bench import Bench, Shelf, accept, batch_of, edit, protected
from tests.rigs.scripted import Script, calls


async def test_an_edited_call_runs_once_with_the_edited_arguments_and_the_model_is_told(bench: Bench) -> None:
    step = await bench.start([calls(("danger", {"value": "x"})), "done"], [protected(bench.box)])
    await edit(bench, step, {"value": "y"})
    assert isinstance(await accept(bench, step), Finished)
    assert bench.box.ran == [("danger", "y", None)]
    told = json.loads(bench.script.results["call_0"])
    assert told["result"] == "danger did y"
    assert "Ada changed the arguments" in told["note"]
    assert len(bench.script.asked) == 2


async def test_a_restart_between_edit_and_run_changes_nothing(bench: Bench) -> None:
    step = await bench.start([calls(("danger", {"value": "x"})), "done"], [protected(bench.box)])
    await edit(bench, step, {"value": "y"})
    await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel, revision=1))
    for _ in range(2):  # the second life finds the call done
        await bench.advance()
    assert bench.box.ran == [("danger", "y", None)]


async def test_an_edit_is_validated_by_the_tool_and_its_defaults_are_filled_in(bench: Bench) -> None:
    def book(day: date, seats: int = 2) -> str:
        return f"{day.isoformat()} for {seats}, {type(day).__name__}"

    tools = [Tool(book, requires_approval=True)]
    step = await bench.start([calls(("book", {"day": "2026-01-01", "seats": 5})), "done"], tools)
    for wrong in ({"day": "someday"}, {"seats": 3}, {"day": "2026-01-02", "more": 1}):
        with pytest.raises(Refused, match="does not take"):
            await edit(bench, step, wrong)
    await edit(bench, step, {"day": "2026-01-02"})
    await accept(bench, step)
    assert json.loads(bench.script.results["call_0"])["result"] == "2026-01-02 for 2, date"


async def test_an_edit_is_put_to_the_policy_again(bench: Bench) -> None:
    policy = Policy((Rule("danger", Verdict.DENY, when={"value": ("never*",)}, reason="not that"),))
    step = await bench.start([calls(("danger", {"value": "x"})), "done"], [protected(bench.box)], policy=policy)
    with pytest.raises(Refused, match="not that"):
        await edit(bench, step, {"value": "never this"})


async def test_a_rule_made_after_the_edit_still_stops_it(bench: Bench) -> None:
    step = await bench.start([calls(("danger", {"value": "x"})), "done"], [protected(bench.box)])
    await edit(bench, step, {"value": "y"})
    await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel, revision=1))
    rule = Rule("danger", Verdict.DENY, when={"value": ("y",)}, reason="no longer")
    bench.restart(policy=Policy((rule,)))
    await bench.advance()
    assert bench.box.ran == []
    assert "no longer" in bench.script.results["call_0"]


async def test_an_edit_of_one_call_leaves_its_siblings_as_they_are(bench: Bench) -> None:
    wanted = calls(("danger", {"value": "x"}), ("danger", {"value": "z"}))
    step = await bench.start([wanted, "done"], [protected(bench.box)])
    await edit(bench, step, {"value": "y"}, which=1)
    await accept(bench, step)
    assert sorted(bench.box.ran) == [("danger", "x", None), ("danger", "y", None)]


async def test_edited_arguments_that_a_layer_changes_are_not_run(bench: Bench) -> None:
    """Row 9 holds for edits too: what reaches the tool is what was approved."""

    class MeddlingToolset(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await super().call_tool(name, {**tool_args, "value": "meddled"}, ctx, tool)

    class Meddler(AbstractCapability[Any]):
        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return MeddlingToolset(toolset)

    step = await bench.start(
        [calls(("danger", {"value": "x"})), "done"], [protected(bench.box)], capabilities=[Meddler()]
    )
    await edit(bench, step, {"value": "y"})
    await accept(bench, step)
    assert bench.box.ran == []


async def test_a_preview_is_part_of_the_request_and_the_tool_learns_where_it_runs(bench: Bench) -> None:
    shelf = Shelf()
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [shelf.tool()])
    request = batch_of(step).requests[0]
    assert request.preview == "- before\n+ x"
    assert request.call.operands == {"shelf": "before"}
    await accept(bench, step)
    assert shelf.written == ["x"]
    assert shelf.infos == [CallInfo(PLACE, MAX, {"shelf": "before"}, (f"Ada ({ADA.id})",))]


async def test_what_has_changed_since_it_was_approved_is_asked_again(bench: Bench) -> None:
    """Row 10: the operand is looked at again before the call runs."""
    shelf = Shelf()
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [shelf.tool()])
    shelf.state = "changed"
    again = await accept(bench, step)
    assert isinstance(again, Waiting)
    assert shelf.written == []
    request = again.batch.requests[0]
    assert "no longer as it was" in request.why
    assert request.preview == "- changed\n+ x"
    assert request.state is RequestState.PENDING
    await accept(bench, again)
    assert shelf.written == ["x"]
    kinds = [row.kind for row in await bench.store.run(lambda tx: tx.audit_page(PLACE.server))]
    assert "operands_changed" in kinds


async def test_an_edit_has_a_preview_of_its_own(bench: Bench) -> None:
    shelf = Shelf()
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [shelf.tool()])
    await edit(bench, step, {"value": "y"})
    batch = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch is not None
    assert batch.requests[0].preview == "- before\n+ y"
    await accept(bench, step)
    assert shelf.written == ["y"]


async def test_an_edited_call_is_asked_again_with_its_edited_arguments(bench: Bench) -> None:
    shelf = Shelf()
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [shelf.tool()])
    await edit(bench, step, {"value": "y"})
    shelf.state = "changed"
    again = await accept(bench, step)
    request = batch_of(again).requests[0]
    assert (request.call.args, request.preview) == ({"value": "y"}, "- changed\n+ y")
    assert request.edit is not None
    assert request.edit.original == {"value": "x"}
    await accept(bench, again)
    assert shelf.written == ["y"]


async def test_an_edited_call_that_asks_by_itself_keeps_its_edit(bench: Bench) -> None:
    def put(ctx: RunContext[Any], value: str) -> str:
        if (ctx.tool_call_metadata.operands or {}).get("n") != str(len(tries)):
            tries.append(value)
            raise ApprovalRequired(metadata={"summary": "once more"})
        return f"put {value}"

    def preview(ctx: RunContext[Any], value: str) -> Preview:
        return Preview(value, {"n": str(len(tries))})

    tries: list[str] = ["before"]
    tool = Tool(put, requires_approval=True, metadata={"preview": preview})
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [tool])
    await edit(bench, step, {"value": "y"})
    tries.append("another changes it")
    again = await accept(bench, step)
    assert batch_of(again).requests[0].call.args == {"value": "y"}
    assert isinstance(await accept(bench, again), Finished)
    assert "put y" in bench.script.results["call_0"]


async def test_a_preview_that_fails_runs_nothing(bench: Bench) -> None:
    def broken(ctx: RunContext[Any], value: str, other: str | None) -> str:
        raise OSError("no disk")

    tool = Tool(bench.box.tool("danger"), requires_approval=True, metadata={"preview": broken})
    await bench.start([calls(("danger", {"value": "x"})), "done"], [tool])
    assert bench.box.ran == []
    assert "no disk" in bench.script.results["call_0"]


async def test_a_trial_says_what_would_happen_and_has_no_effect(bench: Bench) -> None:
    shelf = Shelf()
    policy = Policy((Rule("danger", Verdict.ASK, when={"value": ("*.env",)}, quorum=2, reason="keys"),))
    await bench.start(["done"], [Tool(bench.box.tool("danger")), shelf.tool()], policy=policy)
    assert bench.runner
    ruling = await bench.runner.test("danger", {"value": "a.env"}, PLACE, MAX)
    assert (ruling.verdict, ruling.quorum, ruling.reason) == (Verdict.ASK, 2, "keys")
    assert (await bench.runner.test("danger", {"value": "a"}, PLACE, MAX)).verdict is Verdict.ALLOW
    assert (await bench.runner.test("put", {"value": "a"}, PLACE, MAX)).verdict is Verdict.ASK
    with pytest.raises(Refused, match="does not take"):
        await bench.runner.test("danger", {"value": ["no", "text"]}, PLACE, MAX)
    with pytest.raises(Refused):
        await bench.runner.test("no_such_tool", {}, PLACE, MAX)
    assert bench.box.ran == []
    assert shelf.written == []
    assert await bench.store.run(lambda tx: tx.audit_page(PLACE.server, kind="started")) == []


async def test_the_same_tool_from_another_source_is_another_tool(bench: Bench) -> None:
    """Row 16: a grant is keyed by the schema digest, and that knows where the tool comes from."""

    async def schema(toolset: str) -> str:
        agent = Agent(TestModel(), toolsets=[FunctionToolset([protected(bench.box)], id=toolset)])
        return (await DryRun(agent, Policy(), PLACE, MAX).call("danger", {"value": "x"})).call.schema

    assert await schema("server a") == await schema("server a")
    assert await schema("server a") != await schema("server b")


async def test_the_same_tool_with_another_schema_is_another_tool() -> None:
    """Row 16: what was remembered of a tool does not hold once it takes something else."""

    def narrow(value: str) -> str:
        return value

    def wide(value: str, everywhere: bool = False) -> str:
        return value

    async def schema(function: Any) -> str:
        agent = Agent(TestModel(), tools=[Tool(function, name="danger")])
        return (await DryRun(agent, Policy(), PLACE, MAX).call("danger", {"value": "x"})).call.schema

    assert await schema(narrow) == await schema(narrow)
    assert await schema(narrow) != await schema(wide)


async def test_a_stopped_turn_leaves_a_conversation_that_can_go_on(bench: Bench) -> None:
    step = await bench.start([calls(("danger", {"value": "x"})), "done"], [protected(bench.box)])
    await bench.desk.cancel(batch_of(step).id, "stopped by Ada")
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.RUNNING, TurnState.STOPPED))
    bench.turn = make_turn("and now?")
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    assert isinstance(await bench.advance(), Finished)
    assert bench.box.ran == []


async def test_in_a_paused_server_neither_a_tool_nor_a_model_request_starts(bench: Bench) -> None:
    """The run is inside its first tool when the pause comes."""
    inside, release = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        inside.set()
        await release.wait()
        return "slow did it"

    answers = [calls(("slow", {})), calls(("danger", {"value": "x"})), "done"]
    running = asyncio.ensure_future(bench.start(answers, [Tool(slow), Tool(bench.box.tool("danger"))]))
    await inside.wait()
    assert bench.runner
    bench.runner.pause(PLACE.server)
    release.set()
    await asyncio.sleep(0.05)
    assert len(bench.script.asked) == 1
    bench.runner.resume(PLACE.server)
    assert isinstance(await running, Finished)
    assert bench.box.ran == [("danger", "x", None)]


async def test_a_call_that_meets_the_pause_in_its_last_moment_waits(bench: Bench) -> None:
    """The journal has let it in already; it is taken back and starts only when the server is resumed."""

    class PausingStore:
        async def run(self, work: Any) -> Any:
            result = await bench.store.run(work)
            if isinstance(result, Go):
                assert bench.runner
                bench.runner.pause(PLACE.server)
                entered.set()
            return result

    entered = asyncio.Event()
    await bench.start(["done"], [])
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.RUNNING, TurnState.DONE))
    bench.turn = make_turn("again")
    agent = Agent(Script([calls(("danger", {"value": "x"})), "done"]).model(), tools=[Tool(bench.box.tool("danger"))])
    bench.runner = AgentRunner(agent, PausingStore(), bench.clock)  # type: ignore[arg-type]
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    running = asyncio.ensure_future(bench.runner.advance(bench.turn))
    await asyncio.wait_for(entered.wait(), 60)
    await asyncio.sleep(0.05)
    assert bench.box.ran == []
    assert await bench.store.run(lambda tx: tx.call(CallKey(PLACE.conversation, 2, "call_0"))) is None
    running.cancel()


async def test_running_it_again_looks_at_the_operands_again(bench: Bench) -> None:
    """Row 10, after a crash: people said "run it again" to something that has changed since."""
    shelf = Shelf()
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [shelf.tool()])
    request = batch_of(step).requests[0]
    await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel))
    died = CallRecord(request.call.key, "put", request.call.digest, CallState.STARTED, request=request.id)
    await bench.store.run(lambda tx: tx.put_call(died, bench.turn.id, 0.0))
    asked = await bench.advance()
    assert batch_of(asked).requests[0].kind is RequestKind.MAY_HAVE_RUN
    assert batch_of(asked).requests[0].preview == "- before\n+ x"
    await bench.desk.decide(Click(batch_of(asked).id, Choice.RERUN, ADA, PLACE.channel))
    shelf.state = "changed"
    again = await bench.advance()
    assert shelf.written == []
    assert batch_of(again).requests[0].kind is RequestKind.MAY_HAVE_RUN


@pytest.mark.parametrize("shown", [None, 7, Preview("x", {"a": None})], ids=["nothing", "a number", "no digest"])  # type: ignore[dict-item]
async def test_a_preview_that_is_no_text_runs_nothing(bench: Bench, shown: Any) -> None:
    tool = Tool(bench.box.tool("danger"), requires_approval=True, metadata={"preview": lambda ctx, **args: shown})
    assert isinstance(await bench.start([calls(("danger", {})), "done"], [tool]), Finished)
    assert "its preview failed" in bench.script.results["call_0"]


async def test_metadata_that_is_no_json_is_kept_as_words(bench: Bench) -> None:
    def ask(value: str = "x") -> str:
        raise ApprovalRequired(metadata={"summary": "look", "when": object()})

    step = await bench.start([calls(("ask", {})), "done"], [Tool(ask)])
    assert batch_of(step).requests[0].summary == "look"


async def test_an_edited_call_that_may_have_run_is_asked_about_as_it_was_edited(bench: Bench) -> None:
    """The process dies inside the tool: what may have run, and what would run again, is what the person wrote."""
    step = await bench.start([calls(("danger", {"value": "rm -rf /"})), "done"], [protected(bench.box)])
    await edit(bench, step, {"value": "ls"})
    batch = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch
    await bench.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, revision=1))
    request = batch.requests[0]
    died = CallRecord(request.call.key, "danger", request.call.digest, CallState.STARTED, request=request.id)
    await bench.store.run(lambda tx: tx.put_call(died, bench.turn.id, 0.0))
    asked = batch_of(await bench.advance())
    assert asked.requests[0].kind is RequestKind.MAY_HAVE_RUN
    assert asked.requests[0].call.args == request.call.args
    assert asked.requests[0].edit
    await bench.desk.decide(Click(asked.id, Choice.RERUN, ADA, PLACE.channel))
    assert isinstance(await bench.advance(), Finished)
    assert bench.box.ran == [("danger", "ls", None)]


@pytest.mark.parametrize("how", ["a rule", "its preview"])
async def test_an_accepted_edit_is_not_stopped_by_what_is_wrong_with_the_original(bench: Bench, how: str) -> None:
    late: list[bool] = []

    def preview(ctx: RunContext[Any], value: str) -> str:
        if late and how == "its preview" and value == "old":
            raise ToolFailed("it is a folder now")
        return value

    def danger(value: str) -> str:
        return bench.box.tool("danger")(value)

    tool = Tool(danger, requires_approval=True, metadata={"preview": preview})
    step = await bench.start([calls(("danger", {"value": "old"})), "done"], [tool])
    await edit(bench, step, {"value": "new"})
    await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel, revision=1))
    late.append(True)
    assert bench.runner
    if how == "a rule":
        forbidden = Policy((Rule("danger", Verdict.DENY, when={"value": ("old",)}),))
        bench.runner = replace(bench.runner, policy=forbidden)
    assert isinstance(await bench.advance(), Finished)
    assert [value for _, value, _ in bench.box.ran] == ["new"]


async def test_a_trial_uses_the_loop_of_the_tools_and_starts_none_of_its_own(bench: Bench) -> None:
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [Shelf().tool()])
    before = {thread for thread in threading.enumerate() if thread.name == "signoff-tools-loop"}
    for value in "abc":
        assert bench.runner
        await bench.runner.test("put", {"value": value}, PLACE, MAX)
        await bench.runner.revise(batch_of(step), batch_of(step).requests[0], {"value": value})
    assert {thread for thread in threading.enumerate() if thread.name == "signoff-tools-loop"} == before


async def test_a_trial_has_no_longer_than_a_tool(bench: Bench) -> None:
    async def stuck(ctx: RunContext[Any], value: str, **others: Any) -> str:
        if value == "y":
            await asyncio.sleep(60)
        return value

    tool = Tool(bench.box.tool("danger"), requires_approval=True, metadata={"preview": stuck})
    step = await bench.start([calls(("danger", {"value": "x"})), "done"], [tool], slots=ToolSlots(0.2))
    async with asyncio.timeout(10):
        with pytest.raises(Refused, match=r"took longer than 0\.2 s"):
            await edit(bench, step, {"value": "y"})

"""Runs that wait in a store: decided later, by another agent object, with nothing shared but the file."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    AgentRunResult,
    ApprovalRequired,
    DeferredToolRequests,
    RunContext,
    Tool,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai_harness.code_mode import CodeMode

from signoff import (
    AlreadyDecided,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalStore,
    Pending,
    Policy,
    Rule,
    Signoff,
    StoreBroken,
    Verdict,
    resume,
    resume_sync,
    run_with_approval,
)
from signoff.approvals.errors import Refused
from signoff.approvals.model import RequestKind, RequestState
from signoff.gate.inline import Decided
from signoff.library.claim import Claim
from tests.rigs.scripted import Answer, Script, calls
from tests.rigs.stored_runs import ASKING, OUTPUT, Desk
from tests.rigs.ways_to_run import by_events, by_iter, by_stream


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "approvals.db")


async def test_a_run_that_must_ask_ends_and_an_accept_elsewhere_lets_it_go_on(desk: Desk) -> None:
    pending = await desk.ask()
    assert desk.box.ran == []
    (waiting,) = desk.store.waiting()
    assert (waiting.id,) == pending.ids
    assert (waiting.run, waiting.asked) == (pending.run, 1000.0)
    assert (waiting.request.tool_name, dict(waiting.request.args)) == ("danger", {"value": "x", "other": None})
    result = await resume(desk.agent("done"), waiting.id, True, by="Ada")
    assert result.output == "done"
    assert desk.box.ran == [("danger", "x", None)]
    assert desk.told == {"call_0": "danger did x"}
    assert (desk.store.waiting(), desk.store.ready()) == ((), ())
    assert [type(message).__name__ for message in result.all_messages()] == ["ModelRequest", "ModelResponse"] * 2
    assert [path.name for path in desk.path.parent.glob("*.lock")] == []


async def test_a_reject_is_told_to_the_model_with_the_name_and_the_note(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    await resume(desk.agent("done"), id, ApprovalDecision(False, "not today"), by="Ada")
    assert desk.box.ran == []
    assert desk.told == {"call_0": "Rejected by user Ada: the call was not run. Reason: not today"}


def test_sync_programs_can_wait_and_resume(desk: Desk) -> None:
    output = desk.agent(ASKING).run_sync("go").output
    assert isinstance(output, Pending)
    assert resume_sync(desk.agent("done"), output.ids[0], True).output == "done"
    assert desk.ran == ["danger"]


@pytest.mark.parametrize("drive", [by_stream, by_events, by_iter])
async def test_every_way_to_run_an_agent_can_wait(desk: Desk, drive: Any) -> None:
    output = await drive(desk.agent(ASKING))
    assert isinstance(output, DeferredToolRequests)
    (waiting,) = desk.store.waiting()
    assert output.metadata["call_0"]["request"] == waiting.id
    assert (await resume(desk.agent("done"), waiting.id, True)).output == "done"
    assert desk.ran == ["danger"]


async def test_a_call_after_streamed_text_is_refused_aloud(desk: Desk) -> None:
    agent = desk.agent(calls(("danger", {}), say="On it."))
    with pytest.raises(UserError, match="The call was not run"):
        async with agent.run_stream("go") as result:
            await result.get_output()
    assert (desk.box.ran, desk.store.waiting()) == ([], ())


class Report(BaseModel):
    text: str


async def test_a_call_beside_the_final_result_is_not_lost(desk: Desk) -> None:
    both = calls(("danger", {}), ("final_result", {"text": "early"}))
    agent = desk.agent(both, calls(("danger", {"value": "alone"})), output_type=[Report, DeferredToolRequests])
    pending = (await agent.run("go")).output
    assert isinstance(pending, Pending)
    assert [request.args["value"] for request in pending.requests] == ["alone"]


async def test_all_requests_of_a_response_are_decided_before_the_run_goes_on(desk: Desk) -> None:
    response = calls(("danger", {"value": "a"}), ("safe", {}), ("danger", {"value": "b"}))
    first, second = (await desk.ask(response)).ids
    left = (await resume(desk.agent("never reached"), first, False)).output
    assert isinstance(left, Pending)
    assert left.ids == (second,)
    assert desk.box.ran == []
    assert (await resume(desk.agent("done"), second, True)).output == "done"
    assert sorted(desk.box.ran) == [("danger", "b", None), ("safe", "default", None)]


async def test_a_held_call_does_not_run_if_every_question_was_rejected(desk: Desk) -> None:
    (id,) = (await desk.ask(calls(("safe", {}), ("danger", {})))).ids
    await resume(desk.agent("done"), id, False)
    assert desk.box.ran == []
    assert "you may call it again" in desk.told["call_0"]


async def test_split_runs_the_others_at_once_and_only_once(desk: Desk) -> None:
    (id,) = (await desk.ask(calls(("safe", {}), ("danger", {})), batch="split")).ids
    assert desk.ran == ["safe"]
    await resume(desk.agent("done", batch="split"), id, True)
    assert desk.ran == ["danger", "safe"]
    assert desk.told["call_0"] == "safe did default"


async def test_several_rounds_with_the_same_call_id(desk: Desk) -> None:
    id = (await desk.ask()).ids[0]
    for value in ("y", "z"):
        output = (await resume(desk.agent(calls(("danger", {"value": value}))), id, True)).output
        assert isinstance(output, Pending)
        id = output.ids[0]
        assert [waiting.id for waiting in desk.store.waiting()] == [id]
    assert (await resume(desk.agent("done"), id, False)).output == "done"
    assert [value for _, value, _ in desk.box.ran] == ["x", "y"]


async def test_the_rounds_of_all_resumes_are_counted(desk: Desk) -> None:
    (id,) = (await desk.ask(max_rounds=1)).ids
    result = await resume(desk.agent(calls(("danger", {"value": "y"})), "done", max_rounds=1), id, True)
    assert result.output == "done"
    assert "too often" in desk.told["call_0"]
    assert desk.ran == ["danger"]


async def test_two_racing_resumes_have_one_winner(desk: Desk) -> None:
    async def slow(value: str = "", other: str | None = None) -> str:
        desk.box.ran.append(("danger", value, other))
        await asyncio.sleep(0.05)
        return "slow"

    slow.__name__ = "danger"
    desk.tools[0] = Tool(slow, requires_approval=True)
    (id,) = (await desk.ask()).ids
    racing = [resume(desk.agent("done"), id, True, by=name) for name in ("Ada", "Ben", "Cleo")]
    ended = await asyncio.gather(*racing, return_exceptions=True)
    assert len([one for one in ended if not isinstance(one, Exception)]) == 1
    losers = [one for one in ended if isinstance(one, AlreadyDecided)]
    assert len(losers) == 2
    winner = desk.store.get(id).request.settlement
    assert winner
    assert winner.by
    assert {f"approved by {winner.by.name}" in str(one) for one in losers} == {True}
    assert len(desk.box.ran) == 1


async def test_a_second_decision_is_told_how_the_first_one_ended(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    await resume(desk.agent("done"), id, True, by="Ada")
    for decision in (True, False, None):
        with pytest.raises(AlreadyDecided, match=r"approved by Ada\. Its run has ended") as told:
            await resume(desk.agent("done"), id, decision, by="Ben")
        assert told.value.request.state is RequestState.APPROVED
    assert len(desk.box.ran) == 1
    assert [path.name for path in desk.path.parent.glob("*.lock")] == []


class Killed(BaseException):
    """Stands for kill -9: the framework must not handle it."""


def dying(desk: Desk, when: Callable[[str], bool]) -> Tool[Any]:
    def danger(value: str = "default", other: str | None = None) -> str:
        desk.box.ran.append(("danger", value, other))
        if when(value):
            raise Killed
        return "danger did it"

    return Tool(danger, requires_approval=True)


async def test_a_run_that_was_cut_off_after_the_decision_goes_on_with_the_same_call(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    broken = desk.agent("done")

    def fail(messages: list[ModelMessage]) -> ModelResponse:
        raise ConnectionError("the model's provider is down")

    desk.scripts[-1].next = fail
    with pytest.raises(ConnectionError):
        await resume(broken, id, True, by="Ada")
    assert desk.store.ready() == (id,)
    with pytest.raises(AlreadyDecided, match="call resume without a decision"):
        await resume(desk.agent("done"), id, False)
    assert (await resume(desk.agent("done"), id, True)).output == "done"
    assert desk.box.ran == [("danger", "x", None)]
    assert desk.told == {"call_0": "danger did x"}
    assert desk.store.ready() == ()


@pytest.mark.parametrize("again", [True, False])
async def test_a_call_that_was_cut_off_is_asked_about_again_and_never_repeated_silently(
    desk: Desk, again: bool
) -> None:
    (id,) = (await desk.ask()).ids
    desk.sql(
        "INSERT INTO calls SELECT run, position, call_id, 'danger', 'digest', 'started', NULL, id, 1 FROM requests"
    )  # another process died in the tool
    await_decision = (await resume(desk.agent("never reached"), id, True)).output
    assert isinstance(await_decision, Pending)
    (request,) = await_decision.requests
    assert (request.kind, desk.box.ran) == (RequestKind.MAY_HAVE_RUN, [])
    assert "was stopped while this call was running" in request.why
    assert (await resume(desk.agent("done"), request.id, again)).output == "done"
    assert desk.ran == (["danger"] if again else [])
    assert again or "it may have run" in desk.told["call_0"]


def delegating(desk: Desk, answers: list[Answer], after: Callable[[], None] = lambda: None) -> Script:
    """Add a tool that runs an agent with the same tools. Returns what that agent was told."""
    script = Script(answers)
    child = Agent(script.model(), name="kid", tools=list(desk.tools))

    async def delegate() -> str:
        output = (await child.run("go")).output
        after()
        return output

    desk.tools.append(delegate)
    return script


@pytest.mark.parametrize("mode", ["interactive", "auto_approve"])
async def test_an_agent_inside_a_tool_cannot_wait_in_a_store(desk: Desk, mode: Any) -> None:
    kid = delegating(desk, [ASKING, "kid is done"])
    assert (await desk.agent(calls(("delegate", {})), "done", mode=mode).run("go")).output == "done"
    assert desk.ran == ([] if mode == "interactive" else ["danger"])
    assert desk.told == {"call_0": "kid is done"}
    assert ("cannot wait in the middle of a tool" in kid.results["call_0"]) is (mode == "interactive")


async def test_code_that_calls_tools_cannot_wait_in_a_store(desk: Desk) -> None:
    script = Script([calls(("run_code", {"code": "await danger(value='1')"})), "done"])
    capabilities = [CodeMode(), Signoff(store=desk.store)]
    agent = Agent(script.model(), tools=desk.tools, output_type=OUTPUT, capabilities=capabilities)
    assert (await agent.run("go")).output == "done"
    assert desk.ran == []
    assert "cannot wait in the middle of a tool" in script.results["call_0"]


async def test_a_tool_whose_agent_was_cut_off_is_not_repeated_silently(desk: Desk) -> None:
    """What that agent did is not in the store, so the tool may not simply run again."""

    def die() -> None:
        raise Killed

    (id,) = (await desk.ask()).ids
    delegating(desk, [calls(("safe", {"value": "1"})), "kid is done"], die)
    with pytest.raises(Killed):
        await resume(desk.agent(calls(("delegate", {}))), id, True)
    output = (await resume(desk.agent("never reached"), id)).output
    assert isinstance(output, Pending)
    assert [(request.tool_name, request.kind) for request in output.requests] == [
        ("delegate", RequestKind.MAY_HAVE_RUN)
    ]
    assert desk.ran == ["danger", "safe"]


async def test_a_finished_tool_is_not_repeated_in_a_later_round(desk: Desk) -> None:
    # The process dies in the second round. Its model response was stored before its call ran.
    (id,) = (await desk.ask()).ids
    desk.tools.append(Tool(dying(desk, lambda value: value == "boom").function, name="other"))
    with pytest.raises(Killed):
        await resume(desk.agent(calls(("other", {"value": "boom"}))), id, True)
    output = (await resume(desk.agent("never reached"), id)).output
    assert isinstance(output, Pending)
    assert [request.tool_name for request in output.requests] == ["other"]
    assert [value for _, value, _ in desk.box.ran] == ["x", "boom"]
    assert (await resume(desk.agent("done"), output.ids[0], False)).output == "done"
    assert len(desk.box.ran) == 2


async def test_a_claimed_run_is_left_to_the_one_who_has_it(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    stored = desk.store.get(id)
    claim = Claim.take(desk.path, stored.run)
    assert claim
    assert Claim.take(desk.path, stored.run) is None
    waiting = asyncio.create_task(resume(desk.agent("done"), id, True))
    await asyncio.sleep(0.1)
    assert not waiting.done()  # somebody else is just deciding another request of this run
    claim.release()
    claim.release()
    assert (await waiting).output == "done"


async def test_a_run_can_be_decided_as_soon_as_it_is_stored(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    ended: list[Any] = []

    class Meanwhile(AbstractCapability[Any]):
        """Decides the next request while the run that asked is still about to end."""

        async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
            (waiting,) = desk.store.waiting()
            ended.append(await asyncio.wait_for(resume(desk.agent("done"), waiting.id, True), 10))
            return result

    asks_again = desk.agent(calls(("danger", {"value": "y"})))
    await resume(asks_again, id, True, capabilities=[Meanwhile()])
    assert [result.output for result in ended] == ["done"]
    assert [value for _, value, _ in desk.box.ran] == ["x", "y"]


async def test_the_database_itself_takes_one_decision(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    stored = desk.store.get(id)
    accept, reject = (Decided(ApprovalDecision(approved), "ui").settle(stored.request) for approved in (True, False))
    desk.store.decide(accept, stored.run)
    with pytest.raises(AlreadyDecided, match="already approved"):
        desk.store.decide(reject, stored.run)
    assert desk.store.get(id).request.state is RequestState.APPROVED


def test_one_process_has_one_claim_even_where_files_cannot_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    first = Claim.take(tmp_path / "x.db", "run")
    assert first
    assert Claim.take(tmp_path / "x.db", "run") is None
    assert Claim.take(tmp_path / "x.db", "other")
    first.release()
    assert Claim.take(tmp_path / "x.db", "run")


def tampered(desk: Desk, change: Callable[[dict[str, Any]], None]) -> None:
    for id, body in desk.sql("SELECT id, body FROM requests"):
        request = json.loads(body)
        change(request)
        desk.sql("UPDATE requests SET body = ? WHERE id = ?", json.dumps(request), id)


async def test_a_request_whose_arguments_were_changed_in_the_database_is_refused(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    (id,) = (await desk.ask()).ids
    tampered(desk, lambda request: request["call"]["args"].update(value="harmless"))
    assert desk.store.waiting() == ()
    assert "was changed in the database" in caplog.text
    with pytest.raises(StoreBroken, match="was changed in the database"):
        await resume(desk.agent("done"), id, True)
    assert desk.box.ran == []


async def test_a_conversation_whose_arguments_were_changed_in_the_database_does_not_run(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    ((messages,),) = desk.sql("SELECT messages FROM runs")
    assert b'"value":"x"' in messages
    desk.sql("UPDATE runs SET messages = ?", messages.replace(b'"value":"x"', b'"value":"evil"'))
    await resume(desk.agent("done"), id, True)
    assert desk.box.ran == []
    assert "arguments are not those that were approved" in desk.told["call_0"]


async def test_a_request_expires_when_somebody_looks_after_its_deadline(desk: Desk) -> None:
    first, second = (await desk.ask(calls(("danger", {}), ("danger", {"value": "b"})), timeout=60.0)).ids
    assert [waiting.deadline for waiting in desk.store.waiting()] == [1060.0, 1060.0]
    await resume(desk.agent("never reached"), first, True)
    desk.now = 1060.0
    assert desk.store.waiting() == ()
    assert set(desk.store.ready()) <= {first, second}
    with pytest.raises(AlreadyDecided, match="has expired") as told:
        await resume(desk.agent("never reached"), second, True)
    assert told.value.request.state is RequestState.EXPIRED
    assert (await resume(desk.agent("done"), second)).output == "done"
    assert [value for _, value, _ in desk.box.ran] == ["default"]
    assert desk.told["call_1"].startswith("Timeout: nobody decided in time")
    assert [(event["how"], event["state"]) for event in desk.events] == [("ui", "approved"), ("expired", "expired")]


async def test_a_rule_may_have_its_own_timeout(desk: Desk) -> None:
    policy = Policy((Rule("danger", Verdict.ASK, timeout=5.0),))
    await desk.ask(policy=policy, timeout=60.0)
    assert [waiting.deadline for waiting in desk.store.waiting()] == [1005.0]


async def test_edited_arguments_run_instead_and_pass_the_same_checks(desk: Desk) -> None:
    def preview(ctx: RunContext[str], value: str, other: str | None) -> str:
        return f"{ctx.deps.title()} asks for {value}"

    desk.tools[0] = Tool(desk.box.tool("danger"), requires_approval=True, metadata={"preview": preview})
    (id,) = (await desk.ask()).ids
    policy = Policy((Rule("danger", Verdict.DENY, when={"value": ("evil",)}, reason="never"),))
    agent = desk.agent("done", policy=policy)
    for wrong, says in (({"value": 7}, "does not take this"), ({"value": "evil"}, "never")):
        with pytest.raises(Refused, match=says):
            await resume(agent, id, ApprovalDecision(True, override_args=wrong), deps="ada")
    assert [waiting.id for waiting in desk.store.waiting()] == [id]
    edit = ApprovalDecision(True, override_args={"value": "y"})
    assert (await resume(agent, id, edit, by="Ada", deps="ada")).output == "done"
    assert desk.box.ran == [("danger", "y", None)]
    assert "Ada changed the arguments" in desk.told["call_0"]
    assert desk.store.get(id).request.preview == "Ada asks for y"
    assert desk.events[-1]["override_args"] == {"value": "y", "other": None}


async def test_memory_and_mode_decide_without_waiting(desk: Desk) -> None:
    memory = ApprovalMemory()
    (id,) = (await desk.ask(memory=memory)).ids
    await resume(desk.agent("done", memory=memory), id, ApprovalDecision(True, remember="session"))
    response = calls(("danger", {"value": "x"}), ("safe", {}))
    assert (await desk.agent(response, "done", memory=memory).run("go")).output == "done"
    assert desk.ran == ["danger", "danger", "safe"]
    assert (await desk.agent(ASKING, "done", mode="auto_deny").run("go")).output == "done"
    assert len(desk.box.ran) == 3
    assert desk.sql("SELECT count(*) FROM runs WHERE state <> 'ended'") == [(0,)]


async def test_a_remembered_call_beside_a_question_is_stored_as_decided(desk: Desk) -> None:
    memory = ApprovalMemory()
    (id,) = (await desk.ask(memory=memory)).ids
    await resume(desk.agent("done", memory=memory), id, ApprovalDecision(True, remember="session"))
    (id,) = (await desk.ask(calls(("danger", {"value": "x"}), ("danger", {"value": "y"})), memory=memory)).ids
    assert desk.store.get(id).request.args["value"] == "y"
    await resume(desk.agent("done"), id, False)  # without the memory: the stored decision counts
    assert [value for _, value, _ in desk.box.ran] == ["x", "x"]


async def test_a_tool_that_asks_by_itself_waits_with_its_words_and_runs_as_approved(desk: Desk) -> None:
    def picky(ctx: RunContext[str]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "picky"})
        desk.box.ran.append((ctx.deps,))
        return "ok"

    desk.tools.append(Tool(picky))
    (id,) = (await desk.ask(calls(("picky", {})))).ids
    assert desk.store.get(id).request.summary == "picky"
    await resume(desk.agent("done"), id, True, deps="ben")
    assert desk.box.ran == [("ben",)]


async def test_a_tool_that_asks_although_the_mode_approved_waits_for_a_person(desk: Desk) -> None:
    def picky(ctx: RunContext[Any], value: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "picky"})
        desk.box.ran.append((value,))
        return "ok"

    desk.tools.append(Tool(picky))
    memory = ApprovalMemory()
    (id,) = (await desk.ask(memory=memory)).ids
    await resume(desk.agent("done", memory=memory), id, ApprovalDecision(True, remember="session"))
    response = calls(("danger", {"value": "x"}), ("picky", {"value": "a"}))
    pending = await desk.ask(response, memory=memory)
    assert [request.tool_name for request in pending.requests] == ["picky"]
    assert [waiting.id for waiting in desk.store.waiting()] == [*pending.ids]
    assert (await resume(desk.agent("done"), pending.ids[0], True)).output == "done"
    assert [one for one in desk.box.ran if len(one) == 1] == [("a",)]
    assert desk.ran.count("danger") == 2


async def test_a_run_without_questions_leaves_nothing_behind(desk: Desk) -> None:
    assert (await desk.agent(calls(("safe", {})), "done").run("go")).output == "done"
    assert desk.sql("SELECT count(*) FROM runs") == desk.sql("SELECT count(*) FROM calls") == [(0,)]


async def test_old_runs_can_be_pruned(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    await resume(desk.agent("done"), id, True)
    await desk.ask()
    desk.now += 100
    assert (desk.store.prune(200), desk.store.prune(50)) == (0, 1)
    assert len(desk.store.waiting()) == 1
    with pytest.raises(LookupError):
        desk.store.get(id)


async def test_an_agent_that_cannot_end_with_requests_is_refused_when_it_is_made(desk: Desk) -> None:
    with pytest.raises(UserError, match="output_type=\\[str, DeferredToolRequests\\]"):
        desk.agent("done", output_type=str)


async def test_requests_that_the_agent_cannot_end_with_do_not_wait_for_ever(desk: Desk) -> None:
    agent = Agent(Script([ASKING]).model(), tools=desk.tools)
    with pytest.raises(UserError, match="DeferredToolRequests"):
        await agent.run("go", capabilities=[Signoff(store=desk.store)])
    assert (desk.store.waiting(), desk.store.ready()) == ((), ())


async def test_a_run_may_bring_the_store_and_resume_too(desk: Desk) -> None:
    agent = Agent(Script([ASKING, "done"]).model(), tools=desk.tools, output_type=OUTPUT)
    output = (await agent.run("go", capabilities=[Signoff(store=desk.store)])).output
    assert isinstance(output, Pending)
    with pytest.raises(ValueError, match="needs a store"):
        await resume(agent, output.ids[0], True)
    assert (await resume(agent, output.ids[0], True, store=desk.store)).output == "done"


async def test_run_with_approval_asks_its_ui_at_once_even_if_the_agent_has_a_store(desk: Desk) -> None:
    class Yes:
        def choose(self, request: Any) -> ApprovalDecision:
            return ApprovalDecision(True)

    assert (await run_with_approval(desk.agent(ASKING, "done"), "go", ui=Yes())).output == "done"
    assert (desk.ran, desk.store.waiting()) == (["danger"], ())


@pytest.mark.parametrize("options", [{"ui": object()}, {"timeout": 0}, {"store": None, "timeout": 5}])
def test_misuse_is_an_error(desk: Desk, options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Signoff(**dict[str, Any](store=desk.store) | options)


def test_the_file_is_private_and_one_of_another_version_is_refused(desk: Desk) -> None:
    assert desk.store.path.stat().st_mode & 0o077 == 0
    desk.sql("PRAGMA user_version = 99")
    with pytest.raises(StoreBroken, match="another version"):
        ApprovalStore(desk.path)


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        stores = list(pool.map(lambda _: ApprovalStore(tmp_path / "new.db"), range(16)))
    assert {store.waiting() for store in stores} == {()}


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("hello " * 1000, encoding="utf-8")
    with pytest.raises(StoreBroken, match="could not be read"):
        ApprovalStore(tmp_path / "x.db")

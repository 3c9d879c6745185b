"""Calls that need an answer: the UI gives it, or somebody gives it later to a stored run. Nothing else invents one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic_ai import CallDeferred, Tool
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai_harness import AskUser

from signoff import (
    AlreadyDecided,
    ApprovalDecision,
    ApprovalMemory,
    AsyncScriptedUI,
    Pending,
    ScriptedUI,
    Signoff,
    resume,
    run_with_approval,
)
from signoff.approvals.answer_forms import inquire
from signoff.approvals.errors import Refused
from signoff.approvals.model import RequestKind, RequestState
from signoff.gate.declarations import MAY_ASK
from signoff.gate.inline import Decided
from signoff.gate.live_calls import current_call
from signoff.library.stored_rows import requests_json
from tests.rigs.gate_bench import protected
from tests.rigs.scripted import Box, calls
from tests.rigs.stored_runs import Desk
from tests.rigs.talk import external, play
from tests.rigs.ways_to_run import by_events, by_iter, by_stream

ASK = calls(("ask_colour", {"room": "hall"}))
BLUE = ApprovalDecision(True, answer={"value": "blue"})
UNFIT = [
    (ApprovalDecision(True), "must not be empty"),
    (ApprovalDecision(True, answer={"value": "green"}), "must be among the options"),
    (ApprovalDecision(True, answer={"colour": "red"}), "no field named colour"),
    (ApprovalDecision(True, answer={"value": "red"}, override_args={"room": "x"}), "cannot change the arguments"),
]


def ask_colour(room: str) -> Literal["red", "blue"]:
    raise CallDeferred(metadata={"question": f"Which colour for the {room}?"})


def confirm() -> str:
    raise CallDeferred(metadata={"question": "Go on?", "schema": {"type": "object", "properties": {}}})


# Asked inside the run


@pytest.mark.parametrize("kind", [ScriptedUI, AsyncScriptedUI])
async def test_the_answer_of_the_ui_is_the_result_of_the_call(kind: Any) -> None:
    ui = kind([BLUE])
    agent, script = play(ASK, "done", tools=[ask_colour])
    assert (await run_with_approval(agent, "go", ui=ui)).output == "done"
    (request,) = ui.asked
    assert (request.kind, request.inquiry.words) == (RequestKind.ANSWER, "Which colour for the hall?")
    assert script.results == {"call_0": "blue"}


@pytest.mark.parametrize("drive", [by_stream, by_events, by_iter])
async def test_every_way_to_run_an_agent_asks_for_the_answer(drive: Any) -> None:
    agent, script = play(ASK, "done", tools=[ask_colour], capabilities=[Signoff(ui=ScriptedUI([BLUE]))])
    assert (await drive(agent)).strip() == "done"
    assert script.results == {"call_0": "blue"}


async def test_a_ui_may_decline_with_a_reason() -> None:
    agent, script = play(ASK, "done", tools=[ask_colour])
    await run_with_approval(agent, "go", ui=ScriptedUI([ApprovalDecision(False, "no idea")]))
    assert script.results["call_0"].startswith("The user declined to answer. Reason: no idea")


@pytest.mark.parametrize(("decision", "says"), UNFIT)
async def test_an_answer_that_does_not_fit_counts_as_declined_and_says_why(
    decision: ApprovalDecision, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Any] = []
    agent, script = play(ASK, "done", tools=[ask_colour])
    await run_with_approval(agent, "go", ui=ScriptedUI([decision]), on_event=events.append)
    assert script.results["call_0"].startswith("Declined automatically, not by a person")
    assert says in script.results["call_0"]
    assert [(event["approved"], event["how"], event["answer"]) for event in events] == [(False, "error", None)]
    assert caplog.text.count("does not fit and counts as declined") == 1


async def test_no_request_is_settled_with_an_answer_that_does_not_fit() -> None:
    ui = ScriptedUI([BLUE])
    await run_with_approval(play(ASK, "done", tools=[ask_colour])[0], "go", ui=ui)
    settled = Decided(ApprovalDecision(True, answer={"value": "green"}), "ui").settle(ui.asked[0])
    assert settled.settlement
    assert (settled.state, settled.settlement.answer) == (RequestState.REJECTED, None)


@pytest.mark.parametrize("answer", [{"value": object()}, {"value": float("nan")}, {"value": "\ud800"}, ["blue"]])
async def test_an_answer_that_is_no_json_is_a_failure_of_the_ui(answer: Any) -> None:
    agent, script = play(calls(("far", {})), "done", tools=[], toolsets=[external("far")])
    await run_with_approval(agent, "go", ui=ScriptedUI([ApprovalDecision(True, answer=answer)]))
    assert "an answer could not be obtained" in script.results["call_0"]


async def test_a_form_without_fields_is_confirmed_by_an_approval() -> None:
    agent, script = play(calls(("confirm", {})), "done", tools=[confirm])
    await run_with_approval(agent, "go", ui=ScriptedUI([True]))
    assert script.results == {"call_0": "{}"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "auto_approve"}, "mode auto_approve asks nobody"),
        ({"mode": "auto_approve", "ui": ScriptedUI([True])}, "mode auto_approve asks nobody"),
        ({"mode": "auto_deny", "ui": ScriptedUI([True])}, "mode auto_deny asks nobody"),
        ({"on_no_approver": "approve"}, "nobody is there to answer"),
        ({}, "nobody is there to answer"),
        ({"max_rounds": 0, "ui": ScriptedUI([True])}, "asked too often"),
    ],
)
async def test_nobody_but_a_person_answers_not_even_where_nothing_has_to_be_filled_in(
    options: dict[str, Any], says: str
) -> None:
    agent, script = play(calls(("confirm", {})), "done", tools=[confirm])
    await run_with_approval(agent, "go", **options)
    assert script.results["call_0"].startswith("Declined automatically, not by a person")
    assert says in script.results["call_0"]


async def test_an_answer_is_never_remembered_and_no_remembered_accept_answers() -> None:
    memory, ui = ApprovalMemory(), ScriptedUI([ApprovalDecision(True, remember="session"), False, False])
    agent, script = play(ASK, "done", tools=[Tool(ask_colour, requires_approval=True)])
    await run_with_approval(agent, "go", ui=ui, memory=memory)
    assert [request.kind for request in ui.asked] == [RequestKind.CALL, RequestKind.ANSWER]
    again = ScriptedUI([ApprovalDecision(True, answer={"value": "red"}, remember="session")])
    agent, script = play(ASK, "done", tools=[Tool(ask_colour, requires_approval=True)])
    await run_with_approval(agent, "go", ui=again, memory=memory)
    assert [request.kind for request in again.asked] == [RequestKind.ANSWER], "the call itself is remembered"
    assert script.results == {"call_0": "red"}
    assert len(memory.list()) == 1
    memory.store(again.asked[0], ApprovalDecision(False, remember="session"))
    assert [entry.approved for entry in memory.list()] == [True]
    assert memory.lookup(again.asked[0]) is None


async def test_an_event_has_the_answer() -> None:
    events: list[Any] = []
    agent, _ = play(ASK, "done", tools=[ask_colour])
    await run_with_approval(agent, "go", ui=ScriptedUI([BLUE]), on_event=events.append)
    assert [(e["tool"], e["approved"], e["by"], e["how"], e["answer"]) for e in events] == [
        ("ask_colour", True, "user", "ui", {"value": "blue"})
    ]


async def test_the_questions_of_the_harness_reach_the_ui() -> None:
    question = {"header": "Colour", "question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}
    response = calls(("ask_user_question", {"questions": [question]}))
    agent, script = play(response, "done", tools=[], capabilities=[AskUser(answerer=None)])
    await run_with_approval(agent, "go", ui=ScriptedUI([ApprovalDecision(True, answer={"Colour": ["red"]})]))
    assert script.results == {"call_0": '{"Colour":["red"]}'}


async def test_questions_that_are_too_long_to_show_fail_without_ending_the_run() -> None:
    options = [{"label": name, "description": "ä" * 200} for name in ("red", "blue", "green", "pink", "grey", "lime")]
    questions = [{"header": f"Colour {n}", "question": "ä" * 500, "options": options} for n in range(10)]
    response, ui = calls(("ask_user_question", {"questions": questions})), ScriptedUI([True])
    agent, script = play(response, "done", tools=[], capabilities=[AskUser(answerer=None)])
    assert (await run_with_approval(agent, "go", ui=ui)).output == "done"
    assert "Nobody was asked" in script.results["call_0"]
    assert ui.asked == []


async def test_a_call_after_streamed_text_asks_for_its_answer() -> None:
    ui = ScriptedUI([BLUE])
    response = calls(("ask_colour", {"room": "hall"}), say="On it.")
    agent, _ = play(response, "done", tools=[ask_colour], capabilities=[Signoff(ui=ui)])
    async with agent.run_stream("go") as result:
        await result.get_output()
    told = [part.content for part in result.all_messages()[-1].parts if isinstance(part, ToolReturnPart)]
    assert told == ["blue"]


async def test_a_call_beside_the_final_result_asks_for_its_answer() -> None:
    ui, final = ScriptedUI([BLUE]), ("final_result", {"response": 1})
    agent, _ = play(calls(("ask_colour", {"room": "hall"}), final), tools=[ask_colour], output_type=int)
    result = await run_with_approval(agent, "go", ui=ui)
    parts = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part.content for part in parts if part.tool_name == "ask_colour"] == ["blue"]


async def test_an_agent_inside_a_tool_asks_the_same_ui() -> None:
    ui = ScriptedUI([BLUE])
    child, heard = play(ASK, "it is blue", tools=[ask_colour], name="painter")

    async def paint() -> str:
        return (await child.run("go")).output

    agent, script = play(calls(("paint", {})), "done", tools=[paint])
    await run_with_approval(agent, "go", ui=ui)
    assert ui.asked[0].shown_tool == "painter › ask_colour"
    assert heard.results == {"call_0": "blue"}
    assert script.results == {"call_0": "it is blue"}


async def test_inquiries_count_for_max_rounds() -> None:
    agent, script = play(ASK, calls(("ask_colour", {"room": "attic"})), "done", tools=[ask_colour])
    ui = ScriptedUI([BLUE, BLUE])
    await run_with_approval(agent, "go", ui=ui, max_rounds=1)
    assert len(ui.asked) == 1
    assert "asked too often" in script.results["call_0"]


async def test_a_held_call_may_ask_for_an_answer_once_it_runs() -> None:
    box, ui = Box(), ScriptedUI([True, BLUE])
    response = calls(("danger", {}), ("ask_colour", {"room": "hall"}))
    agent, script = play(response, "done", tools=[protected(box), ask_colour])
    await run_with_approval(agent, "go", ui=ui)
    assert [(request.call.tool, request.held) for request in ui.asked] == [("danger", False), ("ask_colour", False)]
    assert script.results["call_1"] == "blue"


async def test_declining_to_answer_does_not_take_back_the_approval_for_held_calls() -> None:
    async def slowly(ctx: Any, **arguments: Any) -> str:
        await asyncio.sleep(0.2)
        return "the second question comes after the answer to the first call was declined"

    box, ui = Box(), ScriptedUI([True, False, False])
    second = Tool(box.tool("danger"), requires_approval=True, metadata={"preview": slowly})
    response = calls(
        ("safe", {}), ("ask_colour", {"room": "hall"}), ("danger", {}), ("final_result", {"response": 1})
    )  # nothing is deferred beside a final result
    tools = [box.tool("safe"), Tool(ask_colour, requires_approval=True), second]
    agent, _ = play(response, tools=tools, output_type=int)
    await asyncio.wait_for(run_with_approval(agent, "go", ui=ui), 20)
    assert [(request.call.tool, request.kind) for request in ui.asked] == [
        ("ask_colour", RequestKind.CALL),
        ("ask_colour", RequestKind.ANSWER),
        ("danger", RequestKind.CALL),
    ]
    assert [tool for tool, *_ in box.ran] == ["safe"]


async def test_an_answer_alone_lets_no_held_call_run() -> None:
    box, ui = Box(), ScriptedUI([BLUE, False])
    asks = Tool(ask_colour, metadata={"asks_people": True})
    response = calls(("ask_colour", {"room": "hall"}), ("danger", {}), ("safe", {}))
    agent, script = play(response, "done", tools=[asks, protected(box), box.tool("safe")])
    await run_with_approval(agent, "go", ui=ui)
    assert box.ran == []
    assert script.results["call_0"] == "blue"


SURE = inquire("Really?", {"type": "object", "properties": {"sure": {"type": "boolean"}}}, server="workshop")


def wiping(ended: list[str]) -> Tool[Any]:
    async def wipe() -> str:
        live = current_call()
        assert live
        try:
            got = [(await live.ask(SURE)).settlement for _ in range(2)]
        finally:
            ended.append("ended")
        return str([end.answer for end in got if end])

    return Tool(wipe, metadata={MAY_ASK: True, "approval": "never_require"})


async def test_a_tool_that_asks_while_it_runs_goes_on_with_each_answer() -> None:
    ui = ScriptedUI([ApprovalDecision(True, answer={"sure": sure}) for sure in (False, True)])
    agent, script = play(calls(("wipe", {})), "done", tools=[wiping([])])
    await run_with_approval(agent, "go", ui=ui)
    assert script.results == {"call_0": "[{'sure': False}, {'sure': True}]"}


async def test_a_tool_that_waits_for_an_answer_ends_with_its_run() -> None:
    ended: list[str] = []

    class Gone:
        async def choose(self, request: Any) -> ApprovalDecision:
            raise asyncio.CancelledError

    agent, _ = play(calls(("wipe", {})), "done", tools=[wiping(ended)])
    with pytest.raises(asyncio.CancelledError):
        await run_with_approval(agent, "go", ui=Gone())
    for _ in range(5):
        await asyncio.sleep(0)
    assert ended == ["ended"]


# In a store


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "approvals.db")
    desk.tools.append(ask_colour)
    return desk


async def test_an_answer_elsewhere_lets_a_stored_run_go_on(desk: Desk) -> None:
    (id,) = (await desk.ask(ASK)).ids
    (waiting,) = desk.store.waiting()
    assert waiting.request.inquiry
    assert waiting.request.inquiry.words == "Which colour for the hall?"
    result = await resume(desk.agent("done"), id, BLUE, by="Ada")
    assert result.output == "done"
    assert desk.told == {"call_0": "blue"}
    assert desk.events[-1]["answer"] == {"value": "blue"}
    with pytest.raises(AlreadyDecided, match=r"already answered by Ada\. Its run has ended"):
        await resume(desk.agent("done"), id, BLUE)


async def test_a_request_in_a_store_is_read_as_it_was_written(desk: Desk) -> None:
    output = await desk.ask(ASK)
    assert desk.store.get(output.ids[0]).request == output.requests[0]
    await resume(desk.agent("done"), output.ids[0], BLUE)
    settled = desk.store.get(output.ids[0]).request
    assert settled.settlement
    assert (settled.state, settled.settlement.answer) == (RequestState.APPROVED, {"value": "blue"})
    assert settled.inquiry == output.requests[0].inquiry


@pytest.mark.parametrize(("decision", "says"), UNFIT)
async def test_an_answer_that_does_not_fit_is_refused_and_the_request_stays_open(
    desk: Desk, decision: ApprovalDecision, says: str
) -> None:
    (id,) = (await desk.ask(ASK)).ids
    with pytest.raises(Refused, match=says) as refused:
        await resume(desk.agent("never reached"), id, decision)
    assert "still open" in str(refused.value)
    assert [waiting.id for waiting in desk.store.waiting()] == [id]
    assert (await resume(desk.agent("done"), id, BLUE)).output == "done"


async def test_a_stored_inquiry_may_be_declined(desk: Desk) -> None:
    (id,) = (await desk.ask(ASK)).ids
    await resume(desk.agent("done"), id, ApprovalDecision(False, "no idea"), by="Ada")
    assert desk.told["call_0"].startswith("Ada declined to answer. Reason: no idea")
    with pytest.raises(AlreadyDecided, match="already declined by Ada"):
        await resume(desk.agent("done"), id, BLUE)


async def test_a_stored_inquiry_expires(desk: Desk) -> None:
    (id,) = (await desk.ask(ASK, timeout=10)).ids
    desk.now += 11
    with pytest.raises(AlreadyDecided, match="has expired, so there is no answer"):
        await resume(desk.agent("never reached"), id, BLUE)
    await resume(desk.agent("done"), id)
    assert "nobody answered in time" in desk.told["call_0"]


async def test_after_a_cut_only_the_same_answer_counts_as_the_same_decision(desk: Desk) -> None:
    (id,) = (await desk.ask(ASK)).ids
    broken = desk.agent("done")

    def fail(messages: Any) -> Any:
        raise ConnectionError("the model's provider is down")

    desk.scripts[-1].next = fail
    with pytest.raises(ConnectionError):
        await resume(broken, id, BLUE, by="Ada")
    for other in (ApprovalDecision(True, answer={"value": "red"}), True, False):
        with pytest.raises(AlreadyDecided, match="answered by Ada"):
            await resume(desk.agent("never reached"), id, other)
    assert (await resume(desk.agent("done"), id, BLUE)).output == "done"
    assert desk.told == {"call_0": "blue"}


async def test_a_stored_call_may_need_an_approval_and_then_an_answer(desk: Desk) -> None:
    desk.tools[-1] = Tool(ask_colour, requires_approval=True)
    (first,) = (await desk.ask(ASK)).ids
    output = (await resume(desk.agent("never reached"), first, True)).output
    assert isinstance(output, Pending)
    assert [request.kind for request in output.requests] == [RequestKind.ANSWER]
    await resume(desk.agent("done"), output.ids[0], BLUE)
    assert desk.told == {"call_0": "blue"}


async def test_an_answer_alone_lets_no_held_call_of_a_stored_run_run(desk: Desk) -> None:
    desk.tools[-1] = Tool(ask_colour, metadata={"asks_people": True})
    response = calls(("ask_colour", {"room": "hall"}), ("danger", {}), ("safe", {}))
    output = await desk.ask(response)
    ids = {request.call.tool: request.id for request in output.requests}
    await resume(desk.agent("never reached"), ids["ask_colour"], BLUE)
    await resume(desk.agent("done"), ids["danger"], False)
    assert desk.ran == []
    assert desk.told["call_0"] == "blue"
    assert "you may call it again" in desk.told["call_2"]


@pytest.mark.parametrize("mode", ["auto_approve", "auto_deny"])
async def test_a_mode_declines_without_waiting(desk: Desk, mode: Any) -> None:
    assert (await desk.agent(ASK, "done", mode=mode).run("go")).output == "done"
    assert f"mode {mode} asks nobody" in desk.told["call_0"]


async def test_a_store_does_not_wait_for_a_tool_that_asks_while_it_runs(desk: Desk) -> None:
    desk.tools.append(wiping([]))
    assert (await desk.agent(calls(("wipe", {})), "done").run("go")).output == "done"
    assert desk.told == {"call_0": "[None, None]"}


async def test_a_request_of_the_version_before_inquiries_can_be_read_and_decided(desk: Desk) -> None:
    (id,) = (await desk.ask()).ids
    ((body,),) = desk.sql("SELECT body FROM requests")
    old = json.loads(body)
    assert (old.pop("inquiry"), old.pop("drafts")) == (None, {})
    desk.sql("UPDATE requests SET body = ?", json.dumps(old).encode())
    assert (await resume(desk.agent("done"), id, True)).output == "done"
    settled = json.loads(desk.sql("SELECT body FROM requests")[0][0])
    assert settled["settlement"].pop("answer") is None
    assert requests_json.validate_json(json.dumps(settled)).state is RequestState.APPROVED


async def test_an_edited_call_keeps_its_answer() -> None:
    tools = [Tool(ask_colour, requires_approval=True)]
    edited = ApprovalDecision(True, override_args={"room": "kitchen"})
    ui = ScriptedUI([edited, BLUE])
    agent, script = play(ASK, "done", tools=tools)
    await run_with_approval(agent, "go", ui=ui)
    assert ui.asked[1].inquiry
    assert ui.asked[1].inquiry.words == "Which colour for the kitchen?"
    assert script.results == {"call_0": "blue"}

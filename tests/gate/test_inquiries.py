"""Calls that ask people: the tool raises CallDeferred, is external, or asks while it runs. The answer is the result."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai_harness import AskUser
from pydantic_ai_harness.code_mode import CodeMode

from signoff.approvals.answer_forms import inquire
from signoff.approvals.answering import Answering
from signoff.approvals.clicks import Click
from signoff.approvals.errors import NotAllowed, Refused
from signoff.approvals.inquiries import FieldKind
from signoff.approvals.model import Choice, JsonObject, RequestKind, RequestState, RunState, Terms, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.cards.notices import names_no_role
from signoff.gate.declarations import ASKS_PEOPLE, MAY_ASK
from signoff.gate.live_calls import current_call
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import CallState, Finished, Step, Waiting
from tests.conftest import ADA, OLGA, PLACE
from tests.rigs.gate_bench import Bench, batch_of, edit, protected
from tests.rigs.scripted import Script, calls


async def answer(bench: Bench, step: Step, values: JsonObject, which: int = 0) -> Step:
    request = batch_of(step).requests[which]
    await Answering(bench.desk).answer(request.id, values, ADA, PLACE.channel, None)
    return await bench.advance()


def ask_colour(ctx: RunContext[Any], room: str) -> Literal["red", "blue"]:
    raise CallDeferred(metadata={"question": f"Which colour for the {room}?"})


async def test_the_answer_to_a_deferred_call_is_its_result(bench: Bench) -> None:
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask_colour])
    (request,) = batch_of(step).requests
    assert request.kind is RequestKind.ANSWER
    assert request.inquiry
    assert request.inquiry.words == "Which colour for the hall?"
    (field,) = request.inquiry.fields
    assert (field.kind, [one.value for one in field.options]) == (FieldKind.CHOICE, ["red", "blue"])
    step = await answer(bench, step, {"value": "blue"})
    assert isinstance(step, Finished)
    assert bench.script.results == {"call_0": "blue"}


async def test_the_tool_is_not_run_again_after_the_answer(bench: Bench) -> None:
    ran: list[str] = []

    def ask() -> str:
        ran.append("ask")
        raise CallDeferred

    step = await bench.start([calls(("ask", {})), "done"], [ask])
    await answer(bench, step, {"value": "yes"})
    await bench.advance()
    assert ran == ["ask"]


async def test_an_external_tool_asks_at_once_and_needs_no_approval(bench: Bench) -> None:
    external = ExternalToolset([ToolDefinition(name="elsewhere")])
    policy = Policy(undeclared=Verdict.ASK)
    step = await bench.start([calls(("elsewhere", {})), "done"], [], toolsets=[external], policy=policy)
    (request,) = batch_of(step).requests
    assert request.kind is RequestKind.ANSWER
    await answer(bench, step, {"value": "it is done"})
    assert bench.script.results == {"call_0": "it is done"}


async def test_a_rule_that_asks_holds_for_a_tool_that_only_says_that_it_asks_people(bench: Bench) -> None:
    liar = Tool(bench.box.tool("wipe"), metadata={ASKS_PEOPLE: True})
    policy = Policy((Rule("*", Verdict.ASK),))
    step = await bench.start([calls(("wipe", {"value": "all"})), "done"], [liar], policy=policy)
    assert bench.box.ran == []
    assert batch_of(step).requests[0].kind is RequestKind.CALL


async def test_a_tool_that_says_that_it_asks_people_needs_no_approval_and_shares_the_card(bench: Bench) -> None:
    ask = Tool(ask_colour, metadata={ASKS_PEOPLE: True})
    response = calls(("ask_colour", {"room": "hall"}), ("danger", {"value": "x"}))
    policy = Policy(undeclared=Verdict.ASK)
    step = await bench.start([response, "done"], [ask, protected(bench.box)], policy=policy)
    assert [request.kind for request in batch_of(step).requests] == [RequestKind.ANSWER, RequestKind.CALL]


async def test_a_deny_rule_holds_for_a_tool_that_only_asks(bench: Bench) -> None:
    external = ExternalToolset([ToolDefinition(name="elsewhere")])
    policy = Policy((Rule("elsewhere", Verdict.DENY, reason="not here"),))
    step = await bench.start([calls(("elsewhere", {})), "done"], [], toolsets=[external], policy=policy)
    assert isinstance(step, Finished)
    assert "not here" in bench.script.results["call_0"]


async def test_the_questions_of_the_harness_become_one_form(bench: Bench) -> None:
    questions = [
        {"header": "Database", "question": "Which one?", "options": [{"label": "SQLite"}, {"label": "PostgreSQL"}]},
        {
            "header": "Extras",
            "question": "Which of these?",
            "options": [{"label": "Logs", "description": "to a file"}, {"label": "Metrics"}],
            "multi_select": True,
        },
    ]
    response = calls(("ask_user_question", {"questions": questions}))
    step = await bench.start(
        [response, "done"], [], capabilities=[AskUser(answerer=None)], policy=Policy(undeclared=Verdict.ASK)
    )
    (request,) = batch_of(step).requests
    assert request.inquiry
    assert [(field.name, field.hint, field.kind) for field in request.inquiry.fields] == [
        ("Database", "Which one?", FieldKind.CHOICE),
        ("Extras", "Which of these?", FieldKind.CHOICES),
    ]
    await answer(bench, step, {"Database": ["SQLite"], "Extras": ["Logs", "Metrics"]})
    assert bench.script.results == {"call_0": '{"Database":["SQLite"],"Extras":["Logs","Metrics"]}'}


async def test_an_answer_that_does_not_fit_is_refused_and_the_request_stays_open(bench: Bench) -> None:
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask_colour])
    for values in ({"value": "green"}, {"value": ["red"]}, {}, {"other": "red"}, {"value": "red", "other": 1}):
        with pytest.raises(Refused):
            await answer(bench, step, values)
    (request,) = (await stored(bench, step)).requests
    assert request.state is RequestState.PENDING


async def test_the_model_is_told_who_declined_and_why(bench: Bench) -> None:
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask_colour])
    assert isinstance(await bench.decide(step, Choice.DECLINE), Finished)
    assert "Ada declined to answer" in bench.script.results["call_0"]


async def test_the_model_is_told_that_nobody_answered_in_time(bench: Bench) -> None:
    await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask_colour])
    bench.clock.at += 10_000
    await bench.desk.expire_due()
    await bench.advance()
    assert "nobody answered in time" in bench.script.results["call_0"]


async def test_accepting_everything_answers_nothing(bench: Bench) -> None:
    external = ExternalToolset([ToolDefinition(name="elsewhere")])
    response = calls(("elsewhere", {}), ("danger", {"value": "x"}))
    step = await bench.start([response, "done"], [protected(bench.box)], toolsets=[external])
    assert [request.kind for request in batch_of(step).requests] == [RequestKind.ANSWER, RequestKind.CALL]
    await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel))
    batch = await stored(bench, step)
    assert [request.state for request in batch.requests] == [RequestState.PENDING, RequestState.APPROVED]
    assert bench.box.ran == []


async def test_a_call_may_need_an_approval_and_then_an_answer(bench: Bench) -> None:
    ask = Tool(ask_colour, requires_approval=True)
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask])
    first = batch_of(step)
    assert first.requests[0].kind is RequestKind.CALL
    step = await bench.decide(step, Choice.ACCEPT)
    (request,) = batch_of(step).requests
    assert request.kind is RequestKind.ANSWER
    assert request.approvers == ("manage_server",), "the answer is part of what was approved"
    assert isinstance(await answer(bench, step, {"value": "red"}), Finished)
    approved = await bench.store.run(lambda tx: tx.batch(first.id))
    assert approved
    assert approved.requests[0].run
    assert approved.requests[0].run.state is RunState.DONE


async def test_a_call_whose_tool_asked_for_approval_is_answered_by_its_approvers(bench: Bench) -> None:
    def ask(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "it pays money"})
        raise CallDeferred(metadata={"question": "To whom?"})

    step = await bench.start([calls(("ask", {})), "done"], [ask])
    (request,) = batch_of(await bench.decide(step, Choice.ACCEPT)).requests
    assert (request.kind, request.approvers) == (RequestKind.ANSWER, ("manage_server",))


@pytest.mark.parametrize(
    ("schema", "values", "line"),
    [
        ({"type": "string", "title": "Colour"}, {"value": "blue"}, "blue"),
        ({"type": "string", "title": "Password"}, {"value": "rosebud"}, "***"),
        (
            {"properties": {"pin": {"title": "Password"}, "n": {"type": "integer"}}},
            {"pin": "7", "n": 2},
            '"pin": "***"',
        ),
    ],
)
async def test_the_line_for_people_has_the_answer_with_secrets_masked_by_their_labels(
    bench: Bench, schema: JsonObject, values: JsonObject, line: str
) -> None:
    def mask(named: JsonObject) -> JsonObject:
        return {name: "***" if name == "Password" else value for name, value in named.items()}

    def ask() -> str:
        raise CallDeferred(metadata={"schema": schema})

    step = await bench.start([calls(("ask", {})), "done"], [Tool(ask, requires_approval=True)], mask=mask)
    first = batch_of(step)
    await answer(bench, await bench.decide(step, Choice.ACCEPT), values)
    approved = await bench.store.run(lambda tx: tx.batch(first.id))
    assert approved
    assert approved.requests[0].run
    assert line in approved.requests[0].run.line
    assert "return_value" not in approved.requests[0].run.line


async def test_an_edited_call_keeps_its_answer(bench: Bench) -> None:
    ask = Tool(ask_colour, requires_approval=True)
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask])
    await edit(bench, step, {"room": "kitchen"})
    step = await bench.decide(step, Choice.ACCEPT)
    (request,) = batch_of(step).requests
    assert request.inquiry
    assert (request.inquiry.words, request.call.args) == ("Which colour for the kitchen?", {"room": "kitchen"})
    await answer(bench, step, {"value": "red"})
    assert bench.script.results == {"call_0": "red"}


async def test_the_asker_may_answer_a_call_that_needs_no_approval(bench: Bench) -> None:
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask_colour])
    assert batch_of(step).requests[0].approvers == ("asker", "manage_server")


async def test_the_asker_is_told_as_approvers_are_but_not_in_an_approvals_channel(bench: Bench) -> None:
    terms = Terms(notify=("ping", "channel:7"))
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask_colour], terms=terms)
    batch = batch_of(step)
    assert (batch.notify, batch.untold) == (("ping",), True)
    assert not names_no_role(batch)


async def test_a_call_that_needs_approval_is_told_everywhere(bench: Bench) -> None:
    terms, ask = Terms(notify=("ping", "channel:7")), Tool(ask_colour, requires_approval=True)
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask], terms=terms)
    step = await bench.decide(step, Choice.ACCEPT)
    assert batch_of(step).notify == ("ping", "channel:7")
    assert names_no_role(batch_of(step))


async def test_a_rule_names_who_answers(bench: Bench) -> None:
    policy = Policy((Rule("ask_colour", Verdict.ALLOW, answerers=("user:7",)),))
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask_colour], policy=policy)
    assert batch_of(step).requests[0].approvers == ("user:7",)


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Order(BaseModel):
    size: Size
    count: int
    note: str | None = None


async def test_a_structured_result_becomes_several_fields(bench: Bench) -> None:
    def order() -> Order:
        raise CallDeferred

    step = await bench.start([calls(("order", {})), "done"], [order])
    (request,) = batch_of(step).requests
    assert request.inquiry
    assert [(f.name, f.kind, f.required) for f in request.inquiry.fields] == [
        ("size", FieldKind.CHOICE, True),
        ("count", FieldKind.INTEGER, True),
        ("note", FieldKind.TEXT, False),
    ]
    await answer(bench, step, {"size": "small", "count": 2})
    assert bench.script.results == {"call_0": '{"size":"small","count":2}'}


async def test_an_agent_inside_a_tool_asks_on_the_same_card(bench: Bench) -> None:
    inner = Script([calls(("ask_colour", {"room": "hall"})), "it is blue"])
    painter = Agent(inner.model(), name="painter", tools=[ask_colour])

    async def paint() -> str:
        return (await painter.run("paint")).output

    step = await bench.start([calls(("paint", {})), "done"], [paint])
    (request,) = batch_of(step).requests
    assert (request.kind, request.path) == (RequestKind.ANSWER, ("painter",))
    assert isinstance(await answer(bench, step, {"value": "blue"}), Finished)
    assert inner.results == {"call_0": "blue"}
    assert bench.script.results == {"call_0": "it is blue"}


# Tools that ask while they run


def asking(work: Any) -> Tool[Any]:
    return Tool(work, metadata={MAY_ASK: True, "approval": "never_require"})


YES = inquire("Really?", {"type": "object", "properties": {"sure": {"type": "boolean"}}}, server="workshop")


@pytest.fixture
def on_the_bots_loop(bench: Bench) -> dict[str, Any]:
    return {"slots": ToolSlots(5.0, threads=None)}


async def test_a_running_tool_goes_on_with_the_answer(bench: Bench, on_the_bots_loop: dict[str, Any]) -> None:
    ran: list[str] = []

    async def wipe() -> str:
        live = current_call()
        assert live
        ran.append("before")
        request = await live.ask(YES)
        ran.append("after")
        return f"{request.state}: {request.settlement.answer if request.settlement else None}"

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    (request,) = batch_of(step).requests
    assert (request.kind, request.inquiry) == (RequestKind.ANSWER, YES)
    assert ran == ["before"]
    assert isinstance(await answer(bench, step, {"sure": True}), Finished)
    assert ran == ["before", "after"]
    assert bench.script.results == {"call_0": "approved: {'sure': True}"}


async def test_a_running_tool_may_ask_the_same_twice(bench: Bench, on_the_bots_loop: dict[str, Any]) -> None:
    async def wipe() -> str:
        live = current_call()
        assert live
        got = [(await live.ask(YES)).settlement for _ in range(2)]
        return str([end.answer for end in got if end])

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    step = await answer(bench, step, {"sure": False})
    again = await bench.advance()  # as after a step that the store failed
    assert isinstance(again, Waiting)
    assert isinstance(await answer(bench, again, {"sure": True}), Finished)
    assert bench.script.results == {"call_0": "[{'sure': False}, {'sure': True}]"}


async def test_a_running_tool_learns_that_nobody_answered(bench: Bench, on_the_bots_loop: dict[str, Any]) -> None:
    async def wipe() -> str:
        live = current_call()
        assert live
        return str((await live.ask(YES)).state)

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    assert isinstance(await bench.decide(step, Choice.DECLINE), Finished)
    assert bench.script.results == {"call_0": "rejected"}


async def test_a_failure_after_the_answer_is_that_of_the_tool(bench: Bench, on_the_bots_loop: dict[str, Any]) -> None:
    async def wipe() -> str:
        live = current_call()
        assert live
        await live.ask(YES)
        raise ModelRetry("try another way")

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    await answer(bench, step, {"sure": True})
    assert "try another way" in str(bench.script.asked[-1])
    assert "cut off" not in str(bench.script.asked[-1])


async def test_a_call_that_waited_when_the_process_died_may_have_run(
    bench: Bench, on_the_bots_loop: dict[str, Any]
) -> None:
    async def wipe() -> str:
        live = current_call()
        assert live
        return str((await live.ask(YES)).state)

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    assert bench.runner
    bench.runner.live.clear()  # another process
    (cancelled,) = await bench.desk.cancel_lost_inquiries()
    assert cancelled.requests[0].state is RequestState.CANCELLED
    step = await bench.advance()
    (request,) = batch_of(step).requests
    assert request.kind is RequestKind.MAY_HAVE_RUN


async def test_a_call_that_waits_ends_with_its_turn(bench: Bench, on_the_bots_loop: dict[str, Any]) -> None:
    ended: list[str] = []

    async def wipe() -> str:
        live = current_call()
        assert live
        try:
            await live.ask(YES)
        finally:
            ended.append("ended")
        return "never"

    await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    assert bench.runner
    bench.runner.turn_ended(bench.turn)
    await asyncio.sleep(0.01)
    assert ended == ["ended"]


async def test_a_running_tool_that_takes_its_question_back_goes_on(
    bench: Bench, on_the_bots_loop: dict[str, Any]
) -> None:
    async def wipe() -> str:
        live = current_call()
        assert live
        asking = asyncio.ensure_future(live.ask(YES))
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.sleep(0.3)
        return "never mind"

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    await asyncio.sleep(0.1)
    assert isinstance(await answer(bench, step, {"sure": True}), Finished)
    assert bench.script.results == {"call_0": "never mind"}


async def test_a_running_tool_may_ask_something_else_instead(bench: Bench, on_the_bots_loop: dict[str, Any]) -> None:
    other = inquire("Or this?", {"type": "object", "properties": {"sure": {"type": "boolean"}}}, server="workshop")

    async def wipe() -> str:
        live = current_call()
        assert live
        first = asyncio.ensure_future(live.ask(YES))
        await asyncio.sleep(0.05)
        first.cancel()
        return str((await live.ask(other)).inquiry == other)

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    await asyncio.sleep(0.1)
    step = await answer(bench, step, {"sure": True})
    assert batch_of(step).requests[0].inquiry == other, "the answer to the first question was taken for the second"
    assert isinstance(await answer(bench, step, {"sure": True}), Finished)
    assert bench.script.results == {"call_0": "True"}


async def test_a_call_that_ended_while_people_were_asked_reports_its_end_when_they_have_answered(
    bench: Bench, on_the_bots_loop: dict[str, Any]
) -> None:
    async def wipe() -> str:
        live = current_call()
        assert live
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await live.ask(YES)
        raise ToolFailed("the server is gone")

    step = await bench.start([calls(("wipe", {})), "done"], [asking(wipe)], **on_the_bots_loop)
    await asyncio.sleep(0.2)
    assert isinstance(await answer(bench, step, {"sure": True}), Finished)
    assert bench.script.results == {"call_0": '{"error":"the server is gone"}'}


def wiping(seen: list[str]) -> Tool[Any]:
    async def wipe(what: str) -> str:
        live = current_call()
        assert live
        seen.append(what)
        seen.append((await live.ask(YES)).state)
        return f"wiped {what}"

    return Tool(wipe, requires_approval=True, metadata={MAY_ASK: True})


@pytest.mark.parametrize("choice", [Choice.ANSWER, Choice.DECLINE])
async def test_the_record_of_a_running_call_has_the_edited_arguments(
    bench: Bench, on_the_bots_loop: dict[str, Any], choice: Choice
) -> None:
    tool = wiping([])
    step = await bench.start([calls(("wipe", {"what": "everything"})), "done"], [tool], **on_the_bots_loop)
    await edit(bench, step, {"what": "tmp"})
    step = await bench.decide(await bench.decide(step, Choice.ACCEPT), choice)
    assert isinstance(step, Finished)
    assert "wiped tmp" in bench.script.results["call_0"]
    for kind in ("started", "ran"):
        (row,) = await bench.store.run(lambda tx, kind=kind: tx.audit_page(PLACE.server, kind=kind))
        assert await bench.store.run(lambda tx, row=row: tx.audit_text(row.text)) == '{"what":"tmp"}'


async def test_an_edited_call_that_was_lost_while_its_server_asked_is_shown_as_it_was_edited(
    bench: Bench, on_the_bots_loop: dict[str, Any]
) -> None:
    tool = wiping([])
    step = await bench.start([calls(("wipe", {"what": "everything"})), "done"], [tool], **on_the_bots_loop)
    await edit(bench, step, {"what": "tmp"})
    await bench.decide(step, Choice.ACCEPT)
    assert bench.runner
    bench.runner.live.clear()  # another process
    await bench.desk.cancel_lost_inquiries()
    (request,) = batch_of(await bench.advance()).requests
    assert (request.kind, request.call.args) == (RequestKind.MAY_HAVE_RUN, {"what": "tmp"})


async def test_a_call_that_is_denied_while_its_server_asks_is_ended_and_may_have_run(
    bench: Bench, on_the_bots_loop: dict[str, Any]
) -> None:
    seen: list[str] = []
    step = await bench.start([calls(("wipe", {"what": "tmp"})), "done"], [wiping(seen)], **on_the_bots_loop)
    step = await bench.decide(step, Choice.ACCEPT)
    assert bench.runner
    bench.runner = replace(bench.runner, policy=Policy((Rule("wipe", Verdict.DENY, reason="not today"),)))
    assert isinstance(await answer(bench, step, {"sure": True}), Finished)
    assert "Not allowed any more: not today" in bench.script.results["call_0"]
    assert seen == ["tmp"], "the answer reached the tool"
    assert not bench.runner.live
    record = await bench.store.run(lambda tx: tx.call(batch_of(step).requests[0].call.key))
    assert record
    assert record.state is CallState.UNKNOWN


async def test_code_that_makes_another_call_the_second_time_does_not_get_the_result_of_a_running_one(
    bench: Bench,
) -> None:
    things = ["a", "b"]
    seen: list[str] = []

    def thing() -> str:
        return things.pop(0)

    async def wipe(what: str) -> str:
        live = current_call()
        assert live
        seen.append(what)
        await live.ask(YES)
        return f"wiped {what}"

    code = "said = ''\ntry:\n    said = await wipe(what=await thing())\nexcept Exception as e:\n    said = str(e)\nsaid"
    tools = [asking(wipe), thing]
    step = await bench.start([calls(("run_code", {"code": code})), "done"], tools, capabilities=[CodeMode()])
    asked = batch_of(step).requests[0].call.key
    # The record of `thing` is thrown away between the two runs: its result changes, as that of a clock would.
    await bench.store.run(lambda tx: tx.drop_call(replace(asked, call_id="call_0__1")))
    await answer(bench, step, {"sure": True})
    assert seen == ["a"]
    assert "it made another call here than before" in bench.script.results["call_0"]


async def test_a_call_on_an_event_loop_that_is_gone_may_have_run(bench: Bench) -> None:
    async def wipe() -> str:
        live = current_call()
        assert live
        return str((await live.ask(YES)).state)

    inner = Script([calls(("wipe", {})), "wiped"])
    cleaner = Agent(inner.model(), name="cleaner", tools=[asking(wipe)])

    def clean() -> str:
        return cleaner.run_sync("clean").output  # each time in another thread, with a loop of its own

    step = await bench.start([calls(("clean", {})), "done"], [clean])
    async with asyncio.timeout(10):
        step = await answer(bench, step, {"sure": True})
    (request,) = batch_of(step).requests
    assert request.kind is RequestKind.MAY_HAVE_RUN


async def stored(bench: Bench, step: Step) -> Any:
    batch = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch
    return batch


async def test_somebody_else_may_not_answer(bench: Bench) -> None:
    ask = Tool(ask_colour, requires_approval=True)
    step = await bench.start([calls(("ask_colour", {"room": "hall"})), "done"], [ask])
    step = await bench.decide(step, Choice.ACCEPT)
    request = batch_of(step).requests[0]
    with pytest.raises(NotAllowed):
        await Answering(bench.desk).answer(request.id, {"value": "red"}, OLGA, PLACE.channel, None)

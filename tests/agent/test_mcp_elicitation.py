"""MCP servers that ask people while their tools run: the question is a card, and the answer goes back to the server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from httpx2 import ConnectError
from mcp_types import ElicitRequestFormParams

from signoff.agent.mcp import build_servers, server_in
from signoff.agent.mcp_elicitation import QUESTIONS, ServerCalls, ServerGone, inquiry_of_server
from signoff.approvals.answer_forms import Unaskable
from signoff.approvals.inquiries import FieldKind
from signoff.approvals.model import CallKey, RequestKind
from signoff.gate.live_calls import AnswerNeeded, LiveCall
from signoff.gate.lost_calls import is_lost
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import CallState, Finished, Step, Waiting
from tests.conftest import PLACE, make_call
from tests.rigs.mcp_shop import Shop, batch_of, shop  # noqa: F401 - a fixture
from tests.rigs.scripted import calls

pytestmark = pytest.mark.slow

# ruff: noqa: F811 - a fixture is asked for by its name

ALLOW = '[[rules]]\ntool = "*"\nverdict = "allow"\n'
ELSEWHERE = replace(PLACE, channel="700000000000000002", conversation="700000000000000002")
ADA_IS_HERE = {"name": "Ada"}


def open_server(shop: Shop, table: str = "", *, rig: str = "asking_tools.py", seconds: float | None = None) -> None:
    """Give the shop's agent the server. `seconds`: the time limit of a tool."""
    limits = f'[limits]\ntool_seconds = "{seconds:g}s"\n' if seconds else ""
    shop.open(f"{ALLOW}{limits}[mcp.desk]\ncommand = {shop.command_of(rig)}\n{table}")
    assert shop.runner
    if seconds:
        shop.runner = replace(shop.runner, slots=ToolSlots(seconds))


def ask(**arguments: Any) -> Any:
    return calls(("desk_ask", arguments))


def told(shop: Shop) -> list[dict[str, Any]]:
    """What the server was told, for each of its questions."""
    return [json.loads(line) for line in shop.script.results["call_0"].splitlines()]


def noted(shop: Shop, what: str) -> list[Any]:
    return [entry[what] for entry in shop.ledger if what in entry]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - only the ledger tells
            await asyncio.sleep(0.02)


async def state_of(shop: Shop, call_id: str = "call_0") -> CallState:
    record = await shop.store.run(lambda tx: tx.call(CallKey(shop.place.conversation, 1, call_id)))
    assert record
    return record.state


async def end_servers(shop: Shop) -> None:
    assert shop.runner
    for toolset in shop.runner.agent.toolsets:
        if server := server_in(toolset):
            await server.end()


@asynccontextmanager
async def elsewhere(shop: Shop) -> AsyncGenerator[Shop]:
    """The same servers in another conversation."""
    assert shop.runner
    other = Shop(shop.folder, shop.store, shop.clock, turns=100, place=ELSEWHERE)
    servers = [toolset for toolset in shop.runner.agent.toolsets if server_in(toolset)]
    other.use(servers, shop.config(ALLOW))
    assert other.runner
    other.runner = replace(other.runner, slots=shop.runner.slots)
    yield other


# What people do


async def test_the_answer_goes_back_to_the_server_and_the_call_ends_with_its_result(shop: Shop) -> None:
    open_server(shop)
    step = await shop.ask(ask(), "hello Ada")
    (request,) = batch_of(step).requests
    assert request.kind is RequestKind.ANSWER
    assert request.inquiry
    assert (request.inquiry.server, request.inquiry.words) == ("desk", "Who are you?")
    assert [(one.name, one.kind, one.required) for one in request.inquiry.fields] == [("name", FieldKind.TEXT, True)]
    assert noted(shop, "ended") == [], "the call is still running"
    assert isinstance(await shop.answer(step, ADA_IS_HERE), Finished)
    assert told(shop) == [{"action": "accept", "content": ADA_IS_HERE}]
    assert noted(shop, "tool") == ["ask"]
    assert await state_of(shop) is CallState.DONE


async def test_a_call_that_must_be_approved_asks_after_its_approval(shop: Shop) -> None:
    open_server(shop)
    shop.open((shop.folder / "signoff.toml").read_text().replace(ALLOW, ""))
    step = await shop.ask(ask(), "hello Ada")
    assert batch_of(step).requests[0].kind is RequestKind.CALL
    assert noted(shop, "tool") == []
    step = await shop.accept(step)
    assert batch_of(step).requests[0].kind is RequestKind.ANSWER
    await shop.answer(step, ADA_IS_HERE)
    assert told(shop) == [{"action": "accept", "content": ADA_IS_HERE}]


async def test_the_server_is_told_that_somebody_declined(shop: Shop) -> None:
    open_server(shop)
    assert isinstance(await shop.decline(await shop.ask(ask(), "a pity")), Finished)
    assert told(shop) == [{"action": "decline"}]


async def test_the_server_is_told_that_nobody_answered_in_time(shop: Shop) -> None:
    open_server(shop)
    step = await shop.ask(ask(), "a pity")
    shop.clock.at += 100_000
    await shop.desk.expire_due()
    assert isinstance(await shop.advance(batch_of(step).turn), Finished)
    assert told(shop) == [{"action": "cancel"}]


async def test_a_call_may_ask_twice(shop: Shop) -> None:
    open_server(shop)
    step = await shop.answer(await shop.ask(ask(times=2), "hello"), ADA_IS_HERE)
    assert isinstance(await shop.answer(step, {"name": "Olga"}), Finished)
    assert [one["content"] for one in told(shop)] == [ADA_IS_HERE, {"name": "Olga"}]


async def test_two_questions_at_once_are_asked_one_after_the_other(shop: Shop) -> None:
    open_server(shop)
    step = await shop.ask(calls(("desk_ask_both", {"first": "One?", "second": "Two?"})), "done")
    (request,) = batch_of(step).requests
    assert request.inquiry
    assert request.inquiry.words == "One?"
    step = await shop.answer(step, {"name": "1"})
    assert isinstance(await shop.answer(step, {"name": "2"}), Finished)
    got = {words: json.loads(answer)["content"] for words, answer in told(shop)[0].items()}
    assert got == {"One?": {"name": "1"}, "Two?": {"name": "2"}}


async def test_a_form_without_fields_is_a_plain_confirmation(shop: Shop) -> None:
    open_server(shop)
    step = await shop.ask(ask(message="Really?", schema={"type": "object", "properties": {}}), "done")
    inquiry = batch_of(step).requests[0].inquiry
    assert inquiry
    assert inquiry.fields == ()
    await shop.answer(step, {})
    assert told(shop) == [{"action": "accept", "content": {}}]


async def test_a_slow_person_does_not_end_the_call(shop: Shop) -> None:
    open_server(shop, seconds=1)
    step = await shop.ask(ask(), "hello Ada")
    await asyncio.sleep(1.5)
    assert isinstance(await shop.answer(step, ADA_IS_HERE), Finished)
    assert told(shop) == [{"action": "accept", "content": ADA_IS_HERE}]


async def test_a_server_that_falls_silent_after_the_answer_may_have_run_the_call(shop: Shop) -> None:
    open_server(shop, seconds=1)
    step = await shop.ask(calls(("desk_ask_and_hang", {})), "it may have run")
    async with asyncio.timeout(20):
        assert isinstance(await shop.answer(step, ADA_IS_HERE), Finished)
    assert await state_of(shop) is CallState.UNKNOWN
    # On a busy machine the gate's own limit may be first.
    assert any(words in shop.script.results["call_0"] for words in ("may have run", "may still have an effect"))
    shop.runner = replace(shop.runner, slots=ToolSlots(30)) if shop.runner else None
    assert isinstance(await shop.ask(calls(("desk_work", {"seconds": 0})), "done"), Finished)
    assert shop.script.results["call_0"] == "worked"
    assert len(noted(shop, "started")) == 2


# The connection


async def test_the_server_serves_other_runs_while_a_call_waits_and_closes_afterwards(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    open_server(shop)
    step = await shop.ask(ask(), "hello Ada")
    async with elsewhere(shop) as other:
        assert isinstance(await other.ask(calls(("desk_work", {"seconds": 0})), "done"), Finished)
        assert other.script.results["call_0"] == "worked"
    await shop.answer(step, ADA_IS_HERE)
    assert told(shop) == [{"action": "accept", "content": ADA_IS_HERE}]
    (process,) = noted(shop, "started")
    await end_servers(shop)
    await until(lambda: not Path(f"/proc/{process}").exists())
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_a_call_that_waits_ends_with_its_turn_and_the_server_can_be_used_further(shop: Shop) -> None:
    open_server(shop)
    step = await shop.ask(ask(), "hello Ada")
    assert shop.runner
    turn = await shop.store.run(lambda tx: tx.turn(batch_of(step).turn))
    assert turn
    shop.runner.turn_ended(turn)
    await until(lambda: noted(shop, "ended"))
    async with elsewhere(shop) as other:
        await other.ask(calls(("desk_work", {"seconds": 0})), "done")
        assert other.script.results["call_0"] == "worked"
    assert len(noted(shop, "started")) == 1


async def test_a_server_that_dies_while_it_waits_leaves_a_call_that_may_have_run(shop: Shop) -> None:
    open_server(shop)
    step = await shop.ask(ask(), "it may have run")
    os.kill(noted(shop, "started")[0], signal.SIGKILL)
    await asyncio.sleep(0.3)
    async with asyncio.timeout(20):
        assert isinstance(await shop.answer(step, ADA_IS_HERE), Finished)
    assert await state_of(shop) is CallState.UNKNOWN
    assert "the call may have run" in shop.script.results["call_0"]
    assert noted(shop, "tool") == ["ask"]


async def test_a_question_that_the_server_takes_back_holds_the_call_up_only_until_somebody_answers(shop: Shop) -> None:
    open_server(shop)
    step = await shop.ask(calls(("desk_ask_and_withdraw", {})), "done")
    await until(lambda: noted(shop, "ended"))
    await asyncio.sleep(0.2)
    assert isinstance(await shop.answer(step, ADA_IS_HERE), Finished)
    assert shop.script.results["call_0"] == "never mind"


# Which call a question belongs to


async def test_no_question_reaches_another_conversation_while_people_think_in_the_first(shop: Shop) -> None:
    open_server(shop)
    first = await shop.ask(ask(message="here?"), "done")
    async with elsewhere(shop) as other:
        # It could just as well be a second question of the first call.
        assert isinstance(await other.ask(ask(message="there?"), "a pity"), Finished)
        assert "does not say which of them it belongs to" in told(other)[0]["message"]
    await shop.answer(first, {"name": "here"})
    assert told(shop) == [{"action": "accept", "content": {"name": "here"}}]
    async with elsewhere(shop) as other:
        second = await other.ask(ask(message="there?"), "done")
        await other.answer(second, {"name": "there"})
        assert told(other) == [{"action": "accept", "content": {"name": "there"}}]


async def test_a_question_waits_while_two_calls_are_running(shop: Shop) -> None:
    open_server(shop)
    async with elsewhere(shop) as other:
        working = asyncio.ensure_future(other.ask(calls(("desk_work", {"seconds": 1})), "done"))
        await until(lambda: noted(shop, "tool"))
        step = await shop.ask(ask(), "hello Ada")
        assert noted(shop, "ended") == ["work"], "it was asked before the other call had ended"
        assert isinstance(await working, Finished)
    await shop.answer(step, ADA_IS_HERE)
    assert told(shop) == [{"action": "accept", "content": ADA_IS_HERE}]


async def test_a_question_that_could_belong_to_two_calls_for_long_is_refused(shop: Shop) -> None:
    open_server(shop, seconds=2)
    async with elsewhere(shop) as other:
        working = asyncio.ensure_future(other.ask(calls(("desk_work", {"seconds": 1.5})), "done"))
        await until(lambda: noted(shop, "tool"))
        assert isinstance(await shop.ask(ask(), "a pity"), Finished)
        assert "does not say which of them it belongs to" in told(shop)[0]["message"]
        assert isinstance(await working, Finished)


async def test_if_two_calls_ask_at_once_the_second_question_is_refused_and_the_first_is_asked(shop: Shop) -> None:
    open_server(shop)
    async with elsewhere(shop) as other:
        late = calls(("desk_ask_late", {"seconds": 0.5, "message": "there?"}))
        there = asyncio.ensure_future(other.ask(late, "done"))
        await until(lambda: noted(shop, "tool"))
        step = await shop.ask(ask(message="here?"), "done")
        assert isinstance(await there, Finished)
        assert "does not say which" in told(other)[0]["message"]
        inquiry = batch_of(step).requests[0].inquiry
        assert inquiry
        assert inquiry.words == "here?"
        await shop.answer(step, ADA_IS_HERE)


async def test_a_question_of_a_call_that_was_given_up_reaches_no_other_conversation(shop: Shop) -> None:
    open_server(shop, seconds=2)
    given_up = asyncio.ensure_future(shop.ask(calls(("desk_ask_late", {"seconds": 0.7, "message": "secret"})), "done"))
    await until(lambda: noted(shop, "tool"))
    given_up.cancel()
    await asyncio.wait({given_up})
    async with elsewhere(shop) as other:
        assert isinstance(await other.ask(calls(("desk_work", {"seconds": 1.7})), "done"), Finished)
        await until(lambda: "ask_late" in noted(shop, "ended"))
        # From now on nobody could tell the questions of this process apart, so the next call gets a new one.
        step = await other.ask(ask(message="mine?"), "done")
        inquiry = batch_of(step).requests[0].inquiry
        assert inquiry
        assert inquiry.words == "mine?"
        assert len(noted(shop, "started")) == 2


async def test_a_connection_that_a_call_opened_does_not_take_its_questions_for_those_of_that_call(shop: Shop) -> None:
    open_server(shop)
    first = await shop.ask(calls(("desk_die", {})), ask(message="here?"), "done")  # opens the connection again
    assert len(noted(shop, "started")) == 2
    await shop.answer(first, ADA_IS_HERE)
    assert told(shop) == [{"action": "accept", "content": ADA_IS_HERE}]
    async with elsewhere(shop) as other:
        second = await other.ask(ask(message="there?"), "done")
        await other.answer(second, ADA_IS_HERE)
        assert told(other) == [{"action": "accept", "content": ADA_IS_HERE}]


async def test_a_question_is_not_one_of_a_call_on_another_connection() -> None:
    server, mine, other = ServerCalls("desk", 5), object(), object()
    asked = asyncio.Event()

    async def tool() -> None:
        async with server.call(other):
            await asked.wait()

    live = LiveCall(make_call(), None)
    live.start(tool())
    params = ElicitRequestFormParams(message="there?", requested_schema={"type": "object", "properties": {}})
    async with server.call(mine):  # whoever opens a connection here hands on this call's variables
        asking = asyncio.ensure_future(server.answer(SimpleNamespace(session=other), params))  # pyright: ignore[reportArgumentType]
        with pytest.raises(AnswerNeeded) as needed:
            await live.follow()
        assert needed.value.inquiry.words == "there?"
    await live.end()
    assert (await asking).model_dump()["action"] == "cancel"


# What is refused


async def refusal(shop: Shop, **arguments: Any) -> str:
    assert isinstance(await shop.ask(ask(**arguments), "a pity"), Finished)
    return told(shop)[-1]["message"]


async def test_without_elicitation_the_server_is_refused_and_its_tools_are_not_said_to_ask(shop: Shop) -> None:
    open_server(shop, "elicitation = false")
    assert await refusal(shop) == "Elicitation not supported"
    assert noted(shop, "capabilities")[0] == {}


async def test_a_link_is_refused(shop: Shop) -> None:
    open_server(shop)
    words = await refusal(shop, mode="url", url="https://example.com", elicitationId="1")
    assert words == "Elicitation is refused: Only a form can be shown to people. Links (URL mode) are refused."


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "deep": (nested(8), "its field a is no text"),
    "options": ({"properties": {"a": {"enum": [str(n) for n in range(10_000)]}}}, "more than 100 options"),
    "fields": ({"properties": {f"f{n}": {"type": "string"} for n in range(1_000)}}, "more than 25 fields"),
    "huge": ({"properties": {"a": {"type": "string", "description": "x" * 1_000_000}}}, "more than 20,000 characters"),
    "null": ({"properties": {"a": None}}, "its schema cannot be read"),
    "numbers": ({"properties": {"a": {"type": "array", "items": {"enum": [1, 2]}}}}, "its field a is no text"),
    "text": ({"type": "string"}, "Invalid request parameters"),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_schema_that_cannot_be_asked_is_refused_with_the_reason(shop: Shop, kind: str) -> None:
    schema, reason = HOSTILE[kind]
    open_server(shop)
    loop, slowest = asyncio.get_running_loop(), 0.0

    async def watch() -> None:
        nonlocal slowest
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            slowest = max(slowest, loop.time() - before)

    watching = asyncio.ensure_future(watch())
    assert reason in await refusal(shop, schema={"type": "object", **schema})
    watching.cancel()
    assert slowest < 2, "the bot stood still"


@pytest.mark.parametrize(
    ("schema", "reason"), [(nested(500), "its field a is no text"), ({"type": "string"}, "not that of an object")]
)
def test_schemas_that_the_protocol_does_not_check_are_refused_too(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unaskable, match=reason):
        inquiry_of_server(ElicitRequestFormParams(message="Who?", requested_schema=schema), "desk")


async def test_a_question_that_nobody_can_read_costs_only_its_call(shop: Shop) -> None:
    open_server(shop, seconds=2)
    async with asyncio.timeout(30):
        assert isinstance(await shop.ask(calls(("desk_ask_deeply", {"depth": 100_000})), "a pity"), Finished)
    assert isinstance(await shop.ask(ask(), "hello"), Waiting)


async def test_a_server_that_asks_too_often_is_refused(shop: Shop) -> None:
    open_server(shop)
    step: Step = await shop.ask(ask(times=QUESTIONS + 2, schema={"type": "object", "properties": {}}), "done")
    for _ in range(QUESTIONS):
        assert isinstance(step, Waiting)
        step = await shop.answer(step, {})
    assert isinstance(step, Finished)
    answers = told(shop)
    assert [one.get("action") for one in answers] == ["accept"] * QUESTIONS + [None] * 2
    assert f"At most {QUESTIONS} questions" in answers[-1]["message"]


# The protocol of 2026, in which the question is part of the call's result


async def order_something(shop: Shop) -> None:
    step = await shop.ask(calls(("desk_order", {})), "ordered")
    step = await shop.answer(step, ADA_IS_HERE)
    assert isinstance(await shop.answer(step, {"size": 3}), Finished)
    result = shop.script.results["call_0"]
    assert '"name":"Ada"' in result
    assert '"size":3' in result
    assert noted(shop, "tool") == ["order"]
    step = await shop.ask(calls(("desk_greet", {})), "a pity")
    assert isinstance(await shop.decline(step), Finished)
    assert '"action":"decline"' in shop.script.results["call_0"]


async def test_the_newer_protocol_over_stdio(shop: Shop) -> None:
    open_server(shop, 'start = "60s"', rig="asking_server.py")
    await order_something(shop)
    await end_servers(shop)
    (process,) = noted(shop, "started")
    await until(lambda: not Path(f"/proc/{process}").exists())


async def test_the_newer_protocol_over_http(shop: Shop) -> None:
    async with shop.served("asking_server.py") as url:
        shop.open(f'{ALLOW}[mcp.desk]\nurl = "{url}"\nstart = "30s"\n')
        await order_something(shop)


async def test_in_the_newer_protocol_two_calls_may_ask_at_once(shop: Shop) -> None:
    async with shop.served("asking_server.py") as url:
        shop.open(f'{ALLOW}[mcp.desk]\nurl = "{url}"\nstart = "30s"\n')
        async with elsewhere(shop) as other:
            one, two = await asyncio.gather(*(each.ask(calls(("desk_greet", {})), "hi") for each in (shop, other)))
            await other.answer(two, {"name": "Olga"})
            await shop.answer(one, ADA_IS_HERE)
            assert "Olga" in other.script.results["call_0"]
            assert "Ada" in shop.script.results["call_0"]


async def test_a_server_of_the_newer_protocol_that_is_gone_after_the_answer_may_have_run_the_call(shop: Shop) -> None:
    async with shop.served("asking_server.py") as url:
        shop.open(f'{ALLOW}[mcp.desk]\nurl = "{url}"\nstart = "3s"\n')
        step = await shop.ask(calls(("desk_greet", {})), "it may have run")
        assert isinstance(step, Waiting)
    async with asyncio.timeout(30):
        assert isinstance(await shop.answer(step, ADA_IS_HERE), Finished)
    assert "may have run" in shop.script.results["call_0"]
    assert await state_of(shop) is CallState.UNKNOWN


@pytest.mark.parametrize(("asked", "may_have_run"), [(1, True), (0, False)])
async def test_a_call_that_has_asked_may_have_run_even_if_its_answer_was_not_sent(
    asked: int, may_have_run: bool
) -> None:
    server = ServerCalls("desk", 5)

    async def call() -> None:
        async with server.call(object()):
            server.running[0].asked = asked
            raise ConnectError("refused")

    with pytest.raises(ServerGone if may_have_run else ConnectError) as failure:
        await call()
    assert is_lost(failure.value) is may_have_run


def test_a_server_asks_people_unless_the_file_says_otherwise(shop: Shop) -> None:
    table = '[mcp.a]\ncommand = ["x"]\n[mcp.b]\ncommand = ["x"]\nelicitation = false\n'
    assert [one.elicitation for one in shop.config(table).mcp.values()] == [True, False]
    assert len(build_servers(shop.config(table))) == 2

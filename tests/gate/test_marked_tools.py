"""Marks, reasons of conditions and earlier calls, from the tool's definition through the gate to the card."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from signoff.agent.own_tools import as_own
from signoff.agent.setup import build_policy
from signoff.approvals.clicks import Click
from signoff.approvals.model import Batch, Choice, RequestKind
from signoff.approvals.policy import Context, EarlierCall
from signoff.cards.build import build_card
from signoff.config.schema import parse_config
from signoff.gate.transcript import said
from signoff.turns.model import CallRecord, CallState, Finished, Waiting
from tests.conftest import ADA, PLACE
from tests.rigs.gate_bench import Bench, accept, batch_of
from tests.rigs.scripted import calls

DEFAULT = build_policy(parse_config(""))
"""The policy of an installation without a file."""


def why(step: object) -> list[str]:
    return [request.why for request in step.batch.requests] if isinstance(step, Waiting) else []


@pytest.mark.parametrize(
    ("metadata", "asks"),
    [({}, True), ({"acts": True}, True), ({"read_only": True}, False), ({"read_only": True, "acts": True}, True)],
)
async def test_a_tool_that_declares_nothing_asks_unless_it_is_marked_read_only(
    bench: Bench, metadata: dict[str, Any], asks: bool
) -> None:
    tool = Tool(bench.box.tool("shell"), metadata=metadata)
    step = await bench.start([calls(("shell", {})), "done"], [tool], policy=DEFAULT)
    assert why(step) == (["the tool declares nothing and no rule matches"] if asks else [])
    assert len(bench.box.ran) == (not asks)


async def test_a_tool_of_a_capability_asks(bench: Bench) -> None:
    class Brings(AbstractCapability[Any]):
        def get_toolset(self) -> AbstractToolset[Any]:
            return FunctionToolset([bench.box.tool("shell")])

    step = await bench.start([calls(("shell", {})), "done"], [], policy=DEFAULT, capabilities=[Brings()])
    assert why(step) == ["the tool declares nothing and no rule matches"]
    assert not bench.box.ran


@pytest.mark.parametrize("shape", ["tool", "function toolset", "other toolset"])
async def test_the_operators_own_tools_do_not_ask(bench: Bench, shape: str) -> None:
    entry: Any = Tool(bench.box.tool("mine"))
    if shape != "tool":
        entry = FunctionToolset([bench.box.tool("mine")])
    if shape == "other toolset":
        entry = entry.filtered(lambda ctx, tool_def: True)
    own: Any = as_own(entry)
    toolsets = {"tools": [own]} if shape == "tool" else {"tools": [], "toolsets": [own]}
    step = await bench.start([calls(("mine", {})), "done"], policy=DEFAULT, **toolsets)
    assert isinstance(step, Finished)
    assert len(bench.box.ran) == 1


async def test_a_written_value_applies_to_all_tools(bench: Bench) -> None:
    asking = build_policy(parse_config('[tools]\nundeclared = "ask"'))
    own: Any = as_own(Tool(bench.box.tool("mine")))
    assert why(await bench.start([calls(("mine", {})), "done"], [own], policy=asking))


async def test_with_allow_the_tools_of_others_run(bench: Bench) -> None:
    allowing = build_policy(parse_config('[tools]\nundeclared = "allow"'))
    step = await bench.start([calls(("shell", {})), "done"], [bench.box.tool("shell")], policy=allowing)
    assert isinstance(step, Finished)


async def test_a_rule_about_a_mark_reaches_the_call(bench: Bench) -> None:
    policy = build_policy(parse_config('[[rules]]\ndestructive = true\nverdict = "deny"\nreason = "not here"'))
    tools = [Tool(bench.box.tool("wipe"), metadata={"destructive": True, "approval": "never_require"})]
    assert isinstance(await bench.start([calls(("wipe", {})), "done"], tools, policy=policy), Finished)
    assert "Not allowed: not here" in bench.script.results["call_0"]
    assert not bench.box.ran


async def test_the_reason_of_a_condition_is_on_the_card_as_the_tools_words(bench: Bench) -> None:
    def expensive(args: dict[str, Any], context: Context) -> str:
        return f"{args['value']} costs money"

    tool = Tool(bench.box.tool("pay"), metadata={"approval": expensive})
    step = await bench.start([calls(("pay", {"value": "the large one"})), "done"], [tool])
    (request,) = batch_of(step).requests
    assert request.why == "the tool's own condition asks for these arguments"
    assert request.summary == "the large one costs money"
    assert "the large one costs money" in text_of_card(batch_of(step))


async def test_a_condition_sees_the_earlier_calls_and_cannot_change_them(bench: Bench) -> None:
    seen: list[tuple[EarlierCall, ...]] = []

    def twice(args: dict[str, Any], context: Context) -> bool:
        seen.append(tuple(context.calls))
        for call in context.calls:
            call.args["value"] = "changed"  # pyright: ignore[reportIndexIssue]
        return bool(context.calls)

    tools = [Tool(bench.box.tool("read")), Tool(bench.box.tool("send"), metadata={"approval": twice})]
    answers = [calls(("read", {"value": "keys"})), calls(("send", {}), ids=["call_0"]), "done"]
    step = await bench.start(answers, tools)
    assert seen[-1] == (EarlierCall("read", {"value": "changed"}, "read did keys"),)
    assert why(step)
    await accept(bench, step)
    sent = [part.args for message in bench.script.asked[-1] for part in message.parts if part.part_kind == "tool-call"]
    assert "changed" not in str(sent)


def text_of_card(batch: Batch) -> str:
    return str(build_card(batch, now=batch.opened))


async def test_a_destructive_tool_gets_a_warning_on_its_card(bench: Bench) -> None:
    tools = [Tool(bench.box.tool(name), requires_approval=True) for name in ("wipe", "send")]
    tools[0].metadata = {"destructive": True}
    step = await bench.start([calls(("wipe", {}), ("send", {})), "done"], tools)
    stored = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert stored
    wipe, send = build_card(stored, now=stored.opened).calls
    assert wipe.warnings == ("this tool is marked destructive: it may be impossible to undo what it does",)
    assert not send.warnings


@pytest.mark.parametrize("idempotent", [True, False])
async def test_an_idempotent_call_that_may_have_run_is_not_repeated_by_itself(bench: Bench, idempotent: bool) -> None:
    tool = Tool(bench.box.tool("put"), requires_approval=True, metadata={"idempotent": idempotent})
    step = await bench.start([calls(("put", {})), "done"], [tool])
    call = batch_of(step).requests[0].call
    record = CallRecord(call.key, call.tool, call.digest, CallState.STARTED, request=batch_of(step).requests[0].id)
    await bench.desk.decide(Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel))
    await bench.store.run(lambda tx: tx.put_call(record, bench.turn.id, 0))
    again = await bench.advance()
    assert batch_of(again).requests[0].kind is RequestKind.MAY_HAVE_RUN
    assert ("running it again has no further effect" in why(again)[0]) == idempotent
    assert not bench.box.ran


def test_a_condition_gets_a_copy_of_the_arguments_of_earlier_calls() -> None:
    args = {"paths": ["a"]}
    messages = [
        ModelResponse(parts=[ToolCallPart("read", args, "call_0"), ToolCallPart("read", "no json", "call_1")]),
        ModelRequest(
            parts=[
                ToolReturnPart("read", "x" * 20_000, "call_0"),
                ToolReturnPart("read", "no", "call_1", outcome="failed"),
            ]
        ),
    ]
    first, second = Context(PLACE, ADA, said(messages)).calls
    assert (first.args, len(first.result), first.succeeded) == (args, 10_000, True)
    assert (second.args, second.succeeded) == ({}, False)
    assert "no" in second.result
    first.args["paths"].append("b")
    assert args == {"paths": ["a"]}


async def test_a_tool_that_is_added_to_the_operators_own_toolset_later_does_not_ask(bench: Bench) -> None:
    toolset = FunctionToolset[Any]()
    as_own(toolset)
    toolset.add_function(bench.box.tool("later"))
    step = await bench.start([calls(("later", {})), "done"], [], policy=DEFAULT, toolsets=[toolset])
    assert isinstance(step, Finished)

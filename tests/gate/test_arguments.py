"""What people see of a call is all that the tool gets, under the names of its schema, the same in every process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, field_serializer
from pydantic_ai import Tool

from signoff.approvals.clicks import Click
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Choice, Remember, RequestState, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.gate.arguments import _without_defaults, as_json
from signoff.turns.model import Finished
from tests.conftest import ADA, PLACE
from tests.rigs.gate_bench import Bench, batch_of, edit
from tests.rigs.scripted import calls


class Transfer(BaseModel):
    model_config = ConfigDict(extra="allow")
    to: str = Field(alias="recipient")
    amount: int = Field(exclude=True)
    note: str = ""

    @field_serializer("note")
    def shorten(self, note: str) -> str:
        return note[:1]


@dataclass
class Point:
    x: int


class Pair(NamedTuple):
    a: int
    b: set[str]


class Colour(Enum):
    RED = "red"


class Numbers(RootModel[list[int]]):
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            Transfer.model_validate({"recipient": "b", "amount": 1, "note": "ab", "more": 2}),
            {"recipient": "b", "amount": 1, "note": "ab", "more": 2},
        ),
        ({"p": Point(1), "q": [Pair(1, {"b", "a"})]}, {"p": {"x": 1}, "q": [[1, ["a", "b"]]]}),
        ({1: date(2026, 1, 2), "d": Decimal("1.50")}, {"1": "2026-01-02", "d": "1.50"}),
        ([Colour.RED, Path("a/b"), b"\x00\xff", None, True], ["red", "a/b", "AP8=", None, True]),
        (Numbers([1, 2]), [1, 2]),
        (frozenset({3, 1, 2}), [1, 2, 3]),
    ],
)
def test_nothing_is_left_out(value: Any, expected: Any) -> None:
    assert as_json(value) == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"pin": SecretStr("1234")}, "SecretStr hides its value; take plain text, which cards mask"),
        ({"names": iter(["a"])}, "an iterator can be read only once; take a list"),
        ({"table": {1: "a", "1": "b"}}, "two keys of one table are written alike"),
        ({"what": object()}, "serialize"),
    ],
)
def test_what_cannot_be_shown_whole_is_refused(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        as_json(value)


@pytest.mark.slow
def test_a_set_is_the_same_in_every_process() -> None:
    """With this seed, the other process has the names in another order."""
    code = "from signoff.gate.arguments import as_json; print(as_json({'names': {'alpha', 'beta', 'gamma', 'delta'}}))"
    other = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "1"}, capture_output=True, text=True, check=True
    )
    assert other.stdout == "{'names': ['alpha', 'beta', 'delta', 'gamma']}\n"
    assert str(as_json({"names": {"alpha", "beta", "gamma", "delta"}})) == other.stdout.strip()


async def test_a_yes_for_one_amount_does_not_cover_another_that_the_model_hides(bench: Bench) -> None:
    sent: list[int] = []

    def send(transfer: Transfer, urgent: bool = False) -> str:
        sent.append(transfer.amount)
        return "sent"

    def asked(amount: int) -> Any:
        return calls(("send", {"transfer": {"recipient": "bob", "amount": amount}}))

    bench.desk.grants = GrantTerms(Remember.SESSION)
    step = await bench.start([asked(1), asked(1_000_000), "done"], [Tool(send, requires_approval=True)])
    assert batch_of(step).requests[0].call.args["transfer"]["amount"] == 1
    click = Click(batch_of(step).id, Choice.ACCEPT, ADA, PLACE.channel, remember=Remember.SESSION)
    await bench.desk.decide(click)
    step = await bench.advance()
    stored = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert stored
    assert stored.requests[0].state is RequestState.PENDING
    assert sent == [1]


async def test_a_type_that_hides_its_value_is_not_run_and_the_model_is_told(bench: Bench) -> None:
    def login(password: SecretStr) -> str:
        raise AssertionError("it ran")

    def read(names: Iterable[str]) -> str:
        raise AssertionError("it ran")

    answers = [calls(("login", {"password": "x"}), ("read", {"names": ["a"]})), "done"]
    assert isinstance(await bench.start(answers, [Tool(login), Tool(read)]), Finished)
    assert "SecretStr hides its value" in bench.script.results["call_0"]
    assert "read only once" in bench.script.results["call_1"]


class Order(BaseModel):
    id: str
    seats: int = 2


def ordering(taken: list[Order]) -> Tool:
    def order(order: Order) -> str:
        taken.append(order)
        return f"ordered {order.seats}"

    return Tool(order, requires_approval=True)


async def test_one_model_for_all_arguments_is_shown_edited_and_ruled_by_its_fields(bench: Bench) -> None:
    taken: list[Order] = []
    policy = Policy((Rule("order", Verdict.DENY, when={"id": ("never*",)}, reason="not that"),))
    answers = [calls(("order", {"id": "never"})), calls(("order", {"id": "a"})), "done"]
    step = await bench.start(answers, [ordering(taken)], policy=policy)
    assert "not that" in bench.script.results["call_0"]
    assert batch_of(step).requests[0].call.args == {"id": "a", "seats": 2}
    await edit(bench, step, {"id": "a", "seats": 5})
    await bench.decide(step, Choice.ACCEPT)
    assert taken == [Order(id="a", seats=5)]


@pytest.mark.parametrize("schema", [True, {}, {"anyOf": [True, {"type": "object"}]}], ids=str)
async def test_schemas_that_are_just_true_are_schemas(bench: Bench, schema: Any) -> None:
    """An MCP server may send them: JSON Schema has `true` for "anything"."""
    got: list[Any] = []

    async def take(**args: Any) -> str:
        got.append(args)
        return "taken"

    parameters = {"type": "object", "properties": {"x": schema}}
    tool = Tool.from_schema(take, "take", "Take anything.", parameters)
    await bench.start([calls(("take", {"x": {"a": 1}})), "done"], [tool])
    assert got == [{"x": {"a": 1}}]


def test_defaults_are_left_out_below_schemas_that_are_just_true() -> None:
    fitting = {"properties": {"x": True, "y": {"default": 1}}}
    assert _without_defaults({"x": {"a": 1}, "y": 1}, fitting) == {"x": {"a": 1}}
    assert _without_defaults({"x": {"a": 1}}, {"properties": {"x": {"anyOf": [True]}}}) == {"x": {"a": 1}}

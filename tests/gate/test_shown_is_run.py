"""The tool gets exactly the JSON that people and rules saw, or the call is refused: in the bot and in the library.

Attack rows 33 to 36 and 52 of the attack table.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    field_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_ai import Agent, ApprovalRequired, ModelRetry, RunContext, Tool
from typing_extensions import TypedDict

from signoff import ApprovalDecision, ApprovalRequest, Policy, Rule, Verdict, run_with_approval
from signoff.approvals.digest import canonical
from signoff.gate.arguments import _is_same, as_json  # pyright: ignore[reportPrivateUsage]
from tests.rigs.both_gates import KINDS, one, play_both
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import Box, Script, calls

both = pytest.mark.parametrize("kind", KINDS)


class Target(BaseModel):
    model_config = ConfigDict(extra="allow")
    path: str = Field(validation_alias=AliasChoices("p", "path"))


@both
@pytest.mark.parametrize("wrapped", [True, False])
async def test_an_alias_cannot_carry_another_value_past_card_and_rules(kind: str, wrapped: bool, bench: Bench) -> None:
    """Attack 33."""
    got: list[str] = []

    def alone(target: Target) -> str:
        got.append(target.path)
        return "read"

    def beside(target: Target, times: int = 1) -> str:
        got.append(target.path)
        return "read"

    tool: Any = beside if wrapped else alone
    trick = {"p": "/etc/passwd", "path": "/tmp/x"}
    played = await play_both(
        kind, bench, [Tool(tool, requires_approval=True)], one(tool.__name__, {"target": trick} if wrapped else trick)
    )
    texts = [canonical(args) for args in played.args]
    assert all(path in text for path, text in zip(got, texts, strict=True))
    assert not any("/etc/passwd" in path and "/etc/passwd" not in text for path, text in zip(got, texts, strict=True))


@both
async def test_a_deny_rule_sees_what_the_tool_would_get(kind: str, bench: Bench) -> None:
    """Attack 33: the rule on /etc holds, whichever name the value comes under."""
    got: list[str] = []

    def read(target: Target) -> str:
        got.append(target.path)
        return "read"

    policy = Policy((Rule("read", Verdict.DENY, {"p": ("/etc/*",)}), Rule("read", Verdict.DENY, {"path": ("/etc/*",)})))
    for args in ({"p": "/etc/passwd", "path": "/tmp/x"}, {"p": "/tmp/x", "path": "/etc/passwd"}, {"p": "/etc/passwd"}):
        await play_both(kind, bench, [read], one("read", args), policy=policy)
        bench.turn = replace(bench.turn, id=f"{bench.turn.id}+")
    assert not [path for path in got if path.startswith("/etc")]


class Hidden(BaseModel):
    name: str
    code: str = Field(default="none", exclude=True)


class Private(BaseModel):
    name: str
    _seen: str = PrivateAttr(default="")

    @model_validator(mode="before")
    @classmethod
    def drop(cls, data: Any) -> Any:
        return {"name": data.get("name", "")} if isinstance(data, dict) else data

    def model_post_init(self, context: Any) -> None:
        self._seen = f"private {self.name}"


class Serialized(BaseModel):
    text: str

    @field_serializer("text")
    def stars(self, text: str) -> str:
        return "***"


@pydantic_dataclass(config=ConfigDict(extra="allow"))
class Extras:
    name: str


class Twins(BaseModel):
    a: str = Field(validation_alias=AliasChoices("x", "a"))
    b: str = Field(default="", validation_alias=AliasChoices("x", "b"))


class Deep(BaseModel):
    value: str = Field(validation_alias=AliasPath("outer", "inner"))


class Counted(BaseModel):
    n: Annotated[int, AfterValidator(lambda n: n + 1)]


SLY: dict[str, tuple[Any, list[Any]]] = {
    "a deque of secrets": (deque[SecretStr], [["one"], ["two"]]),
    "a list of secrets": (list[SecretStr], [["one"], ["two"]]),
    "an excluded field": (Hidden, [{"name": "n", "code": "one"}, {"name": "n", "code": "two"}]),
    "a private attribute": (Private, [{"name": "n", "seen": "one"}, {"name": "n", "seen": "two"}]),
    "a custom serializer": (Serialized, [{"text": "one"}, {"text": "two"}]),
    "extras of a dataclass": (Extras, [{"name": "n", "more": "one"}, {"name": "n", "more": "two"}]),
    "two fields under one name": (Twins, [{"x": "n", "b": "one"}, {"x": "n", "b": "two"}]),
    "a nested alias": (Deep, [{"outer": {"inner": "one"}}, {"outer": {"inner": "two"}}]),
    "a validator that changes each time": (Counted, [{"n": 1}, {"n": 2}]),
}


@both
@pytest.mark.parametrize("what", SLY)
async def test_a_remembered_yes_covers_only_what_was_shown(kind: str, what: str, bench: Bench) -> None:
    """Attack 34: a second value that the card cannot tell from the first one is the first one to the tool, too."""
    annotation, (first, second) = SLY[what]
    got: list[Any] = []

    def act(value: Any, times: int = 1) -> str:
        got.append(_inside(value))
        return "done"

    act.__annotations__["value"] = annotation
    tool = Tool(act, requires_approval=True)
    played = await play_both(
        kind, bench, [tool], one("act", {"value": first}), one("act", {"value": second}), remember=True
    )
    if len(played.shown) == 2:
        assert played.args[0] != played.args[1]  # both were shown, each as it is
    else:
        assert len({repr(value) for value in got}) <= 1


def _inside(value: Any) -> Any:
    """Everything that a tool could find in a value, also what no dump shows."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, list | deque):
        return [_inside(item) for item in value]
    private = getattr(value, "__pydantic_private__", None)
    return [dict(vars(value)), private] if hasattr(value, "__dict__") else value


@both
async def test_the_tool_gets_the_order_that_was_shown(kind: str, bench: Bench) -> None:
    """Attack 35: a remembered yes to one order must not run another."""
    ran: list[list[str]] = []

    def run(steps: dict[str, int]) -> str:
        ran.append(list(steps))
        return "ran"

    first, second = {"backup": 1, "wipe": 2}, {"wipe": 2, "backup": 1}
    tool = Tool(run, requires_approval=True)
    played = await play_both(
        kind, bench, [tool], one("run", {"steps": first}), one("run", {"steps": second}), remember=True
    )
    orders = [list(args["steps"]) for args in played.args]
    assert len(ran) == 2
    assert all(order == orders[0] for order in ran)


@both
async def test_free_arguments_come_in_an_order_that_the_model_cannot_choose(kind: str, bench: Bench) -> None:
    ran: list[list[str]] = []

    def run(**steps: int) -> str:
        ran.append(list(steps))
        return "ran"

    tool = Tool(run, requires_approval=True)
    await play_both(kind, bench, [tool], one("run", {"wipe": 2, "backup": 1}), one("run", {"backup": 1, "wipe": 2}))
    assert ran == [["backup", "wipe"]] * 2


@both
async def test_the_words_of_a_held_call_are_shown_before_it_runs(kind: str, bench: Bench) -> None:
    """Attack 36."""
    ran: list[bool] = []

    def overwrite(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "overwrites production secrets"})
        ran.append(True)
        return "overwritten"

    tools = [Tool(bench.box.tool("danger"), requires_approval=True), overwrite]
    played = await play_both(kind, bench, tools, calls(("danger", {}), ("overwrite", {})))
    assert [request.summary for request in played.shown] == ["", "overwrites production secrets"]
    assert ran == [True]


@both
async def test_accepted_calls_start_in_the_order_of_the_card(kind: str, bench: Bench) -> None:
    """Attack 52: the first call's preview is slow, and it starts first all the same."""
    started: list[str] = []

    async def slow(ctx: RunContext[Any], name: str) -> str:
        await asyncio.sleep(0.2 if name == "first" else 0)
        return f"will do {name}"

    async def step(name: str) -> str:
        started.append(name)
        await asyncio.sleep(0.01)
        return name

    tool = Tool(step, requires_approval=True, metadata={"preview": slow})
    await play_both(kind, bench, [tool], calls(*(("step", {"name": name}) for name in ("first", "second", "third"))))
    assert started == ["first", "second", "third"]


@pytest.mark.slow
@both
@pytest.mark.parametrize("independent", [("first", "second"), ("first",), ("second",)])
async def test_tools_that_are_marked_as_independent_neither_wait_nor_are_waited_for(
    kind: str, independent: tuple[str, ...], bench: Bench
) -> None:
    started: list[str] = []

    def tool(name: str, seconds: float) -> Tool[Any]:
        async def slow(ctx: RunContext[Any]) -> str:
            await asyncio.sleep(seconds)
            return f"will do {name}"

        def step() -> str:
            started.append(name)
            return name

        metadata = {"preview": slow, "independent": name in independent}
        return Tool(step, name=name, requires_approval=True, metadata=metadata)

    await play_both(kind, bench, [tool("first", 0.5), tool("second", 0)], calls(("first", {}), ("second", {})))
    assert started == ["second", "first"]


@both
async def test_arguments_that_never_settle_are_refused(kind: str, bench: Bench) -> None:
    """The card would show 2, and the tool would get 3."""
    got: list[int] = []

    def count(n: Annotated[int, AfterValidator(lambda n: n + 1)]) -> str:
        got.append(n)
        return "counted"

    played = await play_both(kind, bench, [Tool(count, requires_approval=True)], one("count", {"n": 1}))
    assert (got, played.shown) == ([], [])
    assert "a second time gives other arguments" in played.told["call_0"]


@both
async def test_a_call_that_will_not_run_holds_up_no_later_one(kind: str, bench: Bench) -> None:
    box = Box()

    def check(ctx: RunContext[Any], value: str, other: str | None = None) -> None:
        raise ModelRetry("never")

    broken = Tool(box.tool("broken"), args_validator=check)
    began = time.monotonic()
    await play_both(kind, bench, [broken, box.tool("fine")], calls(("broken", {"value": "x"}), ("fine", {})))
    assert [tool for tool, *_ in box.ran] == ["fine"]
    assert time.monotonic() - began < 20


@both
async def test_bytes_reach_the_tool_as_they_came(kind: str, bench: Bench) -> None:
    got: list[bytes] = []

    def store(data: bytes) -> str:
        got.append(data)
        return "stored"

    played = await play_both(kind, bench, [Tool(store, requires_approval=True)], one("store", {"data": "abc"}))
    assert (got, played.args) == ([b"abc"], [{"data": "abc"}])


class Sloppy(BaseModel):
    name: str = None  # type: ignore[assignment]
    weight: float = 1
    inner: Sloppy | None = None


@both
async def test_defaults_that_are_not_of_their_type_are_kept(kind: str, bench: Bench) -> None:
    """Nobody validates a default, so tools like this one are common, and they work."""
    got: list[Any] = []

    def act(
        name: str = None,  # type: ignore[assignment]  # noqa: RUF013
        seconds: float = 0,
        price: Decimal = 0,  # type: ignore[assignment]
        thing: Sloppy = Sloppy(inner=Sloppy()),  # noqa: B008
        things: list[Sloppy] = [],  # noqa: B006
    ) -> str:
        got.append((name, seconds, price, thing, things))
        return "done"

    tool = Tool(act, requires_approval=True)
    played = await play_both(kind, bench, [tool], one("act", {}), one("act", {"things": [{}, {"name": "x"}]}))
    assert [len(things) for *_, things in got] == [0, 2]
    assert all((name, seconds, price) == (None, 0, 0) for name, seconds, price, *_ in got)
    assert played.args[0]["name"] is None
    assert played.args[1]["things"][1]["name"] == "x"


# The property: arbitrary argument types, arbitrary JSON.


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Loose(TypedDict):
    a: int
    b: NotRequired[str]


@plain_dataclass
class Point:
    x: int
    y: float = 0.5


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: int = 3


LEAVES: list[Any] = [
    int, float, bool, str, bytes, Decimal, date, datetime, timedelta, UUID, Path, Any, None,
    Colour, Literal["a", "b"], SecretStr, Loose, Point, Open, Target, Hidden, Private, Serialized, Extras, Twins, Deep,
    Counted, Annotated[str, AfterValidator(str.strip)], Annotated[str, AfterValidator(lambda text: text + "!")],
]  # fmt: skip
TYPES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        inner.map(lambda t: list[t]),
        inner.map(lambda t: deque[t]),
        inner.map(lambda t: dict[str, t]),
        inner.map(lambda t: dict[int, t]),
        inner.map(lambda t: tuple[t, ...]),
        inner.map(lambda t: t | None if t is not None else None),
    ),
    max_leaves=3,
)
NAMES = st.sampled_from(["a", "b", "x", "n", "p", "path", "name", "code", "more", "text", "outer", "inner", "1"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 99)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(
        ["red", "a", "2024-01-02", "2024-01-02T03:04:05Z", "P1D", "1.50", "NaN", "12345678-1234-5678-1234-567812345678"]
    )
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=6
)


@given(annotation=TYPES, value=JSON)
async def test_whatever_the_tool_gets_is_what_was_shown_or_the_call_is_refused(annotation: Any, value: Any) -> None:
    """Attack 33, for any type and any JSON: the tool's input is a function of the shown JSON, and dumps to it."""
    got: list[Any] = []
    shown: list[dict[str, Any]] = []
    ruled: list[dict[str, Any]] = []

    def act(value: Any, other: int = 1) -> str:
        got.append({"value": value, "other": other})
        return "done"

    def asks(args: Any, context: Any) -> bool:
        ruled.append(dict(args))
        return True

    class Yes:
        def choose(self, request: ApprovalRequest) -> ApprovalDecision:
            shown.append(dict(request.call.args))
            return ApprovalDecision(True)

    act.__annotations__["value"] = annotation
    tool = Tool(act, metadata={"approval": asks}, max_retries=5)
    script = Script([one("act", json.dumps({"value": value})), "done"])
    await run_with_approval(Agent(script.model(), tools=[tool]), "go", ui=Yes())
    assert len(got) <= 1
    if not got:
        return  # refused
    assert len(shown) == 1
    assert all(canonical(args) == canonical(shown[0]) for args in ruled)
    again = tool.function_schema.validator.validate_json(json.dumps(shown[0]))
    assert repr(_contents(again)) == repr(_contents(got[0]))
    texts = {canonical(as_json(got[0], mode)) for mode in ("utf8", "base64") if _fits(got[0], mode)}
    assert any(_is_same(text, canonical(shown[0])) for text in texts)


def _contents(value: Any) -> Any:
    return {name: _inside(item) for name, item in value.items()}


def _fits(value: Any, mode: Any) -> bool:
    try:
        as_json(value, mode)
    except UnicodeDecodeError:
        return False
    return True

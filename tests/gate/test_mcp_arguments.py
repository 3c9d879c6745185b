"""Arguments of MCP calls against the server's schema. The server wrote it, so it may be hostile."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from signoff.gate.mcp_arguments import STEPS, misfits

PAY = {
    "type": "object",
    "properties": {"to": {"type": "string", "pattern": "^[a-z]+$"}, "amount": {"type": "integer", "minimum": 1}},
    "required": ["to"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"to": "ada", "amount": 5}, None),
        ({"to": "ada", "amount": 5.0}, None),
        ({"amount": 5}, "'to' is a required property"),
        ({"to": "ada", "amount": "5"}, "amount: '5' is not of type 'integer'"),
        ({"to": "ada", "amount": 0}, "amount: 0 is less than the minimum of 1"),
        ({"to": "Ada"}, "to: 'Ada' does not match '^[a-z]+$'"),
        ({"to": "ada", "cc": "max"}, "'cc' is not an argument of it"),
    ],
)
def test_arguments_either_fit_or_the_model_is_told_why(args: dict[str, Any], problem: str | None) -> None:
    assert misfits(PAY, args) == ([problem] if problem else [])


def test_an_older_dialect_and_references_inside_the_schema_are_understood() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"name": {"type": "string"}},
        "properties": {"who": {"$ref": "#/definitions/name"}, "tags": {"type": "array", "uniqueItems": True}},
    }
    assert misfits(schema, {"who": "ada", "tags": ["a", "b", 1, True]}) == []
    assert misfits(schema, {"who": 5, "tags": ["a", "a"]}) == [
        "who: 5 is not of type 'string'",
        "tags: the list has an item twice",
    ]


def test_names_may_follow_patterns() -> None:
    schema = {"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    assert misfits(schema, {"x-a": 1, "b": "text"}) == []
    assert misfits(schema, {"x-a": "1", "b": 2}) == [
        "x-a: '1' is not of type 'integer'",
        "b: 2 is not of type 'string'",
    ]


def test_few_short_problems_are_told() -> None:
    schema = {"properties": {f"p{n}": {"type": "integer"} for n in range(9)}}
    problems = misfits(schema, {f"p{n}": "x" * 1000 for n in range(9)})
    assert len(problems) == 3
    assert max(map(len, problems)) < 310


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"allOf": [schema]}
    return schema


DOUBLING = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}},
}
SLOW = "(a|a)*(a+)+$"
HOSTILE: dict[str, dict[str, Any]] = {
    "a pattern that backtracks": {"properties": {"text": {"pattern": SLOW}}},
    "a pattern of names that backtracks": {"patternProperties": {SLOW: {}}, "additionalProperties": False},
    "unevaluated names with such a pattern": {"patternProperties": {SLOW: {}}, "unevaluatedProperties": False},
    "a pattern of an unknown syntax": {"properties": {"text": {"pattern": "(?=x)(a+)+$"}}},
    "a pattern that is huge": {"properties": {"text": {"pattern": "((a{1000}){1000}){1000}"}}},
    "a reference to itself": {"$ref": "#"},
    "references that double": DOUBLING,
    "a deep schema": deep(5000),
    "not a schema": {"type": 5, "properties": [1], "required": "x"},
    "an unknown dialect": {"$schema": "nonsense", "type": 5},
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_schema_takes_no_long_time_and_leaves_the_call_to_the_server(schema: dict[str, Any]) -> None:
    text = "a" * 5000 + "!"
    start = time.process_time()
    problems = misfits(schema, {"text": text, text: 1})
    assert time.process_time() - start < 20
    assert not any("Error" in problem for problem in problems)


def test_a_check_ends_after_a_number_of_steps(caplog: pytest.LogCaptureFixture) -> None:
    assert misfits({"items": {"type": "integer"}}, {"x": 1}) == []
    assert misfits({"properties": {"x": {"items": {"type": "integer"}}}}, {"x": ["no"] + [1] * STEPS}, "pay")
    assert misfits(DOUBLING, {}, "pay") == []
    assert "not all arguments of pay are checked, because of its schema: TooManySteps" in caplog.text


def test_nothing_is_fetched_for_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **named: reached.append(args))
    monkeypatch.setattr(socket.socket, "connect", lambda *args: reached.append(args))
    assert misfits({"$ref": "http://127.0.0.1:9/schema.json"}, {"a": 1}) == []
    assert not reached

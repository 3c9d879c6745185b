"""Forms of inquiries: which fields a JSON schema gives, and which answers fit them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.answer_forms import MOST_FIELDS, MOST_OPTIONS, Unaskable, inquire
from signoff.approvals.inquiries import AnswerField, BadAnswer, FieldKind, Inquiry, Option
from signoff.approvals.model import CHOICES, Choice, RequestKind, RequestState, Ruling, Terms, Verdict


def only(schema: dict[str, Any]) -> AnswerField:
    (field,) = inquire("?", schema).fields
    return field


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, FieldKind.TEXT),
        ({"type": "number"}, FieldKind.NUMBER),
        ({"type": "integer"}, FieldKind.INTEGER),
        ({"type": "boolean"}, FieldKind.YES_NO),
        ({"enum": ["a", "b"]}, FieldKind.CHOICE),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}, FieldKind.CHOICE),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, FieldKind.CHOICE),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, FieldKind.CHOICES),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, FieldKind.CHOICES),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, FieldKind.INTEGER),
        ({"$ref": "#/$defs/E", "$defs": {"E": {"enum": ["a"]}}}, FieldKind.CHOICE),
        ({"type": "array", "items": {"$ref": "#/$defs/E"}, "$defs": {"E": {"enum": ["a"]}}}, FieldKind.CHOICES),
        ({"type": "array", "items": {"type": "string"}}, FieldKind.JSON),
        ({"enum": [["a"], ["b"]]}, FieldKind.JSON),
        ({"type": "object", "additionalProperties": True}, FieldKind.JSON),
        ({"type": ["string", "null"]}, FieldKind.JSON),
        ({}, FieldKind.JSON),
    ],
)
def test_each_schema_gives_its_kind_of_field(schema: dict[str, Any], kind: FieldKind) -> None:
    assert only(schema).kind is kind


def test_names_that_do_not_match_the_options_are_left_out() -> None:
    field = only({"enum": ["a", "b"], "enumNames": ["A"]})
    assert [option.label for option in field.options] == ["a", "b"]


def test_a_title_from_the_schema_is_the_label_of_an_option() -> None:
    field = only({"oneOf": [{"const": "a", "title": "First", "description": "the best"}, {"const": 2}]})
    assert field.options == (Option("a", "First", "the best"), Option(2, "2"))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"f{n}": {"type": "string"} for n in range(MOST_FIELDS + 1)}},
        {"enum": [f"o{n}" for n in range(MOST_OPTIONS + 1)]},
        {"enum": ["a", "a"]},
        {"properties": {"a": {"type": "string", "description": "x" * 30_000}}},
        {"properties": {"a": "string"}},
        {"properties": {"a": {"$ref": "#/$defs/nowhere"}}},
        {"properties": {"a": {"anyOf": [1, 2]}}},
        {"properties": {"a": {"oneOf": {"const": 1}}}},
    ],
)
def test_a_schema_that_makes_no_form_is_said_to_be_unaskable(schema: dict[str, Any]) -> None:
    with pytest.raises(Unaskable):
        inquire("?", schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "enum",
        "oneOf",
        "anyOf",
        "const",
        "title",
        "required",
        "$ref",
        "$defs",
        "format",
        "minimum",
        "maxLength",
        "enumNames",
        "maxItems",
        "default",
        "string",
        "object",
        "array",
    ]
)
SCHEMAS = st.recursive(
    JSON | WORDS, lambda inner: st.dictionaries(WORDS, inner | st.lists(inner, max_size=3), max_size=5), max_leaves=10
)


@given(st.dictionaries(WORDS, SCHEMAS, max_size=6))
def test_any_schema_makes_a_form_that_is_stored_or_is_refused(schema: dict[str, Any]) -> None:
    try:
        inquiry = inquire("?", schema)
    except Unaskable:
        return
    assert Inquiry.load(json.loads(json.dumps(inquiry.dump()))) == inquiry


FORM = inquire(
    "?",
    {
        "properties": {
            "text": {"type": "string", "minLength": 2, "maxLength": 5},
            "mail": {"type": "string", "format": "email"},
            "day": {"type": "string", "format": "date"},
            "count": {"type": "integer", "minimum": 1, "maximum": 3},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "one": {"enum": ["a", "b", 3]},
            "some": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2},
            "first": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 1},
            "any": {},
        },
        "required": ["count"],
    },
)


@pytest.mark.parametrize(
    "answer",
    [
        {"count": 1},
        {"count": 3, "text": "ab", "mail": "a@b.c", "day": "2026-12-31", "share": 0.5, "sure": False, "one": 3},
        {"count": 2, "some": ["a", "c"], "first": ["b"], "any": {"deep": [1, None]}},
        {"count": 2, "text": None},
        {"count": 2, "share": 10**400},
    ],
)
def test_answers_that_fit_are_taken_as_they_are(answer: dict[str, Any]) -> None:
    assert FORM.check(answer) == {name: value for name, value in answer.items() if value is not None}


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": None},
        {"count": 0},
        {"count": 4},
        {"count": 1.5},
        {"count": True},
        {"count": "1"},
        {"text": "a"},
        {"text": "abcdef"},
        {"text": 12},
        {"mail": "nobody"},
        {"mail": "a@b.c\n"},
        {"day": "2026-13-01"},
        {"share": float("nan")},
        {"share": float("inf")},
        {"share": True},
        {"sure": "yes"},
        {"sure": 1},
        {"one": "c"},
        {"one": ["a"]},
        {"one": 3.0},
        {"one": True},
        {"some": "a"},
        {"some": []},
        {"some": ["a", "a"]},
        {"some": ["a", "b", "c"]},
        {"some": ["z"]},
        {"first": "a"},
        {"first": ["a", "b"]},
        {"any": "x" * 5000},
        {"any": float("nan")},
        {"any": json.loads("[" * 150 + "]" * 150)},
        {"any": {1, 2}},
        {"count": 10**400},
        {"unknown": 1},
    ],
)
def test_answers_that_do_not_fit_are_refused_with_a_reason(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer, match="Nothing was sent"):
        FORM.check({"count": 1} | wrong)


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("count", ["2"], 2),
        ("count", [" 2.0 "], 2),
        ("share", ["1e-3"], 0.001),
        ("sure", ["Yes"], True),
        ("sure", ["no"], False),
        ("one", ["#1"], "b"),
        ("one", ["B"], "b"),
        ("one", ["3"], 3),
        ("some", ["#0", "#2"], ["a", "c"]),
        ("first", ["#1"], ["b"]),
        ("text", ["  a\r\nb"], "  a\nb"),
        ("text", ["   "], None),
        ("some", [], None),
        ("any", ['{"a": [1]}'], {"a": [1]}),
    ],
)
def test_typed_text_becomes_a_value(name: str, typed: list[str], value: Any) -> None:
    field = next(field for field in FORM.fields if field.name == name)
    assert field.read(typed) == value


@pytest.mark.parametrize(
    ("name", "typed"),
    [("count", "two"), ("share", "1,5"), ("sure", "maybe"), ("one", "#9"), ("one", "c"), ("some", "z"), ("any", "{")],
)
def test_typed_text_that_means_nothing_is_refused(name: str, typed: str) -> None:
    field = next(field for field in FORM.fields if field.name == name)
    with pytest.raises(BadAnswer, match="Nothing was sent"):
        field.read([typed])


@given(st.text(max_size=40))
def test_whatever_is_typed_fits_or_is_refused(typed: str) -> None:
    for field in FORM.fields:
        try:
            value = field.read([typed])
            if value is not None:
                field.check(value)
        except BadAnswer:
            continue
        assert isinstance(field.written(value), str)


def test_a_name_that_several_options_have_chooses_none_of_them() -> None:
    twins = AnswerField("x", FieldKind.CHOICE, options=(Option("a", "Same"), Option("b", "Same"), Option("c", "same")))
    with pytest.raises(BadAnswer, match="2 options have this name"):
        twins.read(["Same"])
    assert twins.read(["same"]) == "c"
    assert twins.read(["#1"]) == "b"


def test_values_are_written_with_the_labels_of_their_options() -> None:
    field = AnswerField("x", FieldKind.CHOICES, options=(Option("a", "First"), Option("b", "Second")))
    assert field.written(["b", "a"]) == "Second, First"
    assert AnswerField("x", FieldKind.YES_NO).written(True) == "yes"


def test_every_choice_is_about_one_kind_of_request() -> None:
    assert sorted(choice for choices in CHOICES.values() for choice in choices) == sorted(Choice)
    assert set(CHOICES) == set(RequestKind)
    assert (Choice.ANSWER.state, Choice.DECLINE.state) == (RequestState.APPROVED, RequestState.REJECTED)


# Who answers

TERMS = Terms(("role:1",), quorum=2, four_eyes=True, ping=True, notify=("ping",), answerers=("asker",))


def test_a_call_that_needs_no_approval_is_answered_by_the_answerers() -> None:
    ruling = TERMS.fill_answer(Ruling(Verdict.ALLOW, ""))
    assert (ruling.approvers, ruling.quorum, ruling.four_eyes) == (("asker",), 1, False)
    assert (ruling.ping, ruling.notify) == (False, ("ping",))


def test_a_call_that_needs_approval_is_answered_by_its_approvers_and_never_by_the_asker_under_four_eyes() -> None:
    ruling = TERMS.fill_answer(Ruling(Verdict.ASK, ""))
    assert (ruling.approvers, ruling.quorum, ruling.four_eyes) == (("role:1",), 1, True)


def test_a_rule_may_name_the_answerers_of_a_call_that_needs_approval() -> None:
    ruling = TERMS.fill_answer(Ruling(Verdict.ASK, "", approvers=("role:2",), answerers=("user:7",)))
    assert (ruling.approvers, ruling.quorum, ruling.four_eyes) == (("user:7",), 1, False)

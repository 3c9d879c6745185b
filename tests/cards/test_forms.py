"""Arguments as a form and back: fields that are not edited stay exactly as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.approvals.tool_description import ToolDescription
from signoff.cards.forms import FIELD_BUDGET, LABEL_BUDGET, Form, NotReadable, form_for, form_of, written
from signoff.text.visible import is_hidden
from tests.rigs.any_arguments import ARGS
from tests.rigs.cards import make_request


def untouched(form: Form, args: Any) -> Any:
    return form.read({field.key: field.text for field in form.fields}, args)


@given(
    ARGS
    | st.dictionaries(st.text("abc_", min_size=1), st.text(max_size=80) | st.integers() | st.booleans(), max_size=5)
)
@settings(deadline=None)
def test_a_form_that_nobody_touched_changes_nothing(args: dict[str, Any]) -> None:
    form = form_for(args)
    if form is None:
        assert len(json.dumps(args, indent=2)) > FIELD_BUDGET
        return
    assert json.dumps(untouched(form, args), sort_keys=True) == json.dumps(args, sort_keys=True)
    for field in form.fields:
        assert 1 <= len(field.label) <= LABEL_BUDGET
        assert len(field.text) <= FIELD_BUDGET
        assert not any(is_hidden(char) for char in field.text), "a person sees what they edit"


@given(ARGS)
@settings(deadline=None)
def test_written_for_an_editor_nothing_is_hidden_and_nothing_is_lost(args: dict[str, Any]) -> None:
    text = written(args)
    assert json.dumps(json.loads(text), sort_keys=True) == json.dumps(args, sort_keys=True)
    assert not any(is_hidden(char) for char in text)


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        ({"path": "a", "n": 5, "ok": True}, 3),
        ({f"a{n}": "x" for n in range(6)}, 1),
        ({"to": ["a"]}, 1),
        ({"path": None}, 1),
        ({"path": " blank at an end"}, 1),
        ({"path": "hidden\u200b"}, 1),
        ({"n" * 46: "x"}, 1),
        ({}, 1),
    ],
)
def test_simple_arguments_have_fields_and_others_are_json(args: dict[str, Any], fields: int) -> None:
    form = form_for(args)
    assert form is not None
    assert len(form.fields) == fields
    assert bool(form.names) == (fields > 1)


@pytest.mark.parametrize("args", [{"text": "x" * 4001}, {"list": ["x" * 4000]}, {"emoji": "\U0001f600" * 2001}])
def test_what_is_too_long_has_no_form(args: dict[str, Any]) -> None:
    assert form_for(args) is None


@pytest.mark.parametrize("typed", ["five", "true", '"5"', "", "NaN", "[5]"])
def test_a_number_stays_a_number(typed: str) -> None:
    form = form_for({"n": 5})
    assert form is not None
    with pytest.raises(NotReadable, match="n must be a number"):
        form.read({"arguments-0": typed}, {"n": 5})


@pytest.mark.parametrize("typed", [{}, {"arguments": "{}"}, {"arguments-0": "a", "more": "b"}])
def test_a_form_with_other_fields_is_not_read(typed: dict[str, str]) -> None:
    form = form_for({"path": "a"})
    assert form is not None
    with pytest.raises(NotReadable):
        form.read(typed, {"path": "a"})


def form_with(order: tuple[str, ...], args: dict[str, Any], diff_of: str = "") -> Form:
    description = ToolDescription(order=order)
    form = form_of(make_request(args=args, description=description, diff_of=diff_of, preview="@@ -1 +1 @@"))
    assert form is not None
    return form


def test_the_fields_are_in_the_tools_own_order() -> None:
    args = {"body": "x", "also": 1, "to": "ada", "subject": "Hi"}
    form = form_with(("to", "subject", "body"), args)
    assert [field.label for field in form.fields] == ["to", "subject", "body", "also"]
    assert untouched(form, args) == args
    json_form = form_with(("to", "list"), {"list": [{"b": 1, "a": 2}], "to": "ada"})
    assert json.loads(json_form.fields[0].text) == {"list": [{"b": 1, "a": 2}], "to": "ada"}
    assert json_form.fields[0].text.startswith('{\n  "to": "ada"')


def test_a_form_that_was_opened_by_an_older_version_still_fits() -> None:
    """Its fields were in alphabetical order, with these keys."""
    args = {"to": "ada", "subject": "Hi"}
    form = form_with(("to", "subject"), args)
    assert form.read({"arguments-0": "Hello", "arguments-1": "ada"}, args) == {"to": "ada", "subject": "Hello"}


@pytest.mark.parametrize(
    ("args", "is_long"),
    [
        ({"path": "config/app.env"}, False),
        ({"mode": ""}, False),
        ({"lines": 5}, False),
        ({"title": "two words"}, True),
        ({"name": "x" * 31}, True),
        ({"value": "two\nlines"}, True),
        ({"message_text": "Hi"}, True),
        ({"data": "PORT=8080"}, True),
    ],
)
def test_a_field_has_several_lines_where_that_helps(args: dict[str, Any], is_long: bool) -> None:
    (field,) = form_with((), args, diff_of="data").fields
    assert field.long is is_long


@pytest.mark.parametrize("content", ["a\nb\n", "a\n\n\nb", "a\n\n\n", "{\n  'x': 1\n}\n", "one"])
@pytest.mark.parametrize("client", [lambda text: text, str.strip, lambda text: text.replace("\n", "\r\n")])
def test_a_text_with_line_breaks_survives_whatever_the_client_does_to_blanks(content: str, client: Any) -> None:
    args = {"path": "a.txt", "content": content}
    form = form_with(("path", "content"), args)
    assert form.names == ("path", "content"), "a field each, not JSON"
    typed = {field.key: client(field.text) for field in form.fields}
    assert form.read(typed, args) == args


def test_the_field_says_that_a_line_break_at_the_end_is_kept() -> None:
    (field,) = form_with((), {"content": "a\nb\n"}).fields
    assert (field.text, field.hint) == ("a\nb", "The line break at its end is kept")
    (field,) = form_with((), {"content": "a\n\n"}).fields
    assert field.hint == "The 2 line breaks at its end are kept"

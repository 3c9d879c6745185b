"""`ask_user`: what the model may ask, the form that people get, and the answer that the model reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signoff.agent.tools.asking import asking_tool
from signoff.approvals.answering import Answering
from signoff.approvals.inquiries import FieldKind
from signoff.approvals.model import RequestKind, Verdict
from signoff.approvals.policy import Policy
from signoff.turns.model import Finished, Waiting
from tests.conftest import ADA, PLACE
from tests.rigs.gate_bench import Bench, batch_of
from tests.rigs.scripted import calls

COLOUR = {"name": "Colour", "question": "Which colour?", "kind": "choice", "options": ["red", "blue"]}


async def test_each_question_is_a_field_and_the_answers_are_the_result(bench: Bench) -> None:
    questions: list[dict[str, Any]] = [
        COLOUR,
        {"name": "Coats", "question": "How many coats?", "kind": "number"},
        {"name": "Rooms", "question": "Which rooms?", "kind": "choices", "options": ["hall", "attic"]},
        {"name": "Sure", "question": "Shall I start?", "kind": "yes_no"},
        {"name": "Note", "question": "Anything else?", "optional": True},
    ]
    step = await bench.start([calls(("ask_user", {"questions": questions})), "done"], [asking_tool()])
    (request,) = batch_of(step).requests
    assert request.kind is RequestKind.ANSWER
    assert request.inquiry
    assert request.inquiry.tells_all
    assert [(f.name, f.hint, f.kind, f.required) for f in request.inquiry.fields] == [
        ("Colour", "Which colour?", FieldKind.CHOICE, True),
        ("Coats", "How many coats?", FieldKind.NUMBER, True),
        ("Rooms", "Which rooms?", FieldKind.CHOICES, True),
        ("Sure", "Shall I start?", FieldKind.YES_NO, True),
        ("Note", "Anything else?", FieldKind.TEXT, False),
    ]
    answer = {"Colour": "red", "Coats": 2, "Rooms": ["attic"], "Sure": True}
    await Answering(bench.desk).answer(request.id, answer, ADA, PLACE.channel, None)
    assert isinstance(await bench.advance(), Finished)
    assert json.loads(bench.script.results["call_0"]) == answer


async def test_a_single_question_stands_above_its_form(bench: Bench) -> None:
    step = await bench.start([calls(("ask_user", {"questions": [COLOUR]})), "done"], [asking_tool()])
    inquiry = batch_of(step).requests[0].inquiry
    assert inquiry
    assert (inquiry.words, inquiry.fields[0].hint) == ("Which colour?", "")


async def test_it_asks_without_approval_where_everything_else_asks(bench: Bench) -> None:
    policy = Policy(undeclared=Verdict.ASK)
    step = await bench.start([calls(("ask_user", {"questions": [COLOUR]})), "done"], [asking_tool()], policy=policy)
    assert batch_of(step).requests[0].kind is RequestKind.ANSWER


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [COLOUR] * 2,
        [{**COLOUR, "options": []}],
        [{**COLOUR, "options": ["red"]}],
        [{**COLOUR, "options": ["red", "red"]}],
        [{**COLOUR, "kind": "text"}],
        [{**COLOUR, "name": " "}],
        [{**COLOUR, "options": [f"o{n}" for n in range(26)]}],
        [{**COLOUR, "more": 1}],
        [{**COLOUR, "name": f"n{n}"} for n in range(11)],
    ],
)
async def test_questions_that_make_no_form_go_back_to_the_model(bench: Bench, questions: list[Any]) -> None:
    step = await bench.start([calls(("ask_user", {"questions": questions})), "done"], [asking_tool()])
    assert not isinstance(step, Waiting)

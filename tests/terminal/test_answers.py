"""A person at a terminal answers what a call asks: in the chat on a pseudo-terminal, and in a program of their own."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from signoff.approvals.answer_forms import inquire
from signoff.approvals.model import ApprovalDecision, RequestKind
from signoff.terminal import TerminalUI
from signoff.terminal.console import Ended
from signoff.text.secrets.masker import Masker
from tests.conftest import make_call, make_request
from tests.rigs.chat import ROOT, Chat, on_terminal
from tests.rigs.terminal_attacks import ATTACKS, unknown

COLOURS = {"type": "string", "enum": ["red", "blue", "green"]}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "colour": COLOURS,
        "extras": {"type": "array", "items": {"enum": ["logs", "metrics, all", "traces"]}, "minItems": 1},
        "count": {"type": "integer", "minimum": 1, "default": 3},
        "sure": {"type": "boolean"},
        "note": {"type": "string"},
    },
    "required": ["colour", "extras", "count", "sure"],
}


def choose(schema: dict[str, Any], *lines: str, words: str = "What now?", **options: Any) -> tuple[Any, str]:
    call = make_call("ask", {"about": "the hall"})
    request = make_request(call, kind=RequestKind.ANSWER, inquiry=inquire(words, schema))
    output = io.StringIO()
    ui = TerminalUI(stdin=io.StringIO("".join(f"{line}\n" for line in lines)), stdout=output, **options)
    return ui.choose(request), output.getvalue()


def answered(**answer: Any) -> ApprovalDecision:
    return ApprovalDecision(True, answer=answer)


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["2", "1,3", "", "yes", ""], {"colour": "blue", "extras": ["logs", "traces"], "count": 3, "sure": True}),
        (
            ["GREEN", "metrics, all", "7", "n", " hi "],
            {"colour": "green", "extras": ["metrics, all"], "count": 7, "sure": False, "note": " hi "},
        ),
        (["#1", "traces, 1", "1", "y", ""], {"colour": "red", "extras": ["traces", "logs"], "count": 1, "sure": True}),
    ],
)
def test_every_kind_of_field_is_filled_in(lines: list[str], answer: dict[str, Any]) -> None:
    assert choose(FORM, "a", *lines)[0] == ApprovalDecision(True, answer=answer)


def test_the_prompts_say_what_goes_in() -> None:
    _, shown = choose(FORM, "a", "1", "1", "", "yes", "")
    for words in (
        "What now?",
        "[a]nswer   [d]ecline   [D]ecline with a reason",
        "Field 1 of 5: choose one of 3",
        "│ 1. red",
        "number or name, or Enter to go back> 1",
        "numbers or names, separated by commas, or Enter to go back> 1",
        "Field 3 of 5: a whole number, at least 1",
        "value, or Enter for the default>",
        "yes or no, or Enter to go back> yes",
        "Field 5 of 5: a text, optional",
        "value, or Enter to leave it empty>",
    ):
        assert words in shown
    assert "(empty)" not in shown, "a field without a hint"


@pytest.mark.parametrize(
    ("schema", "wrong", "says", "right", "value"),
    [
        (COLOURS, "4", "There is no option 4", "3", "green"),
        (COLOURS, "#0", "There is no option 0", "1", "red"),
        (COLOURS, "pink", "must be one of the options", "red", "red"),
        (COLOURS, "1,2", "must be one of the options", "red", "red"),
        ({"type": "array", "items": COLOURS, "maxItems": 2}, "1,2,3", "choose at most 2", "1,2", ["red", "blue"]),
        ({"type": "array", "items": COLOURS}, "1,1", "must be among the options", "1", ["red"]),
        ({"type": "integer", "maximum": 5}, "6", "must be at most 5", "5", 5),
        ({"type": "number"}, "six", "must be a number", "6.5", 6.5),
        ({"type": "boolean"}, "perhaps", "must be yes or no", "yes", True),
        ({"type": "string", "format": "email"}, "ada", "must be an email address", "a@b.example", "a@b.example"),
        ({"type": "object"}, "{", "must be JSON", '{"a": 1}', {"a": 1}),
    ],
)
def test_a_value_that_does_not_fit_is_explained_and_asked_for_again(
    schema: dict[str, Any], wrong: str, says: str, right: str, value: Any
) -> None:
    decision, shown = choose(schema, "a", wrong, right)
    assert says in shown
    assert decision == answered(value=value)


def test_options_that_are_numbers_are_not_confused_with_their_places() -> None:
    schema = {"type": "integer", "enum": [3, 1, 2]}
    assert choose(schema, "a", "1")[0] == answered(value=1)
    decision, shown = choose(schema, "a", "#1")
    assert decision == answered(value=3)
    assert "│ #1 3" in shown
    assert choose({"enum": [3, 1, 10]}, "a", "2", "10")[0] == answered(value=10)


def test_the_value_behind_a_name_is_not_taken_for_a_place() -> None:
    options = [{"const": 2, "title": "two"}, {"const": 1, "title": "one"}]
    assert choose({"oneOf": options}, "a", "2")[0] == answered(value=1)


def test_a_name_that_several_options_have_is_asked_for_again() -> None:
    options = [{"const": 1, "title": "Same"}, {"const": 2, "title": "same"}]
    decision, shown = choose({"oneOf": options}, "a", "same", "2")
    assert "Several options have this name" in shown
    assert decision == answered(value=2)


def test_enter_goes_back_from_a_field_that_must_be_filled_in() -> None:
    decision, shown = choose(COLOURS, "a", "", "d")
    assert decision == ApprovalDecision(False)
    assert "Nothing was sent." in shown


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["d"], ApprovalDecision(False)),
        (["D", "ask Ben"], ApprovalDecision(False, "ask Ben")),
        (["y", "accept", "e", "m", "d"], ApprovalDecision(False)),
    ],
)
def test_a_person_may_decline(lines: list[str], decision: ApprovalDecision) -> None:
    assert choose(COLOURS, *lines)[0] == decision


def test_a_question_without_fields_is_confirmed() -> None:
    decision, shown = choose({"type": "object", "properties": {}}, "c")
    assert decision == ApprovalDecision(True, answer={})
    assert "[c]onfirm   [d]ecline" in shown


def test_the_end_of_the_input_is_no_answer() -> None:
    for lines in (["a"], ["a", "1"], []):
        with pytest.raises(Ended):
            choose(FORM, *lines)


def test_a_long_question_is_answered_only_once_it_was_seen() -> None:
    schema, words = {"type": "string"}, "why? " * 3000 + "the tail"
    assert not choose(schema, "a", "d", words=words)[0].approved
    decision, shown = choose(schema, "a", "v", "a", "because", words=words)
    assert decision == answered(value="because")
    assert "before you can answer it" in " ".join(shown.split())


def test_secrets_in_the_form_are_masked_and_a_masked_default_is_not_offered() -> None:
    secret = "hunter2hunter2"
    schema = {"properties": {"password": {"type": "string", "default": secret}}, "required": ["password"]}
    decision, shown = choose(schema, "a", "", "d", masker=Masker(b"k" * 32))
    assert decision == ApprovalDecision(False)
    assert secret not in shown


def test_a_default_that_does_not_fit_is_not_offered() -> None:
    decision, shown = choose({**COLOURS, "default": "pink"}, "a", "", "d")
    assert decision == ApprovalDecision(False)
    assert "Default" not in shown


HOSTILE = "x\n2. fake\x1b[2J\u202eevil"


def test_no_text_of_the_form_passes_for_an_option_or_controls_the_terminal() -> None:
    schema = {"enum": [HOSTILE, "b"], "title": HOSTILE, "description": HOSTILE}
    _, shown = choose(schema, "a", "nothing", "2", words=HOSTILE)
    listed = shown.rpartition("Options:\n")[2]
    assert listed.startswith(r"│ 1. x\u{000A}2. fake\u{001B}[2J\u{202E}evil" + "\n│ 2. b\n")
    assert unknown(shown) == []
    assert all(line[0] == "│" for line in shown.splitlines() if "fake" in line)


# In the chat


CONFIG = """
[tools]
plugins = ["{plugin}"]

[[rules]]
tool = "order"
verdict = "ask"
timeout = "{timeout}"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chat]:
    folder = tmp_path_factory.mktemp("terminal")
    plugin = ROOT / "tests" / "rigs" / "asking_plugin.py"
    (folder / "signoff.toml").write_text(CONFIG.format(plugin=plugin, timeout="3s"), encoding="utf-8")
    async with on_terminal(folder, forked=False) as chat:
        yield chat


def asking(question: str, schema: dict[str, Any]) -> str:
    return f"call ask {json.dumps({'question': question, 'schema': json.dumps(schema)})}"


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_the_chat_sends_the_answer_to_the_model(chat: Chat) -> None:
    await chat.say(asking("Which colour?", COLOURS))
    await chat.sees("Which colour?", "[a]nswer", "answer, ")
    await chat.decide("a", "pink", "2")
    await chat.answers("ANSWERED by", "blue")


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_the_chat_declines_with_a_reason(chat: Chat) -> None:
    await chat.say(asking("Which colour?", COLOURS))
    await chat.decide("D", "ask Ben")
    await chat.answers("DECLINED by", "declined to answer", "ask Ben")


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_the_deadline_ends_a_form_that_is_half_filled_in(chat: Chat) -> None:
    await chat.say('call order {"item": "tea"}')
    await chat.sees("[a]ccept")
    await chat.decide("a")
    await chat.sees("[a]nswer")
    await chat.decide("a", "large")
    await chat.sees("Field 2 of 3")
    await chat.answers("TIMEOUT - Request expired", "nobody answered in time")
    await chat.say(asking("And now?", {"type": "object", "properties": {}}))
    await chat.decide("c")
    await chat.answers("ANSWERED by")


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != "frame"])
async def test_nothing_that_a_call_asks_reaches_the_terminal_raw(chat: Chat, attack: str) -> None:
    text = ATTACKS[attack]
    await chat.say(asking(text, {"enum": [text, "b"], "title": text, "description": text}))
    await chat.decide("a", "c", "2")
    await chat.answers("ANSWERED by")
    assert unknown(chat.raw) == []

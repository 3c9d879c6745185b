"""TerminalUI: the same questions in a user's own program, with lines from a string."""

from __future__ import annotations

import io
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from signoff import run_with_approval, run_with_approval_sync
from signoff.approvals.model import ApprovalDecision, ApprovalRequest
from signoff.terminal import TerminalUI
from signoff.terminal.console import Ended
from signoff.text.secrets.masker import Masker
from tests.conftest import make_call, make_request


def choose(*lines: str, args: dict[str, Any] | None = None, **options: Any) -> tuple[ApprovalDecision, str]:
    request = make_request(make_call("delete_file", args or {"path": "a.txt"}))
    return choose_about(request, *lines, **options)


def choose_about(request: ApprovalRequest, *lines: str, **options: Any) -> tuple[ApprovalDecision, str]:
    output = io.StringIO()
    ui = TerminalUI(stdin=io.StringIO("".join(f"{line}\n" for line in lines)), stdout=output, **options)
    return ui.choose(request), output.getvalue()


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["a"], ApprovalDecision(True)),
        (["r"], ApprovalDecision(False)),
        (["what", "", "reject"], ApprovalDecision(False)),
        (["R", "", "R", "not now"], ApprovalDecision(False, "not now")),
        (["m", "h"], ApprovalDecision(True, remember="session")),
        (["m", "w"], ApprovalDecision(True, remember="always")),
        (["m", "W"], ApprovalDecision(False, remember="always")),
        (["m", "b", "r"], ApprovalDecision(False)),
        (["e", '{"path": "b.txt"}', "a"], ApprovalDecision(True, override_args={"path": "b.txt"})),
        (["e", '{"path": "b.txt"}', "r"], ApprovalDecision(False)),
        (["e", "", "a"], ApprovalDecision(True)),
        (["e", "[1]", '{"a": 1, "a": 2}', "", "r"], ApprovalDecision(False)),
    ],
)
def test_keys_become_a_decision(lines: list[str], decision: ApprovalDecision) -> None:
    assert choose(*lines)[0] == decision


@pytest.mark.parametrize("lines", [[], ["m"], ["e"], ["R"]])
def test_the_end_of_the_input_is_no_answer(lines: list[str]) -> None:
    with pytest.raises(Ended):
        choose(*lines)


def test_what_was_edited_is_shown_before_it_is_accepted() -> None:
    _, shown = choose("e", '{"path": "b.txt"}', "a")
    assert "path (original, does not run)" in shown
    assert shown.index("path (edited)") < shown.rindex("decide> a")


def test_what_the_tool_said_goes_with_the_arguments_that_it_was_about() -> None:
    call = make_call("delete_file", {"path": "a.txt"})
    request = make_request(call, metadata={"summary": "delete lunch.txt"}, preview="-lunch")
    _, shown = choose_about(request, "e", '{"path": "b.txt"}', "a")
    before, after = shown.split("path (edited)")
    assert "delete lunch.txt" in before
    for words in ("delete lunch.txt", "-lunch"):
        assert shown.count(words) == 1
        assert words not in after


def test_a_long_call_is_accepted_only_once_it_was_seen() -> None:
    long = {"path": "x" * 30_000 + "the tail"}
    assert not choose("a", "r", args=long)[0].approved
    decision, shown = choose("a", "v", "a", args=long)
    assert decision.approved
    assert "the tail" in "".join(shown.split("┊ ")).replace("\n", "")


def test_what_is_masked_is_neither_shown_nor_edited() -> None:
    decision, shown = choose("e", "r", args={"password": "hunter2hunter2"}, masker=Masker(b"k" * 32))
    assert not decision.approved
    assert "hunter2hunter2" not in shown
    assert "[e]dit" not in shown


def test_what_the_program_does_not_want_is_not_offered() -> None:
    _, shown = choose("r", edit=False, remember=False)
    assert "[a]ccept   [r]eject   [R]eject with a reason\n" in shown


def agent_that_deletes() -> tuple[Agent[None, str], list[str]]:
    deleted: list[str] = []

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returned:
            return ModelResponse([TextPart(str(returned[0].content))])
        return ModelResponse([ToolCallPart("delete_file", {"path": "a.txt"})])

    agent = Agent(FunctionModel(respond))

    @agent.tool_plain(requires_approval=True)
    def delete_file(path: str) -> str:
        deleted.append(path)
        return f"deleted {path}"

    return agent, deleted


def test_it_is_a_ui_of_the_library() -> None:
    agent, deleted = agent_that_deletes()
    ui = TerminalUI(stdin=io.StringIO('e\n{"path": "b.txt"}\na\n'), stdout=io.StringIO())
    assert run_with_approval_sync(agent, "go", ui=ui).output.endswith("'result': 'deleted b.txt'}")
    assert deleted == ["b.txt"]


def test_the_end_of_the_input_is_no_persons_refusal() -> None:
    agent, deleted = agent_that_deletes()
    events: list[Any] = []
    ui = TerminalUI(stdin=io.StringIO(""), stdout=io.StringIO())
    told = run_with_approval_sync(agent, "go", ui=ui, on_event=events.append).output
    assert "not by a person" in told
    assert [(event["approved"], event["by"], event["how"]) for event in events] == [(False, None, "error")]
    assert deleted == []


async def test_it_is_a_ui_of_the_library_in_async_programs() -> None:
    agent, deleted = agent_that_deletes()
    ui = TerminalUI(stdin=io.StringIO("R\nno\n"), stdout=io.StringIO())
    assert "Reason: no" in (await run_with_approval(agent, "go", ui=ui)).output
    assert deleted == []

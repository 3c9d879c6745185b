"""Deferred calls in, results out: each call has a decision, and none is approved by accident."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolApproved, ToolDenied
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    AsyncScriptedUI,
    FieldKind,
    ScriptedUI,
    build_approval_requests,
    collect_approvals,
    collect_approvals_sync,
)
from tests.rigs.scripted import Script, calls
from tests.rigs.talk import deferred, external


async def both(pending: DeferredToolRequests, answers: list[Any], **options: Any) -> DeferredToolResults:
    """Call the sync function and its async twin, and check that they agree."""
    results = await asyncio.to_thread(collect_approvals_sync, pending, ui=ScriptedUI(answers), **options)
    assert await collect_approvals(pending, ui=AsyncScriptedUI(answers), **options) == results
    return results


@pytest.mark.parametrize("args", ['{"path": "a"}', {"path": "a"}])
def test_arguments_may_be_a_json_string_or_a_dict(args: Any) -> None:
    (request,) = build_approval_requests(deferred(("delete", args)))
    assert (request.call.tool, request.call.args) == ("delete", {"path": "a"})


def test_no_arguments_at_all_are_an_empty_object() -> None:
    for args in (None, "", {}):
        assert build_approval_requests(deferred(("delete", args)))[0].call.args == {}


def test_a_request_has_an_id_of_its_own() -> None:
    pending = deferred(("delete", {}), ("delete", {}))
    ids = {request.id for request in [*build_approval_requests(pending), *build_approval_requests(pending)]}
    assert len(ids) == 4
    assert not ids & {"call_0", "call_1"}


@pytest.mark.parametrize(
    ("metadata", "summary"),
    [
        ({"path": "p", "reason": "r", "summary": "s"}, "s"),
        ({"path": "p", "reason": "r"}, "r"),
        ({"path": "p", "summary": ""}, "p"),
        ({}, ""),
    ],
)
def test_the_summary_is_the_metadatas_summary_reason_or_path(metadata: dict[str, Any], summary: str) -> None:
    (request,) = build_approval_requests(deferred(("delete", {}), call_0=metadata))
    assert request.summary == summary
    assert request.metadata == metadata


@pytest.mark.parametrize("name", ["diff", "preview"])
def test_a_diff_in_the_metadata_comes_through(name: str) -> None:
    (request,) = build_approval_requests(deferred(("write", {}), call_0={name: "-a\n+b"}))
    assert request.preview == "-a\n+b"
    assert request.metadata[name] == "-a\n+b"


async def test_each_call_gets_its_own_decision() -> None:
    results = await both(deferred(("a", {}), ("b", {})), [True, ApprovalDecision(False, "not on a Friday")])
    assert results.approvals["call_0"] == ToolApproved()
    assert results.approvals["call_1"] == ToolDenied("Rejected by user: the call was not run. Reason: not on a Friday")


async def test_edited_arguments_reach_the_framework_even_if_there_are_none() -> None:
    for edited in ({"path": "b"}, {}):
        results = await both(deferred(("a", {"path": "a"})), [ApprovalDecision(True, override_args=edited)])
        assert results.approvals["call_0"] == ToolApproved(override_args=edited)


async def test_the_arguments_of_a_rejected_call_are_not_edited() -> None:
    results = await both(deferred(("a", {})), [ApprovalDecision(False, override_args={"path": "b"})])
    assert isinstance(results.approvals["call_0"], ToolDenied)


async def test_modes_ask_nobody() -> None:
    pending = deferred(("a", {}))
    assert (await both(pending, [False], mode="auto_approve")).approvals["call_0"] == ToolApproved()
    denied = (await both(pending, [True], mode="auto_deny")).approvals["call_0"]
    assert isinstance(denied, ToolDenied)
    assert "auto_deny" in denied.message
    assert "user" not in denied.message


@pytest.mark.parametrize("options", [{"mode": "auto_aprove"}, {"on_no_approver": "Approve"}])
async def test_a_misspelt_option_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown"):
        collect_approvals_sync(deferred(("a", {})), **options)
    with pytest.raises(ValueError, match="unknown"):
        await collect_approvals(deferred(("a", {})), **options)


async def test_with_nobody_to_ask_calls_are_rejected_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    pending = deferred(("a", {}))
    for results in (collect_approvals_sync(pending), await collect_approvals(pending)):
        denied = results.approvals["call_0"]
        assert isinstance(denied, ToolDenied)
        assert "not by a person" in denied.message
    assert caplog.text.count("nobody is there to approve a: rejected") == 2


async def test_on_no_approver_may_approve_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    results = await collect_approvals(deferred(("a", {})), on_no_approver="approve")
    assert results.approvals["call_0"] == ToolApproved()
    assert "WARNING" in caplog.text


async def test_on_no_approver_says_nothing_where_somebody_is_there() -> None:
    results = await both(deferred(("a", {})), [False], on_no_approver="approve")
    assert isinstance(results.approvals["call_0"], ToolDenied)


def broken(_: Any) -> Any:
    raise ConnectionError("the window was closed")


def exhausted(_: Any) -> Any:
    return next(iter(()))


def given_up(_: Any) -> Any:
    raise CancelledError


@pytest.mark.parametrize(
    "answer",
    [
        broken,
        exhausted,
        given_up,
        lambda _: True,
        lambda _: None,
        lambda _: ApprovalDecision("no"),  # type: ignore[arg-type]
        lambda _: ApprovalDecision(True, remember="forever"),  # type: ignore[arg-type]
        lambda _: ApprovalDecision(True, override_args={"when": object()}),
    ],
)
async def test_a_ui_that_fails_or_answers_nonsense_rejects_that_call_only(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    memory = ApprovalMemory()
    results = await both(deferred(("a", {}), ("b", {})), [answer, True], memory=memory)
    denied = results.approvals["call_0"]
    assert isinstance(denied, ToolDenied)
    assert "not by a person" in denied.message
    assert results.approvals["call_1"] == ToolApproved()
    assert caplog.text.count("the UI failed at the request about a") == 2
    assert memory.list() == ()


@pytest.mark.parametrize("answer", [broken, exhausted, given_up])
async def test_whatever_a_sync_ui_raises_in_its_thread_rejects_that_call_only(answer: Any) -> None:
    collecting = collect_approvals(deferred(("a", {}), ("b", {})), ui=ScriptedUI([answer, True]))
    results = await asyncio.wait_for(collecting, 20)
    assert isinstance(results.approvals["call_0"], ToolDenied)
    assert results.approvals["call_1"] == ToolApproved()


def test_an_interrupt_at_the_prompt_ends_everything() -> None:
    def interrupt(_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect_approvals_sync(deferred(("a", {})), ui=ScriptedUI([interrupt]))


def test_the_sync_function_refuses_an_async_ui() -> None:
    ui = AsyncScriptedUI([True])
    with pytest.raises(TypeError, match="async"):
        collect_approvals_sync(deferred(("a", {})), ui=ui)  # type: ignore[arg-type]


async def test_a_sync_ui_does_not_block_the_event_loop() -> None:
    answered = threading.Event()

    def wait(_: Any) -> ApprovalDecision:
        assert answered.wait(10)
        return ApprovalDecision(True)

    deciding = asyncio.create_task(collect_approvals(deferred(("a", {})), ui=ScriptedUI([wait])))
    await asyncio.sleep(0)
    answered.set()
    assert (await deciding).approvals["call_0"] == ToolApproved()


async def test_unreadable_arguments_are_rejected_without_asking() -> None:
    bottomless: list[Any] = []
    for _ in range(200):
        bottomless = [bottomless]
    for args in ('{"path": ', "[1]", {"n": float("nan")}, {"deep": bottomless}):
        ui = ScriptedUI([True])
        results = collect_approvals_sync(deferred(("a", args)), ui=ui)
        assert isinstance(results.approvals["call_0"], ToolDenied)
        assert ui.asked == []
        with pytest.raises(ValueError, match="cannot be shown"):
            build_approval_requests(deferred(("a", args)))


async def test_calls_with_the_same_id_are_rejected_without_asking() -> None:
    pending = DeferredToolRequests(approvals=[ToolCallPart("look", {}, "x"), ToolCallPart("delete", {}, "x")])
    ui = ScriptedUI([True, True])
    results = collect_approvals_sync(pending, ui=ui)
    assert ui.asked == []
    assert isinstance(results.approvals["x"], ToolDenied)


async def test_the_ui_gives_the_results_of_external_calls_after_the_approvals() -> None:
    answers = [True, ApprovalDecision(True, answer={"value": "it is done"})]
    results = await both(deferred(("a", {}), calls=("elsewhere",)), answers)
    assert results.approvals["call_0"] == ToolApproved()
    assert results.calls == {"external_0": "it is done"}


async def test_a_deferred_call_says_in_its_metadata_what_it_asks() -> None:
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}, "why": {"type": "string"}}}
    pending = deferred(calls=("ask",), external_0={"question": "Sure?", "schema": schema})
    ui = ScriptedUI([ApprovalDecision(True, answer={"sure": True})])
    assert collect_approvals_sync(pending, ui=ui).calls == {"external_0": {"sure": True}}
    inquiry = ui.asked[0].inquiry
    assert inquiry
    assert (inquiry.words, [field.kind for field in inquiry.fields]) == ("Sure?", [FieldKind.YES_NO, FieldKind.TEXT])


def test_the_questions_of_the_harness_become_a_form_without_their_tool() -> None:
    question = {"header": "Colour", "question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}
    pending = DeferredToolRequests(calls=[ToolCallPart("ask_user_question", {"questions": [question]}, "x")])
    ui = ScriptedUI([ApprovalDecision(True, answer={"Colour": ["red"]})])
    assert collect_approvals_sync(pending, ui=ui).calls == {"x": {"Colour": ["red"]}}


@pytest.mark.parametrize("args", [{}, {"questions": "all"}, {"questions": [{"header": "x"}]}])
def test_another_tool_of_that_name_gets_a_plain_form(args: dict[str, Any]) -> None:
    pending = DeferredToolRequests(calls=[ToolCallPart("ask_user_question", args, "x")])
    ui = ScriptedUI([ApprovalDecision(True, answer={"value": "yes"})])
    assert collect_approvals_sync(pending, ui=ui).calls == {"x": "yes"}


@pytest.mark.parametrize(
    ("answers", "options", "says"),
    [
        ([ApprovalDecision(False, "ask Ben")], {}, "declined to answer. Reason: ask Ben"),
        ([True], {}, "must not be empty"),
        ([True], {"mode": "auto_approve"}, "mode auto_approve asks nobody"),
        ([True], {"mode": "auto_deny"}, "mode auto_deny asks nobody"),
    ],
)
async def test_a_call_without_an_answer_fails_with_the_reason(answers: list[Any], options: Any, says: str) -> None:
    (failure,) = (await both(deferred(calls=("elsewhere",)), answers, **options)).calls.values()
    assert isinstance(failure, ToolFailed)
    assert says in failure.message


def test_with_nobody_to_ask_there_is_no_answer_whatever_on_no_approver_says() -> None:
    (failure,) = collect_approvals_sync(deferred(calls=("elsewhere",)), on_no_approver="approve").calls.values()
    assert isinstance(failure, ToolFailed)
    assert "nobody is there to answer" in failure.message


def test_only_approvals_are_built_as_approval_requests() -> None:
    assert [request.call.tool for request in build_approval_requests(deferred(("a", {}), calls=("far",)))] == ["a"]


def test_external_calls_with_the_id_of_another_call_are_not_asked_about() -> None:
    pending = DeferredToolRequests(approvals=[ToolCallPart("a", {}, "x")], calls=[ToolCallPart("far", {}, "x")])
    ui = ScriptedUI([True, ApprovalDecision(True, answer={"value": "y"})])
    with contextlib.suppress(ValueError):  # the framework may refuse such results
        assert isinstance(collect_approvals_sync(pending, ui=ui).calls["x"], ToolFailed)
    assert ui.asked == []


def test_a_remembered_decision_is_not_asked_again_and_an_edit_asks_for_the_original() -> None:
    memory = ApprovalMemory()
    edit = ApprovalDecision(True, override_args={"path": "b"}, remember="session")
    collect_approvals_sync(deferred(("a", {"path": "a"})), ui=ScriptedUI([edit]), memory=memory)
    ui = ScriptedUI([False])
    results = collect_approvals_sync(deferred(("a", {"path": "a"}), ("a", {"path": "b"})), ui=ui, memory=memory)
    assert [request.call.args for request in ui.asked] == [{"path": "a"}]
    assert results.approvals["call_1"] == ToolApproved()


@pytest.mark.parametrize(("mode", "remembered"), [("auto_deny", True), ("auto_approve", False)])
async def test_between_mode_and_memory_the_reject_wins(mode: Any, remembered: bool) -> None:
    memory = ApprovalMemory()
    decision = ApprovalDecision(remembered, remember="session")
    memory.store(build_approval_requests(deferred(("a", {})))[0], decision)
    results = await both(deferred(("a", {})), [True], mode=mode, memory=memory)
    assert isinstance(results.approvals["call_0"], ToolDenied)


def test_every_decision_is_an_event() -> None:
    seen: list[Any] = []
    memory = ApprovalMemory()
    answers = [ApprovalDecision(True, remember="session"), ApprovalDecision(False, "no", remember="session")]
    pending = deferred(("a", {"n": 1}), ("b", {}))
    for _ in range(2):
        collect_approvals_sync(pending, ui=ScriptedUI(answers), memory=memory, on_event=seen.append)
    collect_approvals_sync(pending, mode="auto_approve", on_event=[seen.append])
    assert {event["event"] for event in seen} == {"tool_approval"}
    assert [(e["tool"], e["arguments"], e["approved"], e["by"], e["how"]) for e in seen] == [
        ("a", {"n": 1}, True, "user", "ui"),
        ("b", {}, False, "user", "ui"),
        ("a", {"n": 1}, True, "user", "memory"),
        ("b", {}, False, "user", "memory"),
        ("a", {"n": 1}, True, None, "mode"),
        ("b", {}, True, None, "mode"),
    ]


def test_a_subscriber_that_fails_changes_no_decision() -> None:
    seen: list[Any] = []
    results = collect_approvals_sync(deferred(("a", {})), mode="auto_approve", on_event=[broken, seen.append])
    assert results.approvals["call_0"] == ToolApproved()
    assert len(seen) == 1


def test_a_decision_stands_if_it_cannot_be_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    memory = ApprovalMemory()
    memory.path = tmp_path / "approvals.json"
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    ui = ScriptedUI([ApprovalDecision(True, remember="always")])
    assert collect_approvals_sync(deferred(("a", {})), ui=ui, memory=memory).approvals["call_0"] == ToolApproved()


@dataclass
class Half:
    """A UI whose choose is a plain function that returns a coroutine."""

    def choose(self, request: Any) -> Any:
        return AsyncScriptedUI([True]).choose(request)


async def test_a_choose_that_returns_an_awaitable_is_awaited() -> None:
    assert (await collect_approvals(deferred(("a", {})), ui=Half())).approvals["call_0"] == ToolApproved()


async def test_the_results_resume_a_real_run_with_partial_approval() -> None:
    ran: list[str] = []

    def delete(path: str) -> str:
        ran.append(path)
        return f"deleted {path}"

    script = Script([calls(("delete", {"path": "a"}), ("delete", '{"path": "b"}'), ("far", {})), "done"])
    agent = Agent(
        script.model(),
        tools=[Tool(delete, requires_approval=True)],
        toolsets=[external("far")],
        output_type=[str, DeferredToolRequests],
    )
    paused = await agent.run("clean up")
    assert isinstance(paused.output, DeferredToolRequests)
    answer = ApprovalDecision(True, answer={"value": "all clean"})
    results = await collect_approvals(paused.output, ui=ScriptedUI([False, True, answer]))
    end = await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert end.output == "done"
    assert ran == ["b"]
    assert script.results["call_0"].startswith("Rejected by user")
    assert script.results["call_1"] == "deleted b"
    assert script.results["call_2"] == "all clean"

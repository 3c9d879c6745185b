"""Code that was written for the library's first design: its names on requests, and UIs that take the mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, Tool

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRequest,
    Signoff,
    collect_approvals,
    collect_approvals_sync,
)
from tests.rigs.scripted import Box, calls
from tests.rigs.talk import deferred, play


class Positional:
    """`choose(request, mode)`, as a positional parameter."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def choose(self, request: ApprovalRequest, mode: str) -> ApprovalDecision:
        self.heard.append((request.tool_name, dict(request.args), request.tool_call_id, mode))
        return ApprovalDecision(approved=True, note=None)  # pyright: ignore[reportArgumentType]


class Keyword(Positional):
    """`choose(request, *, mode)`, as the first design had it."""

    def choose(self, request: ApprovalRequest, *, mode: str) -> ApprovalDecision:  # pyright: ignore
        return super().choose(request, mode)


class Async(Positional):
    async def choose(self, request: ApprovalRequest, *, mode: str = "?") -> ApprovalDecision:  # pyright: ignore
        return super().choose(request, mode)


def agent_with(ui: Any, box: Box) -> Agent[Any, Any]:
    danger = Tool(box.tool("danger"), requires_approval=True)
    return play(calls(("danger", {"value": "x"})), "done", tools=[danger], capabilities=[Signoff(ui=ui)])[0]


@pytest.mark.parametrize("kind", [Positional, Keyword, Async])
async def test_a_ui_that_takes_the_mode_gets_it_and_finds_the_old_names(kind: type[Positional]) -> None:
    box, ui = Box(), kind()
    await agent_with(ui, box).run("go")
    assert ui.heard == [("danger", {"value": "x", "other": None}, "call_0", "interactive")]
    assert len(box.ran) == 1


@pytest.mark.parametrize("kind", [Positional, Keyword])
def test_the_loop_of_the_first_design_works(kind: type[Positional]) -> None:
    ui = kind()
    requests = deferred(("delete", {"path": "a"}))
    results = collect_approvals_sync(requests, ui=ui, mode="interactive", memory=ApprovalMemory())
    assert ui.heard == [("delete", {"path": "a"}, "call_0", "interactive")]
    assert list(results.approvals) == ["call_0"]


async def test_the_async_loop_gives_the_mode_too() -> None:
    ui = Async()
    await collect_approvals(deferred(("delete", {})), ui=ui)
    assert ui.heard == [("delete", {}, "call_0", "interactive")]


class Remembering(Positional):
    def choose(self, request: ApprovalRequest, mode: str) -> ApprovalDecision:
        return ApprovalDecision(True, None, remember="always")  # pyright: ignore[reportArgumentType]


def test_no_note_is_an_empty_note_and_the_memory_stays_readable(tmp_path: Path) -> None:
    memory = ApprovalMemory(tmp_path / "memory.json")
    collect_approvals_sync(deferred(("delete", {})), ui=Remembering(), memory=memory)
    assert [entry.note for entry in memory.list()] == [""]

"""What the gate reports while a run works, and the line of each result that the journal keeps for the card."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, RunContext, Tool, ToolReturn

from signoff.approvals.model import CallKey, CallRun, Choice, RunState
from signoff.gate.book import returned
from signoff.gate.result_line import LINE, READ, UNREADABLE, result_line
from signoff.gate.wording import with_note
from signoff.text.secrets.masker import Masker
from signoff.turns.model import Waiting
from signoff.turns.ports import Progress
from tests.rigs.gate_bench import Bench, batch_of, protected
from tests.rigs.scripted import calls

TOKEN = "ghp_" + "a1B2" * 9
MASK = Masker(b"k" * 32).mask_args


@dataclass
class Reports(Progress):
    """Records the reports of a run in order."""

    lines: list[str] = field(default_factory=list)
    written: str = ""

    def thinking(self) -> None:
        self.lines.append("thinking")

    def writing(self, words: str) -> None:
        self.written += words

    def started(self, key: CallKey, tool: str) -> None:
        self.lines.append(f"started {tool}")

    def ended(self, key: CallKey, *, failed: bool = False) -> None:
        self.lines.append(f"{'failed' if failed else 'ended'} {key.call_id}")

    def withdrawn(self, key: CallKey) -> None:
        self.lines.append(f"withdrawn {key.call_id}")


def broken(value: str) -> str:
    raise ValueError(f"{value} is broken")


async def test_a_run_reports_what_it_does_and_a_stored_result_is_no_new_call(bench: Bench) -> None:
    reports = bench.progress = Reports()
    response = calls(("free", {}), ("broken", {"value": "x"}))
    await bench.start([response, "done"], [bench.box.tool("free"), broken])
    assert sorted(reports.lines[1:-1]) == ["ended call_0", "failed call_1", "started broken", "started free"]
    assert (reports.lines[0], reports.lines[-1]) == ("thinking", "thinking")
    assert reports.written == "done "


async def test_a_call_of_a_resumed_run_is_reported_once(bench: Bench) -> None:
    reports = bench.progress = Reports()
    step = await bench.start(
        [calls(("danger", {"value": "1"})), calls(("danger", {"value": "2"})), "done"], [protected(bench.box)]
    )
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Waiting)
    await bench.decide(step, Choice.ACCEPT)
    assert reports.lines.count("started danger") == 2
    assert reports.lines.count("ended call_0") == 2


async def test_a_tool_that_asks_when_it_is_called_is_withdrawn(bench: Bench) -> None:
    def asks(ctx: RunContext[Any]) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return "fine"

    reports = bench.progress = Reports()
    step = await bench.start([calls(("asks", {})), "done"], [Tool(asks)])
    assert isinstance(step, Waiting)
    assert reports.lines == ["thinking", "started asks", "withdrawn call_0"]


async def test_the_request_of_a_call_knows_how_long_it_took_and_what_it_gave(bench: Bench) -> None:
    def works(value: str) -> str:
        bench.clock.at += 7
        return f"wrote\n  {value}"

    def fails(value: str) -> str:
        raise ValueError(f"no {value}")

    tools = [Tool(works, requires_approval=True), Tool(fails, requires_approval=True)]
    step = await bench.start([calls(("works", {"value": "a"}), ("fails", {"value": "b"})), "done"], tools)
    await bench.decide(step, Choice.ACCEPT)
    batch = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch
    good, bad = (request.run for request in batch.requests)
    assert good
    assert (good.state, good.line) == (RunState.DONE, "wrote a")
    assert good.ended
    assert good.started
    assert good.ended - good.started == 7
    assert bad
    assert bad.state is RunState.FAILED
    assert "no b" in bad.line
    assert batch.ended


async def test_a_secret_in_a_result_is_masked_before_it_is_kept(bench: Bench) -> None:
    def login() -> str:
        return f"token {TOKEN}"

    step = await bench.start([calls(("login", {})), "done"], [Tool(login, requires_approval=True)], mask=MASK)
    await bench.decide(step, Choice.ACCEPT)
    batch = await bench.store.run(lambda tx: tx.batch(batch_of(step).id))
    assert batch
    run = batch.requests[0].run
    assert isinstance(run, CallRun)
    assert TOKEN not in run.line
    assert "‹masked 40 characters" in run.line


# The line alone


class Odd:
    def __str__(self) -> str:
        raise ValueError("no text")


def kept(result: Any) -> bytes:
    """The result as the journal stores it, or nothing if it cannot be stored."""
    try:
        return returned().dump_json(result if isinstance(result, ToolReturn) else ToolReturn(return_value=result))
    except ValueError:
        return b""


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (None, ""),
        ("", ""),
        ("  two\n lines ", "two lines"),
        ({"a": [1, "ü"]}, '{"a": [1, "ü"]}'),
        (ToolReturn(return_value="inner", content="for the model"), "inner"),
        (b"bytes", "bytes"),
        (0, "0"),
        (Odd(), UNREADABLE),
        ("lone \ud800", r"lone \ud800"),
        ("nul \0", r"nul \0"),
    ],
)
def test_every_result_has_a_line(result: Any, line: str) -> None:
    assert result_line(result, kept(result), lambda args: args) == line


def test_a_secret_that_crosses_the_cut_is_masked_whole() -> None:
    text = "x" * (LINE - 8) + " " + TOKEN
    line = result_line(text, b"", MASK)
    assert len(line) <= LINE
    assert "ghp" not in line


@pytest.mark.parametrize(
    "secret",
    [
        {"password": "hunter2"},
        {"password": {"value": "hunter2"}},
        {"pw": {"password": ["correct", "hunter2"]}},
        {"credentials": [{"name": "db", "value": "hunter2"}]},
    ],
)
def test_a_secret_is_known_by_the_names_around_it_and_a_large_structure_is_not_shown(secret: dict[str, Any]) -> None:
    large = {**secret, "pad": "y" * READ}
    assert "hunter2" not in result_line(secret, kept(secret), MASK)
    assert "‹masked" in result_line(secret, kept(secret), MASK)
    assert result_line(large, kept(large), MASK) == f"(a result of {len(kept(large)):,} bytes)"


def test_an_imitated_mask_is_not_taken_for_ours() -> None:
    assert "‹masked" not in result_line("‹masked 12 characters #00000000›", b"", MASK)


def test_the_line_of_an_edited_call_shows_its_result_and_not_our_note() -> None:
    noted = with_note("Wrote a.txt", "Ada changed the arguments of this call before it ran")
    assert result_line(noted, kept(noted), MASK) == "Wrote a.txt"

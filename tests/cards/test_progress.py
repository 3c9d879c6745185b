"""How a card says that an approved call runs, is done, has failed, may have run or was not run; and a run's status."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.model import Batch, CallRun, Choice, RunState
from signoff.bot import quoting
from signoff.bot.card_view import render
from signoff.cards.build import build_card
from signoff.cards.model import Code, Line, Moment, Tone
from signoff.cards.progress import PROGRESS_BUDGET, duration, held_progress, progress_lines, status_line
from signoff.text.visible import is_hidden
from tests.rigs.any_arguments import TEXT
from tests.rigs.cards import FORGERY, NOW, make_batch, make_request, settle


def with_run(run: CallRun) -> Batch:
    batch = settle(make_batch(make_request(1, {"path": "a.txt"})))
    return replace(batch, requests=(replace(batch.requests[0], run=run),))


def line_of(run: CallRun) -> Line:
    (call,) = build_card(with_run(run), now=NOW).calls
    return call.facts[-1]


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (CallRun(RunState.RUNNING, NOW), ("Running, started ", Moment(NOW))),
        (CallRun(RunState.DONE, NOW, NOW + 3.21, "wrote it"), ("Done in 3.2 s: ", Code("wrote it"))),
        (CallRun(RunState.DONE, NOW, NOW + 75), ("Done in 1 min 15 s",)),
        (CallRun(RunState.DONE, None, NOW, "old"), ("Done: ", Code("old"))),
        (CallRun(RunState.DONE, NOW, NOW + 0.09, "quick"), ("Done: ", Code("quick"))),
        (CallRun(RunState.DONE, NOW, NOW + 0.11, "slow"), ("Done in 0.1 s: ", Code("slow"))),
        (CallRun(RunState.FAILED, NOW, NOW + 0.04, "no disk"), ("Failed: ", Code("no disk"))),
        (CallRun(RunState.FAILED, NOW, NOW + 4, "no disk"), ("Failed after 4.0 s: ", Code("no disk"))),
        (CallRun(RunState.MAY_HAVE_RUN, NOW), ("May have run: it was interrupted",)),
        (CallRun(RunState.NOT_RUN), ("Not run",)),
    ],
)
def test_the_card_says_how_its_call_is_doing(run: CallRun, line: Line) -> None:
    assert line_of(run) == line


def test_the_outcome_stays_above_the_progress() -> None:
    view = render(with_run(CallRun(RunState.DONE, NOW, NOW + 1, "fine")), NOW).view
    text = "\n".join(str(getattr(item, "content", "")) for item in view.walk_children())
    assert "APPROVED by" in text
    assert "Done in 1.0 s: `fine`" in text


def test_nothing_is_said_before_the_call_runs() -> None:
    assert progress_lines(make_request(1)) == []


@pytest.mark.parametrize("text", [FORGERY.replace("\n", " "), "x` **bold** <@1> \u202e", "`" * 300, "a\nb"])
def test_a_result_cannot_leave_its_quote(text: str) -> None:
    shown = quoting.line(line_of(CallRun(RunState.DONE, NOW, NOW + 1, text)))
    assert shown.startswith("Done in 1.0 s: `")
    assert shown.endswith("`")
    assert "`" not in shown[len("Done in 1.0 s: `") : -1]
    assert "\n" not in shown
    assert not any(is_hidden(char) for char in shown)


@given(TEXT, st.sampled_from([RunState.DONE, RunState.FAILED]), st.floats(0, 1e6))
def test_a_result_is_bounded(text: str, state: RunState, took: float) -> None:
    (line,) = progress_lines(replace(make_request(1), run=CallRun(state, NOW, NOW + took, text * 20)))
    assert sum(len(part.text if isinstance(part, Code) else str(part)) for part in line) <= PROGRESS_BUDGET


def test_held_calls_are_named_unless_they_simply_ran() -> None:
    runs = [RunState.DONE, RunState.FAILED, RunState.MAY_HAVE_RUN, RunState.NOT_RUN]
    held = [make_request(n, tool=f"tool_{n}", held=True, run=CallRun(state)) for n, state in enumerate(runs, 2)]
    batch = settle(make_batch(make_request(1), *held))
    batch = replace(batch, requests=(batch.requests[0], *held))
    line = ("Of these: tool_3 failed, tool_4 may have run, tool_5 not run",)
    assert held_progress(batch) == [line]
    assert line in build_card(batch, now=NOW).about
    assert held_progress(replace(batch, requests=batch.requests[:2])) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1 min 0 s"), (3700, "61 min 40 s")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_status_names_tools_and_nothing_else() -> None:
    assert status_line((), (), (), NOW) == ("Working. ", "Thinking, since ", Moment(NOW))
    both = status_line(("read_file", "now", "read_file"), ("x",), (("write_file", NOW + 1), ("b", NOW)), NOW)
    assert both == (
        *("Working. ", "Ran read_file (2 times), now. ", "Failed: x. "),
        *("Running write_file, b, started ", Moment(NOW)),
    )


@given(st.lists(TEXT, max_size=40), st.lists(TEXT, max_size=40))
def test_a_status_with_any_tools_fits_into_a_message(ran: list[str], running: list[str]) -> None:
    text = quoting.line(status_line(ran, ran, [(tool, NOW) for tool in running], NOW))
    assert len(text) < 2000
    assert "\n" not in text


@pytest.mark.parametrize(
    ("states", "tone", "word"),
    [
        ([RunState.RUNNING], Tone.APPROVED, " · running"),
        ([RunState.DONE], Tone.APPROVED, " · done"),
        ([RunState.FAILED], Tone.MIXED, " · failed"),
        ([RunState.MAY_HAVE_RUN], Tone.MIXED, " · may have run"),
        ([RunState.DONE, RunState.FAILED], Tone.MIXED, " · 1 of 2 failed"),
        ([RunState.DONE, RunState.RUNNING], Tone.APPROVED, " · 1 of 2 running"),
    ],
)
def test_the_title_of_an_approved_card_says_how_its_calls_did(states: list[RunState], tone: Tone, word: str) -> None:
    batch = settle(make_batch(*(make_request(number) for number in range(1, len(states) + 1))))
    ran = zip(batch.requests, states, strict=True)
    card = build_card(replace(batch, requests=tuple(replace(r, run=CallRun(s)) for r, s in ran)), now=NOW)
    assert card.tone is tone
    assert card.status is not None
    assert card.status[-1] == word
    assert str(card.status[0]).startswith("APPROVED by")


def test_a_rejected_card_keeps_its_title() -> None:
    batch = settle(make_batch(make_request(1)), Choice.REJECT)
    card = build_card(batch, now=NOW)
    assert card.tone is Tone.REJECTED

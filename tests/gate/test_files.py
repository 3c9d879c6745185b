"""The file tools behind the real gate: what is on the card, what is written, and when it is asked again."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.agent.tools import builtin_tools
from signoff.approvals.model import Choice
from signoff.turns.model import Finished, Waiting
from tests.conftest import PLACE
from tests.rigs.gate_bench import Bench, batch_of
from tests.rigs.scripted import calls


def writing(content: str, path: str = "notes.txt") -> tuple[str, dict[str, str]]:
    return "write_file", {"path": path, "content": content}


async def test_the_card_shows_the_diff_and_the_file_is_written_once_accepted(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / PLACE.server / "notes.txt"
    file.parent.mkdir()
    file.write_text("one\n")
    reading = calls(("read_file", {"path": "notes.txt"}))
    step = await bench.start([calls(writing("two\n")), reading, "done"], builtin_tools(workspace=tmp_path))
    [request] = batch_of(step).requests
    assert request.preview.endswith("--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-one\n+two")
    assert file.read_text() == "one\n"
    assert isinstance(await bench.decide(step, Choice.ACCEPT), Finished)
    assert file.read_text() == "two\n"
    assert bench.script.results["call_0"] == "notes.txt: 1 line, 4 bytes.\ntwo\n"


async def test_a_file_that_changed_meanwhile_is_asked_about_again_with_a_new_diff(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / PLACE.server / "notes.txt"
    step = await bench.start([calls(writing("two\n")), "done"], builtin_tools(workspace=tmp_path))
    file.parent.mkdir()
    file.write_text("somebody's\n")
    again = await bench.decide(step, Choice.ACCEPT)
    [request] = batch_of(again).requests
    assert request.preview.endswith("-somebody's\n+two")
    assert file.read_text() == "somebody's\n"
    assert isinstance(await bench.decide(again, Choice.ACCEPT), Finished)
    assert file.read_text() == "two\n"


async def test_of_two_writes_to_one_file_on_one_card_the_second_is_asked_about_again(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / PLACE.server / "notes.txt"
    step = await bench.start([calls(writing("one\n"), writing("two\n")), "done"], builtin_tools(workspace=tmp_path))
    assert len(batch_of(step).requests) == 2
    step = await bench.decide(step, Choice.ACCEPT)
    first = file.read_text()
    [request] = batch_of(step).requests
    assert request.call.args["content"] != first
    rounds = 0
    while isinstance(step, Waiting):
        assert file.read_text() == first
        rounds += 1
        assert rounds < 3
        step = await bench.decide(step, Choice.ACCEPT)
    assert file.read_text() == request.call.args["content"]


@pytest.mark.parametrize("path", ["../x.txt", "/proc/self/environ", "notes.txt/x"])
async def test_nobody_is_asked_about_a_path_that_would_be_refused(bench: Bench, tmp_path: Path, path: str) -> None:
    (tmp_path / PLACE.server).mkdir()
    (tmp_path / PLACE.server / "notes.txt").write_text("x")
    step = await bench.start([calls(writing("x", path)), "done"], builtin_tools(workspace=tmp_path))
    assert isinstance(step, Finished)
    assert "Refused: " in bench.script.results["call_0"]

"""A bot that does not ask people says so under each of its replies."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from signoff.approvals.automatic import Modes
from signoff.errors import TurnFailed
from signoff.terminal.replies import render_reply
from signoff.turns.messages import SILENT, under_mode
from signoff.turns.model import Finished
from tests.conftest import make_turn
from tests.rigs.driver_office import Office

APPROVES = "Mode auto_approve: calls that ask run without a person."


@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("interactive", ""),
        ("auto_approve", f"\n-# {APPROVES}"),
        ("auto_deny", "\n-# Mode auto_deny: calls that ask are rejected without a person."),
    ],
)
async def test_every_reply_says_the_mode_unless_people_are_asked(office: Office, mode: str, line: str) -> None:
    office.desk.modes = Modes(mode)
    turn = make_turn()
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    assert office.front.replies == [(turn.id, f"the answer{line}")]
    stored = await office.store.run(lambda tx: tx.turn(turn.id))
    assert stored
    assert stored.reply == "the answer", "the model never reads it as its own words"


async def test_an_empty_reply_and_a_failure_say_the_mode_too(office: Office) -> None:
    office.desk.modes = Modes("auto_approve")
    silent, failed = make_turn("silent"), make_turn("failed")
    office.runner.script(silent, Finished(" "))
    office.runner.script(failed, TurnFailed("The model could not answer."))
    await office.take(silent)
    await office.until(lambda: office.front.replies)
    await office.take(failed)
    await office.until(lambda: len(office.front.replies) == 2)
    assert [text for _, text in office.front.replies] == [
        f"{SILENT}\n-# {APPROVES}",
        f"The model could not answer.\n{APPROVES}",  # shown without markup, so it has none
    ]


def test_the_terminal_shows_the_line_without_discords_mark() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_reply(under_mode("done", "auto_approve", markup=True)))
    assert APPROVES in console.export_text()
    assert "-#" not in console.export_text()

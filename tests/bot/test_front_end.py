"""The front end's handling of the driver's texts, and of cards that are posted again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discord_sandbox import Person
from signoff.bot.front_end import AS_FILE, LATE
from signoff.bot.sending import inert
from signoff.turns.messages import not_asked, under_mode
from signoff.turns.model import TurnState
from tests.rigs.bot import Rig
from tests.rigs.discord_markdown import MARKUP, live, shown

EVIL = "[**free nitro**](https://evil.example) <@1> \u202edroc\u200b"
SAID = f"Stopped by {EVIL}. Nothing further will run."


def is_inert(text: str) -> bool:
    return MARKUP.search(live(text)) is None and not {"\u202e", "\u200b"} & set(text)


@pytest.mark.parametrize("state", [TurnState.STOPPED, TurnState.FAILED])
async def test_an_end_in_words_shows_whom_it_quotes_as_they_stand(rig: Rig, max_: Person, state: TurnState) -> None:
    await rig.front_end.reply(replace(await rig.turn(max_), state=state), SAID)
    (said,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert is_inert(said.text)
    assert shown(said.text).startswith("Stopped by [**free nitro**](https://evil.example) <@1> ")


async def test_an_answer_keeps_its_markup(rig: Rig, max_: Person) -> None:
    await rig.front_end.reply(replace(await rig.turn(max_), state=TurnState.DONE), "**bold** `code`")
    (said,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert said.text == "**bold** `code`"


MODE = "-# Mode auto_approve: calls that ask run without a person."


@pytest.mark.parametrize("code", ["rm -rf", "rm -rf\n" * 700], ids=["short", "in parts"])
async def test_a_code_block_that_stays_open_does_not_contain_the_line_about_the_mode(
    rig: Rig, max_: Person, code: str
) -> None:
    turn = replace(await rig.turn(max_), state=TurnState.DONE)
    await rig.front_end.reply(turn, under_mode(f"Look:\n```\n{code}", "auto_approve", markup=True))
    last = [m for m in await max_.messages("general") if m.author == "Signoff"][-1]
    assert last.text.endswith(f"\n```\n{MODE}")
    assert last.text.count("```") == 2


async def test_beside_a_reply_as_a_file_the_mode_and_the_time_are_said(rig: Rig, max_: Person) -> None:
    turn = replace(await rig.turn(max_), state=TurnState.DONE, asked=1000.0)
    await rig.front_end.reply(turn, under_mode("all work and no play\n" * 3000, "auto_approve", markup=True))
    (said,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert said.text == f"{LATE.format(asked=1000)}\n{AS_FILE}\n{MODE}"


async def test_a_failure_says_the_mode_and_a_late_reply_the_time(rig: Rig, max_: Person) -> None:
    turn = replace(await rig.turn(max_), state=TurnState.FAILED, asked=1000.0)
    await rig.front_end.reply(turn, under_mode("It *failed*.", "auto_deny", markup=False))
    (said,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert shown(said.text).endswith("It *failed*.\nMode auto_deny: calls that ask are rejected without a person.")
    assert said.text.startswith(LATE.format(asked=1000))


async def test_a_notice_shows_whom_it_quotes_as_they_stand(rig: Rig, max_: Person) -> None:
    await rig.front_end.notice(await rig.turn(max_), SAID)
    (said,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert is_inert(said.text)


def test_ordinary_words_are_left_as_they_are() -> None:
    refused = "Discord refused it (status 400, code 50035)"
    text = f"I could not ask for approval: {refused}. The calls that needed it were not run."
    assert text == not_asked(refused)
    assert inert(text) == text

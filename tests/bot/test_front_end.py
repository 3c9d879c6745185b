"""The front end's handling of the driver's texts, and of cards that are posted again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discord_sandbox import Person
from signoff.bot.sending import inert
from signoff.turns.messages import not_asked
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


async def test_a_notice_shows_whom_it_quotes_as_they_stand(rig: Rig, max_: Person) -> None:
    await rig.front_end.notice(await rig.turn(max_), SAID)
    (said,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert is_inert(said.text)


def test_ordinary_words_are_left_as_they_are() -> None:
    refused = "Discord refused it (status 400, code 50035)"
    text = f"I could not ask for approval: {refused}. The calls that needed it were not run."
    assert text == not_asked(refused)
    assert inert(text) == text

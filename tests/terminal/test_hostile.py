"""Rows 1-6 in a terminal: no control sequence in an argument, the model's text or a reply reaches the terminal.

The tests read the bytes that a real pseudo-terminal received: the only control sequences are rich's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.rigs.chat import Chat, configure, on_terminal
from tests.rigs.terminal_attacks import ATTACKS, HIDDEN, unknown

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chat]:
    folder = tmp_path_factory.mktemp("hostile")
    configure(folder)
    async with on_terminal(folder) as chat:
        yield chat


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_argument_reaches_the_terminal_raw(chat: Chat, attack: str) -> None:
    await chat.say(f"call record {json.dumps({'value': ATTACKS[attack]})}")
    said = await chat.asked()
    card = said.partition("Tool Approval Required")[2]
    if HIDDEN.search(ATTACKS[attack]):
        assert r"\u{" in card
        assert "hidden character" in card
    if attack == "markup":
        assert "[red]APPROVED[/red] [link=https://evil.example]x[/link]" in chat.flat
    if attack == "frame":
        # Every line of it is inside the card's frame, behind the gutter.
        assert not re.search(r"^(?:╰──────╯|\[a\]ccept$|decide, 4:59 left> a|APPROVED)", card, re.MULTILINE)
        assert "│ │ APPROVED by Ada" in card
    await chat.decide("r")
    await chat.answers("REJECTED by")
    assert unknown(chat.raw) == []


async def test_no_answer_reaches_the_terminal_raw(chat: Chat) -> None:
    """The text has entities, which become characters when the markdown is read: the terminal echoes raw characters."""
    entities = "&#8238;evil&#8236; &#x200b; &rlm; &#27;[2J [good](https://evil.example) <b>bold</b>"
    await chat.say(f"call free {json.dumps({'value': entities})}")
    said = await chat.answers("good (https://evil.example)", "<b>bold</b>")
    assert r"\u{202E}evil\u{202C}" in said
    assert unknown(chat.raw) == []
    await chat.say(f"call free {json.dumps({'value': ATTACKS['hyperlink'] + ATTACKS['clipboard']})}")
    await chat.answers("free: done")
    assert unknown(chat.raw) == []


async def test_an_edit_in_a_line_shows_hidden_characters_as_escapes(chat: Chat) -> None:
    await chat.say(f"call record {json.dumps({'value': ATTACKS['bidi']})}")
    await chat.decide("e")
    await chat.sees(r'{ "value": "\u202egnp.exe', "json> ")
    chat.type('{"value": "plain"}')
    await chat.sees("value (edited)")
    await chat.decide("a")
    await chat.answers("recorded plain")
    assert unknown(chat.raw) == []


async def test_the_log_is_a_file_and_not_the_terminal(chat: Chat) -> None:
    assert "signoff.commands.chat: tool record" in (Path(chat.folder) / "data" / "chat" / "chat.log").read_text()
    assert "signoff.commands.chat" not in chat.raw

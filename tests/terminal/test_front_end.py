"""The front end and the screen alone: what is printed once, and what the session is told."""

from __future__ import annotations

import asyncio
import io
import os
import pty
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from signoff.approvals.model import RequestState, Settlement
from signoff.cards.actions import Offers
from signoff.cards.model import Action, Style, Verb
from signoff.errors import CardFailed, StoreError, TurnFailed
from signoff.terminal import front_end
from signoff.terminal.console import Device, Ended, Keyboard, Screen, Withdrawn
from signoff.terminal.dialogue import Subject, choose
from signoff.terminal.front_end import TerminalFrontEnd
from signoff.turns.model import TurnState
from tests.conftest import make_batch, make_call, make_request, make_turn

NOW = 1_000_000.0


class Printed:
    def __init__(self, *, typed: bool = False, **options: Any) -> None:
        self._output = io.StringIO()
        self.screen = Screen(Console(file=self._output, width=80, markup=False, **options), typed=typed)
        self.front = TerminalFrontEnd(self.screen, Offers(), lambda: NOW)

    @property
    def text(self) -> str:
        return self._output.getvalue()


async def test_a_reply_is_printed_once_and_ends_the_turn() -> None:
    printed = Printed()
    turn = make_turn()
    await printed.front.reply(turn, "the **answer**")
    await printed.front.reply(turn, "the **answer**")
    assert printed.text.count("the answer") == 1
    assert printed.front.news.get_nowait() == turn.id


async def test_a_failure_is_no_markdown_and_shows_what_is_hidden() -> None:
    printed = Printed()
    await printed.front.reply(make_turn(state=TurnState.FAILED), "it *failed*\n\x1b[2J")
    assert "it *failed*\n\\u{001B}[2J" in printed.text


async def test_how_a_card_ended_is_printed_once_whoever_notices() -> None:
    printed = Printed()
    batch = make_batch()
    await printed.front.refresh_card(batch)
    assert printed.text == ""
    expired = replace(batch.requests[0], state=RequestState.EXPIRED, settlement=Settlement(None, None, NOW))
    settled = replace(batch, requests=(expired,))
    await printed.front.refresh_card(settled)
    printed.front.close(settled)
    assert printed.text.count("TIMEOUT") == 1


async def test_a_long_session_does_not_remember_every_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_end, "MOST_ENDED", 20)
    printed = Printed()
    expired = replace(make_request(), state=RequestState.EXPIRED, settlement=Settlement(None, None, NOW))
    batch = make_batch(expired)
    for number in range(21):
        printed.front.close(replace(batch, id=f"b{number}"))
        await printed.front.reply(make_turn(f"t{number}"), "done")
    kept = [value for value in vars(printed.front).values() if isinstance(value, set | dict)]
    assert max(map(len, kept)) == 20


async def test_a_card_that_cannot_be_shown_is_refused_while_it_can_be_told() -> None:
    printed = Printed()
    with pytest.raises(CardFailed):
        await printed.front.post_card(make_batch(make_request(make_call(args={"x": "y" * 600_000}))))
    assert printed.front.news.empty()


async def test_a_reminder_says_what_is_open() -> None:
    printed = Printed()
    await printed.front.remind(make_batch(deadline=NOW + 30))
    assert "Still open: delete_file, until in 0:30" in printed.text


async def test_a_turn_that_the_store_failed_does_not_hold_up_the_session() -> None:
    printed = Printed()
    turn = make_turn()
    with pytest.raises(StoreError):
        async with printed.front.working(turn):
            raise StoreError("disk full")
    assert printed.front.news.empty(), "first the notice, then the prompt"
    await printed.front.notice(turn, "Something failed on my side: disk full.")
    assert printed.front.news.get_nowait() == turn.id


async def test_a_turn_that_failed_ends_with_its_reply() -> None:
    printed = Printed()
    turn = make_turn()
    with pytest.raises(TurnFailed):
        async with printed.front.working(turn):
            raise TurnFailed("no")
    await printed.front.notice(turn, "a notice")
    assert printed.front.news.empty()


async def test_words_that_come_while_a_question_is_open_do_not_swallow_it() -> None:
    printed = Printed(typed=True)
    printed.screen.prompt("decide> ")
    printed.screen.say("a reminder")
    assert printed.text == "decide> \na reminder\ndecide> "


async def test_a_spinner_turns_on_a_terminal_only_and_never_beside_a_question() -> None:
    plain = Printed()
    with plain.screen.working():
        await asyncio.sleep(0)
    assert plain.text == ""
    lively = Printed(typed=True, force_terminal=True, color_system=None)
    with lively.screen.working():
        await asyncio.sleep(0)
        assert "working" in lively.text
        lively.screen.prompt("decide> ")
        asked = lively.text
        await asyncio.sleep(0.3)
        assert lively.text == asked
    lively.screen.withdraw()


@pytest.mark.parametrize("data", [b"one\ntwo\r\n\xff", b"one\ntwo\n\xff\n"])
async def test_lines_come_from_a_pipe_or_a_file(data: bytes, tmp_path: Any) -> None:
    (tmp_path / "lines").write_bytes(data)
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    for descriptor in (read, os.open(tmp_path / "lines", os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)):
        keyboard = Keyboard(descriptor)
        for line in ["one", "two", "\ufffd"] if os.fstat(descriptor).st_rdev == 0 else []:
            assert await keyboard.line() == line
        with pytest.raises(Ended):
            await keyboard.line()
        os.close(descriptor)


@pytest.mark.slow
@pytest.mark.parametrize("deaf", ["", "trap '' TERM; "])
async def test_an_editor_ends_with_the_session(deaf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    noted = tmp_path / "pid"
    os.mkfifo(noted)
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{deaf}echo $$ > {noted}; exec sleep 60\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    device = Device(Printed().screen, Keyboard(theirs))
    dialogue = choose(Subject({"path": "a"}, [Action(Verb.EDIT, "target", "Edit", Style.PLAIN)]))
    editing = asyncio.ensure_future(device.perform(dialogue, lambda: "decide> ", asyncio.Event()))
    os.write(ours, b"e\n")
    process = int(await asyncio.to_thread(noted.read_text))
    assert device.editing
    editing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await editing
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert not device.editing
    os.close(ours)
    os.close(theirs)


async def test_a_question_that_is_withdrawn_leaves_a_scripts_line_for_the_next() -> None:
    read, write = os.pipe()
    device = Device(Printed().screen, Keyboard(read))
    gone = asyncio.Event()
    asking = asyncio.ensure_future(device.ask("decide> ", gone))
    await asyncio.sleep(0)
    gone.set()
    with pytest.raises(Withdrawn):
        await asking
    os.write(write, b"the next prompt\n")
    assert await device.ask("you> ") == "the next prompt"
    os.close(read)
    os.close(write)


async def test_a_notice_about_a_turn_that_goes_on_again_does_not_end_the_wait_for_it() -> None:
    printed = Printed()
    turn = make_turn()
    with pytest.raises(StoreError):
        async with printed.front.working(turn):
            raise StoreError("disk full")
    async with printed.front.working(turn):
        pass
    await printed.front.notice(turn, "For the admins: the role is gone.")
    assert printed.front.news.empty()

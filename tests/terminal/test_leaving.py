"""Leaving and coming back: Ctrl-C, Ctrl-D, kill -9. Open cards are open again, and nothing runs twice."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from signoff.store import Store
from signoff.turns.model import TurnState
from tests.conftest import make_turn
from tests.rigs.chat import configure, on_terminal

pytestmark = pytest.mark.slow

CTRL_C, CTRL_D = "\x03", "\x04"


async def test_a_card_survives_kill_and_is_decided_by_the_next_session(tmp_path: Path) -> None:
    configure(tmp_path)
    async with on_terminal(tmp_path) as chat:
        await chat.say('call record {"value": "durable"}')
        request = re.search(r"Request (\w{8})", await chat.asked())
        assert request
        await chat.kill()
    async with on_terminal(tmp_path) as chat:
        again = await chat.asked()
        assert "An earlier session left" in again
        assert f"Request {request[1]}" in again
        assert "record durable" not in chat.trace
        await chat.decide("a")
        await chat.answers("APPROVED by", "recorded durable")
        assert chat.trace.count("record durable") == 1

        # In the same session, Ctrl-C leaves the next card as it is, and Ctrl-D ends when nothing is open.
        await chat.say('call record {"value": "left"}')
        await chat.asked()
        chat.press(CTRL_C)
        assert await chat.ends() == 128 + signal.SIGINT
        assert "was kept" in chat.text
        assert chat.rows("SELECT state FROM requests ORDER BY rowid DESC LIMIT 1") == [("pending",)]
    async with on_terminal(tmp_path) as chat:
        await chat.decide("r")
        await chat.answers("REJECTED by")
        assert "record left" not in chat.trace
        chat.press(CTRL_D)
        assert await chat.ends() == 0


async def test_the_unfinished_work_of_a_bot_is_left_alone(tmp_path: Path) -> None:
    configure(tmp_path)
    async with await Store.open(f"sqlite:///{tmp_path}/data/signoff.db") as store:
        await store.run(lambda tx: tx.insert_turn(make_turn()))
    async with on_terminal(tmp_path, "--database", "sqlite:///data/signoff.db") as chat:
        assert await chat.ends() == 1
        assert "signoff: This database holds unfinished work of a Discord bot" in chat.text
    async with await Store.open(f"sqlite:///{tmp_path}/data/signoff.db") as store:
        assert [turn.state for turn in await store.run(lambda tx: tx.turns_in(*TurnState))] == [TurnState.QUEUED]


async def test_a_call_that_may_have_run_is_asked_about(tmp_path: Path) -> None:
    configure(tmp_path)
    async with on_terminal(tmp_path) as chat:
        await chat.say('call stuck {"value": "x"}')
        await chat.decide("a")
        await chat.until(lambda: "stuck start x" in chat.trace, "the start of the tool")
        await chat.kill()
    async with on_terminal(tmp_path) as chat:
        said = await chat.asked()
        assert "This call may have run" in said
        assert "it [r]an   run [a]gain   [s]kip" in said
        assert "[a]ccept" not in said
        await chat.decide("a")
        await chat.answers("RUN AGAIN approved by", "stuck x")
        assert chat.trace == ["stuck start x", "stuck start x", "stuck end x"]


async def test_a_second_chat_is_told_who_owns_the_database(tmp_path: Path) -> None:
    configure(tmp_path)
    async with on_terminal(tmp_path) as first:
        await first.say('call record {"value": "one"}')
        await first.decide("a")
        await first.answers("recorded one")
        async with on_terminal(tmp_path) as second:
            assert await second.ends() == 1
            assert f"Already running: process {first.process.pid}" in second.text
        async with on_terminal(tmp_path, "--database", "sqlite:///other/chat.db") as third:
            await third.idle()
            assert (tmp_path / "other" / "chat.db").exists()
        first.press(CTRL_D)
        await first.ends()
    before = first.rows("SELECT DISTINCT conversation FROM turns")
    async with on_terminal(tmp_path, "--continue") as again:
        await again.say('call free {"value": "two"}')
        await again.answers("free two")
        assert again.rows("SELECT DISTINCT conversation FROM turns") == before
        again.press(CTRL_D)
        await again.ends()
    async with on_terminal(tmp_path) as fresh:
        await fresh.say('call free {"value": "three"}')
        await fresh.answers("free three")
        assert len(fresh.rows("SELECT DISTINCT conversation FROM turns")) == 2

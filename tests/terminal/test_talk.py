"""A person at a terminal: one process on a pseudo-terminal, in which every test asks, decides and reads the reply."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.rigs.chat import HEIGHT, Chat, configure, on_terminal

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CONFIG = """
[approvals]
remember = "always"

[[rules]]
tool = "brief"
verdict = "ask"
timeout = "2s"

[[rules]]
tool = "guarded"
verdict = "ask"
quorum = 2

[[rules]]
tool = "peek"
verdict = "ask"
four_eyes = true
timeout = "2s"
"""
EDITOR = """#!/bin/sh
cp "$(dirname "$0")/edited.json" "$1"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chat]:
    folder = tmp_path_factory.mktemp("terminal")
    configure(folder, CONFIG)
    editor = folder / "editor.sh"
    editor.write_text(EDITOR)
    editor.chmod(0o700)
    async with on_terminal(folder, forked=False, EDITOR=str(editor)) as chat:
        yield chat


async def test_an_answer_is_rendered(chat: Chat) -> None:
    await chat.say('call free {"value": "one"}')
    await chat.answers("free: done", "free one")
    assert "free one" in chat.trace


async def test_an_accepted_call_runs(chat: Chat) -> None:
    await chat.say('call record {"value": "accepted"}')
    card = await chat.sees("Tool Approval Required", "[a]ccept", " left> ")
    assert re.search(r"rejected in [0-5]:\d\d", card)
    assert "record accepted" not in chat.trace
    await chat.decide("a")
    await chat.answers("APPROVED by", "recorded accepted")
    assert chat.trace.count("record accepted") == 1


async def test_a_rejected_call_does_not_run_and_the_reason_reaches_the_model(chat: Chat) -> None:
    await chat.say('call record {"value": "refused"}')
    await chat.decide("R", "not on a Monday")
    said = await chat.answers("REJECTED by", "Reason: not on a Monday")
    assert "Reason given" in said
    assert "record refused" not in chat.trace


async def test_what_is_no_key_decides_nothing(chat: Chat) -> None:
    await chat.say('call record {"value": "unsure"}')
    for typed in ("yes", "y", "n"):
        await chat.decide(typed)
        said = await chat.sees("not one of the keys", " left> ")
        assert "Nothing was decided. Type a for accept, r for reject, R for Reject with a reason" in " ".join(
            said.split()
        )
    await chat.decide("r")
    await chat.answers("REJECTED by")
    assert "record unsure" not in chat.trace


async def test_keys_typed_before_the_card_was_there_decide_nothing(chat: Chat) -> None:
    """Row 11 in a terminal: a line typed ahead does not decide a question that nobody has seen yet."""
    await chat.say('call slow {"value": "early", "seconds": 0.5}; call record {"value": "early"}\na\nA')
    await chat.sees(" left> ")
    assert "slow start early" not in chat.trace
    await chat.decide("X")
    await chat.answers("REJECTED by")
    assert not [line for line in chat.trace if "early" in line]


async def test_edited_arguments_are_shown_and_run(chat: Chat) -> None:
    (chat.folder / "edited.json").write_text(json.dumps({"value": "after"}))
    await chat.say('call record {"value": "before"}')
    await chat.decide("e")
    await chat.sees("value (original, does not run)", "before", "value (edited)", "after", "Edited by")
    await chat.decide("a")
    await chat.answers("recorded after")
    assert "record before" not in chat.trace


async def test_an_edit_that_is_no_json_is_said_and_nothing_changes(chat: Chat) -> None:
    (chat.folder / "edited.json").write_text('{"value": ')
    await chat.say('call record {"value": "kept"}')
    await chat.decide("e")
    # The editor writes the same text again, which is no change, so the card asks again.
    await chat.sees("This is not JSON", "Nothing was changed", " left> ")
    await chat.decide("r")
    await chat.answers("REJECTED by")


async def test_an_edit_that_the_tool_refuses_is_said(chat: Chat) -> None:
    (chat.folder / "edited.json").write_text(json.dumps({"wrong": 1}))
    await chat.say('call record {"value": "kept"}')
    await chat.decide("e")
    await chat.sees("value", " left> ")
    await chat.decide("r")
    await chat.answers("REJECTED by")
    assert not [line for line in chat.trace if "wrong" in line]


async def test_a_remembered_call_is_not_asked_again_and_another_one_is(chat: Chat) -> None:
    await chat.say('call record {"value": "often"}')
    await chat.decide("m")
    said = await chat.sees("exactly these arguments", "in this conversation", "at most 50 times", " left> ")
    assert '"value": "often"' in said
    await chat.decide("h")
    await chat.answers("remembered in this conversation", "recorded often")
    await chat.say('call record {"value": "often"}')
    said = await chat.answers("recorded often")
    assert "Tool Approval Required" not in said
    await chat.say('call record {"value": "oftener"}')
    await chat.decide("r")
    await chat.answers("REJECTED by")


async def test_a_card_that_expires_goes_away_and_the_chat_goes_on(chat: Chat) -> None:
    await chat.say('call brief {"value": "late"}')
    await chat.answers("TIMEOUT - Request expired", "brief")
    assert not [line for line in chat.trace if line.startswith("brief")]
    await chat.say('call free {"value": "afterwards"}')
    await chat.answers("free afterwards")


async def test_each_call_of_a_batch_is_decided_by_itself(chat: Chat) -> None:
    await chat.say('call record {"value": "b1"}; call record {"value": "b2"}; call free {"value": "b3"}')
    await chat.sees("With these, needing no approval: free")
    await chat.sees("Call 1 of 2: record", "[A]ccept all", "[X] reject all")
    await chat.decide("a")
    await chat.sees("Call 2 of 2: record")
    await chat.decide("r")
    said = await chat.answers("DECIDED", "record: APPROVED by", "record: REJECTED by")
    assert "recorded b1" in said
    assert {"record b1", "free b3"} <= set(chat.trace)
    assert "record b2" not in chat.trace


async def test_a_held_call_is_looked_at_and_rejected(chat: Chat) -> None:
    await chat.say('call free {"value": "h1"}; call record {"value": "h2"}; call free {"value": "h3"}')
    said = await chat.sees("With these, needing no approval: free, free", "[o]ther calls", " left> ")
    assert "h1" not in said.partition("Tool Approval Required")[2]
    await chat.decide("o", "1")
    await chat.sees("This call needs no approval", "h1", "[r]eject")
    await chat.decide("r")
    await chat.sees("Done: REJECTED by", " left> ")
    await chat.decide("a")
    await chat.answers("APPROVED by", "recorded h2")
    assert {line for line in chat.trace if line.endswith(("h1", "h2", "h3"))} == {"record h2", "free h3"}


async def test_a_whole_batch_can_be_accepted_page_by_page(chat: Chat) -> None:
    calls = "; ".join(f'call record {{"value": "p{n}"}}' for n in range(6))
    await chat.say(calls)
    await chat.sees("Calls 1 to 4 of 6", "[A]ccept these 4")
    await chat.decide("A")
    await chat.sees("Calls 5 to 6 of 6", "[A]ccept these 2")
    assert "record p0" not in chat.trace
    await chat.decide("A")
    await chat.answers("APPROVED by", "recorded p5")
    assert {f"record p{n}" for n in range(6)} <= set(chat.trace)


async def test_accept_is_not_offered_before_the_whole_call_was_seen(chat: Chat) -> None:
    """Rows 7 and 8: the tail of a long argument is shown before anybody can accept it."""
    await chat.say("please run a long test approval tool with 30,000 characters")
    said = await chat.sees("does not show the whole call", "[v]iew the whole call", " left> ")
    assert "[a]ccept" not in said
    await chat.decide("a")
    await chat.sees("not one of the keys", " left> ")
    await chat.decide("v")
    pages = 0
    while "[a]ccept" not in await chat.sees("> "):
        pages += 1
        chat.type("")
        assert pages < 200
    assert pages > 30_000 / (HEIGHT * 100)
    await chat.decide("r")
    await chat.answers("REJECTED by")


@pytest.mark.parametrize(("call", "ran"), [('guarded {"path": "a.env"}', "a.env"), ('peek {"value": "mine"}', "mine")])
async def test_what_one_person_cannot_settle_is_rejected_at_once(chat: Chat, call: str, ran: str) -> None:
    """For a quorum of two and for four eyes, nobody is asked, because nobody here could decide."""
    await chat.say(f"call {call}")
    await chat.answers("Rejected automatically")
    assert not any(ran in line for line in chat.trace)


async def test_a_secret_is_masked(chat: Chat) -> None:
    await chat.say('call record {"value": "password=hunter2hunter2"}')
    said = await chat.sees("masked", " left> ")
    assert "hunter2hunter2" not in said.partition("Tool Approval Required")[2]
    assert "[e]dit" not in said
    await chat.decide("r")
    await chat.answers("REJECTED by")


async def test_a_diff_is_coloured_line_by_line(chat: Chat) -> None:
    await chat.say('write "one\\n" to notes.txt')
    await chat.decide("a")
    await chat.answers("Wrote notes.txt")
    await chat.say('write "two\\n" to notes.txt')
    await chat.sees("-one", "+two", " left> ")
    assert re.search(r"\x1b\[31m-one", chat.raw)
    assert re.search(r"\x1b\[32m\+two", chat.raw)
    await chat.decide("r")
    await chat.answers("REJECTED by")


async def test_a_spinner_turns_while_it_works(chat: Chat) -> None:
    await chat.say('call slow {"value": "spin", "seconds": 0.5}')
    await chat.decide("a")
    await chat.answers("slow spin")
    assert "\r⠋ working" in chat.raw

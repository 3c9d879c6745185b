"""Without a terminal: prompts and decisions line by line, plain text as output, and an exit code for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.text.visible import is_hidden
from tests.rigs.chat import configure, on_pipes

pytestmark = pytest.mark.slow


async def test_a_script_asks_and_decides(tmp_path: Path) -> None:
    configure(tmp_path)
    script = [
        'call record {"value": "one"}',
        "a",
        'call record {"value": "two"}',
        "e",
        '{"value": "three"}',
        "accept",
        "",
        'call record {"value": "four"}; call record {"value": "five"}',
        "X",
        "please run a long test approval tool with 20,000 characters",
        "a",
        "v",
        "a",
        'call record {"value": "open"}',
    ]
    async with on_pipes(tmp_path, forked=False) as chat:
        for line in script:
            chat.type(line)
        chat.mark()
        chat.close()
        assert await chat.ends() == 3
        said = chat.raw
    assert chat.trace == ["record one", "record three"]
    assert "\x1b" not in said
    assert 'you> call record {"value": "one"}\n' in said
    assert "That is not one of the keys" in said, "accept was offered before the whole was seen"
    assert said.count("APPROVED by") == 3
    assert said.count("REJECTED by") == 1
    # The last card is still open, because the end of the input decides nothing.
    assert "was kept" in said
    assert chat.rows("SELECT state FROM requests ORDER BY rowid DESC LIMIT 1") == [("pending",)]


async def test_nothing_raw_is_written_to_a_pipe_either(tmp_path: Path) -> None:
    """This covers model text, a reply, a person's reason and typed input: a pipe may end in a terminal too."""
    configure(tmp_path)
    hostile = "\x1b[2J\x1b]52,c,AAAA\x07 \x9b2J \u202eevil\u202c \u200b [red]x[/red]"
    async with on_pipes(tmp_path) as chat:
        chat.type(f"say {hostile} as an answer")
        chat.type(f'say {hostile} beside; call record {{"value": "x"}}')
        chat.type("R")
        chat.type(f"because {hostile}")
        chat.close()
        assert await chat.ends() == 0
    assert not [char for char in chat.raw if is_hidden(char)]
    assert "Model's words" in chat.raw
    assert chat.raw.count("[red]x[/red]") >= 5
    assert chat.raw.count(r"\u{202E}evil") >= 5


async def test_a_mode_decides_without_anybody(tmp_path: Path) -> None:
    configure(tmp_path, '[approvals]\nmode = "auto_approve"\n')
    async with on_pipes(tmp_path) as chat:
        chat.type('call record {"value": "auto"}')
        chat.close()
        assert await chat.ends() == 0
    assert chat.trace == ["record auto"]
    assert "Tool Approval Required" not in chat.raw
    assert 'mode is "auto_approve"' in chat.raw, "it is said at the start"
    assert "Mode auto_approve: calls that ask run without a person." in chat.raw, "it is said under the reply"


async def test_a_broken_address_of_the_database_is_one_line(tmp_path: Path) -> None:
    configure(tmp_path)
    async with on_pipes(tmp_path, "--database", "nonsense") as chat:
        assert await chat.ends() == 1
    assert chat.raw.startswith("signoff: The database URL has no scheme.")
    assert chat.raw.count("\n") == 1

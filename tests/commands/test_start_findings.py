"""Every start says what is wrong with the set-up, one line each, and goes on if it can."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from signoff.bot import checkup
from signoff.bot.access import Access
from signoff.bot.client import Bot, SignoffClient
from signoff.bot.front_end import DiscordFrontEnd
from signoff.cards.actions import Offers
from signoff.commands import discord as command
from signoff.config.schema import Config
from tests.rigs.bot_fakes import RecordingDesk, RecordingDriver
from tests.rigs.command_line import run
from tests.rigs.mistakes import config, environment
from tests.rigs.setup_mistakes import SEMANTIC

SOME = ("auto_approve", "a reminder longer than the timeout", "a rule for a tool that does not exist")


@pytest.mark.parametrize("name", SOME)
def test_the_start_on_discord_logs_each_finding(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mistake = SEMANTIC[name]
    mistake.prepare(tmp_path)
    ended = run(tmp_path, "discord", environment=environment(), monkeypatch=monkeypatch, capfd=capfd)
    level = "ERROR" if mistake.fatal else "WARNING"
    (line,) = [line for line in ended.errors.splitlines() if " signoff.check: " in line]
    assert f" {level} signoff.check: {mistake.place}" in line
    assert "Cannot reach Discord" in ended.errors, "it went on after the finding"


def test_the_sandbox_logs_what_signoff_toml_alone_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def nothing(*arguments: object, **options: object) -> None: ...

    monkeypatch.setattr("signoff.commands.sandbox.sandbox", nothing)
    config('[approvals]\nmode = "auto_deny"\n')(tmp_path)
    given = environment(DISCORD_TOKEN="", SIGNOFF_MODLE="x")
    ended = run(tmp_path, "sandbox", environment=given, monkeypatch=monkeypatch, capfd=capfd)
    assert ended.code == 0
    assert "SIGNOFF_MODLE" in ended.errors
    assert "signoff.toml:2: mode is" in ended.errors


async def test_the_servers_are_checked_once_when_the_bot_is_ready_for_the_first_time() -> None:
    times: list[int] = []

    async def check() -> None:
        times.append(1)

    client = SignoffClient()
    front_end = DiscordFrontEnd(client, Offers(), lambda: 0.0)
    bot = Bot(client, front_end, RecordingDesk(), RecordingDriver(), Access(), at_first_ready=check)
    await bot.on_ready()
    await bot.on_ready()
    assert times == [1]


async def test_a_check_that_fails_is_a_line_in_the_log_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(*arguments: object, **options: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(checkup, "check_servers", failing)
    with caplog.at_level(logging.WARNING):
        await command._check_servers(SignoffClient(), Config())  # pyright: ignore[reportPrivateUsage]
    assert "the servers could not be checked: ValueError: no" in caplog.text

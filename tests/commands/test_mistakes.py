"""A mistake ends the start with one line that says what to do. The command line runs in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.command_line import run
from tests.rigs.mistakes import MISTAKES, config, environment, only_line


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_ends_the_start_with_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mistake = MISTAKES[name]
    mistake.prepare(tmp_path)
    given = environment(**mistake.environment)
    line = only_line(run(tmp_path, "discord", environment=given, monkeypatch=monkeypatch, capfd=capfd))
    assert [word for word in mistake.words if word not in line] == [], line


@pytest.mark.parametrize("arguments", [("sandbox",), ()])
def test_a_broken_config_is_said_before_the_sandbox_starts(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config("[agent]\nmodel = demo\n")(tmp_path)
    given = environment(DISCORD_TOKEN="")
    ended = run(tmp_path, *arguments, environment=given, monkeypatch=monkeypatch, capfd=capfd)
    assert "signoff.toml:2:" in only_line(ended)


def test_a_command_that_does_not_exist_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = run(tmp_path, "dicsord", environment=environment(), monkeypatch=monkeypatch, capfd=capfd)
    assert ended.code != 0
    assert "dicsord" in ended.errors
    assert "Traceback" not in ended.errors

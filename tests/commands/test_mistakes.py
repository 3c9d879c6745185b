"""A mistake ends the start with one line that says what to do. The command line runs in this process."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from pathlib import Path

import pytest

from signoff.cli import main
from tests.rigs.mistakes import MISTAKES, config, environment, only_line
from tests.rigs.preloaded import MAIN, Ended


def run(
    folder: Path,
    *arguments: str,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Ended:
    """Run `main.py ARGUMENTS` in `folder`, as a process with this environment would, log lines included."""
    capfd.readouterr()
    logger = logging.getLogger()
    handlers, level, kept = logger.handlers[:], logger.level, dict(os.environ)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(MAIN), *arguments])
    try:
        logger.handlers.clear()
        os.environ.clear()
        os.environ.update(environment)
        code = ending()
    finally:
        os.environ.clear()
        os.environ.update(kept)
        logger.handlers[:] = handlers
        logger.setLevel(level)
    output, errors = capfd.readouterr()
    return Ended(code, output, errors)


def ending() -> int:
    """Run the command line and end as the interpreter would: with an exit code and with printed errors."""
    try:
        main()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
            return 1
        return ended.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


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

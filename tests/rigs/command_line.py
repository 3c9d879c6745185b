"""Runs the command line in this process, as a process of its own with its own folder and environment would run."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from pathlib import Path

import pytest

from signoff.cli import main
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

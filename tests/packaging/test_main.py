"""`main.py` and the hints that name a command: both work for somebody who has only typed `make run`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import signoff
from signoff.commands.discord import run_discord
from signoff.commands.invocation import command_line
from signoff.config.schema import Config
from signoff.errors import SettingsError
from signoff.settings import Settings

ROOT = Path(__file__).parents[2]
OUTSIDE = (sys.executable, "-S", "-E")
"""A Python that sees no installed package, like the system's own."""


def folder_with_main(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "main.py", tmp_path)
    return tmp_path / "main.py"


@pytest.mark.slow
def test_main_uses_the_virtual_environment_when_its_own_python_lacks_the_packages(tmp_path: Path) -> None:
    main = folder_with_main(tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    done = subprocess.run([*OUTSIDE, main, "version"], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == (signoff.__version__, 0), done.stderr


@pytest.mark.slow
def test_main_says_what_to_do_before_the_first_make_run(tmp_path: Path) -> None:
    done = subprocess.run([*OUTSIDE, folder_with_main(tmp_path), "chat"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "signoff: not set up yet; run `make run` once, then try again\n"


def test_a_hint_names_the_program_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_line("chat") == ".venv/bin/signoff chat"
    program = tmp_path / "signoff"
    program.touch(mode=0o755)
    assert command_line("chat") == "signoff chat"


async def test_a_missing_token_names_the_command_that_works_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(SettingsError, match=r"run `\.venv/bin/signoff sandbox` to try it offline"):
        await run_discord(Settings(discord_token=None), Config())


@pytest.mark.slow
def test_the_command_of_the_hints_exists_after_the_set_up() -> None:
    """`make run` installs the console script beside the Python that runs these tests."""
    done = subprocess.run(
        [Path(sys.executable).parent / "signoff", "version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == signoff.__version__

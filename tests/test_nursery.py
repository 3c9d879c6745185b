"""Forked programs end as started ones do, and the nursery outlives a process that is killed while it asks for one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs.nursery import PIPE, execute, nursery
from tests.rigs.nursery_server import SOCKET

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
WORKER = """
import asyncio, os, signal
from tests.rigs.nursery import execute

asyncio.run(execute("waits.py"))
print("started", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def program(folder: Path, text: str, name: str = "program.py") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def ask_and_die(wanted: str) -> None:
    """Do what a process does that is killed before it knows its child, or before it has asked for one."""
    with socket.socket(socket.AF_UNIX) as killed, open(os.devnull, "r+b") as nothing:
        killed.connect(str(nursery().folder / SOCKET))
        if wanted:
            case = {"arguments": [wanted], "folder": "/", "environment": {}, "session": False, "nested": False}
            socket.send_fds(killed, [json.dumps(case).encode() + b"\n"], [nothing.fileno()] * 3)


@pytest.mark.parametrize(
    ("text", "code", "errors"),
    [
        ("print('done')", 0, ""),
        ("import sys; sys.stderr.write('cut'); sys.exit(3)", 3, "cut"),
        ("raise SystemExit('words')", 1, "words\n"),
        ("raise ValueError('wrong')", 1, "ValueError: wrong\n"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
    ],
)
async def test_the_exit_code_is_that_of_a_started_program(tmp_path: Path, text: str, code: int, errors: str) -> None:
    child = await execute(program(tmp_path, text), cwd=tmp_path, stdout=PIPE, stderr=PIPE)
    _, said = await child.communicate()
    assert child.returncode == code
    assert said.decode().endswith(errors)


@pytest.mark.parametrize("asked", [False, True])
async def test_a_process_that_is_killed_while_it_asks_disturbs_no_other(tmp_path: Path, asked: bool) -> None:
    waiting = await execute(program(tmp_path, "import time; time.sleep(600)"), cwd=tmp_path)
    ask_and_die(program(tmp_path, "pass", "quick.py") if asked else "")
    later = await execute(program(tmp_path, "raise SystemExit(7)", "later.py"), cwd=tmp_path)
    assert await later.wait() == 7
    waiting.kill()
    await waiting.wait()


def test_the_children_of_a_killed_worker_are_killed(tmp_path: Path) -> None:
    program(tmp_path, "import time; time.sleep(600)", "waits.py")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    # The child writes to the same pipe as the worker, so the pipe ends when both have ended.
    worker = subprocess.run(
        [sys.executable, program(tmp_path, WORKER)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        stdout=PIPE,
        timeout=120,
        check=False,
    )
    assert (worker.returncode, worker.stdout) == (-signal.SIGKILL, b"started\n")

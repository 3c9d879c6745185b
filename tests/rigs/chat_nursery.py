"""Starts `main.py chat` many times on terminals and imports it only once; see rigs/preloaded.py.

Each line of input is a JSON object. It forks a child that gets the terminal as its own and then behaves like `python
main.py chat`. The nursery prints the child's process id and writes its exit code to a file in its folder. Tests use
`Nursery`.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import runpy
import select
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any

MAIN = Path(__file__).parents[2] / "main.py"


class Forked:
    """A child of the nursery, with the methods of a process that the rig uses."""

    def __init__(self, pid: int, folder: Path) -> None:
        self.pid = pid
        self._file = folder / f"exit-{pid}"
        self.returncode = 0

    def poll(self) -> int | None:
        if not self._file.exists():
            return None
        self.returncode = int(self._file.read_text())
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)

    def wait(self) -> None:
        while self.poll() is None:
            time.sleep(0.02)


class Nursery:
    def __enter__(self) -> Nursery:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, bufsize=0)
        return self

    def start(self, terminal: str, folder: Path, arguments: list[str], environment: dict[str, str]) -> Forked:
        case = {"terminal": terminal, "folder": str(folder), "arguments": arguments, "environment": environment}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(case).encode() + b"\n")
        return Forked(int(self._process.stdout.readline()), folder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def serve() -> list[str] | None:
    """Fork for every request. Return the arguments in each child, and None in the parent at the end."""
    children: dict[int, Path] = {}
    waiting = b""
    while True:
        for child, folder in list(children.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                part = folder / f"exit-{child}.part"
                part.write_text(str(os.waitstatus_to_exitcode(status)))
                part.rename(folder / f"exit-{child}")
                del children[child]
        if not select.select([0], [], [], 0.02)[0]:
            continue
        if not (data := os.read(0, 1 << 20)):
            return None
        waiting += data
        while b"\n" in waiting:
            line, _, waiting = waiting.partition(b"\n")
            case = json.loads(line)
            child = os.fork()
            if not child:
                become(case)
                return case["arguments"]
            children[child] = Path(case["folder"])
            os.write(1, f"{child}\n".encode())


def become(case: dict[str, Any]) -> None:
    os.setsid()
    terminal = os.open(case["terminal"], os.O_RDWR)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(terminal, number)
    os.chdir(case["folder"])
    os.environ.clear()
    os.environ.update(case["environment"])
    # The parent's streams are pipes. The child's output goes to the terminal, line by line.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    if (arguments := serve()) is not None:
        sys.argv = [str(MAIN), "chat", *arguments]
        runpy.run_path(str(MAIN), run_name="__main__")

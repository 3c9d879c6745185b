"""The program of the nursery: it imports Signoff once and forks for every start of one of our programs.

Each connection to its socket is one start: a line of JSON with three descriptors, for input, output and errors. The
reply is the child's process id on one line and, when it has ended, its exit code on another. The nursery ends when its
own input ends, and then kills the children that are left. Tests use rigs/nursery.py.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

SOCKET = "nursery"
ROOT = Path(__file__).parents[2]
DESCRIPTORS = 3


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Read one start. Return None if the process that asks was killed before it had asked."""
    data, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, DESCRIPTORS)
    while not data.endswith(b"\n"):
        more = connection.recv(1 << 20)
        if not more:
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        data += more
    return json.loads(data), descriptors


def serve(folder: Path) -> dict[str, Any] | None:
    """Fork for every request. Return the request in each child, and None in the nursery at its end."""
    children: dict[int, socket.socket] = {}
    ended, woken = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / SOCKET))
        door.listen(64)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([0, door, ended], [], [])
            if ended in ready:
                os.read(ended, 1 << 16)
                reap(children)
            if 0 in ready and not os.read(0, 1):
                for child in children:
                    os.kill(child, signal.SIGKILL)
                return None
            if door not in ready:
                continue
            connection, _ = door.accept()
            start = receive(connection)
            if start is None:
                connection.close()
                continue
            case, descriptors = start
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (*children.values(), connection):
                    other.close()
                os.close(ended)
                os.close(woken)
                become(case, descriptors)
                return case
            for descriptor in descriptors:
                os.close(descriptor)
            children[child] = connection
            with suppress(OSError):  # a killed process does not read who its child is
                connection.sendall(f"{child}\n".encode())


def reap(children: dict[int, socket.socket]) -> None:
    """Tell the exit codes of the children (process id -> connection) that have ended."""
    for child, connection in list(children.items()):
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            with connection, suppress(OSError):
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            del children[child]


def become(case: dict[str, Any], descriptors: list[int]) -> None:
    """Give a child what a new process would have: streams, folder, environment, session and terminal."""
    if case["session"]:
        os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if case["session"] and os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(case["folder"])
    os.environ.clear()
    os.environ.update(case["environment"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the end, as in every process
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1 if os.isatty(1) else -1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def start_children_here(folder: Path) -> None:
    """Let `main.py sandbox` start its bot and its Discord in the nursery too."""
    sys.path.append(str(ROOT))
    from tests.rigs import nursery

    real = asyncio.create_subprocess_exec
    here = nursery.Nursery(folder)

    async def start(program: str, *arguments: str, **options: Any) -> Any:
        if program == sys.executable:
            return await nursery.execute(*arguments, **options, starter=here)
        return await real(program, *arguments, **options)

    asyncio.create_subprocess_exec = start


def run(arguments: list[str]) -> None:
    """Do what `python ARGUMENTS` does."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = ""
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).parent)
        runpy.run_path(arguments[0], run_name="__main__")


def run_to_the_end(arguments: list[str]) -> NoReturn:
    """Run, then end as the interpreter does, except that modules are not taken apart: that is most of a short run.

    Errors are not caught: the interpreter makes output and an exit code of them.
    """
    code = 0
    try:
        run(arguments)
    except SystemExit as ending:
        if isinstance(ending.code, int):
            code = ending.code
        elif ending.code is not None:
            print(ending.code, file=sys.stderr)
            code = 1
    gc.collect()  # objects that complain when they are dropped do so now
    threading._shutdown()  # type: ignore[attr-defined] - wait for threads, as the interpreter does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    import signoff.cli
    import signoff.commands.chat
    import signoff.commands.check
    import signoff.commands.discord
    import signoff.commands.sandbox  # noqa: F401 - the command line imports these late

    gc.collect()
    gc.freeze()  # keep the collector away from imported modules: visiting them in a child would copy their memory
    place = Path(sys.argv[1])
    if (asked := serve(place)) is not None:
        if asked["nested"]:
            start_children_here(place)
        run_to_the_end(asked["arguments"])

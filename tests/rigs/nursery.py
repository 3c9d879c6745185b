"""Starts our programs as processes of their own without paying for their imports, which are two seconds of processor.

`execute` is a substitute for `asyncio.create_subprocess_exec(sys.executable, ...)` with the same process, folder,
environment, streams, signals and exit code. The process is a fork of one that has imported Signoff: see
nursery_server.py. Each worker of the tests has one nursery, which starts with its first child. For every command there
is a test that starts it without this shortcut.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from discord_sandbox.process import SandboxProcess, ready
from tests.rigs.nursery_server import SOCKET

PROGRAM = Path(__file__).with_name("nursery_server.py")
PIPE, STDOUT = subprocess.PIPE, subprocess.STDOUT
OFTEN = 0.01
LINGERING = 1.0
"""Seconds to wait for the end of a dead child's output, which its own children may keep open."""


class Child:
    """A forked process, with the methods of `subprocess.Popen` that the tests use."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection
        self._ended: int | None = None

    def poll(self) -> int | None:
        if self._ended is None:
            try:
                told = self._connection.recv(64)
            except BlockingIOError:
                return None
            # The nursery kills its children when it ends itself.
            self._ended = int(told) if told else -signal.SIGKILL
            self._connection.close()
        return self._ended

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        while (code := self.poll()) is None:
            time.sleep(OFTEN)
        return code


class Output(asyncio.StreamReaderProtocol):
    """A stream of what a child writes, and the moment when nobody can write to it any more."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        super().__init__(self.reader)
        self.over = asyncio.Event()
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.over.set()

    async def end(self) -> None:
        try:
            await asyncio.wait_for(self.over.wait(), LINGERING)
        except TimeoutError:
            assert self.transport
            self.transport.close()


@dataclass
class Forked:
    """A child with the methods of `asyncio.subprocess.Process` that the tests use."""

    child: Child
    output: Output | None
    errors: Output | None

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def returncode(self) -> int | None:
        return self.child.poll()

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        return self.output and self.output.reader

    @property
    def stderr(self) -> asyncio.StreamReader | None:
        return self.errors and self.errors.reader

    def send_signal(self, number: int) -> None:
        self.child.send_signal(number)

    def terminate(self) -> None:
        self.child.terminate()

    def kill(self) -> None:
        self.child.kill()

    async def wait(self) -> int:
        while (code := self.child.poll()) is None:  # noqa: ASYNC110 - no event loop is told about this process
            await asyncio.sleep(OFTEN)
        for stream in (self.output, self.errors):
            if stream:
                await stream.end()
        return code

    async def communicate(self) -> tuple[bytes, bytes]:
        async def everything(stream: asyncio.StreamReader | None) -> bytes:
            return await stream.read() if stream else b""

        said, complaints = await asyncio.gather(everything(self.stdout), everything(self.stderr))
        await self.wait()
        return said, complaints


@dataclass(frozen=True)
class Nursery:
    """The way to a running nursery, by the folder with its socket."""

    folder: Path

    def start(
        self,
        *arguments: str,
        folder: Path | str | None,
        environment: Mapping[str, str] | None,
        descriptors: tuple[int, int, int],
        session: bool = False,
        nested: bool = False,
    ) -> Child:
        """Start `python ARGUMENTS`. A child with its own session gets the terminal, if its input is one."""
        # Report the start as Python itself would: the guard of the fast tests listens to this event.
        sys.audit("subprocess.Popen", sys.executable, arguments, folder, environment)
        case = {
            "arguments": arguments,
            "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
            "session": session,
            "nested": nested,
        }
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.folder / SOCKET))
        socket.send_fds(connection, [json.dumps(case).encode() + b"\n"], list(descriptors))
        number = b""
        while not number.endswith(b"\n"):
            told = connection.recv(1)
            if not told:
                raise ConnectionError("the nursery has ended")
            number += told
        connection.setblocking(False)
        return Child(int(number), connection)


@cache
def nursery() -> Nursery:
    """Return this worker's nursery. It is started once and ends with the worker."""
    folder = Path(tempfile.mkdtemp(prefix="nursery-"))
    process = subprocess.Popen(
        [sys.executable, PROGRAM, folder], stdin=PIPE, stdout=PIPE, cwd=folder, start_new_session=True
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"

    def end() -> None:
        process.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return Nursery(folder)


async def execute(
    *arguments: str,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    start_new_session: bool = False,
    nested: bool = False,
    starter: Nursery | None = None,
) -> Forked:
    """Start `python ARGUMENTS` with no input. With `nested`, the Python programs that it starts are forked too."""
    opened = [os.open(os.devnull, os.O_RDONLY)]
    streams: list[Output | None] = []
    passed = [opened[0]]
    try:
        for wanted, inherited in ((stdout, 1), (stderr, 2)):
            stream = None
            if wanted == PIPE:
                ours, theirs = os.pipe()
                opened.append(theirs)
                stream = Output()
                pipe = os.fdopen(ours, "rb", 0)
                await asyncio.get_running_loop().connect_read_pipe(lambda stream=stream: stream, pipe)
            elif wanted == STDOUT:
                theirs = passed[1]
            else:
                theirs = inherited if wanted is None else wanted if isinstance(wanted, int) else wanted.fileno()
            passed.append(theirs)
            streams.append(stream)
        child = (starter or nursery()).start(
            *arguments,
            folder=cwd,
            environment=env,
            descriptors=(passed[0], passed[1], passed[2]),
            session=start_new_session,
            nested=nested,
        )
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return Forked(child, *streams)


@asynccontextmanager
async def forked_sandbox(*arguments: str, state: Path | None = None) -> AsyncGenerator[SandboxProcess]:
    """A substitute for `discord_sandbox.process.sandbox_process`."""
    kept = () if state is None else ("--state", str(state))
    process: Any = await execute("-m", "discord_sandbox", "--port", "0", *arguments, *kept, stdout=PIPE)
    async with ready(process) as sandbox:
        yield sandbox

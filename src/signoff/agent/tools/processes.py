"""Runs a program with limits: time, output, and what a watcher says.

The program gets its own process group, which is killed when the call ends for any reason. A process that left the group
stays behind, unless the program is bubblewrap, which takes all its processes with it. Knows nothing of workspaces and
approvals.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from signoff.dataclass import dataclass

KB = 1024
_DRAIN_SECONDS = 1.0
"""How long output is still read after the program has ended: a process that it left behind may hold the pipe."""

Watch = Callable[[], Awaitable[str]]
"""Returns why the program must stop now; empty if it may go on."""


@dataclass
class Output:
    """The output of a program: its beginning and its end, and all of it up to a limit."""

    shown: int
    """How many bytes of each end are kept for the result."""
    kept: int
    """How many bytes are kept in all."""
    size: int = 0
    whole: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self.whole += piece[: max(0, self.kept - len(self.whole))]
        self._tail += piece
        if len(self._tail) > 2 * self.shown:
            del self._tail[: -self.shown]

    @property
    def is_cut(self) -> bool:
        return self.size > 2 * self.shown

    def text(self) -> str:
        """Return the output as text, without its middle if it is long. Bytes that are no text become escapes."""
        if not self.is_cut:
            return as_shown(bytes(self.whole))
        head, tail = bytes(self.whole[: self.shown]), bytes(self._tail[-self.shown :])
        left_out = self.size - len(head) - len(tail)
        return f"{as_shown(head)}\n[... {left_out} bytes left out ...]\n{as_shown(tail)}"


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    """The exit code; negative: the number of the signal that ended it."""
    stopped: str = ""
    """Why we stopped it; empty if it ended by itself."""


def as_shown(data: bytes) -> str:
    """Return bytes as text. Bytes that are not UTF-8, and NUL, are written as escapes."""
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


async def run_process(
    command: Sequence[str],
    output: Output,
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    given: bytes = b"",
    watch: Watch | None = None,
) -> Ended:
    """Run a program until it ends, and return how. If this is cancelled, the program is killed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if given else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )
    reading = asyncio.create_task(_read(process, output))
    ending = asyncio.create_task(process.wait())
    watching = asyncio.create_task(_watched(watch)) if watch else None
    feeding = asyncio.create_task(_feed(process, given)) if given else None
    tasks: list[asyncio.Task[Any]] = [one for one in (reading, ending, watching, feeding) if one]
    stopped = ""
    try:
        waited: list[asyncio.Task[Any]] = [one for one in (ending, watching) if one]
        done, _ = await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if ending not in done:
            stopped = watching.result() if watching and watching in done else f"it took longer than {seconds:g} s"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
        await asyncio.wait([reading], timeout=_DRAIN_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Otherwise the pipe stays open as long as a process that was left behind holds its other end.
        process._transport.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return Ended(code, stopped)


async def _read(process: asyncio.subprocess.Process, output: Output) -> None:
    assert process.stdout
    while piece := await process.stdout.read(64 * KB):
        output.add(piece)


async def _feed(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()


async def _watched(watch: Watch) -> str:
    while True:
        await asyncio.sleep(1.0)
        if reason := await watch():
            return reason

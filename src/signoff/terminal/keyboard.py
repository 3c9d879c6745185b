"""Lines from a terminal, a pipe or a file, without blocking the event loop and without a thread.

It reads only while somebody waits for a line: an editor that is started meanwhile has the terminal to itself, and what
was typed before a question was on the screen can be dropped. Prints nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

CHUNK = 65536


class Ended(Exception):
    """There will be no further line."""


class Keyboard:
    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._read = b""
        self._ended = False
        self.is_terminal = os.isatty(descriptor)

    async def line(self) -> str:
        """The next line, without its end. Raises Ended. Cancelled, it loses nothing that a pipe has sent."""
        while b"\n" not in self._read and not self._ended:
            data = await self._more()
            # On a terminal this is one Ctrl-D on an empty line; it ends the session just the same.
            self._ended = not data
            self._read += data
        if not self._read:
            raise Ended
        line, _, self._read = self._read.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    def forget(self) -> None:
        """Drop what was typed ahead, so that no key answers a question it was not meant for. A pipe's lines stay."""
        if not self.is_terminal:
            return
        self._read = b""
        with suppress(ImportError, OSError):
            import termios

            with suppress(termios.error):
                termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def _more(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self._descriptor, lambda: ready.done() or ready.set_result(None))
        except PermissionError:  # a file cannot be waited for, and need not be
            await asyncio.sleep(0)
            return os.read(self._descriptor, CHUNK)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
        try:
            return os.read(self._descriptor, CHUNK)
        except OSError:  # the terminal is gone
            return b""


def standard_input() -> int:
    """The descriptor, also where Python has replaced the file object."""
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        return 0

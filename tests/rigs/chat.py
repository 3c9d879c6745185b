"""The real `python main.py chat` on a real pseudo-terminal or on pipes, and ways to wait for its output.

Nothing here waits for a fixed time. A condition is checked until it holds; after a minute the test fails and shows the
last output of the process.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.rigs import quiescence
from tests.rigs.nursery import Child, nursery

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "main.py"
PLUGIN = ROOT / "tests" / "rigs" / "recording_tools.py"
PATIENCE = 60.0
DRAIN = 0.1
"""Seconds without output after which an ended process has said everything."""
WIDTH, HEIGHT = 100, 30
DECIDE = " left> "
PROMPT = "you> "
_STYLE = re.compile(r"\x1b\[[0-9;]*[mK]|\r")
"""Output of rich and of the spinner: colours, clearing a line, and returning to its beginning."""


@dataclass
class Chat:
    folder: Path
    process: subprocess.Popen[bytes] | Child
    output: int
    input: int
    raw: str = ""
    """Everything that the process wrote, as UTF-8, with its control characters."""
    _mark: int = 0
    _bytes: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        """The readable output since the last line was typed."""
        return _STYLE.sub("", self.raw)[self._mark :]

    def take_in(self) -> bool:
        """Read the output that is there. Returns False at its end."""
        try:
            data = os.read(self.output, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.output)
        self._bytes += data
        self.raw = self._bytes.decode("utf-8", "replace")
        return bool(data)

    async def sees(self, *words: str) -> str:
        """Wait until all of these words are in the output; return the output."""
        await self.until(lambda: all(word in self.flat for word in words), f"{words} in")
        return self.text

    @property
    def flat(self) -> str:
        """The text without frames, with every run of spaces as one."""
        return " ".join(re.sub(r"[│┊╭╮╰╯─]", " ", self.text).split(" ")) if self.text else ""

    async def until(self, holds: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            alive = self.process.poll() is None or what.startswith("the end")
            assert alive, f"the process ended with {self.process.returncode}:\n{self.text[-3000:]}"
            assert time.monotonic() < end, f"waited {PATIENCE} s for {what}:\n{self.text[-3000:]}"
            await asyncio.sleep(0.02)

    def type(self, line: str) -> None:
        self.mark()
        os.write(self.input, line.encode() + b"\n")

    def mark(self) -> None:
        self._mark = len(_STYLE.sub("", self.raw))

    async def say(self, line: str) -> None:
        """Type a prompt once the chat asks for one."""
        await self.idle()
        self.type(line)

    async def idle(self) -> None:
        await self.until(lambda: self.text.endswith(PROMPT), "the prompt")

    async def asked(self) -> str:
        """Wait until a card asks for a key; return the output. Only its end counts: quoted text may look the same."""
        await self.until(lambda: self.text.endswith(DECIDE), "a card")
        return self.text

    async def decide(self, *lines: str) -> None:
        """Type the key for the card once it asks, then a line for each question that follows."""
        await self.asked()
        for number, line in enumerate(lines):
            if number:
                await self.until(lambda: self.text.rstrip(" ").endswith(">"), "a question after the key")
            self.type(line)

    async def answers(self, *words: str) -> str:
        """Wait for the words and for the next prompt after them."""
        await self.sees(*words)
        await self.idle()
        return self.text

    @property
    def trace(self) -> list[str]:
        """The lines that the tools wrote, in order, over all processes."""
        file = self.folder / "trace.txt"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return quiescence.rows(self.folder / "data" / "chat" / "signoff.db", sql)

    def press(self, key: str) -> None:
        """Send a key that the terminal itself acts on, such as Ctrl-C."""
        self.mark()
        os.write(self.input, key.encode())

    def close(self) -> None:
        if self.input >= 0:
            os.close(self.input)
            self.input = -1

    async def ends(self) -> int:
        await self.until(lambda: self.process.poll() is not None, "the end of the process")
        assert self.process.returncode is not None
        # The last words may still be on their way through the terminal.
        while select.select([self.output], [], [], DRAIN)[0] and self.take_in():
            pass
        return self.process.returncode

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return await self.ends()


def environment(folder: Path, **more: str) -> dict[str, str]:
    private = ("SIGNOFF_", "DISCORD_", "OPENAI_", "ANTHROPIC_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    for name in ("EDITOR", "VISUAL", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        kept.pop(name, None)
    ours = {"SIGNOFF_TEST_TRACE": str(folder / "trace.txt"), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    return kept | ours | more


def configure(folder: Path, text: str = "") -> None:
    tools = f'[tools]\nplugins = ["{PLUGIN}"]\n'
    (folder / "signoff.toml").write_text(tools + text, encoding="utf-8")


@asynccontextmanager
async def on_terminal(folder: Path, *options: str, forked: bool = True, **more: str) -> AsyncIterator[Chat]:
    """Run the process with its own terminal, so that it writes what a real terminal would get."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    process = _start(folder, options, more, theirs, theirs, controls=True, forked=forked)
    async with _attended(Chat(folder, process, ours, ours)) as chat:
        # Keep the terminal open until the process has opened it by name: a terminal that nobody has open reads as
        # ended.
        yield chat
    os.close(theirs)
    os.close(ours)


@asynccontextmanager
async def on_pipes(folder: Path, *options: str, forked: bool = True, **more: str) -> AsyncIterator[Chat]:
    """Run the process with pipes, which take lines as input. `Chat.close` ends the input."""
    their_input, our_input = os.pipe()
    our_output, their_output = os.pipe()
    process = _start(folder, options, more, their_input, their_output, forked=forked)
    os.close(their_input)
    os.close(their_output)
    async with _attended(Chat(folder, process, our_output, our_input)) as chat:
        yield chat
    chat.close()
    os.close(our_output)


def _start(
    folder: Path,
    options: tuple[str, ...],
    more: dict[str, str],
    read: int,
    write: int,
    *,
    controls: bool = False,
    forked: bool,
) -> subprocess.Popen[bytes] | Child:
    """Start the chat with these streams. With `controls` the terminal becomes its own."""
    if forked:
        return nursery().start(
            str(MAIN),
            "chat",
            *options,
            folder=folder,
            environment=environment(folder, **more),
            descriptors=(read, write, write),
            session=controls,
        )
    return subprocess.Popen(
        [sys.executable, str(MAIN), "chat", *options],
        cwd=folder,
        env=environment(folder, **more),
        stdin=read,
        stdout=write,
        stderr=write,
        start_new_session=controls,
        preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if controls else None,
    )


@asynccontextmanager
async def _attended(chat: Chat) -> AsyncIterator[Chat]:
    loop = asyncio.get_running_loop()
    loop.add_reader(chat.output, chat.take_in)
    try:
        yield chat
    finally:
        loop.remove_reader(chat.output)
        if chat.process.poll() is None:
            chat.process.kill()
        chat.process.wait()

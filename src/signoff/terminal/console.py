"""The console: the screen, the keyboard, and the device that joins them to ask questions and perform dialogues.

Everything that is printed goes through the screen, which makes it inert. The keyboard reads only while a caller waits
for a line, without blocking the event loop and without a thread, so an editor that is started in between has the
terminal to itself. An event, such as the deadline of its card, can withdraw a question. This module knows neither cards
nor turns.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from rich.console import Console, RenderableType
from rich.text import Text

from signoff.terminal.dialogue import Chosen, Dialogue
from signoff.terminal.editing import Draft, editor_command, on_one_line
from signoff.terminal.sanitize import Block, Inert
from signoff.terminal.steps import Ask, Rewrite, Show, Step, View
from signoff.text.visible import one_line

NEW_ARGUMENTS = "These are the arguments. Type new ones as one JSON object, or an empty line to change nothing."
JSON = "json> "
PATIENCE = 1.0
"""Seconds that an editor has to exit by itself and restore the terminal when the session ends."""
CHUNK = 65536
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TURN = 0.1
"""Seconds between two frames."""
WORKING = " working"
_CLEAR = "\r\x1b[K"


class Ended(Exception):
    """The input has ended."""


class Withdrawn(Exception):
    """The question no longer applies, because its card has changed."""


class Screen:
    def __init__(self, console: Console, *, typed: bool) -> None:
        self._console = console
        self._typed = typed
        """Whether a person types, and sees the lines while typing. If a script sends the lines, they are printed."""
        self._prompt = ""
        self._at_work = 0
        self._spinner: asyncio.Task[None] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._console.size.width, max(self._console.size.height, 10)

    def show(self, *parts: RenderableType) -> None:
        turning, asked = self._spinner is not None, self._prompt
        self._stop_spinner()
        if asked:
            self._line_break()
        for part in parts:
            self._console.print(Inert(part))
        if asked:
            self.prompt(asked)
        if turning:
            self._spin()

    def say(self, words: str, style: str = "") -> None:
        """Print text of our own, or text that the caller has made visible."""
        self.show(Text(words, style))

    def prompt(self, words: str) -> None:
        self._stop_spinner()
        self._prompt = words
        if self._typed:
            self._console.print(Inert(Text(words, "bold", end="")))
            self._flush()

    def answered(self, line: str) -> None:
        """End the prompt, which got its line."""
        asked, self._prompt = self._prompt, ""
        if not self._typed:
            self._console.print(Inert(Text.assemble((asked, "bold"), one_line(line))))
        self._spin()

    def withdraw(self) -> None:
        """End the prompt without a line."""
        if self._prompt:
            self._line_break()
        self._prompt = ""
        self._spin()

    @contextmanager
    def working(self) -> Generator[None]:
        """Show the spinner while work is under way. Several tasks may do this at once."""
        self._at_work += 1
        self._spin()
        try:
            yield
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._stop_spinner()

    def _spin(self) -> None:
        lively = self._console.is_terminal and not self._console.is_dumb_terminal
        if lively and self._at_work and not self._prompt and self._spinner is None:
            self._spinner = asyncio.get_running_loop().create_task(self._turn())

    async def _turn(self) -> None:
        number = 0
        while True:
            self._console.file.write(f"\r{FRAMES[number % len(FRAMES)]}{WORKING}")
            self._flush()
            number += 1
            await asyncio.sleep(TURN)

    def _stop_spinner(self) -> None:
        if self._spinner is not None:
            self._spinner.cancel()
            self._spinner = None
            self._console.file.write(_CLEAR)
            self._flush()

    def _line_break(self) -> None:
        if self._typed:
            self._console.file.write("\n")
            self._flush()

    def _flush(self) -> None:
        self._console.file.flush()


class Keyboard:
    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._read = b""
        self._ended = False
        self.is_terminal = os.isatty(descriptor)

    async def line(self) -> str:
        """Return the next line, without its line break. Raises Ended.

        If this is cancelled, input from a pipe is not lost.
        """
        while b"\n" not in self._read and not self._ended:
            data = await self._more()
            # On a terminal this is Ctrl-D on an empty line, which ends the session too.
            self._ended = not data
            self._read += data
        if not self._read:
            raise Ended
        line, _, self._read = self._read.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    def forget(self) -> None:
        """Drop keystrokes that were typed ahead, so that no key answers the wrong question. Keep lines from a pipe."""
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
        except PermissionError:  # a regular file cannot be waited for, but can be read at once
            await asyncio.sleep(0)
            return os.read(self._descriptor, CHUNK)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)
        try:
            return os.read(self._descriptor, CHUNK)
        except OSError:  # the terminal was closed
            return b""


def standard_input() -> int:
    """The file descriptor of standard input, even if Python's file object was replaced."""
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        return 0


class Device:
    def __init__(self, screen: Screen, keyboard: Keyboard) -> None:
        self.screen = screen
        self._keyboard = keyboard
        self.editing = False
        """Whether an editor has the terminal. An interrupt is then meant for the editor."""

    def show(self, *parts: RenderableType) -> None:
        self.screen.show(*parts)

    def forget_typed(self) -> None:
        self._keyboard.forget()

    async def ask(self, prompt: str, until: asyncio.Event | None = None) -> str:
        """Ask for a line. Raises Ended if the input ends, or Withdrawn once the event is set."""
        if until is not None and until.is_set():
            raise Withdrawn
        self.screen.prompt(prompt)
        reading = asyncio.ensure_future(self._keyboard.line())
        woken = asyncio.ensure_future((until or asyncio.Event()).wait())
        try:
            await asyncio.wait({reading, woken}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                self._keyboard.forget()
                raise Withdrawn
            line = reading.result()
        except BaseException:
            self.screen.withdraw()
            raise
        finally:
            for task in (reading, woken):
                task.cancel()
            await asyncio.wait({reading, woken})
        self.screen.answered(line)
        return line

    async def perform(self, dialogue: Dialogue, prompt: Callable[[], str], until: asyncio.Event) -> Chosen:
        try:
            step = next(dialogue)
            while True:
                step = dialogue.send(await self._do(step, prompt, until))
        except StopIteration as end:
            return end.value

    async def _do(self, step: Step, prompt: Callable[[], str], until: asyncio.Event) -> str:
        match step:
            case Show(what=what):
                self.show(what)
                return ""
            case Ask(prompt=own):
                return await self.ask(own or prompt(), until)
            case View(text=text):
                return await self._page(text, until)
            case Rewrite(text=text):
                return await self._rewrite(text, until)

    async def _page(self, text: str, until: asyncio.Event) -> str:
        width, height = self.screen.size
        rows = list(Block(text).rows(width))
        size = height - 2 if self._keyboard.is_terminal else len(rows)
        for start in range(0, len(rows), size):
            end = min(start + size, len(rows))
            self.show(*rows[start:end])
            if end < len(rows):
                more = f"rows {start + 1}-{end} of {len(rows)}; Enter for more, q to stop> "
                if (await self.ask(more, until)).strip():
                    return ""
        return "seen"

    async def _rewrite(self, text: str, until: asyncio.Event) -> str:
        command = editor_command() if self._keyboard.is_terminal else []
        if not command:
            self.show(Text(NEW_ARGUMENTS), Block(on_one_line(text)))
            return await self.ask(JSON, until)
        with Draft(text) as draft:
            self.editing = True
            try:
                code = await _run(*command, str(draft.path))
            finally:
                self.editing = False
            return draft.read() if code == 0 else ""


async def _run(*command: str) -> int:
    """Run a program and return its exit code. Cancelling this ends the program, because nobody would use its result."""
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), PATIENCE)
            except TimeoutError:
                process.kill()
                await process.wait()

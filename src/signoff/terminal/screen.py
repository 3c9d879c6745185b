"""The screen: everything is printed here, made inert, around a prompt that may be open and a spinner that may turn.

Knows neither cards nor turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.text import Text

from signoff.terminal.sanitize import Inert
from signoff.text.visible import one_line

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TURN = 0.1
"""Seconds between two frames."""
WORKING = " working"
_CLEAR = "\r\x1b[K"


class Screen:
    def __init__(self, console: Console, *, typed: bool) -> None:
        self._console = console
        self._typed = typed
        """Whether a person types the answers: they see what they type. A script's answers are written out instead."""
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
        """Words of ours, or made visible by the caller."""
        self.show(Text(words, style))

    def prompt(self, words: str) -> None:
        self._stop_spinner()
        self._prompt = words
        if self._typed:
            self._console.print(Inert(Text(words, "bold", end="")))
            self._flush()

    def answered(self, line: str) -> None:
        """The prompt has its answer."""
        asked, self._prompt = self._prompt, ""
        if not self._typed:
            self._console.print(Inert(Text.assemble((asked, "bold"), one_line(line))))
        self._spin()

    def withdraw(self) -> None:
        """Nobody waits for an answer to the prompt any more."""
        if self._prompt:
            self._line_break()
        self._prompt = ""
        self._spin()

    @contextmanager
    def working(self) -> Generator[None]:
        """As long as something is under way; several may be."""
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

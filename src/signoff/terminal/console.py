"""Screen and keyboard together: asks a question, pages a text, opens an editor, and performs a dialogue.

A question can be withdrawn by an event, such as the deadline of the card that it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rich.console import RenderableType
from rich.text import Text

from signoff.terminal.dialogue import Ask, Chosen, Dialogue, Rewrite, Show, Step, View
from signoff.terminal.editing import Draft, editor_command, on_one_line
from signoff.terminal.keyboard import Keyboard
from signoff.terminal.sanitize import Block
from signoff.terminal.screen import Screen

NEW_ARGUMENTS = "The arguments are the line below. Write them anew as one JSON object; an empty line changes nothing."
JSON = "json> "
PATIENCE = 1.0
"""Seconds that an editor has to leave by itself, and the terminal in order, when the session ends."""


class Withdrawn(Exception):
    """What was asked about has changed meanwhile."""


class Device:
    def __init__(self, screen: Screen, keyboard: Keyboard) -> None:
        self.screen = screen
        self._keyboard = keyboard
        self.editing = False
        """An editor has the terminal: an interrupt is for it."""

    def show(self, *parts: RenderableType) -> None:
        self.screen.show(*parts)

    def forget_typed(self) -> None:
        self._keyboard.forget()

    async def ask(self, prompt: str, until: asyncio.Event | None = None) -> str:
        """Raises Ended, or Withdrawn once the event is set."""
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
    """Cancelled, it ends the program: nobody would be left to read what it writes."""
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

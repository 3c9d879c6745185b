"""A bot in a process of its own, on a Discord in this process, with the clocks at hand.

The times come from the sandbox's log and from the tool itself, all of them by the clock of this machine. So nothing
between the bot and its measure takes time but the sandbox, which is the same for both bots.

Discord has a processor of its own, as it has everywhere else. Otherwise the system often lets the sandbox handle a
request on the processor of the bot that has just sent it, and the bot stands still meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.scripted import DONE
from discord_sandbox import SandboxServer, people, presses
from discord_sandbox.eventlog import Entry
from discord_sandbox.faults import Fault
from discord_sandbox.model import Message, User

HERE = Path(__file__).parent
PROCESSORS = sorted(os.sched_getaffinity(0))
PATIENCE = 180.0
"""Seconds. The in-memory bot needs most of a minute to make 10,000 runs that wait."""
PAUSE = (0.03, 0.08)
"""The least and the most seconds between a card and its click, as a person would need more, so that the bot has
finished with the card. They vary: otherwise what a bot does a second later would always fall on the same moment of a
later round."""
CLOCK = 2
"""Linux's number for the exact processor time, in the clock of a process: see clock_getcpuclockid(3)."""
PRESSES = 3
"""How often a button is pressed that does not answer."""
CONFIG = """[agent]
import = "scripted:agent"

[approvals]
timeout = 3600

[limits]
turns_per_person = 100000
queue_per_person = 100000
"""


@dataclass(frozen=True)
class Round:
    """The moments of one mention, in seconds since 1970."""

    asked: float
    card: float
    clicked: float
    acknowledged: float
    started: float
    replied: float


@dataclass(eq=False)
class Stage:
    name: str
    command: Sequence[str]
    folder: Path
    server: SandboxServer
    process: asyncio.subprocess.Process | None = None
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def trace(self) -> Path:
        return self.folder / "trace.txt"

    def notes(self, word: str) -> list[list[str]]:
        """Return the words of each line of the trace that is about `word`; the first one is the time."""
        lines = self.trace.read_text(encoding="utf-8").splitlines() if self.trace.exists() else []
        return [words for words in map(str.split, lines) if words[1] == word]

    async def start(self, **more: str) -> float:
        """Start the bot, and return the seconds from there to its session."""
        log, before = self.server.sandbox.log, self.server.sandbox.log.head
        environment = {
            # Without bytecode, the modules that were changed last would be compiled at each start.
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "DISCORD_TOKEN": self.server.token,
            "DISCORD_API_URL": self.server.api_url,
            "DISCORD_GATEWAY_URL": self.server.gateway_url,
            "PYTHONPATH": str(HERE),
            "BENCH_TRACE": str(self.trace),
            **self.environment,
            **more,
        }
        os.sched_setaffinity(0, PROCESSORS)  # the bot begins with all of them
        began = self.server.sandbox.clock.now()
        with (self.folder / "bot.log").open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                *self.command, cwd=self.folder, env=environment, stdout=output, stderr=output
            )
        ready = await log.wait(before, lambda entry: entry.name == "READY", PATIENCE)
        if not ready:
            raise SystemExit(f"{self.name} did not start: {(self.folder / 'bot.log').read_text()[-2000:]}")
        self._move_apart()
        return ready[0].at - began

    def _move_apart(self) -> None:
        """Give this process, which is Discord, the first processor, and the bot all others."""
        assert self.process
        first, *others = PROCESSORS
        if others:
            os.sched_setaffinity(0, {first})
            for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), others)

    def slow_down(self, seconds: float) -> None:
        """Let Discord take so long for each request."""
        self.server.sandbox.faults.add(Fault("*", re.compile(""), left=sys.maxsize, delay=seconds))

    async def kill(self) -> None:
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    # What people do

    @property
    def asker(self) -> User:
        return people.find_user(self.server.sandbox, "Ada")

    def mention(self, text: str = "restart web") -> tuple[int, float]:
        """Mention the bot in #general. Returns the thread that it will open, and the time."""
        sandbox = self.server.sandbox
        bot = next(iter(sandbox.world.applications))
        before, where = sandbox.log.head, people.find_channel(sandbox, "general")
        message = people.say(sandbox, self.asker, where, {"content": f"<@{bot}> {text}"}, {})
        return message.id, sandbox.log.after(before, lambda entry: entry.name == "message.create")[0].at

    def accept(self, card: Message) -> Entry:
        """Press Accept. Returns the log entry of the press."""
        log, before = self.server.sandbox.log, self.server.sandbox.log.head
        presses.press(self.server.sandbox, self.asker, card, accept_ids(card)[0])
        return log.after(before, lambda entry: entry.name == "interaction.create")[0]

    async def see(self, after: int, names: Collection[str], holds: Callable[[Entry], bool]) -> Entry:
        """Wait for the first log entry after a number that has one of these names and fits."""
        found = await self.server.sandbox.log.wait(after, lambda e: e.name in names and holds(e), PATIENCE)
        if not found:
            raise SystemExit(f"{self.name}: no {' or '.join(names)}: {(self.folder / 'bot.log').read_text()[-2000:]}")
        return found[0]

    async def acknowledged(self, pressed: Entry) -> Entry:
        if answered := await self._answered(pressed):
            return answered
        raise SystemExit(f"{self.name} did not answer a click")

    async def press_until_answered(self, card: Message) -> tuple[Entry, Entry]:
        """Press Accept, and press again if a bot that may lose a click did not answer. Returns press and answer.

        The in-memory bots know their buttons only after Discord's response, and a busy machine may delay that.
        """
        for _ in range(PRESSES if BARE[1] in self.command or LEAST[1] in self.command else 1):
            pressed = self.accept(card)
            if answered := await self._answered(pressed):
                return pressed, answered
            print(f"{self.name} lost a click", file=sys.stderr, flush=True)
        raise SystemExit(f"{self.name} did not answer a click")

    async def _answered(self, pressed: Entry) -> Entry | None:
        """Return the log entry of the answer; None if there was none in the three seconds that Discord allows."""
        number, ends = pressed.data["interaction_id"], ("interaction.answered", "interaction.failed")
        ended = await self.see(pressed.seq, ends, lambda entry: entry.data["interaction_id"] == number)
        return ended if ended.name == ends[0] else None

    async def card_in(self, thread: int, after: int) -> tuple[Message, float]:
        """Wait for the next card in a thread."""
        entry = await self._posted(thread, after, lambda message: bool(accept_ids(message)))
        message = self.server.sandbox.world.message(thread, int(entry.data["message_id"]))
        assert message is not None
        return message, entry.at

    async def reply_in(self, thread: int, after: int) -> float:
        return (await self._posted(thread, after, lambda message: message.content.startswith(DONE))).at

    async def _posted(self, thread: int, after: int, fits: Callable[[Message], bool]) -> Entry:
        def holds(entry: Entry) -> bool:
            message = self.server.sandbox.world.message(thread, int(entry.data["message_id"]))
            return message is not None and fits(message)

        return await self.see(after, ("message.create", "message.update"), holds)

    async def round(self) -> Round:
        """One mention, one card, one click, one reply, in a new thread."""
        log = self.server.sandbox.log
        starts, before = len(self.notes("start")), log.head
        thread, asked = self.mention()
        card, posted = await self.card_in(thread, before)
        await asyncio.sleep(random.uniform(*PAUSE))
        before = log.head
        pressed, answered = await self.press_until_answered(card)
        replied = await self.reply_in(thread, before)
        started = float(self.notes("start")[starts][0])
        await asyncio.sleep(random.uniform(*PAUSE))
        return Round(asked, posted, pressed.at, answered.at, started, replied)

    # What the process uses

    def processor_seconds(self) -> float:
        """Return the processor time of all threads so far, also of those that have ended."""
        assert self.process
        return time.clock_gettime(~self.process.pid << 3 | CLOCK)

    def memory(self) -> int:
        """Return the bytes of memory that only this process uses."""
        assert self.process
        lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024


def accept_ids(card: Message) -> list[str]:
    """Return the custom ids of the buttons named Accept, wherever they are in the message."""
    found: list[str] = []

    def look(part: Any) -> None:
        if isinstance(part, dict):
            if part.get("label") == "Accept":
                found.append(part["custom_id"])
            for inner in part.values():
                look(inner)
        elif isinstance(part, list):
            for inner in part:
                look(inner)

    look(card.components)
    return found


def prepared(folder: Path) -> Path:
    """Make a folder for a bot to work in."""
    folder.mkdir(parents=True)
    (folder / "signoff.toml").write_text(CONFIG, encoding="utf-8")
    return folder


@asynccontextmanager
async def stage(name: str, command: Sequence[str], folder: Path) -> AsyncGenerator[Stage]:
    async with SandboxServer() as server:
        made = Stage(name, command, prepared(folder), server)
        try:
            yield made
        finally:
            os.sched_setaffinity(0, PROCESSORS)
            await made.kill()


SIGNOFF = (sys.executable, str(HERE.parent / "main.py"), "discord")
BARE = (sys.executable, str(HERE / "bare.py"))
LEAST = (sys.executable, str(HERE / "least.py"))
OWED = (sys.executable, str(HERE / "owed.py"))
PROMISES = ("hooks", "stream", "commits", "card", "kept", "ahead")
"""What the least bot keeps: names for BENCH_PROMISES. See `least.py`."""
FRAME = (*PROMISES, "frame")
"""The same, with as many commits, hooks and requests as Signoff has."""
LIMIT = (*(promise for promise in FRAME if promise != "stream"), "drawn", "inline", "model")
"""The same for a bot with Signoff's output that is faster than a real one could be. See `owed.py`."""

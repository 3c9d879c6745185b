"""Prints which parts of Signoff, of its output alone and of the in-memory bot use the processor time of a round.

`python -m bench.profile`. The time of each thread is what the system counted. The event loop's thread is looked at
every few milliseconds, and its time is divided by where it was found. In the thread of the store, SQLite's statements
and commits are timed, by the same count. A second table has the functions of Signoff in which the event loop was found
most often; what they call of the standard library counts as theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import runpy
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, ClassVar

from bench.approvals import BLOCK, table
from bench.rows import note_round
from bench.stage import BARE, FRAME, OWED, SIGNOFF, Stage, stage

BOTS = {"Signoff": SIGNOFF, "its output alone": OWED, "in-memory bot": BARE}

WARM_UP = 15
REST = 1.5
EVERY = 0.001
"""Seconds of processor time between two looks. The system may take longer steps."""
MOST = 12
STORE = "signoff-store"
HOOKS = "gate, journal, policy and digests, called by PydanticAI"
TURNS = "turns, clicks and delivery"
CARDS, LOGS = "drawing cards", "log lines"
OWN = (HOOKS, TURNS, CARDS, LOGS)
PARTS: Sequence[tuple[str, Sequence[str]]] = (
    (CARDS, ("/signoff/cards/", "/signoff/bot/card_view.py")),
    ("requests to Discord", ("/discord/http.py", "/discord/webhook/")),
    ("events from Discord", ("/discord/gateway.py", "/discord/state.py")),
    (LOGS, ("/logging/",)),
)
"""Part -> the files of which one is in the stack. The first part that fits counts."""
FRAMEWORK = ("/pydantic_ai/", "/pydantic_graph/")
OURS = ("/src/signoff/", "/bench/bare.py", "/bench/least.py", "/bench/owed.py")
ROOTS = ("/signoff/commands/", "/signoff/cli.py", "/signoff/agent/runner.py")
COMMITS, STATEMENTS, JOBS = "the store: SQLite's commits", "the store: SQLite's statements", "the store: its jobs"
OTHERS = "other threads"
WHY = {
    "PydanticAI": "one run, two streamed responses, a capability with nine hooks",
    COMMITS: "ten, each flushed to the disk",
    STATEMENTS: "67, with a hashed row of the record for each step",
    JOBS: "eleven: objects of rows, checks of people and states, JSON, hashes; alone, only JSON and hashes",
    "the event loop and the rest of discord.py": "tasks, futures and sockets of everything else here",
    TURNS: "who asks and clicks, where, whether they may; queue, stops, deadlines, retries",
    HOOKS: "each call is validated, judged, bound and noted, before the card and again before it runs",
    "requests to Discord": "thread, card, response, reply, and an edit that shows how the call ended",
    "events from Discord": "what discord.py makes of each event",
    CARDS: "three drawings, with masked arguments, warnings and who decided",
    LOGS: "five lines, masked",
}
"""Part -> why Signoff needs it."""


def part_of(stack: Sequence[str]) -> str:
    """Return the part that a stack belongs to. It has the file of each frame, the innermost first."""
    for part, files in PARTS:
        if any(file in frame for frame in stack for file in files):
            return part
    ours = next((at for at, frame in enumerate(stack) if _is_one(frame, OURS) and not _is_one(frame, ROOTS)), None)
    theirs = next((at for at, frame in enumerate(stack) if _is_one(frame, FRAMEWORK)), None)
    if theirs is not None:
        return HOOKS if ours is not None and ours < theirs else "PydanticAI"
    return "the event loop and the rest of discord.py" if ours is None else TURNS


def _is_one(frame: str, files: Sequence[str]) -> bool:
    return any(file in frame for file in files)


@dataclass
class Looks:
    """Where the event loop's thread was found, and how often."""

    parts: Counter[str] = field(default_factory=Counter[str])
    functions: Counter[str] = field(default_factory=Counter[str])
    """Functions of Signoff, in the parts that are its own."""

    def look(self, _: int, frame: FrameType | None) -> None:
        stack: list[CodeType] = []
        while frame:
            if frame.f_code.co_name != "<module>":  # that one runs the bot
                stack.append(frame.f_code)
            frame = frame.f_back
        if stack[0].co_filename.endswith("selectors.py"):
            return  # there it waits, and another thread works
        part = part_of([code.co_filename for code in stack])
        self.parts[part] += 1
        ours = next((code for code in stack if _is_one(code.co_filename, OURS)), None)
        if ours and part in OWN:
            self.functions[ours.co_qualname] += 1


class TimedCursor(sqlite3.Cursor):
    """Counts the processor time that its thread takes for statements and for commits."""

    spent: ClassVar[dict[str, float]] = dict.fromkeys((COMMITS, STATEMENTS), 0.0)

    def execute(self, sql: str, params: Any = ()) -> TimedCursor:
        began = time.thread_time()
        super().execute(sql, params)
        self.spent[COMMITS if sql == "COMMIT" else STATEMENTS] += time.thread_time() - began
        return self

    def fetchall(self) -> list[Any]:
        began = time.thread_time()
        rows = super().fetchall()
        self.spent[STATEMENTS] += time.thread_time() - began
        return rows


class TimedConnection(sqlite3.Connection):
    def cursor(self, factory: Any = TimedCursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, params: Any = ()) -> Any:
        return self.cursor().execute(sql, params)


def watch() -> None:
    """Count where this process is, from SIGUSR1 on. SIGUSR2 writes that into the file that BENCH_PROFILE names."""
    looks, before = Looks(), dict[int | None, float]()
    sqlite3.connect = partial(sqlite3.connect, factory=TimedConnection)

    def begin(*_: object) -> None:
        before.update(_spent())
        TimedCursor.spent.update(dict.fromkeys(TimedCursor.spent, 0.0))
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)

    def end(*_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        spent = {thread: seconds - before.get(thread, 0.0) for thread, seconds in _spent().items()}
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        each = spent.pop(threading.main_thread().ident) / max(looks.parts.total(), 1)
        store = sum(seconds for thread, seconds in spent.items() if names.get(thread) == STORE)
        parts = {part: each * count for part, count in looks.parts.items()}
        parts |= TimedCursor.spent
        parts[JOBS] = store - sum(TimedCursor.spent.values())
        parts[OTHERS] = sum(spent.values()) - store
        functions = {name: each * count for name, count in looks.functions.most_common(MOST)}
        Path(os.environ["BENCH_PROFILE"]).write_text(json.dumps([parts, functions]), encoding="utf-8")

    for name, handler in (("SIGPROF", looks.look), ("SIGUSR1", begin), ("SIGUSR2", end)):
        signal.signal(getattr(signal, name), handler)


def _spent() -> dict[int | None, float]:
    """Return the processor seconds of each thread."""
    threads = [thread.ident for thread in threading.enumerate() if thread.ident]
    return {thread: time.clock_gettime(time.pthread_getcpuclockid(thread)) for thread in threads}


Found = dict[str, float]
"""Part or function -> milliseconds in a round."""


async def measure(bots: Sequence[Stage], rounds: int) -> list[tuple[Found, Found]]:
    """Let the bots work in turn. Returns the parts and the functions of each."""
    for bot in bots:
        for _ in range(min(WARM_UP, rounds)):
            await bot.round()
    await tell(bots, signal.SIGUSR1)
    for done in range(0, rounds, BLOCK):
        for bot in bots:
            for _ in range(min(BLOCK, rounds - done)):
                await bot.round()
    await tell(bots, signal.SIGUSR2)
    return [_read(bot.folder / "profile.json", rounds) for bot in bots]


def _read(written: Path, rounds: int) -> tuple[Found, Found]:
    parts, functions = json.loads(written.read_text(encoding="utf-8"))
    return ({part: parts[part] * 1000 / rounds for part in parts}, {f: functions[f] * 1000 / rounds for f in functions})


async def tell(bots: Sequence[Stage], number: int) -> None:
    """Send a signal to bots that have nothing to do any more."""
    await asyncio.sleep(REST)
    for bot in bots:
        assert bot.process
        bot.process.send_signal(number)
    await asyncio.sleep(REST)


async def main(rounds: int) -> None:
    paths = os.pathsep.join(map(str, Path(__file__).parents[:2]))
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            bots: list[Stage] = []
            noted = str(await note_round(Path(name)))
            for label, (python, *command) in BOTS.items():
                inside = (python, "-m", "bench.profile", "--inside", *command)
                bot = await stack.enter_async_context(stage(label, inside, Path(name) / label.replace(" ", "-")))
                file, promises = str(bot.folder / "profile.json"), " ".join(FRAME)
                await bot.start(BENCH_PROFILE=file, PYTHONPATH=paths, BENCH_PROMISES=promises, BENCH_ROUND=noted)
                bots.append(bot)
            await asyncio.sleep(3)
            found = await measure(bots, rounds)
    parts, functions = [one for one, _ in found], found[0][1]
    order = sorted(set[str]().union(*parts), key=lambda part: -parts[0].get(part, 0.0))
    rows = [[part, *(f"{one.get(part, 0.0):.1f}" for one in parts), WHY.get(part, "")] for part in order]
    rows.append(["all", *(f"{sum(one.values()):.1f}" for one in parts), ""])
    table("ms of processor time in a round", *BOTS, "because", rows=rows)
    rows = [[name, f"{spent:.2f}"] for name, spent in functions.items()]
    table("functions of Signoff with the most", "ms", rows=rows)


if __name__ == "__main__":
    if "--inside" in sys.argv:
        sys.argv = sys.argv[sys.argv.index("--inside") + 1 :]
        watch()
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--rounds", type=int, default=150, help="rounds of each bot")
        asyncio.run(main(parser.parse_args().rounds))

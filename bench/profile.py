"""Prints which parts of both bots use the processor time of a round.

`python -m bench.profile`. The time of each thread is what the system counted. The event loop's thread is looked at
every few milliseconds, and its time is divided by where it was found.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import runpy
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from bench.stage import BARE, SIGNOFF, Stage, stage

WARM_UP = 15
REST = 1.5
EVERY = 0.001
"""Seconds of processor time between two looks. The system may take longer steps."""
STORE = "signoff-store"
HOOKS = "gate, journal, policy and digests, called by PydanticAI"
PARTS: Sequence[tuple[str, Sequence[str]]] = (
    ("drawing cards", ("/signoff/cards/", "/signoff/bot/card_view.py")),
    ("requests to Discord", ("/discord/http.py", "/discord/webhook/")),
    ("events from Discord", ("/discord/gateway.py", "/discord/state.py")),
    ("log lines", ("/logging/",)),
)
"""Part -> the files of which one is in the stack. The first part that fits counts."""
FRAMEWORK = ("/pydantic_ai/", "/pydantic_graph/")
OURS, ROOTS = ("/src/signoff/",), ("/signoff/commands/", "/signoff/cli.py", "/signoff/agent/runner.py")
THREADS = ("the thread of the store", "other threads")


def part_of(stack: Sequence[str]) -> str:
    """Return the part that a stack belongs to. It has the file of each frame, the innermost first."""
    for part, files in PARTS:
        if any(file in frame for frame in stack for file in files):
            return part
    ours = next((at for at, frame in enumerate(stack) if _is_one(frame, OURS) and not _is_one(frame, ROOTS)), None)
    theirs = next((at for at, frame in enumerate(stack) if _is_one(frame, FRAMEWORK)), None)
    if theirs is not None:
        return HOOKS if ours is not None and ours < theirs else "PydanticAI"
    return "the event loop and the rest of discord.py" if ours is None else "turns, clicks and delivery"


def _is_one(frame: str, files: Sequence[str]) -> bool:
    return any(file in frame for file in files)


def watch() -> None:
    """Count where this process is, from SIGUSR1 on. SIGUSR2 writes that into the file that BENCH_PROFILE names."""
    looks: Counter[str] = Counter()
    before: dict[int | None, float] = {}

    def look(_: int, frame: FrameType | None) -> None:
        stack: list[str] = []
        while frame:
            stack.append(frame.f_code.co_filename)
            frame = frame.f_back
        if not stack[0].endswith("selectors.py"):  # there it waits, and another thread works
            looks[part_of(stack)] += 1

    def begin(*_: object) -> None:
        looks.clear()
        before.update(_spent())
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)

    def end(*_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        spent = {thread: seconds - before.get(thread, 0.0) for thread, seconds in _spent().items()}
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        main = spent.pop(threading.main_thread().ident)
        store = sum(seconds for thread, seconds in spent.items() if names.get(thread) == STORE)
        found = {part: main * count / looks.total() for part, count in looks.items()}
        found |= dict(zip(THREADS, (store, sum(spent.values()) - store), strict=True))
        Path(os.environ["BENCH_PROFILE"]).write_text(json.dumps(found), encoding="utf-8")

    for name, handler in (("SIGPROF", look), ("SIGUSR1", begin), ("SIGUSR2", end)):
        signal.signal(getattr(signal, name), handler)


def _spent() -> dict[int | None, float]:
    """Return the processor seconds of each thread."""
    threads = [thread.ident for thread in threading.enumerate() if thread.ident]
    return {thread: time.clock_gettime(time.pthread_getcpuclockid(thread)) for thread in threads}


async def measure(bot: Stage, rounds: int) -> dict[str, float]:
    """Return the milliseconds of each part in a round."""
    assert bot.process
    written = bot.folder / "profile.json"
    for _ in range(min(WARM_UP, rounds)):
        await bot.round()
    await asyncio.sleep(REST)
    bot.process.send_signal(signal.SIGUSR1)
    for _ in range(rounds):
        await bot.round()
    await asyncio.sleep(REST)
    bot.process.send_signal(signal.SIGUSR2)
    await asyncio.sleep(REST)
    found: dict[str, float] = json.loads(written.read_text(encoding="utf-8"))
    return {part: seconds * 1000 / rounds for part, seconds in found.items()}


async def main(rounds: int) -> None:
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for label, command in (("Signoff", SIGNOFF), ("in-memory bot", BARE)):
            inside = (command[0], "-m", "bench.profile", "--inside", *command[1:])
            async with stage(label, inside, Path(name) / label.replace(" ", "-")) as bot:
                paths = os.pathsep.join(map(str, Path(__file__).parents[:2]))
                await bot.start(BENCH_PROFILE=str(bot.folder / "profile.json"), PYTHONPATH=paths)
                await asyncio.sleep(3)
                found[label] = await measure(bot, rounds)
    ours, bare = found.values()
    print("| ms of processor time in a round | Signoff | in-memory bot |\n| --- | --- | --- |")
    for part in sorted(ours | bare, key=lambda part: -ours.get(part, 0.0)):
        print(f"| {part} | {ours.get(part, 0.0):.1f} | {bare.get(part, 0.0):.1f} |")
    print(f"| all | {sum(ours.values()):.1f} | {sum(bare.values()):.1f} |")


if __name__ == "__main__":
    if "--inside" in sys.argv:
        sys.argv = sys.argv[sys.argv.index("--inside") + 1 :]
        watch()
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--rounds", type=int, default=150, help="rounds of each bot")
        asyncio.run(main(parser.parse_args().rounds))

"""Prints where the time of a mention and of a click goes: the moments at which the steps on their way begin and end.

`python -m bench.timeline`. The bot runs with a note at the beginning and the end of each step below, which costs it a
little. The figures are medians, in milliseconds after the mention or the click.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import runpy
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

STEPS = {
    "handle the event": "signoff.bot.clicks:Clicks.click",
    "decide": "signoff.approvals.desk:Desk.decide",
    "take the click": "signoff.approvals.clicks:ClickTaker.take",
    "claim the turn": "signoff.turns.driver:Driver._claim",
    "commit": "signoff.store.database:Database.commit",
    "draw the card": "signoff.bot.card_view:render_off_loop",
    "announce": "signoff.approvals.desk:Desk._announce",
    "step": "signoff.turns.driver:Driver._advance",
    "run the agent": "signoff.agent.runner:AgentRunner._run",
    "judge": "signoff.gate.gate:Gate.after_tool_validate",
    "admit": "signoff.gate.gate:Gate.admit",
    "start the call": "signoff.gate.journal:Journal.enter",
    "end the call": "signoff.gate.journal:Journal._end",
    "store the messages": "signoff.agent.history:Saver.save",
    "open the batch": "signoff.turns.driver:Driver._wait_for_people",
    "end the turn": "signoff.turns.driver:Driver._end",
    "send to Discord": "discord.http:HTTPClient.request",
    "respond to Discord": "discord.webhook.async_:AsyncWebhookAdapter.request",
}
"""Step -> the function that takes it."""
MODULES_THAT_DRAW = ("signoff.bot.responses", "signoff.bot.front_end")
ROUNDS = 12
LATE = 1.2
"""Seconds between rounds: a second after a click, the card is edited once more, to show what became of its calls."""

notes: list[str] = []


def _noting(step: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def note(sign: str) -> None:
        notes.append(f"{time.time()!r} {sign} {step}")

    async def later(*args: Any, **options: Any) -> Any:
        note("begin")
        try:
            return await call(*args, **options)
        finally:
            note("end")

    def at_once(*args: Any, **options: Any) -> Any:
        note("begin")
        try:
            return call(*args, **options)
        finally:
            note("end")

    return later if inspect.iscoroutinefunction(call) else at_once


def run_the_bot() -> None:
    """Run `signoff discord` in this process, with notes. SIGUSR1 writes them into the file that BENCH_NOTES names."""
    for step, place in STEPS.items():
        module, _, name = place.partition(":")
        owner: Any = import_module(module)
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)
        noting = _noting(step, getattr(owner, last))
        setattr(owner, last, noting)
        for other in MODULES_THAT_DRAW if not path else ():
            setattr(import_module(other), last, noting)

    def write(*_: object) -> None:
        Path(os.environ["BENCH_NOTES"]).write_text("\n".join(notes), encoding="utf-8")
        notes.clear()

    signal.signal(signal.SIGUSR1, write)
    sys.argv = ["main.py", "discord"]
    runpy.run_path(str(Path(__file__).parents[1] / "main.py"), run_name="__main__")


async def measure() -> None:
    from bench.stage import Round, stage

    found: dict[str, dict[tuple[str, int], list[float]]] = {"mention": {}, "click": {}}
    with tempfile.TemporaryDirectory() as name:
        written = Path(name) / "notes.txt"
        command = (sys.executable, "-m", "bench.timeline", "--inside")
        async with stage("Signoff", command, Path(name) / "signoff") as bot:
            await bot.start(BENCH_NOTES=str(written), PYTHONPATH=os.pathsep.join(map(str, Path(__file__).parents[:2])))
            await asyncio.sleep(3)
            for number in range(ROUNDS + 5):
                one: Round = await bot.round()
                assert bot.process
                bot.process.send_signal(signal.SIGUSR1)
                await asyncio.sleep(LATE)
                if number >= 5:  # the first ones warm up
                    lines = written.read_text(encoding="utf-8").splitlines()
                    _sort_in(found, one, [(float(line.split()[0]), line.split(" ", 1)[1]) for line in lines])
    for what, steps in found.items():
        print(f"{what}, milliseconds\n")
        order = sorted((statistics.median(values), step) for step, values in steps.items() if len(values) > ROUNDS / 2)
        for median, (step, _) in order:
            print(f"{median:8.2f}  {step}")
        print()


def _sort_in(found: dict[str, dict[tuple[str, int], list[float]]], one: Any, lines: list[tuple[float, str]]) -> None:
    moments = {"card posted": one.card, "acknowledged": one.acknowledged, "tool starts": one.started}
    events = [*lines, *((at, f"**** {name}") for name, at in (moments | {"reply posted": one.replied}).items())]
    for what, begin, end in (("mention", one.asked, one.clicked), ("click", one.clicked, one.replied + 0.001)):
        seen: dict[str, int] = {}
        for at, step in sorted(events):
            if begin <= at < end:
                seen[step] = seen.get(step, 0) + 1
                found[what].setdefault((step, seen[step]), []).append((at - begin) * 1000)


if __name__ == "__main__":
    run_the_bot() if "--inside" in sys.argv else asyncio.run(measure())

"""Compares Signoff with the shortest bot that stores nothing, both as processes, interleaved in one run.

A third bot only has the same output: rows, cards and log lines (see `owed.py`). A fourth one has it too, and is faster
than a real bot could be. They show what each bar leaves for everything else that Signoff does.

`make bench` prints the tables that README.md and docs/performance.md quote: medians, in brackets the tenth and the
ninetieth of a hundred, and whether each bar is met. `--plots FOLDER` draws the figures against the number of waiting
runs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench.plots import draw
from bench.rows import note_round
from bench.stage import BARE, FRAME, HERE, LEAST, LIMIT, OWED, PROMISES, SIGNOFF, Round, Stage, stage
from bench.waiting import let_wait

WAITING = (0, 200, 2_000, 10_000)
BLOCK = 10
"""Rounds of one bot before it is the other one's turn."""
REST = 1.3
"""Seconds after a block in which a bot finishes what it does late, such as the last edit of a card."""
COPIES = 4
"""How many processes of each bot are measured as one: the same bot may be a quarter faster in one than in another."""
GROWN = 1.15
"""A figure has not grown if it is at most so many times as large: several processes differ by this, too."""
IDLE = "Signoff beside"
"""A Signoff in which nothing waits. It takes turns with one in which the most wait."""
CROWD, CALLS = 100, 3
PACKAGES = {
    "Signoff's own modules": ("signoff",),
    "PydanticAI": ("pydantic_ai", "pydantic_graph", "pydantic", "pydantic_core", "griffe", "genai_prices", "httpx2"),
    "discord.py": ("discord", "aiohttp", "yarl", "multidict", "attr"),
}
"""Part -> the packages whose modules count as it."""
SLOW = 0.05
"""Seconds that Discord takes for a request in one of the tables. The real one takes longer."""
LARGE = 490_000
"""Characters of a large call. A card takes 500,000 at most."""

FIGURES: Mapping[str, tuple[Callable[[Round], float], float]] = {
    "click to acknowledged": (lambda r: r.acknowledged - r.clicked, 1.3),
    "click to tool start": (lambda r: r.started - r.clicked, 1.2),
    "mention to card": (lambda r: r.card - r.asked, 1.3),
    "click to reply": (lambda r: r.replied - r.clicked, 1.2),
}
"""Name of each figure -> how to read it from a round, and its bar."""
PROCESSOR, PROCESSOR_BAR = "processor time of a round", 1.4


@dataclass
class Level:
    """What was measured of one bot while so many runs waited."""

    rounds: list[Round] = field(default_factory=list[Round])
    processor: list[float] = field(default_factory=list[float])
    """Milliseconds per round, one value per block."""
    idle: float = 0.0
    """Part of a processor that Signoff used while nothing happened."""

    def milliseconds(self, figure: str) -> list[float]:
        if figure == PROCESSOR:
            return self.processor
        read = FIGURES[figure][0]
        return [read(one) * 1000 for one in self.rounds]

    def median(self, figure: str) -> float:
        return statistics.median(self.milliseconds(figure))


@dataclass
class Report:
    rows: list[tuple[str, str, bool]] = field(default_factory=list[tuple[str, str, bool]])
    """Bar, what was measured, whether it is met."""

    def add(self, bar: str, measured: str, met: bool) -> None:
        self.rows.append((bar, measured, met))

    def show(self) -> None:
        table(
            "every other bar", "measured", "", rows=[(a, b, "met" if met else "**not met**") for a, b, met in self.rows]
        )


def table(*heads: str, rows: Sequence[Sequence[str]]) -> None:
    for row in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def spread(values: Sequence[float]) -> str:
    low, *_, high = (
        statistics.quantiles(values, n=10, method="inclusive") if len(values) > 1 else (values[0], values[0])
    )
    return f"{statistics.median(values):.1f} ms ({low:.1f} to {high:.1f})"


@asynccontextmanager
async def both(folder: Path, waiting: int = 0) -> AsyncGenerator[tuple[Stage, Stage]]:
    """Start Signoff and the bare bot, with so many runs that wait in each."""
    async with stage("Signoff", SIGNOFF, folder / "signoff") as ours, stage("bare", BARE, folder / "bare") as bare:
        if waiting:
            await let_wait(ours.folder, waiting)
        await asyncio.gather(ours.start(), bare.start(BENCH_WAITING=str(waiting)))
        await asyncio.sleep(3)
        for bot in (ours, bare):
            for _ in range(BLOCK // 2):
                await bot.round()
        await asyncio.sleep(REST)
        yield ours, bare


@asynccontextmanager
async def another(
    name: str, command: Sequence[str], folder: Path, waiting: int = 0, **environment: str
) -> AsyncGenerator[Stage]:
    """Start one more bot. `waiting`: how many runs wait in it, if it is Signoff."""
    async with stage(name, command, folder / name.replace(" ", "-")) as bot:
        if waiting:
            await let_wait(bot.folder, waiting)
        await bot.start(**environment)
        await asyncio.sleep(1)
        for _ in range(BLOCK // 2):
            await bot.round()
        yield bot


def promising(folder: Path, promises: Sequence[str]) -> AbstractAsyncContextManager[Stage]:
    """Start the bot that does only what these promises need."""
    name = {PROMISES: "least", FRAME: "frame"}.get(tuple(promises), " and ".join(promises) or "without typing")
    return another(name, LEAST, folder, BENCH_PROMISES=" ".join(promises))


def owing(folder: Path, noted: Path, name: str = "owed") -> AbstractAsyncContextManager[Stage]:
    """Start the bot that only has Signoff's output, as it was noted, or the one that is the limit of such bots."""
    promises = {"owed": FRAME, "limit": LIMIT}[name]
    return another(name, OWED, folder, BENCH_PROMISES=" ".join(promises), BENCH_ROUND=str(noted))


async def measure_rounds(folder: Path, waiting: int, blocks: int, *, most: bool) -> dict[str, Level]:
    """Let the bots work in turn while so many runs wait. Returns the name of each bot -> what was measured.

    `most`: beside some in which nothing waits, since the machine may have become slower since the first level. Then,
    and if nothing waits at all, there are several processes of each bot.
    """
    async with AsyncExitStack() as stack:
        bots, noted = list[Stage](), folder if waiting else await note_round(folder)
        for number in range(COPIES if most or not waiting else 1):
            where = folder / str(number)
            if number == 0 or not waiting:
                bots += await stack.enter_async_context(both(where, waiting))
            else:  # only one in-memory bot: it takes a minute to begin with so many runs
                bots.append(await stack.enter_async_context(another("Signoff", SIGNOFF, where, waiting)))
            for name in () if waiting else ("owed", "limit"):
                bots.append(await stack.enter_async_context(owing(where, noted, name)))
            if most:
                bots.append(await stack.enter_async_context(another(IDLE, SIGNOFF, where)))
        levels = await take_turns(bots, blocks)
        ours = bots[0]
        used, began = ours.processor_seconds(), time.monotonic()
        await asyncio.sleep(5)
        levels[ours.name].idle = (ours.processor_seconds() - used) / (time.monotonic() - began)
    return levels


async def take_turns(bots: Sequence[Stage], blocks: int) -> dict[str, Level]:
    """Let the bots work in turn, forwards and backwards, so that none has always the same one before it.

    Bots with the same name are measured as one.
    """
    levels = {bot.name: Level() for bot in bots}
    await asyncio.sleep(REST)
    for number in range(blocks):
        for bot in bots if number % 2 == 0 else reversed(bots):
            used = bot.processor_seconds()
            levels[bot.name].rounds += [await bot.round() for _ in range(BLOCK)]
            await asyncio.sleep(REST)
            levels[bot.name].processor.append((bot.processor_seconds() - used) / BLOCK * 1000)
    return levels


def show_rounds(measured: Mapping[int, Mapping[str, Level]], report: Report) -> None:
    rows: list[list[str]] = []
    left: list[list[str]] = []
    reasons: list[str] = []
    for figure in (*FIGURES, PROCESSOR):
        bar = PROCESSOR_BAR if figure == PROCESSOR else FIGURES[figure][1]
        levels = [measured[0][name] for name in ("Signoff", "bare", "owed", "limit")]
        ours, bare, owed, limit = (level.median(figure) for level in levels)
        is_met = ours / bare <= bar
        if not is_met:
            reasons.append(reason(figure, bar * bare, ours, limit))
        spreads = [spread(level.milliseconds(figure)) for level in levels]
        rows.append([figure, *spreads[:2], f"{ours / bare:.2f}", f"{bar}", "met" if is_met else "**not met**"])
        alone = [f"{part:.1f} ms ({part / bare:.2f})" for part in (owed, limit)]
        left.append(
            [figure, f"{bar * bare:.1f} ms ({bar})", *alone, f"{bar * bare - limit:.1f} ms", f"{ours - limit:.1f} ms"]
        )
    table("nothing else waits", "Signoff", "in-memory bot", "ratio", "bar", "", rows=rows)
    bots = ("its output alone", "the limit of that")
    heads = ("the bar", *bots, "what the limit leaves for the rest", "what the rest takes in Signoff")
    table("what each bar leaves", *heads, rows=left)
    print(*(f"- {each}" for each in reasons), "", sep="\n", flush=True)
    waited = [f"{waiting:,}" for waiting in measured]
    grown: list[list[str]] = []
    for figure in (*FIGURES, PROCESSOR):
        for name in ("Signoff", "bare"):
            medians = [levels[name].median(figure) for levels in measured.values()]
            grown.append([f"{figure}, {name}", *(f"{value:.1f} ms" for value in medians)])
    table("medians while so many runs wait", *waited, rows=grown)
    most = max(measured)
    growth = [measured[most]["Signoff"].median(f) / measured[most][IDLE].median(f) for f in (*FIGURES, PROCESSOR)]
    listed = ", ".join(f"{one:.2f}" for one in growth)
    bar = f"the same figures at {most:,} waiting against 0: no growth ({GROWN} times at most)"
    report.add(bar, f"{listed} times", max(growth) <= GROWN)
    idle = measured[most]["Signoff"].idle
    report.add(f"idle processor time with {most:,} waiting under 1 percent", f"{idle:.2%}", idle < 0.01)


def reason(figure: str, bar: float, ours: float, limit: float) -> str:
    """Say why a bar is not met. All times are milliseconds."""
    same = "A bot that only writes, sends and shows the same, on the event loop, with cards drawn once,"
    begun = f"{figure}, not met: the bar is {bar:.1f} ms. {same} takes {limit:.1f} ms."
    if limit > bar:
        return f"{begun} Even if the rest of Signoff took no time, it would miss the bar."
    left, taken = (f"{each:.1f} ms" for each in (bar - limit, ours - limit))
    return f"{begun} That leaves {left} for the rest of Signoff, which takes {taken}: see timeline and profile below."


async def measure_slow_discord(folder: Path) -> None:
    """Let Discord take as long for each request as it would at its fastest, and compare the bots once more."""
    async with both(folder) as bots:
        for bot in bots:
            bot.slow_down(SLOW)
        ours, bare = (await take_turns(bots, 1)).values()
    rows = [
        [figure, spread(ours.milliseconds(figure)), spread(bare.milliseconds(figure)), f"{ratio:.2f}"]
        for figure in FIGURES
        for ratio in [ours.median(figure) / bare.median(figure)]
    ]
    table(f"Discord takes {SLOW * 1000:.0f} ms for each request", "Signoff", "in-memory bot", "ratio", rows=rows)


async def measure_start(folder: Path, runs: int, report: Report) -> None:
    taken: dict[str, list[float]] = {"Signoff": [], "bare": []}
    async with stage("Signoff", SIGNOFF, folder / "signoff") as ours, stage("bare", BARE, folder / "bare") as bare:
        for number in range(runs + 1):
            for bot in (ours, bare):
                seconds = await bot.start()
                await bot.kill()
                if number:  # the first one makes the database and fills the disk's cache
                    taken[bot.name].append(seconds)
    ours_, bare_ = (statistics.median(values) for values in taken.values())
    measured = f"{ours_:.2f} s against {bare_:.2f} s: {ours_ / bare_:.2f}"
    report.add("start to gateway session: 1.1 times the in-memory bot", measured, ours_ / bare_ <= 1.1)


async def measure_modules(folder: Path, runs: int, report: Report) -> None:
    """Start the bots to see which modules they load and how long that takes.

    Then load Signoff's own modules in processes that have all the others.
    """
    loaded = {name: await _loaded(name, command, folder) for name, command in (("Signoff", SIGNOFF), ("bare", BARE))}
    spent = [dict.fromkeys(PACKAGES, 0.0) | {"other": 0.0} for _ in loaded]
    for each, modules in zip(spent, loaded.values(), strict=True):
        for name, milliseconds in modules:
            package = name.split(".")[0]
            each[next((part for part, names in PACKAGES.items() if package in names), "other")] += milliseconds
    rows = [[part, *(f"{each[part]:.0f}" for each in spent)] for part in spent[0]]
    rows.append(["all", *(f"{sum(each.values()):.0f}" for each in spent)])
    table("ms in which modules load, with the notes of `-X importtime`", "Signoff", "in-memory bot", rows=rows)
    names, taken = folder / "modules.txt", list[float]()
    names.write_text("\n".join(name for name, _ in loaded["Signoff"]))
    for _ in range(runs):
        loading = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.modules", str(names)), cwd=HERE.parent, stdout=asyncio.subprocess.PIPE
        )
        taken.append(float((await loading.communicate())[0]))
    report.add("the bot's own modules load in less than 0.2 s", spread(taken), statistics.median(taken) < 200)


async def _loaded(name: str, command: Sequence[str], folder: Path) -> list[tuple[str, float]]:
    """Return the modules that a bot has loaded by the time of its session, and the milliseconds of each by itself."""
    python, *rest = command
    async with stage(name, (python, "-X", "importtime", *rest), folder / name) as bot:
        await bot.start()
        await bot.kill()
        lines = (bot.folder / "bot.log").read_text(encoding="utf-8").splitlines()
    noted = [line.removeprefix("import time:").split("|") for line in lines if line.startswith("import time:")]
    return [(words[2].strip(), int(words[0]) / 1000) for words in noted[1:]]


async def measure_restart(folder: Path, waiting: int, report: Report) -> None:
    """Kill the bot while a card is open, and press the old button as soon as the bot is back."""
    taken: dict[int, float] = {}
    for many in (0, waiting):
        async with stage("Signoff", SIGNOFF, folder / str(many)) as bot:
            await bot.start()
            await asyncio.sleep(2)
            before = bot.server.sandbox.log.head
            thread, _ = bot.mention()
            card, _ = await bot.card_in(thread, before)
            await asyncio.sleep(0.3)
            await bot.kill()
            await let_wait(bot.folder, many)
            began, before = bot.server.sandbox.clock.now(), bot.server.sandbox.log.head
            await bot.start()
            taken[many] = (await bot.acknowledged(bot.accept(card))).at - began
            await bot.reply_in(thread, before)
    more = taken[waiting] - taken[0]
    measured = f"{taken[waiting]:.2f} s against {taken[0]:.2f} s: {more:+.2f} s"
    report.add(f"restart with {waiting:,} waiting to the first old button: 1 s more at most", measured, more <= 1.0)


async def measure_memory(folder: Path, many: int, report: Report) -> None:
    """Let real mentions open cards that nobody clicks.

    A process gets its memory in pieces of a megabyte, so the bot that uses little opens three times as many.
    """
    async with both(folder) as (ours, bare):
        used = [await _memory_per_card(ours, 3 * many), await _memory_per_card(bare, many)]
    measured = f"{used[0]:.1f} KiB, the in-memory bot {used[1]:.1f} KiB"
    report.add("memory per waiting run: 4 KiB", measured, used[0] <= 4)


async def _memory_per_card(bot: Stage, many: int) -> float:
    await _open_cards(bot, 400)  # fills the caches of the database and the allocator
    before = bot.memory()
    await _open_cards(bot, many)
    return (bot.memory() - before) / many / 1024


async def _open_cards(bot: Stage, many: int) -> None:
    for first in range(0, many, 20):
        before = bot.server.sandbox.log.head
        threads = [bot.mention()[0] for _ in range(min(20, many - first))]
        await asyncio.gather(*(bot.card_in(thread, before) for thread in threads))
    await asyncio.sleep(1)


async def measure_crowd(folder: Path, report: Report) -> None:
    """Let a hundred conversations ask at once, each three times, and click every card the moment it is there.

    Only Signoff: the in-memory bot knows its buttons only after Discord's response, and loses so early a click.
    """
    async with stage("Signoff", SIGNOFF, folder / "signoff") as bot:
        await bot.start()
        await asyncio.sleep(2)
        await bot.round()
        taken = await asyncio.gather(*(_talk(bot) for _ in range(CROWD)))
    waits = sorted(wait for talk in taken for wait in talk)
    slow = waits[int(len(waits) * 0.99) - 1]
    bar = f"{CROWD} conversations with {CALLS} approvals each: 99 of 100 clicks acknowledged within 1 s"
    report.add(bar, f"{slow:.2f} s, median {statistics.median(waits):.2f} s", slow < 1.0)


async def _talk(bot: Stage) -> list[float]:
    before = bot.server.sandbox.log.head
    thread, _ = bot.mention(f"restart web {CALLS} times")
    waits: list[float] = []
    for _ in range(CALLS):
        card, _ = await bot.card_in(thread, before)
        before = bot.server.sandbox.log.head
        pressed = bot.accept(card)
        waits.append((await bot.acknowledged(pressed)).at - pressed.at)
    await bot.reply_in(thread, before)
    return waits


async def measure_large_card(folder: Path, report: Report) -> None:
    async with stage("Signoff", SIGNOFF, folder / "signoff") as bot:
        await bot.start(BENCH_PROBE="1")
        await asyncio.sleep(2)
        await bot.round()
        await asyncio.sleep(REST)
        before, earlier = bot.server.sandbox.log.head, len(bot.notes("stall"))
        thread, _ = bot.mention(f"restart web with {LARGE} characters")
        card, _ = await bot.card_in(thread, before)
        bot.accept(card)
        await bot.reply_in(thread, before)
        await asyncio.sleep(REST)
        stalls = [float(words[2]) for words in bot.notes("stall")[earlier:]]
    longest = max(stalls, default=0.0) * 1000
    report.add("a card with 500 KB of arguments stalls the loop less than 100 ms", f"{longest:.0f} ms", longest < 100)


async def measure_requests(folder: Path, report: Report) -> None:
    """Look at what the model was sent in a turn with three cards."""
    async with stage("Signoff", SIGNOFF, folder / "signoff") as bot:
        await bot.start(BENCH_HASHES="1")
        await asyncio.sleep(2)
        await _talk(bot)
        sent = [words[2:] for words in bot.notes("request")]
    longer = all(after[: len(before)] == before for before, after in pairwise(sent))
    met = len(sent) == CALLS + 1 and longer
    measured = (
        f"{len(sent) - 1} requests for {CALLS} decisions, each {'begins' if longer else 'does not begin'} as the last"
    )
    report.add("one model request per decided batch, with the same beginning to the byte", measured, met)


def plot(folder: Path, measured: Mapping[int, Mapping[str, Level]]) -> None:
    for figure in (*FIGURES, PROCESSOR):
        series = {
            label: [levels[name].median(figure) for levels in measured.values()]
            for name, label in (("Signoff", "Signoff"), ("bare", "in-memory bot"))
        }
        draw(folder / f"performance-{figure.replace(' ', '-')}.svg", figure.capitalize(), "ms", list(measured), series)


async def main(blocks: int, waiting: Sequence[int], plots: Path | None) -> None:
    report, measured = Report(), dict[int, dict[str, Level]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for many in waiting:
            is_end = many in (min(waiting), max(waiting))  # the levels between them are only for the plots
            some = blocks if is_end else 1
            measured[many] = await measure_rounds(folder / f"waiting-{many}", many, some, most=many == max(waiting))
        show_rounds(measured, report)
        await measure_slow_discord(folder / "slow")
        await measure_start(folder / "start", 7, report)
        await measure_modules(folder / "modules", 7, report)
        await measure_restart(folder / "restart", max(waiting), report)
        await measure_memory(folder / "memory", 300, report)
        await measure_crowd(folder / "crowd", report)
        await measure_large_card(folder / "large", report)
        await measure_requests(folder / "requests", report)
    report.show()
    if plots:
        plot(plots, measured)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=2, help=f"blocks of {BLOCK} rounds for each process and level")
    parser.add_argument("--waiting", type=int, nargs="+", default=list(WAITING))
    parser.add_argument("--plots", type=Path, help="a folder for the plots")
    given = parser.parse_args()
    if given.plots:
        given.plots.mkdir(parents=True, exist_ok=True)  # now, and not after seven minutes of measuring
    asyncio.run(main(given.blocks, given.waiting, given.plots))

"""Lists the functions and files of src/signoff that a mention and a click touch.

Usage: `python tools/trace.py [--functions] [--json]`. It runs the real bot in this process against the sandbox in
another one, and counts calls with `sys.setprofile`. The mention leads to a card; the click accepts it and leads to the
reply. It does not count code that runs while a module is imported, nor coroutines that were called earlier and only
continue.
"""

from __future__ import annotations

import argparse
import asyncio
import dis
import inspect
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from discord_sandbox import Plan
from discord_sandbox.process import sandbox_process

SOURCE = Path(__file__).resolve().parents[1] / "src" / "signoff"
PATIENCE = 60.0
QUIET = 0.5
"""Seconds to wait after the last visible effect, for work that the bot does in the background."""
STARTING = 3.0
"""Seconds until the bot has also checked its servers: discord.py calls it ready two seconds after the gateway does."""
RESUME = dis.opmap["RESUME"]
MENTION = 'please run the test approval tool with parameter "hello"'


class Trace:
    """Counts calls per function while a phase is on, also in the bot's threads."""

    def __init__(self) -> None:
        self.phases: dict[str, Counter[CodeType]] = {}
        """Phase -> function -> number of calls."""
        self._current: Counter[CodeType] | None = None
        self._source = f"{SOURCE}{os.sep}"

    def install(self) -> None:
        """Start profiling. Call this before any thread starts: it reaches only threads that start afterwards."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        self._current = self.phases.setdefault(name, Counter())
        try:
            yield
        finally:
            self._current = None

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        current = self._current
        if event != "call" or current is None or not frame.f_code.co_filename.startswith(self._source):
            return
        # The code of modules and class bodies has no new local scope: do not count it.
        if frame.f_code.co_flags & inspect.CO_NEWLOCALS and not _continues(frame):
            current[frame.f_code] += 1

    def report(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return phase -> file below src/signoff -> function -> number of calls."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for name, calls in self.phases.items():
            files = found.setdefault(name, {})
            for code, count in calls.items():
                file = Path(code.co_filename).relative_to(SOURCE).as_posix()
                function = code.co_qualname.partition(".<locals>")[0].partition(".<")[0]
                functions = files.setdefault(file, {})
                functions[function] = functions.get(function, 0) + count
        return found


def _continues(frame: FrameType) -> bool:
    """Whether a coroutine or generator continues after an `await` or `yield`: then RESUME has an argument."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == RESUME and code[at + 1] & 3 != 0


async def trace_mention_and_click(folder: Path) -> Trace:
    """Trace the phases `mention` and `click` of one approval; `folder` holds all data and is the working directory."""
    trace = Trace()
    trace.install()
    from signoff.commands.discord import run_discord
    from signoff.config.schema import Config
    from signoff.settings import Settings

    async with sandbox_process() as server, server.client() as sandbox:
        settings = Settings.model_validate(
            {
                "DISCORD_TOKEN": Plan.token,
                "DISCORD_API_URL": server.api_url,
                "DISCORD_GATEWAY_URL": server.gateway_url,
                "SIGNOFF_DATABASE_URL": f"sqlite:///{folder / 'signoff.db'}",
            }
        )
        before = await sandbox.head()
        bot = asyncio.ensure_future(run_discord(settings, Config()))
        await sandbox.wait_for("READY", after=before, timeout=PATIENCE, kind="gateway")
        await asyncio.sleep(STARTING)
        ada = await sandbox.person("Ada")
        with trace.phase("mention"):
            said = await ada.say("general", f"{sandbox.mention} {MENTION}")
            card = await ada.wait_for_message(
                said.id, lambda m: "Accept" in [b.label for b in m.buttons], timeout=PATIENCE
            )
            await asyncio.sleep(QUIET)
        with trace.phase("click"):
            await ada.click(card, "Accept")
            await ada.wait_for_message(said.id, lambda m: m.id > card.id and m.text, timeout=PATIENCE)
            await asyncio.sleep(QUIET)
        if bot.done():
            await bot
        bot.cancel()
        await asyncio.wait({bot})
    return trace


def show(report: dict[str, dict[str, dict[str, int]]], *, functions: bool) -> None:
    for name, files in report.items():
        calls = sum(sum(counts.values()) for counts in files.values())
        print(f"{name}: {sum(map(len, files.values()))} functions in {len(files)} files, {calls:,} calls")
        for file, counts in sorted(files.items()):
            print(f"  {file}: {len(counts)} functions, {sum(counts.values()):,} calls")
            if functions:
                for function, count in sorted(counts.items()):
                    print(f"    {count:6,} {function}")
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", action="store_true", help="also print every function with its number of calls")
    parser.add_argument("--json", action="store_true", help="print phase -> file -> function -> number of calls")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # so that no .env, signoff.toml or data of the checkout is read
        trace = asyncio.run(trace_mention_and_click(Path(folder)))
        sys.setprofile(None)
        if options.json:
            print(json.dumps(trace.report()))
        else:
            show(trace.report(), functions=options.functions)


if __name__ == "__main__":
    main()

"""main.py with places where the process kills itself, for tests that stop the bot at a chosen line.

A test arms one place by writing `PLACE:before` or `PLACE:after` to the file crash.txt in the bot's folder; `:N` at the
end means the N-th time from then on. The place is `module:function` or `module:Class.method`. The process removes the
file before it dies, so that the next start lives. There is one other difference from main.py: how long a card waits for
the click that settled it.

The program is imported once, because tests start it some twenty times. Each line of input is a JSON object of
environment variables and forks a bot. The output is the bot's process id and, when it has ended, its exit code. Only
one bot runs at a time.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

ARMED = Path("crash.txt")
CLICK_GRACE = 0.3

PLACES = (
    "signoff.turns.driver:Driver.submit",
    "signoff.turns.driver:Driver._wait_for_people",
    "signoff.turns.driver:Driver._end",
    "signoff.turns.delivery:Delivery.post_card",
    "signoff.turns.delivery:Delivery.reply",
    "signoff.approvals.desk:Desk.watch",
    "signoff.approvals.desk:Desk.decide",
    "signoff.agent.runner:AgentRunner.advance",
    "signoff.gate.gate:Gate.after_tool_validate",
    "signoff.gate.journal:Journal.enter",
    "signoff.gate.journal:Journal.done",
    "signoff.bot.sending:open_thread",
    "signoff.bot.front_end:DiscordFrontEnd.post_card",
    "signoff.bot.front_end:DiscordFrontEnd.reply",
)

_passed: dict[str, int] = {}


def reach(moment: str) -> None:
    """Kill the process if this moment is armed and has been reached the N-th time."""
    try:
        armed = ARMED.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return
    wanted, number = armed, 1
    if armed.rpartition(":")[2].isdecimal():
        wanted, number = armed.rpartition(":")[0], int(armed.rpartition(":")[2])
    if wanted != moment:
        return
    _passed[moment] = _passed.get(moment, 0) + 1
    if _passed[moment] == number:
        ARMED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def mine(place: str) -> None:
    """Replace a function by one that calls `reach` before and after it."""
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    original = getattr(owner, name)

    @functools.wraps(original)
    async def run_async(*args: Any, **kwargs: Any) -> Any:
        reach(f"{place}:before")
        result = await original(*args, **kwargs)
        reach(f"{place}:after")
        return result

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        reach(f"{place}:before")
        result = original(*args, **kwargs)
        reach(f"{place}:after")
        return result

    setattr(owner, name, run_async if inspect.iscoroutinefunction(original) else run)


def prepare() -> None:
    for place in PLACES:
        mine(place)
    from signoff.turns import delivery as showing

    showing.CLICK_GRACE = CLICK_GRACE


def bear(environment: dict[str, str]) -> int:
    """Fork a bot whose output goes to bot.log; return its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    log = os.open("bot.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    os.environ.update(environment)
    sys.argv = ["main.py", "discord"]
    from signoff import cli

    code = 1
    try:
        cli.main()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    finally:
        os._exit(code)


def tend(child: int) -> int | None:
    """Wait for the end of the bot and return its exit code. If more input comes first, kill the bot and return None."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if select.select([sys.stdin], [], [], 0.01)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None


def main() -> None:
    prepare()
    # Do not read through the file object: select would not see what it has buffered.
    while line := os.read(0, 1 << 20):
        child = bear(json.loads(line))
        print(child, flush=True)
        code = tend(child)
        if code is None:
            break
        print(code, flush=True)


if __name__ == "__main__":
    main()

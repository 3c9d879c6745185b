"""main.py with places where the process kills itself, for tests that stop the bot at a chosen line.

A test arms one place by writing `PLACE:before` or `PLACE:after` to the file crash.txt in the bot's folder; `:N` at the
end means the N-th time from then on. The place is `module:function` or `module:Class.method`. The process removes the
file before it dies, so that the next start lives. There is one other difference from main.py: how long a card waits for
the click that settled it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
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
    "signoff.approvals.desk:Desk._wake",
    "signoff.agent.runner:AgentRunner.advance",
    "signoff.gate.gate:Gate.after_tool_validate",
    "signoff.gate.journal:Journal.enter",
    "signoff.gate.journal:Journal.done",
    "signoff.gate.journal:Journal.withdraw",
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


if __name__ == "__main__":
    prepare()
    sys.argv = ["main.py", "discord"]
    from signoff import cli

    cli.main()

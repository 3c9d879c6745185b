"""`signoff chat`: runs the same agent, gate, journal and desk as the bot, with the terminal as front end."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

from rich.console import Console

from signoff.agent.setup import Brain
from signoff.approvals.model import DIRECT, Batch, Place
from signoff.cards.actions import Offers
from signoff.clock import SteadyClock
from signoff.commands.check import findings_at_start
from signoff.commands.invocation import command_line
from signoff.config.findings import Severity, log_findings
from signoff.config.schema import Config
from signoff.core import Core, leave_for_certain, queue_limits
from signoff.errors import SettingsError, StoreUnavailable
from signoff.settings import Settings
from signoff.store import Store
from signoff.store.store import sqlite_path
from signoff.telemetry.logs import set_up_log, take_over_loggers
from signoff.terminal.card_session import CardSession
from signoff.terminal.console import Device, Keyboard, Screen, standard_input
from signoff.terminal.front_end import TerminalFrontEnd, person_at_terminal
from signoff.terminal.session import TURN, Session
from signoff.text.visible import clip
from signoff.turns.driver import Driver
from signoff.turns.model import LIVE, Turn, TurnState
from signoff.turns.ports import TurnTx

log = logging.getLogger(__name__)

PATIENCE = 1.5
"""Seconds after which a shutdown prints that it waits for tools."""
LEFT_OPEN = 3
"""The exit code if the input ended while work was unfinished."""
GREETING = "Signoff, model {}. Ctrl-D or Ctrl-C leaves; unfinished work is kept."
STOPPING = "Leaving. Running tools have {:g} seconds to finish; Ctrl-C again leaves at once."
OTHER_WORK = "This database holds unfinished work of a Discord bot; leave out --database or name another one."
KEPT = "Unfinished work was kept: `{}` continues it."
LOG_SIZE = 1_000_000


async def run_chat(settings: Settings, config: Config, *, go_on: bool = False) -> None:
    """Chat until the input ends or somebody interrupts. Raises StartupError with a line for people to read."""
    _write_whatever_comes(sys.stdout)
    _log_beside(sqlite_path(settings.database_url), settings)
    model = settings.choose_model_name(config.agent.model)
    brain = Brain.build(config, model)
    take_over_loggers()
    for line in brain.verdicts:
        log.info("tool %s", line)
    async with await Store.open(settings.database_url) as store:
        findings = await findings_at_start(settings, config, brain)
        log_findings(findings)
        clock = SteadyClock()
        core = await Core.build(config, brain, store, clock)
        keyboard = Keyboard(standard_input())
        screen = Screen(Console(markup=False, emoji=False, highlight=False), typed=keyboard.is_terminal)
        device = Device(screen, keyboard)
        offers = Offers(edit=True, grants=core.desk.grants, masker=core.masker)
        front = TerminalFrontEnd(screen, offers, clock.now)
        limits = queue_limits(config)
        driver = Driver(store, core.desk, core.runner, front, clock, limits, core.retention, activity=core.activity)
        actor = person_at_terminal(DIRECT)
        cards = CardSession(device, front, core.desk, core.editor, actor, offers, clock.now)
        core.desk.subscribers.append(cards.heard)
        place = await _place(store, go_on)
        session = Session(device, front, cards, driver, actor, place, clock.now)
        screen.say(GREETING.format(clip(model, 64)[0]), "dim")
        for finding in findings:
            if finding.severity is not Severity.NOTE:
                screen.say(finding.line)
        left_over = await _take_up(store, driver)
        told = await _until_left(session, driver, device, left_over, config.limits.shutdown_grace)
        kept = await store.run(lambda tx: tx.turns_in(*LIVE))
    if kept:
        with suppress(OSError):
            screen.say(KEPT.format(command_line("chat")))
    if told or kept:
        raise SystemExit(128 + told if told else LEFT_OPEN)


async def _take_up(store: Store, driver: Driver) -> Sequence[str]:
    """Continue the work of the last process, and show open cards again. Returns the ids of its turns."""

    def work(tx: TurnTx) -> tuple[list[Turn], list[Batch]]:
        turns = [*tx.turns_in(*LIVE), *tx.unposted_replies()]
        about = {turn.id for turn in turns} | {batch.turn for batch in tx.unfinished_cards()}
        if not all(name.startswith(TURN) for name in about):
            raise SettingsError(OTHER_WORK)
        return turns, list(tx.open_of(DIRECT))

    turns, cards = await store.run(work)
    await driver.recover()
    for batch in cards:
        if batch.card_message:  # the recovery itself posts cards that were never shown
            await driver.repost(batch.id)
    return [turn.id for turn in turns]


async def _place(store: Store, go_on: bool) -> Place:
    """Return the last conversation if `go_on` is set and there is one, else a new one."""
    turns = await store.run(lambda tx: tx.turns_in(*TurnState)) if go_on else ()
    if own := [turn for turn in turns if turn.id.startswith(TURN)]:
        return own[-1].place
    name = f"terminal-{secrets.token_hex(8)}"
    return Place(DIRECT, name, name)


async def _until_left(session: Session, driver: Driver, device: Device, left_over: Sequence[str], grace: float) -> int:
    """Run the session until it ends or a signal ends it. Return the signal's number, or 0."""
    told: list[int] = []
    woken = asyncio.Event()

    def tell(number: int) -> None:
        if number == signal.SIGINT and device.editing:
            return
        if told:
            os._exit(128 + number)
        told.append(number)
        woken.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, tell, number)
    talking = asyncio.ensure_future(session.run(left_over))
    waiting = asyncio.ensure_future(woken.wait())
    await asyncio.wait({talking, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (talking, waiting):
        task.cancel()
    await asyncio.wait({talking, waiting})
    if told:
        leave_for_certain(grace, 128 + told[0])
    stopping = asyncio.ensure_future(driver.stop(grace))
    done, _ = await asyncio.wait({stopping}, timeout=PATIENCE)
    if not done:
        with suppress(OSError):
            device.screen.say(STOPPING.format(grace))
    await stopping
    if not talking.cancelled() and (error := talking.exception()):
        if not isinstance(error, OSError):
            raise error
        log.warning("the terminal was closed: %s", error)
    return told[0] if told else 0


def _write_whatever_comes(output: object) -> None:
    """Show the code of a character that the terminal cannot encode, so that printing a card never fails."""
    reconfigure = getattr(output, "reconfigure", None)
    if callable(reconfigure):
        reconfigure(errors="backslashreplace")


def _log_beside(database: Path, settings: Settings) -> None:
    """Log to a file beside the database, not to the terminal: a log line may quote anybody."""
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            database.parent / "chat.log", maxBytes=LOG_SIZE, backupCount=1, encoding="utf-8", delay=True
        )
    except OSError as error:
        raise StoreUnavailable(
            f"Cannot write to {database.parent} ({error.strerror}): name another --database."
        ) from None
    set_up_log(settings.log_level, settings.log_format, [handler])

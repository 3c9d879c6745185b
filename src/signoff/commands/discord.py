"""`signoff discord`: builds the parts, connects them, and serves Discord until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from signoff.agent.setup import Brain, warm_up
from signoff.bot.access import Access
from signoff.bot.attachments import FileLimits
from signoff.bot.catch_up import is_connected
from signoff.bot.client import Bot, SignoffClient
from signoff.bot.connection import point_at
from signoff.bot.directory import DiscordDirectory
from signoff.bot.front_end import DiscordFrontEnd
from signoff.bot.log_channels import LogChannels
from signoff.bot.notifier import DiscordNotifier
from signoff.bot.scheduled_runs import DiscordStarter
from signoff.cards.actions import Offers
from signoff.clock import SteadyClock
from signoff.commands.check import findings_at_start
from signoff.commands.invocation import command_line
from signoff.commands.telemetry import measured
from signoff.config.findings import log_findings
from signoff.config.schema import Config
from signoff.core import Core, build_budgets, build_schedule_terms, leave_for_certain, queue_limits
from signoff.errors import SettingsError
from signoff.servers.tool_names import enabled_tools
from signoff.settings import Settings
from signoff.store import Store
from signoff.telemetry.logs import take_over_loggers
from signoff.turns.administration import Administration
from signoff.turns.driver import Driver
from signoff.turns.listening import Listening
from signoff.turns.pausing import Pausing
from signoff.turns.schedules import ScheduleBook
from signoff.turns.scheduling import Scheduler
from signoff.turns.usage import UsageBook

if TYPE_CHECKING:
    from signoff.servers.ports import Servers

log = logging.getLogger(__name__)


async def run_discord(settings: Settings, config: Config) -> None:
    """Serve Discord until told to stop. Raises StartupError with a line for people to read."""
    if settings.discord_token is None:
        todo = f"write the bot's token into .env, or run `{command_line('sandbox')}` to try it offline"
        raise SettingsError(f"DISCORD_TOKEN is not set; {todo}")
    point_at(settings.api_url, settings.gateway_url)
    client = SignoffClient()
    brain = Brain.build(config, settings.choose_model_name(config.agent.model), servers=_servers(client, config))
    take_over_loggers()
    for line in brain.verdicts:
        log.info("tool %s", line)
    async with await Store.open(settings.database_url) as store:
        log_findings(await findings_at_start(settings, config, brain))
        clock = SteadyClock()
        core = await Core.build(config, brain, store, clock, DiscordDirectory(client))
        core.desk.direct_users = frozenset(config.access.dm_users)
        offers = Offers(edit=True, grants=core.desk.grants, masker=core.masker)
        front_end = DiscordFrontEnd(client, offers, clock.now)
        notifier = DiscordNotifier(client, front_end)
        limits = queue_limits(config)
        driver = Driver(
            store, core.desk, core.runner, front_end, clock, limits, core.retention, notifier, core.activity
        )
        pausing = Pausing(store, core.desk, core.runner, driver, clock)
        usage = UsageBook(store, clock, build_budgets(config))
        schedules = ScheduleBook(store, clock, build_schedule_terms(config), lambda: scheduler.wake())
        scheduler = Scheduler(store, clock, schedules, DiscordStarter(client, driver, _access(config)))
        admin = Administration(
            lambda: brain.tools, core.rulebook, core.desk, driver, pausing, core.runner, store, usage, schedules
        )
        bot = Bot(
            client,
            front_end,
            core.desk,
            driver,
            _access(config),
            administration=admin,
            editor=core.editor,
            listening=Listening(store, clock),
            catch_up=config.limits.catch_up,
            now=clock.now,
            files=_file_limits(config),
            at_first_ready=partial(_when_ready, client, config, scheduler),
        )
        client.event(on_connect)
        core.desk.subscribers.append(LogChannels(client, config.audit.log_channels))
        gc.freeze()  # collections leave out what was loaded and built until now: it stays until the end
        gc.enable()
        async with measured(settings, core, store, lambda: is_connected(client)):
            running = bot.run(settings.discord_token.get_secret_value())
            try:
                await _until_told_to_stop(running, client, driver, config.limits.shutdown_grace)
            finally:
                await scheduler.stop()


async def on_connect() -> None:
    """Handle Discord's event of this name: the bot is online now, and most often nobody has mentioned it yet."""
    warm_up()


async def _until_told_to_stop(
    running: Coroutine[Any, Any, None], client: SignoffClient, driver: Driver, grace: float
) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    serving = asyncio.ensure_future(running)
    stopping = asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if told.is_set():
            leave_for_certain(grace)
            log.info("stopping: no new work is accepted, running tools have %g seconds", grace)
        await driver.stop(grace if told.is_set() else 0)
    finally:
        stopping.cancel()
        with suppress(Exception):
            await asyncio.wait_for(client.close(), 2)
    if told.is_set():
        serving.cancel()  # otherwise discord.py sleeps until its next attempt to connect, which may take minutes
    await asyncio.wait({serving})
    if not serving.cancelled():
        serving.result()


def _servers(client: SignoffClient, config: Config) -> Servers | None:
    """Return the way to Discord's servers if a tool needs it."""
    if not enabled_tools(config.tools.enable):
        return None
    from signoff.bot.servers import DiscordServers  # here, because few need it

    return DiscordServers(client)


def _file_limits(config: Config) -> FileLimits:
    limits = config.limits
    return FileLimits(
        frozenset(limits.attachment_kinds),
        limits.attachments_per_message,
        limits.attachment_text_bytes,
        limits.attachment_image_bytes,
        limits.quoted_characters,
    )


async def _when_ready(client: SignoffClient, config: Config, scheduler: Scheduler) -> None:
    scheduler.start()
    await _check_servers(client, config)


async def _check_servers(client: SignoffClient, config: Config) -> None:
    from signoff.bot.checkup import check_servers  # here, because the bot is online before it needs this

    try:
        log_findings(await check_servers(client, config, at_start=True))
    except Exception as error:
        log.warning("the servers could not be checked: %s: %s", type(error).__name__, error)


def _access(config: Config) -> Access:
    who = config.access
    return Access(*(frozenset(ids) for ids in (who.servers, who.channels, who.roles, who.dm_users)))

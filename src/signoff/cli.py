"""`signoff COMMAND`.

Without a command it serves Discord if a token is set, else the sandbox. Errors are one line. Each command imports what
it needs when it runs, so that `--help` and `version` load almost nothing.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from signoff import __version__
from signoff.commands.audit import audit
from signoff.commands.backup import backup, restore
from signoff.errors import StartupError

if TYPE_CHECKING:
    from signoff.config.schema import Config
    from signoff.settings import Settings

CHAT_DATABASE = "sqlite:///data/chat/signoff.db"
"""The chat's own database, so that it can run beside a bot."""

commands = typer.Typer(add_completion=False, help="An AI agent for Discord that asks before it acts.")
commands.add_typer(audit, name="audit")
commands.command()(backup)
commands.command()(restore)


@commands.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    """Discord if DISCORD_TOKEN is set, else the sandbox."""
    if context.invoked_subcommand is None:
        settings = _settings()
        _serve(settings) if settings.discord_token else _try_out(settings, fresh=False)


@commands.command()
def discord() -> None:
    """Serve Discord with the token in DISCORD_TOKEN."""
    _serve(_settings())


@commands.command()
def sandbox(
    fresh: bool = typer.Option(False, "--fresh", help="delete the data of earlier sandbox runs"),
) -> None:
    """Try it offline: a Discord on loopback with the bot in it. Needs no token."""
    _try_out(_settings(), fresh=fresh)


@commands.command()
def chat(
    go_on: bool = typer.Option(False, "--continue", help="continue the last conversation"),
    database: str = typer.Option(CHAT_DATABASE, "--database", metavar="URL", help="the database to use"),
) -> None:
    """Talk to the agent in this terminal. Reads lines from a pipe as well."""
    from signoff.settings import load_settings

    # The log goes to a file beside the database: the terminal is for the conversation.
    settings = load_settings().model_copy(update={"database_url": database})
    config = _config(settings)
    from signoff.commands.chat import run_chat

    _run(run_chat(settings, config, go_on=go_on))


@commands.command()
def init(folder: str = typer.Argument(".", metavar="FOLDER", help="where to write them; created if needed")) -> None:
    """Write a commented signoff.toml, .env and an example plugin. Nothing is overwritten."""
    from signoff.commands.init import write_starter

    for line in write_starter(Path(folder)):
        print(line)


@commands.command()
def check(
    discord: bool = typer.Option(False, "--discord", help="connect, and check servers, channels and roles"),
) -> None:
    """Look for mistakes in the set-up. The exit code is 1 if something cannot work."""
    import asyncio

    from signoff.commands.check import run_check

    report = asyncio.run(run_check(discord=discord))
    for line in report.lines:
        print(line)
    raise SystemExit(1 if report.failed else 0)


@commands.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    try:
        commands()
    except StartupError as error:
        raise SystemExit(f"signoff: {error}") from None
    finally:
        gc.enable()


def _settings() -> Settings:
    # Loading modules makes hardly any garbage, and looking for it would take a tenth of the time until the bot is
    # online. `_run` turns the collector on again.
    gc.disable()
    from signoff.settings import load_settings
    from signoff.telemetry.logs import set_up_log

    settings = load_settings()
    set_up_log(settings.log_level, settings.log_format)
    return settings


def _serve(settings: Settings) -> None:
    config = _config(settings)
    # Imported here because it loads every package, which would delay the sandbox by seconds.
    from signoff.commands.discord import run_discord

    _run(run_discord(settings, config))


def _config(settings: Settings) -> Config:
    from signoff.config.schema import load_config
    from signoff.store.store import sqlite_path

    config = load_config(settings.config_path, required=settings.config_required)
    database = [sqlite_path(settings.database_url)] if settings.database_url.startswith("sqlite") else []
    config.keep_workspace_apart(settings.config_path, Path(".env"), *database)
    return config


def _try_out(settings: Settings, *, fresh: bool) -> None:
    from signoff.commands import sandbox as launch
    from signoff.config.approval_checks import check_approvals
    from signoff.config.findings import log_findings
    from signoff.config.schema import load_config
    from signoff.config.setting_checks import check_settings

    # Check the configuration here, so that its error is one line and not the child process's output.
    config = load_config(settings.config_path, required=settings.config_required)
    log_findings([*check_settings(os.environ, Path(".env")), *check_approvals(config)])
    program = [sys.executable, sys.argv[0]]
    _run(launch.sandbox(Path("data/sandbox"), fresh=fresh, program=program, config=config))


def _run(work: Coroutine[Any, Any, None]) -> None:
    import asyncio

    gc.freeze()  # later collections leave out what is loaded by now: it stays until the end
    gc.enable()
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None

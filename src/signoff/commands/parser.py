"""Reads the command line: `signoff COMMAND`.

Each command imports what it needs when it runs, so that the help loads almost nothing.
"""

from __future__ import annotations

from pathlib import Path

import typer

from signoff import __version__
from signoff.commands.audit import audit
from signoff.commands.backup import backup, restore
from signoff.commands.starting import start_bot, start_chat, start_default, start_sandbox

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
        start_default()


@commands.command()
def discord() -> None:
    """Serve Discord with the token in DISCORD_TOKEN."""
    start_bot()


@commands.command()
def sandbox(
    fresh: bool = typer.Option(False, "--fresh", help="delete the data of earlier sandbox runs"),
) -> None:
    """Try it offline: a Discord on loopback with the bot in it. Needs no token."""
    start_sandbox(fresh=fresh)


@commands.command()
def chat(
    go_on: bool = typer.Option(False, "--continue", help="continue the last conversation"),
    database: str = typer.Option(CHAT_DATABASE, "--database", metavar="URL", help="the database to use"),
) -> None:
    """Talk to the agent in this terminal. Reads lines from a pipe as well."""
    start_chat(database, go_on=go_on)


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

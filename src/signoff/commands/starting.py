"""Starts the commands that run until they are stopped: reads the settings and signoff.toml, loads the rest, runs it.

Loading takes most of the time until the bot is online, so it is kept short here.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from signoff.config.schema import Config
    from signoff.settings import Settings


def start_default() -> None:
    """Start Discord if a token is set, else the sandbox."""
    settings = _settings()
    if settings.discord_token:
        start_bot(settings)
    else:
        start_sandbox(settings)


def start_bot(settings: Settings | None = None) -> None:
    # Loading and building make hardly any garbage, and looking for it would take a tenth of the time until the bot is
    # online. `run_discord` turns the collector on again.
    gc.disable()
    try:
        settings = settings or _settings()
        config = _config(settings)
        _load_httpx()
        # Imported here because it loads every package, which would delay the sandbox by seconds.
        from signoff.commands.discord import run_discord

        _run(run_discord(settings, config))
    finally:
        gc.enable()


def start_sandbox(settings: Settings | None = None, *, fresh: bool = False) -> None:
    settings = settings or _settings()
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


def start_chat(database: str, *, go_on: bool) -> None:
    from signoff.settings import load_settings

    # The log goes to a file beside the database: the terminal is for the conversation.
    settings = load_settings().model_copy(update={"database_url": database})
    config = _config(settings)
    from signoff.commands.chat import run_chat

    _run(run_chat(settings, config, go_on=go_on))


def _settings() -> Settings:
    from signoff.settings import load_settings
    from signoff.telemetry.logs import set_up_log

    settings = load_settings()
    set_up_log(settings.log_level, settings.log_format)
    return settings


def _config(settings: Settings) -> Config:
    from signoff.config.schema import load_config
    from signoff.store.store import sqlite_path

    config = load_config(settings.config_path, required=settings.config_required)
    database = [sqlite_path(settings.database_url)] if settings.database_url.startswith("sqlite") else []
    config.keep_workspace_apart(settings.config_path, Path(".env"), *database)
    return config


def _load_httpx() -> None:
    """Load PydanticAI's HTTP client without its own command line, as if Rich were not installed.

    Otherwise it loads Rich, Pygments and click, which only the terminal needs.
    """
    command_line = "httpx._main"
    if "httpx" in sys.modules:
        return
    sys.modules[command_line] = None  # pyright: ignore[reportArgumentType] - this makes its import fail
    with suppress(ImportError):
        import_module("httpx")
    del sys.modules[command_line]


def _run(work: Coroutine[Any, Any, None]) -> None:
    import asyncio

    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None

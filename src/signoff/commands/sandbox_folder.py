"""The folder of a sandbox: one sandbox at a time uses it, and `--fresh` empties it. It keeps the bot's token."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from signoff.errors import AlreadyRunning
from signoff.store.lock import ProcessLock


@contextmanager
def claimed(folder: Path, database: Path, *, fresh: bool) -> Generator[None]:
    """Keep other sandboxes out of the folder, and make or empty it. Raises SystemExit if one is running.

    The lock is beside the folder, so that emptying the folder does not remove it. The bot's own lock, beside its
    `database`, is looked at too: a bot goes on if the sandbox that started it was killed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = ProcessLock.acquire(folder)
    except AlreadyRunning:
        raise _is_used(folder, ProcessLock.owner(folder)) from None
    try:
        if owner := ProcessLock.owner(database):
            raise _is_used(folder, owner)
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        yield
    finally:
        lock.release()


def _is_used(folder: Path, owner: str | None) -> SystemExit:
    return SystemExit(
        f"A sandbox is already running: {owner or 'another process'} uses {folder}. "
        "Open the address that it printed, or stop it first."
    )


def bot_token(folder: Path) -> str:
    """Return the bot's token, which no other web page can guess. It is made once and kept in the sandbox's folder."""
    file = folder / "token"
    with suppress(FileExistsError):
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as output:
            output.write(secrets.token_urlsafe(24))
    return file.read_text(encoding="utf-8")

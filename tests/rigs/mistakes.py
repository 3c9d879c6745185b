"""Mistakes that people make before the bot starts, and the one line that each of them must get."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.rigs.preloaded import Ended

SECRET = "MTk4NjIyNDgzNDcxOTI1MjQ4.secret-token-never-shown"
NOBODY = "http://127.0.0.1:9/api/v10"
"""An address where nobody listens. A start that fails before the login never uses it."""


def environment(**further: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}
    return kept | {"DISCORD_TOKEN": SECRET, "DISCORD_API_URL": NOBODY} | further


def only_line(ended: Ended) -> str:
    """Check that there is only one line for people, and return it."""
    assert ended.code > 0, ended  # below zero: the process had to be killed
    assert "Traceback" not in ended.errors, ended.errors
    assert SECRET not in ended.errors + ended.output
    assert "secret-token" not in ended.errors + ended.output
    assert len(ended.complaints) == 1, ended.errors
    assert ended.complaints[0].startswith("signoff: ")
    return ended.complaints[0].removeprefix("signoff: ")


Prepare = Callable[[Path], object]


def config(text: str) -> Prepare:
    return lambda folder: (folder / "signoff.toml").write_text(text)


def plugin(text: str) -> Prepare:
    def write(folder: Path) -> None:
        (folder / "my_tools.py").write_text(text)
        config('[tools]\nplugins = ["my_tools.py"]\n')(folder)

    return write


def newer_database(folder: Path) -> None:
    with sqlite3.connect(folder / "newer.db") as database:
        database.execute("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)")
        database.execute("INSERT INTO schema_version VALUES (999, 'from the future')")
    database.close()


@dataclass(frozen=True)
class Case:
    """One mistake, and the words that its line must have: the cause, the place, what to write instead."""

    words: tuple[str, ...]
    prepare: Prepare = lambda folder: None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def case(*words: str, prepare: Prepare = lambda folder: None, **environment: str) -> Case:
    return Case(words, prepare, environment)


MISTAKES = {
    "no token": case("DISCORD_TOKEN is not set", ".env", "sandbox", DISCORD_TOKEN=""),
    "a token with quotes": case("DISCORD_TOKEN", "bare token", DISCORD_TOKEN=f'"{SECRET}"'),
    "a broken .env": case(".env:2:", "NAME=value", prepare=lambda at: (at / ".env").write_text("A=1\nthis is it\n")),
    "an unknown log level": case("SIGNOFF_LOG_LEVEL", "WARNING", SIGNOFF_LOG_LEVEL="loud"),
    "an API URL without a scheme": case("DISCORD_API_URL", "https://", DISCORD_API_URL="discord.com"),
    "a config with a syntax error": case("signoff.toml:2:", "quotes", prepare=config("[agent]\nmodel = demo\n")),
    "a config with an unknown key": case(
        "signoff.toml:3:", "timeut", "write timeout", prepare=config("[approvals]\n\ntimeut = 5\n")
    ),
    "a config with an unknown table": case("signoff.toml:1:", "[limits]", prepare=config("[limit]\n")),
    "a config with a wrong value": case(
        "signoff.toml:2:", "timeout", '"soon"', '"5m"', prepare=config('[approvals]\ntimeout = "soon"\n')
    ),
    "a config that is not text": case(
        "signoff.toml", "UTF-8", prepare=lambda at: (at / "signoff.toml").write_bytes(b"\xff\xfe\x00")
    ),
    "a config that is not there": case("elsewhere.toml", "SIGNOFF_CONFIG", SIGNOFF_CONFIG="elsewhere.toml"),
    "a config that is a folder": case("SIGNOFF_CONFIG", SIGNOFF_CONFIG="."),
    "an agent that cannot be imported": case(
        "nowhere:agent", "module:agent", prepare=config('[agent]\nimport = "nowhere:agent"\n')
    ),
    "an unknown model": case("gpt-99-nonsense", "demo", SIGNOFF_MODEL="gpt-99-nonsense"),
    "an unknown provider": case("opnai:gpt-5", "write openai:gpt-5", SIGNOFF_MODEL="opnai:gpt-5"),
    "a model without a name": case("openai-chat:", "no model", SIGNOFF_MODEL="openai-chat:"),
    "a missing key": case(
        "OPENAI_API_KEY=", ".env", "SIGNOFF_MODEL=demo", SIGNOFF_MODEL="openai-chat:gpt-5-mini"
    ),
    "an unknown kind of database": case("SIGNOFF_DATABASE_URL", "sqlite:///", SIGNOFF_DATABASE_URL="mysql://a:b@c/d"),
    "a database that is a folder": case(
        "folder", "SIGNOFF_DATABASE_URL",
        prepare=lambda at: (at / "data.db").mkdir(), SIGNOFF_DATABASE_URL="sqlite:///data.db",
    ),
    "a database below a file": case(
        "folder", "SIGNOFF_DATABASE_URL",
        prepare=lambda at: (at / "data").write_text("a file"), SIGNOFF_DATABASE_URL="sqlite:///data/x.db",
    ),
    "a database where nobody may write": case(
        "SIGNOFF_DATABASE_URL", SIGNOFF_DATABASE_URL="sqlite:////proc/signoff/x.db"
    ),
    "a database that is none": case(
        "not a SQLite database", "SIGNOFF_DATABASE_URL",
        prepare=lambda at: (at / "x.db").write_bytes(b"garbage" * 999), SIGNOFF_DATABASE_URL="sqlite:///x.db",
    ),
    "a database of a newer version": case(
        "999", "Update", "nothing was changed", prepare=newer_database, SIGNOFF_DATABASE_URL="sqlite:///newer.db"
    ),
    "a plugin that is not there": case(
        "gone.py", "[tools] plugins", prepare=config('[tools]\nplugins = ["gone.py"]\n')
    ),
    "a plugin with a syntax error": case("my_tools.py:2:", "not valid Python", prepare=plugin("x = 1\ndef broken(:\n")),
    "a plugin without tools": case("my_tools.py", "tools = [", prepare=plugin("def tool() -> str: ...\n")),
    "a plugin that raises": case("my_tools.py:2:", "KeyError", prepare=plugin("\n{}['missing']\ntools = []\n")),
    "an API that nobody serves": case("Cannot reach Discord", NOBODY, "DISCORD_API_URL"),
}  # fmt: skip

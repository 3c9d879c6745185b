"""Finds what would keep the database from opening, without creating, changing or locking anything for long."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from signoff.config.findings import Finding, Severity, error, of_error, warning
from signoff.errors import StartupError
from signoff.store.audit_file import read_only_address
from signoff.store.lock import ProcessLock
from signoff.store.migrate import shipped
from signoff.store.sqlite import SqliteDatabase, explain
from signoff.store.store import nearest_folder, sqlite_path

SETTING = "SIGNOFF_DATABASE_URL"


def check_database(url: str, place: str) -> list[Finding]:
    """`place` says where the URL is set."""
    try:
        given = sqlite_path(url)
    except StartupError as failure:
        return of_error(failure, place)
    path = given.resolve()
    folder = nearest_folder(path)
    if path.is_dir():
        return [error(place, f"the database {given} is a folder", f"name a file in it: set {SETTING}")]
    if not folder.is_dir():
        problem = f"the database {given} cannot be created: {folder} is a file"
        return [error(place, problem, f"move that file away, or set {SETTING} to another place")]
    if not os.access(folder, os.W_OK | os.X_OK):
        problem = f"the database {given} needs to write to {folder}, and this user may not"
        return [error(place, problem, f"give this user the right to write there, or set {SETTING} to another place")]
    return _check_file(path, given, place) if path.exists() else []


def _check_file(path: Path, given: Path, place: str) -> list[Finding]:
    if not os.access(path, os.R_OK | os.W_OK):
        problem = f"the database {given} may not be read and written by this user"
        return [error(place, problem, f"give this user both rights, or set {SETTING} to another place")]
    findings: list[Finding] = []
    if owner := ProcessLock.owner(path):
        problem = f"the database {given} is in use: {owner.rstrip(',')} owns it"
        findings.append(warning(place, problem, "stop that process before you start another one"))
    try:
        version = _version(path)
    except sqlite3.Error as failure:
        return [*findings, Finding(Severity.ERROR, f"the database {given}: {explain(failure)}", place=place)]
    newest = shipped(SqliteDatabase.dialect)[-1].number
    if version is None:
        problem = f"the database {given} holds another program's tables"
        findings.append(error(place, problem, f"set {SETTING} to a file of its own"))
    elif version > newest:
        problem = f"the database {given} has schema version {version}, and this program knows {newest} at most"
        findings.append(error(place, problem, "update the program"))
    return findings


def _version(path: Path) -> int | None:
    """Return the schema version: 0 for an empty database, None for one that is not ours."""
    connection = sqlite3.connect(read_only_address(path), uri=True, timeout=0, isolation_level=None)
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "schema_version" not in tables:
            return None if tables else 0
        (version,) = connection.execute("SELECT MAX(version) FROM schema_version").fetchone()
        return version if isinstance(version, int) else None
    finally:
        connection.close()

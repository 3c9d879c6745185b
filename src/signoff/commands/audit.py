"""`signoff audit verify` and `signoff audit export`: read the record, whether or not the bot is running.

Exit codes: 0 intact or exported, 1 the record was changed or has no anchor, 2 it could not be read. An attacker may
have written the values that are printed, so they are escaped: they cannot act as terminal commands or spreadsheet
formulas.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

import typer

from signoff.errors import StartupError

if TYPE_CHECKING:
    from signoff.approvals.audit import AuditRow, Report
    from signoff.store.audit_file import AuditFile

audit = typer.Typer(help="Check or export the record of decisions.", no_args_is_help=True)

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20|%]|[\t\r\n]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_DATABASE = typer.Option("", "--database", metavar="URL", help="the database to read (default: SIGNOFF_DATABASE_URL)")


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


_FORMAT = typer.Option(Format.JSONL, "--format", help="jsonl: exact; csv: for spreadsheets")


@audit.command("verify")
def verify_command(database: str = _DATABASE) -> None:
    """Check every row against its hash and the last one against the anchor. Exit code 1: the record was changed."""
    with _one_line():
        with _record(database) as file:
            report = file.verify()
        print(_verdict(report))
        # Fail closed: without an anchor nobody knows whether rows are missing at the end.
        raise SystemExit(0 if report.intact and (report.anchor or not report.rows) else 1)


@audit.command("export")
def export_command(
    database: str = _DATABASE,
    format: Format = _FORMAT,
    server: str = typer.Option("", "--server", metavar="ID", help="only this server's rows"),
    since: str = typer.Option("", "--since", metavar="TIME", help="2026-01-31 or 2026-01-31T12:00, in UTC"),
    until: str = typer.Option("", "--until", metavar="TIME", help="up to, and not including, this time"),
    output: str = typer.Option("-", "--output", metavar="FILE", help="the file to write (default: standard output)"),
) -> None:
    """Write the rows, oldest first, with the texts that are still kept."""
    start, end = _moment("--since", since), _moment("--until", until)
    with _one_line(), _record(database) as file, _sink(output) as sink:
        write = _csv(sink) if format is Format.CSV else _jsonl(sink)
        for row in file.rows(server=server or None, since=start, until=end):
            write(row, file.text(row.text) if row.text else "")


def _verdict(report: Report) -> str:
    if report.finding:
        finding, row = report.finding, report.finding.row
        about = f" ({_plain(row.kind)}, {_time(row.at)})" if row else ""
        return f"row {_plain(finding.seq)}{about}: {finding.what}"
    rows = f"{report.rows:,} row{'' if report.rows == 1 else 's'}, head {_plain(report.head.hash)[:16] or 'none'}"
    if report.anchor is None:
        chained = "intact" if not report.rows else "not anchored"
        return f"{chained}: {rows}; the anchor is missing or unreadable, rows cut off at the end would not be noticed"
    behind = report.head.seq - report.anchor.seq
    return f"intact: {rows}, anchored" + (f" up to row {report.anchor.seq:,}" if behind else "")


def _jsonl(sink: TextIO) -> Callable[[AuditRow, str | None], None]:
    def write(row: AuditRow, text: str | None) -> None:
        sink.write(json.dumps(_fields(row) | {"data": row.details, "text": text}, default=repr) + "\n")

    return write


def _csv(sink: TextIO) -> Callable[[AuditRow, str | None], None]:
    writer = csv.writer(sink)
    writer.writerow(["seq", "time", "kind", "server", "subject", "actor", "tool", "digest", "hash", "data", "text"])

    def write(row: AuditRow, text: str | None) -> None:
        fields = _fields(row)
        del fields["at"]
        writer.writerow([_cell(value) for value in (*fields.values(), row.data, "(pruned)" if text is None else text)])

    return write


def _fields(row: AuditRow) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "at": row.at,
        "time": _time(row.at),
        "kind": row.kind,
        "server": row.server,
        "subject": row.subject,
        "actor": row.actor,
        "tool": row.tool,
        "digest": row.text,
        "hash": row.hash,
    }


def _cell(value: object) -> str:
    """Escape a cell, so that no spreadsheet reads it as a formula and no terminal as a command."""
    text = _CONTROLS.sub(lambda control: control[0].encode("unicode_escape").decode(), str(value))
    return f"'{text}" if _FORMULA.match(text) else text


def _plain(value: object) -> str:
    return ascii(value).strip("'")[:80]


def _time(at: object) -> str:
    try:
        return datetime.fromtimestamp(float(str(at)), UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return _plain(at)


def _moment(option: str, text: str) -> float | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("write 2026-01-31 or 2026-01-31T12:00", param_hint=option) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _record(database: str) -> AbstractContextManager[AuditFile]:
    # Imported here because the help of every command loads this module.
    from signoff.settings import load_settings
    from signoff.store.audit_file import open_audit_file
    from signoff.store.store import sqlite_path

    return open_audit_file(sqlite_path(database or load_settings().database_url))


@contextmanager
def _one_line() -> Generator[None]:
    try:
        yield
    except StartupError as error:
        print(f"signoff: {error}", file=sys.stderr)
    except BrokenPipeError:
        # The reader closed the pipe, so the buffered rest must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"signoff: cannot write {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
    else:
        return
    raise SystemExit(2)


@contextmanager
def _sink(output: str) -> Generator[TextIO]:
    if output == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    # The export holds conversations, so only this user may read it.
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8", newline="") as file:
        yield file

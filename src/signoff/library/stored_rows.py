"""The rows of an `ApprovalStore`: their tables, and how they become requests, records and conversations.

A request whose arguments are not those of its digest is refused here, wherever it is read.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from signoff.approvals.digest import bind
from signoff.approvals.model import ApprovalRequest, CallKey, Place, RequestState
from signoff.dataclass import dataclass
from signoff.errors import SignoffError
from signoff.gate.inline import Round
from signoff.turns.model import CallRecord, CallState

log = logging.getLogger(__name__)

SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS runs (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL,           -- waiting: for people; going: nothing is left to decide; ended
        messages BLOB,                 -- up to the model response whose calls are open; NULL once the run has ended
        position INTEGER NOT NULL,     -- the number of that response
        rounds TEXT NOT NULL,          -- the responses that asked, as a JSON list
        deadline REAL,
        changed REAL NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS requests (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        state TEXT NOT NULL,
        body BLOB NOT NULL,
        asked REAL NOT NULL,
        deadline REAL
    )
    """,
    "CREATE INDEX IF NOT EXISTS requests_by_run ON requests (run, position, call_id)",
    """
    CREATE TABLE IF NOT EXISTS calls (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        state TEXT NOT NULL,
        result BLOB,
        request TEXT NOT NULL,
        started REAL,
        PRIMARY KEY (run, position, call_id)
    )
    """,
)
"""The statements that make the tables, one by one."""
VERSION = 1

requests_json: TypeAdapter[ApprovalRequest] = TypeAdapter(ApprovalRequest)


class StoreBroken(SignoffError):
    """The file of an `ApprovalStore` cannot be used, or was changed by others; nothing was run because of it."""


class AlreadyDecided(SignoffError):
    """The request was decided before; this decision did not count. `request` says how it ended."""

    def __init__(self, request: ApprovalRequest, more: str = "") -> None:
        super().__init__(f"{how_it_ended(request)}{more}")
        self.request = request


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request in a store, with the run that it belongs to."""

    request: ApprovalRequest
    run: str
    asked: float
    """When it was asked, in seconds since 1970."""
    deadline: float | None = None
    """When it expires; None: never."""

    @property
    def id(self) -> str:
        return self.request.id


@dataclass(frozen=True, slots=True)
class StoredRun:
    state: str
    messages: list[ModelMessage]
    position: int
    rounds: frozenset[Round]


def place_of(run: str) -> Place:
    """Return the place of a stored run, which is part of the digest of its calls."""
    return Place("local", "local", run)


def how_it_ended(request: ApprovalRequest) -> str:
    """Say in one sentence how a request ended."""
    end = request.settlement
    who = f" by {end.by.name}" if end and end.by and end.by.name else ""
    if request.state is RequestState.EXPIRED:
        ending = "there is no answer" if request.inquiry else "the call was rejected"
        return f"The request about {request.call.tool} has expired, so {ending}."
    return f"The request about {request.call.tool} was already {request.ended_as}{who}."


def stored_of(row: sqlite3.Row) -> StoredRequest:
    """Read a request, and refuse one whose arguments are not those of its digest."""
    try:
        request = requests_json.validate_json(row["body"])
    except ValueError as error:
        raise StoreBroken(f"The request {row['id']} cannot be read: {error}. Nothing was run.") from error
    call, place = request.call, place_of(row["run"])
    made = replace(call, args=request.edit.original) if request.edit else call
    is_whole = bind(call, place).digest == call.digest and bind(made, place).digest == request.called
    if not is_whole or call.key != CallKey(row["run"], row["position"], row["call_id"]) or request.id != row["id"]:
        raise StoreBroken(
            f"The request {row['id']} about {call.tool} was changed in the database after it was asked. "
            "It cannot be decided, and nothing was run."
        )
    return StoredRequest(replace(request, state=RequestState(row["state"])), row["run"], row["asked"], row["deadline"])


def readable(row: sqlite3.Row) -> StoredRequest | None:
    try:
        return stored_of(row)
    except StoreBroken as error:
        log.error("a stored request is left out: %s", error)
        return None


def record_of(key: CallKey, row: sqlite3.Row) -> CallRecord:
    state = CallState(row["state"])
    return CallRecord(key, row["tool"], row["digest"], state, row["result"], row["request"], row["started"])


def dumped(messages: Sequence[ModelMessage]) -> bytes:
    try:
        return ModelMessagesTypeAdapter.dump_json(list(messages))
    except ValueError as error:
        raise StoreBroken(f"The conversation cannot be stored: {error}. Nothing further was run.") from error


def run_of(row: sqlite3.Row) -> StoredRun:
    try:
        messages = ModelMessagesTypeAdapter.validate_json(row["messages"] or b"[]")
        rounds = frozenset[Round]((conversation, number) for conversation, number in json.loads(row["rounds"]))
    except ValueError as error:
        raise StoreBroken(f"The conversation of run {row['id']} cannot be read: {error}. Nothing was run.") from error
    return StoredRun(row["state"], messages, row["position"], rounds)

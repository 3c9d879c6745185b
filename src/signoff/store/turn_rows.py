"""The rows of turns, conversations and the journal of calls: their statements and how a row becomes a dataclass.

Takes the legal moves of a turn from `turns.model`. Knows nothing else about turns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from signoff.approvals.automatic import OwnMode
from signoff.approvals.model import ApprovalRequest, CallKey, Place
from signoff.store.codec import dump_actor, dump_quoted, load_actor, load_quoted
from signoff.store.database import Database, Row, Value
from signoff.store.request_rows import RequestRows
from signoff.turns.model import (
    MOVES,
    CallRecord,
    CallState,
    HistoryEntry,
    KnownCalls,
    Load,
    ModelUse,
    StepInput,
    Summary,
    Turn,
    TurnFile,
    TurnState,
)

_TURN = """id, server, channel, conversation, message, asker_seen, text, created, state, prompted, rounds, batch,
    reply, reply_posted, ended, asked, quoted, status"""
_ACTIVE = "state IN ('running', 'waiting')"
_QUEUED = "state = 'queued'"
_OPEN = "state IN ('queued', 'running', 'waiting')"

IS_RUNNING = "SELECT 1 FROM turns WHERE id = ? AND state = 'running'"
TURN_BY_ID = f"SELECT {_TURN} FROM turns WHERE id = ?"
INSERT_TURN = f"""INSERT INTO turns (seq, asker, {_TURN})
    VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM turns), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING"""
MOVE = "UPDATE turns SET state = ? WHERE id = ? AND state = ?"
START = f"""{MOVE} AND NOT EXISTS (SELECT 1 FROM turns AS other
    WHERE other.conversation = turns.conversation AND other.{_ACTIVE} AND other.id <> turns.id)"""
RELOCATE = f"UPDATE turns SET server = ?, channel = ?, conversation = ? WHERE id = ? AND {_QUEUED}"
AWAIT_BATCH = "UPDATE turns SET rounds = rounds + 1, batch = ? WHERE id = ?"
FINISH = "UPDATE turns SET state = ?, reply = ?, ended = ? WHERE id = ? AND state = ?"
SET_STATUS = "UPDATE turns SET status = ? WHERE id = ?"
CLEAR_STATUS = "UPDATE turns SET status = NULL WHERE id = ? AND status = ?"
LEFT_STATUS = f"SELECT {_TURN} FROM turns WHERE state = 'waiting' AND status IS NOT NULL ORDER BY created, seq"
SET_REPLY_POSTED = "UPDATE turns SET reply_posted = TRUE WHERE id = ?"
SET_PROMPTED = "UPDATE turns SET prompted = TRUE WHERE id = ?"
TURNS_IN = f"SELECT {_TURN} FROM turns WHERE state IN ({{states}}) ORDER BY created, seq"
UNPOSTED = f"""SELECT {_TURN} FROM turns WHERE reply_posted = FALSE AND state IN ('done', 'failed', 'stopped')
    ORDER BY created, seq"""
COUNT = "SELECT COUNT(*) FROM turns WHERE {where}"
# One statement: the counts themselves take less time than to run a statement for each.
LOAD = f"""SELECT (SELECT COUNT(*) FROM turns WHERE {_OPEN} AND asker = ?),
    (SELECT COUNT(*) FROM turns WHERE {_OPEN} AND conversation = ?),
    (SELECT COUNT(*) FROM turns WHERE {_QUEUED} AND conversation = ?)"""
NEXT_STARTABLE = f"""SELECT {_TURN} FROM turns WHERE {_QUEUED}
    AND NOT EXISTS (SELECT 1 FROM turns AS busy WHERE busy.conversation = turns.conversation AND busy.{_ACTIVE})
    AND (SELECT COUNT(*) FROM turns AS mine WHERE mine.asker = turns.asker AND mine.{_ACTIVE}) < ?
    AND server NOT IN (SELECT server FROM pauses) AND id NOT IN ({{skip}}) ORDER BY created, seq LIMIT 1"""
RESUMABLE = f"""SELECT {_TURN} FROM turns WHERE state = 'waiting'
    AND EXISTS (SELECT 1 FROM batches WHERE batches.id = turns.batch AND batches.settled) ORDER BY created, seq"""

FILES_OF = "SELECT name, size, media_type, data, problem FROM turn_files WHERE turn = ? ORDER BY position"
PUT_FILE = """INSERT INTO turn_files (turn, position, name, size, media_type, data, problem, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
DROP_FILES = "DELETE FROM turn_files WHERE turn = ?"
PRUNE_FILES = """DELETE FROM turn_files WHERE at < ? AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.id = turn_files.turn AND turns.state IN ('queued', 'running', 'waiting'))"""

HISTORY = "SELECT position, body FROM messages WHERE conversation = ? ORDER BY position"
SAVE_MESSAGE = """INSERT INTO messages (conversation, position, body) VALUES (?, ?, ?)
    ON CONFLICT (conversation, position) DO UPDATE SET body = excluded.body"""
DROP_MESSAGES = "DELETE FROM messages WHERE conversation = ? AND position > ?"

OWN_MODE = "SELECT mode, schedule FROM scheduled_turns WHERE turn = ?"
ADD_USE = """INSERT INTO usage (turn, server, conversation, person, at, model, input_tokens, output_tokens, cost)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_KEY = "conversation = ? AND position = ? AND call_id = ?"
_CALL = "conversation, position, call_id, tool, digest, state, result, request, started, line"
SAVE_SUMMARY = """INSERT INTO summaries (conversation, upto, text) VALUES (?, ?, ?)
    ON CONFLICT (conversation) DO UPDATE SET upto = excluded.upto, text = excluded.text"""
CALL = f"SELECT {_CALL}, unknown FROM calls WHERE {_KEY}"
PUT_CALL = f"""INSERT INTO calls ({_CALL}, turn, at, unknown) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (conversation, position, call_id) DO UPDATE SET tool = excluded.tool, digest = excluded.digest,
    state = excluded.state, result = excluded.result, request = excluded.request, started = excluded.started,
    line = excluded.line, turn = excluded.turn, at = excluded.at, unknown = excluded.unknown"""
CALLS_AT = f"SELECT {_CALL}, unknown FROM calls WHERE conversation = ? AND position = ?"
DROP_CALL = f"DELETE FROM calls WHERE {_KEY}"

BEGIN_INNER = """INSERT INTO inner_runs (conversation, parent_conversation, parent_position, parent_call_id, turn,
    agent, requests, ended) VALUES (?, ?, ?, ?, ?, ?, 0, FALSE) ON CONFLICT (conversation) DO NOTHING"""
INNER_REQUESTS_MADE = "UPDATE inner_runs SET requests = ? WHERE conversation = ?"
INNER_ENDED = "UPDATE inner_runs SET ended = TRUE WHERE conversation = ?"
_INNER_OF = "FROM inner_runs WHERE parent_conversation = ? AND parent_position = ? AND parent_call_id = ?"
HAS_INNER = f"SELECT 1 {_INNER_OF} LIMIT 1"
OPEN_INNER = f"SELECT conversation {_INNER_OF} AND ended = FALSE"
# One statement, for the same reason as `LOAD`.
STEP = """SELECT (SELECT COALESCE(SUM(requests), 0) FROM inner_runs WHERE turn = ?),
    (SELECT upto FROM summaries WHERE conversation = ?), (SELECT text FROM summaries WHERE conversation = ?),
    (SELECT MAX(position) FROM calls WHERE conversation = ?),
    (SELECT MAX(position) FROM requests WHERE conversation = ?)"""


class TurnRows(RequestRows):
    """Implements the methods that `turns.ports.TurnTx` adds to the desk's transaction."""

    db: Database

    def turn(self, turn_id: str) -> Turn | None:
        row = self.db.one(TURN_BY_ID, turn_id)
        return _turn(row) if row else None

    def is_running(self, turn_id: str) -> bool:
        return self.db.one(IS_RUNNING, turn_id) is not None

    def insert_turn(self, turn: Turn) -> bool:
        inserted = self.db.change(
            INSERT_TURN,
            turn.asker.id,
            turn.id,
            turn.place.server,
            turn.place.channel,
            turn.place.conversation,
            turn.message,
            dump_actor(turn.asker),
            turn.text,
            turn.created,
            turn.state,
            turn.prompted,
            turn.rounds,
            turn.batch,
            turn.reply,
            turn.reply_posted,
            turn.ended,
            turn.asked,
            dump_quoted(turn.quoted),
            turn.status_message,
        )
        if inserted and turn.files:
            self.set_files(turn.id, turn.files, turn.created)
        return inserted == 1

    def files_of(self, turn_id: str) -> Sequence[TurnFile]:
        rows = self.db.all(FILES_OF, turn_id)
        return [TurnFile(name, size, kind, bytes(data), problem) for name, size, kind, data, problem in rows]

    def set_files(self, turn_id: str, files: Sequence[TurnFile], at: float) -> None:
        self.db.change(DROP_FILES, turn_id)
        rows = [
            (turn_id, position, file.name, file.size, file.media_type, file.data, file.problem, at)
            for position, file in enumerate(files)
        ]
        self.db.change_many(PUT_FILE, rows)

    def prune_files(self, before: float) -> int:
        return self.db.change(PRUNE_FILES, before)

    def move(self, turn_id: str, old: TurnState, new: TurnState) -> bool:
        """Return False also if the conversation has another active turn: a conversation runs one turn at a time."""
        _check_move(old, new)
        starts = (old, new) == (TurnState.QUEUED, TurnState.RUNNING)
        return self.db.change(START if starts else MOVE, new, turn_id, old) == 1

    def relocate(self, turn_id: str, place: Place) -> None:
        """Do nothing if the turn is no longer queued, so that a replayed event does no harm."""
        self.db.change(RELOCATE, place.server, place.channel, place.conversation, turn_id)

    def await_batch(self, turn_id: str, batch_id: str) -> None:
        self._change_turn(AWAIT_BATCH, batch_id, turn_id)

    def finish(self, turn_id: str, old: TurnState, new: TurnState, reply: str, at: float | None = None) -> bool:
        _check_move(old, new)
        return self.db.change(FINISH, new, reply, at, turn_id, old) == 1

    def set_reply_posted(self, turn_id: str) -> None:
        self._change_turn(SET_REPLY_POSTED, turn_id)

    def set_status(self, turn_id: str, message: str | None) -> None:
        self._change_turn(SET_STATUS, message, turn_id)

    def clear_status(self, turn_id: str, message: str) -> None:
        self.db.change(CLEAR_STATUS, turn_id, message)

    def left_statuses(self) -> Sequence[Turn]:
        return [_turn(row) for row in self.db.all(LEFT_STATUS)]

    def set_prompted(self, turn_id: str) -> None:
        self._change_turn(SET_PROMPTED, turn_id)

    def turns_in(self, *states: TurnState) -> Sequence[Turn]:
        if not states:
            return []
        return [_turn(row) for row in self.db.all(TURNS_IN.format(states=_marks(states)), *states)]

    def unposted_replies(self) -> Sequence[Turn]:
        return [_turn(row) for row in self.db.all(UNPOSTED)]

    def active(self, *, asker: str | None = None, conversation: str | None = None) -> int:
        return self._count(_ACTIVE, asker, conversation)

    def queued(self, *, asker: str | None = None, conversation: str | None = None) -> int:
        return self._count(_QUEUED, asker, conversation)

    def load(self, asker: str, conversation: str) -> Load:
        (counts,) = self.db.all(LOAD, asker, conversation, conversation)
        return Load(*counts)

    def next_startable(self, per_person: int, skip: Collection[str] = ()) -> Turn | None:
        # Copy in one step: the caller's collection may change while this thread works.
        skipped = tuple(skip)
        row = self.db.one(NEXT_STARTABLE.format(skip=_marks(skipped)), per_person, *skipped)
        return _turn(row) if row else None

    def resumable(self) -> Sequence[Turn]:
        return [_turn(row) for row in self.db.all(RESUMABLE)]

    def history(self, conversation: str) -> Sequence[HistoryEntry]:
        rows = self.db.all(HISTORY, conversation)
        return [HistoryEntry(position=position, body=bytes(body)) for position, body in rows]

    def save_history(self, conversation: str, entries: Sequence[HistoryEntry]) -> None:
        if entries:
            self.db.change_many(SAVE_MESSAGE, [(conversation, entry.position, entry.body) for entry in entries])
            self.db.change(DROP_MESSAGES, conversation, max(entry.position for entry in entries))

    def save_summary(self, conversation: str, summary: Summary) -> None:
        self.db.change(SAVE_SUMMARY, conversation, summary.upto, summary.text)

    def own_mode(self, turn_id: str) -> OwnMode | None:
        row = self.db.one(OWN_MODE, turn_id)
        return OwnMode(*row) if row else None

    def add_use(self, turn: Turn, use: ModelUse) -> None:
        place, person = turn.place, turn.asker.id
        where = (turn.id, place.server, place.conversation, person)
        self.db.change(ADD_USE, *where, use.at, use.model, use.input_tokens, use.output_tokens, use.cost)

    def call(self, key: CallKey) -> CallRecord | None:
        row = self.db.one(CALL, key.conversation, key.position, key.call_id)
        return _call(row) if row else None

    def step_input(self, turn: Turn) -> StepInput:
        conversation = turn.place.conversation
        ((inner_requests, upto, text, called, asked),) = self.db.all(STEP, turn.id, *[conversation] * 4)
        return StepInput(
            self.history(conversation),
            None if upto is None else Summary(upto, text),
            () if turn.prompted else self.files_of(turn.id),
            int(inner_requests),
            self._known_calls(turn, called, asked),
        )

    def _known_calls(self, turn: Turn, called: int | None, asked: int | None) -> KnownCalls:
        """`called` and `asked`: the newest response with a call in the journal, and the newest one with a request."""
        conversation, newest = turn.place.conversation, max(called or 0, asked or 0)
        records: dict[str, CallRecord] = {}
        requests: Mapping[str, ApprovalRequest] = {}
        if called == newest:
            records = {row[2]: _call(row) for row in self.db.all(CALLS_AT, conversation, newest)}
        if asked == newest:
            requests = self.decisions_at(conversation, newest, turn.id)
        ids = [*records, *(id for id in requests if id not in records)]
        return KnownCalls(conversation, newest, {id: (records.get(id), requests.get(id)) for id in ids})

    def put_call(self, record: CallRecord, turn_id: str, at: float) -> None:
        key = record.key
        self.db.change(
            PUT_CALL,
            key.conversation,
            key.position,
            key.call_id,
            record.tool,
            record.digest,
            CallState.FAILED if record.state is CallState.UNKNOWN else record.state,
            record.result,
            record.request,
            record.started,
            record.line,
            turn_id,
            at,
            record.state is CallState.UNKNOWN,
        )

    def drop_call(self, key: CallKey) -> None:
        self.db.change(DROP_CALL, key.conversation, key.position, key.call_id)

    def begin_inner_run(self, conversation: str, call: CallKey, turn_id: str, agent: str) -> None:
        self.db.change(BEGIN_INNER, conversation, call.conversation, call.position, call.call_id, turn_id, agent)

    def set_inner_run(self, conversation: str, *, requests: int | None = None, ended: bool = False) -> None:
        if requests is not None:
            self.db.change(INNER_REQUESTS_MADE, requests, conversation)
        if ended:
            self.db.change(INNER_ENDED, conversation)

    def has_inner_runs(self, call: CallKey) -> bool:
        return self.db.one(HAS_INNER, call.conversation, call.position, call.call_id) is not None

    def open_inner_runs(self, call: CallKey) -> Collection[str]:
        return [row[0] for row in self.db.all(OPEN_INNER, call.conversation, call.position, call.call_id)]

    def _count(self, state: str, asker: str | None, conversation: str | None) -> int:
        given: dict[str, Value] = {"asker": asker, "conversation": conversation}
        narrowed = {name: value for name, value in given.items() if value is not None}
        where = " AND ".join([state, *(f"{name} = ?" for name in narrowed)])
        row = self.db.one(COUNT.format(where=where), *narrowed.values())
        return row[0] if row else 0

    def _change_turn(self, sql: str, *params: Value) -> None:
        if not self.db.change(sql, *params):
            raise LookupError(f"there is no turn {params[-1]}")


def _check_move(old: TurnState, new: TurnState) -> None:
    if new not in MOVES[old]:
        raise ValueError(f"a turn cannot go from {old} to {new}")


def _marks(values: Sequence[str]) -> str:
    # No row has the empty id, and PostgreSQL refuses an empty list.
    return ", ".join("?" for _ in values) or "''"


def _turn(row: Row) -> Turn:
    id, server, channel, conversation, message, asker, text, created, state, *rest = row
    prompted, rounds, batch, reply, reply_posted, ended, asked, quoted, status = rest
    return Turn(
        id=id,
        place=Place(server=server, channel=channel, conversation=conversation),
        message=message,
        asker=load_actor(asker),
        text=text,
        created=created,
        state=TurnState(state),
        prompted=bool(prompted),
        rounds=rounds,
        batch=batch,
        reply=reply,
        reply_posted=bool(reply_posted),
        ended=ended,
        quoted=load_quoted(quoted),
        asked=asked,
        status_message=status,
    )


def _call(row: Row) -> CallRecord:
    conversation, position, call_id, tool, digest, state, result, request, started, line, unknown = row
    return CallRecord(
        key=CallKey(conversation=conversation, position=position, call_id=call_id),
        tool=tool,
        digest=digest,
        state=CallState.UNKNOWN if unknown else CallState(state),
        result=None if result is None else bytes(result),
        request=request,
        started=started,
        line=line or "",
    )

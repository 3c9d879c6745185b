"""The desk's rows, batches and requests: their statements and how a row becomes a dataclass.

Does not know who may decide or when: it only reads rows, compares values and sets them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from signoff.approvals.model import (
    ApprovalRequest,
    Batch,
    CallKey,
    CallRun,
    CardCopy,
    Choice,
    Place,
    Remember,
    RequestKind,
    RequestState,
    RunState,
    Settlement,
    ToolCall,
)
from signoff.approvals.notify import CHANNEL
from signoff.store.codec import (
    dump_actor,
    dump_described,
    dump_edit,
    dump_grant_note,
    dump_inquiry,
    dump_object,
    dump_optional,
    dump_strings,
    dump_votes,
    load_actor,
    load_described,
    load_edit,
    load_grant_note,
    load_inquiry,
    load_object,
    load_optional,
    load_strings,
    load_votes,
)
from signoff.store.database import Database, Row, Value

_BATCH = """id, turn, server, channel, conversation, asker_seen, opened, deadline, words, already_ran, card,
    card_final, revision, remind_at, ping, notify, untold"""
_REQUEST = """id, conversation, position, call_id, tool, args, schema, digest, why, approvers, kind, metadata,
    quorum, four_eyes, message, preview, held, missing, operands, votes, edit, state, choice, settled_by, settled_at,
    note, remember, grant_note, answer, escalate_to, escalate_at, described, path, inquiry, drafts"""


def _names(columns: str) -> list[str]:
    return [name.strip() for name in columns.split(",")]


def _of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{name}" for name in _names(columns))


_NOTIFY, _WIDTH = _names(_BATCH).index("notify"), len(_names(_BATCH))
_CALL_ID = _names(_REQUEST).index("call_id")

# One row for each request, with the columns of its batch before its own: a second statement would take longer.
BATCHES = f"""SELECT {_of("b", _BATCH)}, {_of("r", _REQUEST)} FROM (SELECT * FROM batches WHERE {{where}}) AS b
    LEFT JOIN requests AS r ON r.batch = b.id ORDER BY {{order}}, b.id, r.seq"""
_SAME_CALL = "{0}.conversation = r.conversation AND {0}.position = r.position AND {0}.call_id = r.call_id"
RUNS_OF = f"""SELECT r.id, calls.state, calls.request, calls.started, calls.at, calls.line, calls.unknown, turns.state,
    turns.batch = r.batch, EXISTS (SELECT 1 FROM inner_runs AS i WHERE i.parent_conversation = r.conversation
    AND i.parent_position = r.position AND i.parent_call_id = r.call_id),
    (SELECT CASE WHEN later.inquiry <> '' THEN 'answer' ELSE later.kind END FROM requests AS later
    WHERE {_SAME_CALL.format("later")} AND later.seq > r.seq
    ORDER BY later.seq LIMIT 1)
    FROM requests AS r JOIN batches AS b ON b.id = r.batch JOIN turns ON turns.id = b.turn
    LEFT JOIN calls ON {_SAME_CALL.format("calls")}
    WHERE r.state = 'approved' AND r.batch {{those}}"""
COPIES_OF = "SELECT batch, channel, message FROM card_copies WHERE batch {those} ORDER BY batch, channel"
BY_ID = "id = ?"
BY_ID_OR_REQUEST = "id = COALESCE((SELECT id FROM batches WHERE id = ?), (SELECT batch FROM requests WHERE id = ?))"
BY_CARD = "card = ?"
OPEN_IN = "settled = FALSE AND channel = ?"
OPEN_OF = "settled = FALSE AND server = ?"
REMINDING = "settled = FALSE AND remind_at IS NOT NULL AND remind_at <= ?"
INQUIRING = "id IN (SELECT batch FROM requests WHERE inquiry <> '' AND state = 'pending')"
DUE = "settled = FALSE AND deadline <= ?"
BY_GRANTS = """turn = ? AND settled = TRUE AND card IS NULL
    AND id IN (SELECT batch FROM requests WHERE requests.batch = batches.id AND grant_note <> '')"""
CARD_MISSING = "settled = FALSE AND card_final = FALSE AND card IS NULL"
# A settled batch without a card (settled by a mode, or posting the card failed) has no card to update.
CARD_STALE = "settled = TRUE AND card_final = FALSE AND card IS NOT NULL"
NEXT_DEADLINE = "SELECT MIN(deadline) FROM batches WHERE settled = FALSE"
NEXT_REMINDER = "SELECT MIN(remind_at) FROM batches WHERE settled = FALSE AND remind_at IS NOT NULL"
_ESCALATES = "FROM requests WHERE state = 'pending' AND escalate_at IS NOT NULL"
ESCALATING = f"id IN (SELECT batch {_ESCALATES} AND escalate_at <= ?)"
NEXT_ESCALATION = f"SELECT MIN(escalate_at) {_ESCALATES}"
REMINDED = f"UPDATE batches SET remind_at = NULL WHERE {REMINDING}"

INSERT_BATCH = f"""INSERT INTO batches ({_BATCH}, settled)
    VALUES ({", ".join("?" * 18)})
    ON CONFLICT (id) DO NOTHING"""
INSERT_REQUEST = f"""INSERT INTO requests (seq, batch, {_REQUEST})
    VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM requests), {", ".join("?" * 36)})"""
SETTLE = """UPDATE requests SET votes = ?, state = ?, choice = ?, settled_by = ?, settled_at = ?, note = ?,
    remember = ?, grant_note = ?, answer = ?, drafts = '' WHERE id = ? AND state = 'pending'"""
REWRITE = """UPDATE requests SET args = ?, digest = ?, why = ?, approvers = ?, quorum = ?, four_eyes = ?, message = ?,
    preview = ?, held = ?, missing = ?, operands = ?, votes = ?, edit = ?, metadata = ?,
    escalate_to = ?, escalate_at = ?, described = ?, drafts = ? WHERE id = ? AND state = 'pending'"""
SET_REVISION = "UPDATE batches SET revision = ? WHERE id = ?"
SETTLE_BATCH = """UPDATE batches SET settled = TRUE WHERE id = (SELECT batch FROM requests WHERE id = ?)
    AND NOT EXISTS (SELECT 1 FROM requests WHERE batch = batches.id AND state = 'pending')"""
IS_SETTLED = "SELECT 1 FROM batches WHERE id = ? AND settled = TRUE"
SET_CARD = "UPDATE batches SET card = ?, card_final = FALSE WHERE id = ?"
SET_CARD_FINAL = "UPDATE batches SET card_final = TRUE WHERE id = ?"
OPEN_APPROVERS = """SELECT DISTINCT batches.server, requests.approvers, requests.escalate_to FROM batches
    JOIN requests ON requests.batch = batches.id WHERE batches.settled = FALSE AND requests.state = 'pending'"""
DECISIONS_AT = f"""SELECT {_REQUEST}, (SELECT turn FROM batches WHERE batches.id = requests.batch) FROM requests
    WHERE conversation = ? AND position = ? ORDER BY seq"""
DECISION_FOR = f"""SELECT {_REQUEST}, (SELECT turn FROM batches WHERE batches.id = requests.batch) FROM requests
    WHERE conversation = ? AND position = ? AND call_id = ? ORDER BY seq DESC LIMIT 1"""

_STORED = {Choice.ANSWER: Choice.ACCEPT, Choice.DECLINE: Choice.REJECT}
"""Choices about an inquiry -> the choice in the row. The column `inquiry` tells the two apart."""
# An enum takes four times as long to find its member.
_kind, _state = lru_cache(RequestKind), lru_cache(RequestState)


class RequestRows:
    """Implements the part of `approvals.ports.DeskTx` that is about batches and requests."""

    db: Database

    def batch(self, batch_id: str) -> Batch | None:
        return _first(self._batches(BY_ID, batch_id))

    def is_settled(self, batch_id: str) -> bool:
        return self.db.one(IS_SETTLED, batch_id) is not None

    def batch_about(self, target: str) -> Batch | None:
        return _first(self._batches(BY_ID_OR_REQUEST, target, target))

    def batch_of_card(self, card: str) -> Batch | None:
        return _first(self._batches(BY_CARD, card, order="opened DESC"))

    def open_in(self, channel: str) -> Sequence[Batch]:
        return self._batches(OPEN_IN, channel)

    def open_of(self, server: str) -> Sequence[Batch]:
        return self._batches(OPEN_OF, server)

    def open_approvers(self) -> Mapping[str, Collection[str]]:
        approvers_of: dict[str, set[str]] = {}
        for server, approvers, escalate_to in self.db.all(OPEN_APPROVERS):
            approvers_of.setdefault(server, set()).update(load_strings(approvers), load_strings(escalate_to))
        return approvers_of

    def insert_batch(self, batch: Batch) -> None:
        place = batch.place
        inserted = self.db.change(
            INSERT_BATCH,
            batch.id,
            batch.turn,
            place.server,
            place.channel,
            place.conversation,
            dump_actor(batch.asker),
            batch.opened,
            batch.deadline,
            batch.model_text,
            dump_strings(batch.already_ran),
            batch.card_message,
            batch.card_final,
            batch.revision,
            batch.remind_at,
            batch.ping,
            dump_strings(batch.notify),
            batch.untold,
            batch.settled,
        )
        if inserted:
            for request in batch.requests:
                self._insert_request(batch.id, request)

    def settle(self, request: ApprovalRequest) -> bool:
        if request.state is RequestState.PENDING:
            raise ValueError("a request cannot be settled as pending")
        columns = _settlement_columns(request.settlement)
        settled = self.db.change(SETTLE, _votes(request), request.state, *columns, request.id)
        if settled:
            self.db.change(SETTLE_BATCH, request.id)
        return settled == 1

    def rewrite(self, request: ApprovalRequest) -> bool:
        call, terms = request.call, _terms(request)
        columns = (dump_object(call.args), call.digest, request.why, dump_strings(request.approvers), *terms)
        columns = (*columns, dump_object(request.metadata), *_escalation(request))
        described = dump_described(request.description, request.diff_of)
        return self.db.change(REWRITE, *columns, described, dump_optional(request.drafts), request.id) == 1

    def set_revision(self, batch_id: str, revision: int) -> None:
        self._change_batch(SET_REVISION, revision, batch_id)

    def set_card(self, batch_id: str, card: str) -> None:
        self._change_batch(SET_CARD, card, batch_id)

    def set_card_final(self, batch_id: str) -> None:
        self._change_batch(SET_CARD_FINAL, batch_id)

    def due(self, now: float) -> Sequence[Batch]:
        return self._batches(DUE, now, order="deadline")

    def next_deadline(self) -> float | None:
        # Three statements, since each is a single index lookup.
        rows = (self.db.one(NEXT_DEADLINE), self.db.one(NEXT_REMINDER), self.db.one(NEXT_ESCALATION))
        return min((row[0] for row in rows if row and row[0] is not None), default=None)

    def take_reminders(self, now: float) -> Sequence[Batch]:
        batches = self._batches(REMINDING, now)
        if batches:
            self.db.change(REMINDED, now)
        return batches

    def escalations_due(self, now: float) -> Sequence[Batch]:
        return self._batches(ESCALATING, now)

    def inquiring(self) -> Sequence[Batch]:
        return self._batches(INQUIRING)

    def unfinished_cards(self) -> Sequence[Batch]:
        # Two statements, since each uses an index. One statement with OR would scan all batches, settled ones too.
        batches = [*self._batches(CARD_MISSING, order="opened"), *self._batches(CARD_STALE, order="opened")]
        return sorted(batches, key=lambda batch: batch.opened)

    def batches_of(self, turn_id: str) -> Sequence[Batch]:
        return self._batches("turn = ?", turn_id)

    def settled_by_grants(self, turn_id: str) -> Sequence[Batch]:
        return self._batches(BY_GRANTS, turn_id)

    def decision_for(self, key: CallKey, turn_id: str) -> ApprovalRequest | None:
        row = self.db.one(DECISION_FOR, key.conversation, key.position, key.call_id)
        return _request(row[:-1]) if row and row[-1] == turn_id else None

    def decisions_at(self, conversation: str, position: int, turn_id: str) -> Mapping[str, ApprovalRequest]:
        """Return call id -> the same as `decision_for`, for all calls of one response."""
        rows = {row[_CALL_ID]: row for row in self.db.all(DECISIONS_AT, conversation, position)}
        return {id: _request(row[:-1]) for id, row in rows.items() if row[-1] == turn_id}

    def _batches(self, where: str, *params: str | float, order: str = "opened") -> list[Batch]:
        """Read batches with their requests, in one statement for any number of batches, and their copies."""
        rows: dict[str, Row] = {}
        requests: dict[str, list[ApprovalRequest]] = {}
        for row in self.db.all(_text(BATCHES, where=where, order=order), *params):
            if row[0] not in rows:
                rows[row[0]], requests[row[0]] = row[:_WIDTH], []
            if row[_WIDTH] is not None:
                requests[row[0]].append(_request(row[_WIDTH:]))
        those = f"IN (SELECT id FROM batches WHERE {where})"
        if len(rows) == 1:
            those, params = "= ?", tuple(rows)
        if any(r.state is RequestState.APPROVED for several in requests.values() for r in several):
            runs = {row[0]: _run(row[1:], row[0]) for row in self.db.all(_text(RUNS_OF, those=those), *params)}
            requests = {batch: [replace(r, run=runs.get(r.id)) for r in requests[batch]] for batch in requests}
        copies: dict[str, list[CardCopy]] = {}
        if any(CHANNEL in row[_NOTIFY] for row in rows.values()):
            for batch_id, channel, message in self.db.all(_text(COPIES_OF, those=those), *params):
                copies.setdefault(batch_id, []).append(CardCopy(channel, message))
        return [_batch(row, requests[id], copies.get(id, ())) for id, row in rows.items()]

    def _insert_request(self, batch_id: str, request: ApprovalRequest) -> None:
        call = request.call
        self.db.change(
            INSERT_REQUEST,
            batch_id,
            request.id,
            call.key.conversation,
            call.key.position,
            call.key.call_id,
            call.tool,
            dump_object(call.args),
            call.schema,
            call.digest,
            request.why,
            dump_strings(request.approvers),
            RequestKind.CALL if request.inquiry else request.kind,
            dump_object(request.metadata),
            *_terms(request),
            request.state,
            *_settlement_columns(request.settlement),
            *_escalation(request),
            dump_described(request.description, request.diff_of),
            dump_strings(request.path),
            dump_inquiry(request.inquiry),
            dump_optional(request.drafts),
        )

    def _change_batch(self, sql: str, *params: str | int) -> None:
        if not self.db.change(sql, *params):
            raise LookupError(f"there is no batch {params[-1]}")


@lru_cache
def _text(statement: str, **parts: str) -> str:
    return statement.format(**parts)


def _first(batches: Sequence[Batch]) -> Batch | None:
    return batches[0] if batches else None


def _batch(row: Row, requests: Sequence[ApprovalRequest], copies: Sequence[CardCopy]) -> Batch:
    id, turn, server, channel, conversation, asker, opened, deadline, words, already_ran, card, *rest = row
    card_final, revision, remind_at, ping, notify, untold = rest
    return Batch(
        id=id,
        turn=turn,
        place=Place(server=server, channel=channel, conversation=conversation),
        asker=load_actor(asker),
        requests=tuple(requests),
        opened=opened,
        deadline=deadline,
        model_text=words,
        already_ran=load_strings(already_ran),
        card_message=card,
        card_final=bool(card_final),
        revision=revision,
        remind_at=remind_at,
        ping=bool(ping),
        notify=load_strings(notify),
        untold=bool(untold),
        copies=tuple(copies),
    )


def _request(row: Row) -> ApprovalRequest:
    id, conversation, position, call_id, tool, args, schema, digest, why, approvers, kind, metadata = row[:12]
    quorum, four_eyes, message, preview, held, missing, operands, votes, edit, state = row[12:22]
    choice, by, at, note, remember, grant, answer = row[22:29]
    escalate_to, escalate_at, described, path, inquiry, drafts = row[29:]
    description, diff_of = load_described(described)
    standing, void = load_votes(votes)
    return ApprovalRequest(
        id=id,
        call=ToolCall(
            key=CallKey(conversation=conversation, position=position, call_id=call_id),
            tool=tool,
            args=load_object(args),
            schema=schema,
            digest=digest,
            operands=load_object(operands),
        ),
        why=why,
        approvers=load_strings(approvers),
        kind=RequestKind.ANSWER if inquiry else _kind(kind),
        metadata=load_object(metadata),
        state=_state(state),
        settlement=None if at is None else _settlement(choice, by, at, note, remember, grant, answer, bool(inquiry)),
        quorum=quorum,
        four_eyes=bool(four_eyes),
        message=message,
        preview=preview,
        held=bool(held),
        missing=load_strings(missing),
        votes=standing,
        void=void,
        edit=load_edit(edit),
        description=description,
        diff_of=diff_of,
        escalate_to=load_strings(escalate_to),
        escalate_at=escalate_at,
        path=load_strings(path),
        inquiry=load_inquiry(inquiry),
        drafts=load_optional(drafts) or {},
    )


def _run(row: Row, request: str) -> CallRun | None:
    """Return how the run of an approved request went, from the journal's row of its call and the state of its turn."""
    state, used, started, at, line, unknown, turn, is_current, has_agents, asked_next = row
    if asked_next == RequestKind.MAY_HAVE_RUN:
        return CallRun(RunState.MAY_HAVE_RUN, started if used == request else None)
    # A call that was approved may then ask people for an answer, and end only with that.
    asks_people = asked_next == RequestKind.ANSWER
    # Older versions forgot the request when the call ended.
    if state is not None and (used in (request, "") or asks_people):
        if state != "started":
            return CallRun(RunState.MAY_HAVE_RUN if unknown else RunState(state), started, at, line or "")
        # A tool that runs agents or asks people goes on while they wait for people.
        goes_on = turn == "running" or (turn == "waiting" and (has_agents or asks_people))
        return CallRun(RunState.RUNNING if goes_on else RunState.MAY_HAVE_RUN, started)
    goes_on = turn in ("running", "waiting") and (is_current or asks_people)
    return None if goes_on else CallRun(RunState.NOT_RUN)


def _terms(request: ApprovalRequest) -> tuple[Value, ...]:
    return (
        request.quorum,
        request.four_eyes,
        request.message,
        request.preview,
        request.held,
        dump_strings(request.missing),
        dump_object(request.call.operands),
        _votes(request),
        dump_edit(request.edit),
    )


def _escalation(request: ApprovalRequest) -> tuple[Value, ...]:
    return dump_strings(request.escalate_to), request.escalate_at


def _votes(request: ApprovalRequest) -> str:
    return dump_votes(request.votes, request.void)


def _settlement_columns(settlement: Settlement | None) -> tuple[Value, ...]:
    if settlement is None:
        return None, None, None, None, None, "", ""
    by = dump_actor(settlement.by) if settlement.by else None
    grant = dump_grant_note(settlement.grant)
    answer = dump_optional(settlement.answer)
    choice = _STORED.get(settlement.choice, settlement.choice) if settlement.choice else None
    return choice, by, settlement.at, settlement.note, settlement.remember, grant, answer


def _settlement(
    choice: str | None,
    by: str | None,
    at: float,
    note: str | None,
    remember: str | None,
    grant: str,
    answer: str,
    inquires: bool,
) -> Settlement:
    if choice and inquires:
        choice = Choice.ANSWER if choice == Choice.ACCEPT else Choice.DECLINE
    return Settlement(
        choice=Choice(choice) if choice else None,
        by=load_actor(by) if by else None,
        at=at,
        note=note or "",
        remember=Remember(remember or Remember.NONE),
        grant=load_grant_note(grant),
        answer=load_optional(answer),
    )

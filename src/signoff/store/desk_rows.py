"""The desk's rows: batches, requests and audit, with their statements and how a row becomes a dataclass.

Knows nothing of who may decide or when: it compares, sets and finds.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.model import (
    ApprovalRequest,
    Batch,
    CallKey,
    Choice,
    JsonObject,
    Place,
    RequestKind,
    RequestState,
    Settlement,
    ToolCall,
)
from signoff.store.codec import dump_actor, dump_object, dump_strings, load_actor, load_object, load_strings
from signoff.store.database import Database, Row

_BATCH = """id, turn, server, channel, conversation, asker_seen, opened, deadline, words, already_ran, card,
    card_final"""
_REQUEST = """id, conversation, position, call_id, tool, args, schema, digest, why, approvers, kind, metadata,
    state, choice, settled_by, settled_at, note"""

BATCHES = f"SELECT {_BATCH} FROM batches WHERE {{where}} ORDER BY {{order}}, id"
REQUESTS_OF = f"""SELECT batch, {_REQUEST} FROM requests
    WHERE batch IN (SELECT id FROM batches WHERE {{where}}) ORDER BY batch, seq"""
BY_ID = "id = ?"
BY_REQUEST = "id = (SELECT batch FROM requests WHERE id = ?)"
BY_CARD = "card = ?"
OPEN_IN = "settled = FALSE AND channel = ?"
DUE = "settled = FALSE AND deadline <= ?"
CARD_MISSING = "settled = FALSE AND card_final = FALSE AND card IS NULL"
# A settled batch that never had a card (settled by a mode, or the card failed) has nothing left to show.
CARD_STALE = "settled = TRUE AND card_final = FALSE AND card IS NOT NULL"
NEXT_DEADLINE = "SELECT MIN(deadline) FROM batches WHERE settled = FALSE"

INSERT_BATCH = f"""INSERT INTO batches ({_BATCH}, settled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING"""
INSERT_REQUEST = f"""INSERT INTO requests (seq, batch, {_REQUEST})
    VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM requests), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
SETTLE = """UPDATE requests SET state = ?, choice = ?, settled_by = ?, settled_at = ?, note = ?
    WHERE id = ? AND state = 'pending'"""
SETTLE_BATCH = """UPDATE batches SET settled = TRUE WHERE id = (SELECT batch FROM requests WHERE id = ?)
    AND NOT EXISTS (SELECT 1 FROM requests WHERE batch = batches.id AND state = 'pending')"""
SET_CARD = "UPDATE batches SET card = ? WHERE id = ?"
SET_CARD_FINAL = "UPDATE batches SET card_final = TRUE WHERE id = ?"
REQUEST_FOR = f"""SELECT {_REQUEST} FROM requests WHERE conversation = ? AND position = ? AND call_id = ?
    ORDER BY seq DESC LIMIT 1"""
AUDIT = """INSERT INTO audit (seq, at, kind, server, subject, actor, data)
    VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM audit), ?, ?, ?, ?, ?, ?)"""


class DeskRows:
    """Implements `approvals.ports.DeskTx`."""

    db: Database

    def batch(self, batch_id: str) -> Batch | None:
        return _first(self._batches(BY_ID, batch_id))

    def batch_of_request(self, request_id: str) -> Batch | None:
        return _first(self._batches(BY_REQUEST, request_id))

    def batch_of_card(self, card: str) -> Batch | None:
        return _first(self._batches(BY_CARD, card, order="opened DESC"))

    def open_in(self, channel: str) -> Sequence[Batch]:
        return self._batches(OPEN_IN, channel)

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
            batch.words,
            dump_strings(batch.already_ran),
            batch.card,
            batch.card_final,
            batch.settled,
        )
        if inserted:
            for request in batch.requests:
                self._insert_request(batch.id, request)

    def settle(self, request: ApprovalRequest) -> bool:
        if request.state is RequestState.PENDING:
            raise ValueError("a request cannot be settled as pending")
        settled = self.db.change(SETTLE, request.state, *_settlement_columns(request.settlement), request.id)
        if settled:
            self.db.change(SETTLE_BATCH, request.id)
        return settled == 1

    def set_card(self, batch_id: str, card: str) -> None:
        self._change_batch(SET_CARD, card, batch_id)

    def set_card_final(self, batch_id: str) -> None:
        self._change_batch(SET_CARD_FINAL, batch_id)

    def due(self, now: float) -> Sequence[Batch]:
        return self._batches(DUE, now, order="deadline")

    def next_deadline(self) -> float | None:
        row = self.db.one(NEXT_DEADLINE)
        return row[0] if row else None

    def unfinished_cards(self) -> Sequence[Batch]:
        # Two statements: each finds its rows by an index, and an OR of the two would read every batch there ever was.
        found = [*self._batches(CARD_MISSING, order="opened"), *self._batches(CARD_STALE, order="opened")]
        return sorted(found, key=lambda batch: batch.opened)

    def request_for(self, key: CallKey) -> ApprovalRequest | None:
        row = self.db.one(REQUEST_FOR, key.conversation, key.position, key.call_id)
        return _request(row) if row else None

    def audit(self, kind: str, server: str, subject: str, actor: str, data: JsonObject, at: float) -> None:
        self.db.change(AUDIT, at, kind, server, subject, actor, dump_object(data))

    def _batches(self, where: str, *params: str | float, order: str = "opened") -> list[Batch]:
        """Two statements, however many batches there are."""
        rows = self.db.all(BATCHES.format(where=where, order=order), *params)
        if not rows:
            return []
        requests: dict[str, list[ApprovalRequest]] = {}
        for row in self.db.all(REQUESTS_OF.format(where=where), *params):
            requests.setdefault(row[0], []).append(_request(row[1:]))
        return [_batch(row, requests.get(row[0], [])) for row in rows]

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
            request.kind,
            dump_object(request.metadata),
            request.state,
            *_settlement_columns(request.settlement),
        )

    def _change_batch(self, sql: str, *params: str) -> None:
        if not self.db.change(sql, *params):
            raise LookupError(f"there is no batch {params[-1]}")


def _first(batches: Sequence[Batch]) -> Batch | None:
    return batches[0] if batches else None


def _batch(row: Row, requests: Sequence[ApprovalRequest]) -> Batch:
    id, turn, server, channel, conversation, asker, opened, deadline, words, already_ran, card, card_final = row
    return Batch(
        id=id,
        turn=turn,
        place=Place(server=server, channel=channel, conversation=conversation),
        asker=load_actor(asker),
        requests=tuple(requests),
        opened=opened,
        deadline=deadline,
        words=words,
        already_ran=load_strings(already_ran),
        card=card,
        card_final=bool(card_final),
    )


def _request(row: Row) -> ApprovalRequest:
    id, conversation, position, call_id, tool, args, schema, digest, *rest = row
    why, approvers, kind, metadata, state, *settlement = rest
    return ApprovalRequest(
        id=id,
        call=ToolCall(
            key=CallKey(conversation=conversation, position=position, call_id=call_id),
            tool=tool,
            args=load_object(args),
            schema=schema,
            digest=digest,
        ),
        why=why,
        approvers=load_strings(approvers),
        kind=RequestKind(kind),
        metadata=load_object(metadata),
        state=RequestState(state),
        settlement=_settlement(*settlement),
    )


def _settlement_columns(settlement: Settlement | None) -> tuple[str | None, str | None, float | None, str | None]:
    if settlement is None:
        return None, None, None, None
    by = dump_actor(settlement.by) if settlement.by else None
    return settlement.choice, by, settlement.at, settlement.note


def _settlement(choice: str | None, by: str | None, at: float | None, note: str | None) -> Settlement | None:
    if at is None:
        return None
    return Settlement(
        choice=Choice(choice) if choice else None, by=load_actor(by) if by else None, at=at, note=note or ""
    )

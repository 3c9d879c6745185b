"""Every statement that a transaction can issue finds its rows by an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from signoff.approvals.grants import Grant
from signoff.approvals.model import Actor, CallKey, CardCopy, Choice, Pause, Verdict
from signoff.approvals.policy import Rule
from signoff.approvals.server_rules import ServerRule
from signoff.store.migrate import migrate, shipped
from signoff.store.sqlite import SqliteDatabase, open_sqlite
from signoff.store.store import Tx
from signoff.turns.budgets import Account, Budget, Unit, accounts_of
from signoff.turns.model import CallRecord, CallState, HistoryEntry, ModelUse, Notice, Summary, TurnFile, TurnState
from signoff.turns.schedules import Schedule
from tests.rigs.store_samples import a_batch, a_place, a_request, a_turn, settled

A_FILE = TurnFile("notes.txt", 3, "text/plain", b"abc")
KEY = CallKey("c1", 3, "call_0")
RECORD = CallRecord(KEY, "shell", "d", CallState.STARTED)
KNOWN = CallRecord(CallKey(a_turn().place.conversation, 3, "call_0"), "shell", "d", CallState.STARTED)
ADA = Actor("u1", "Ada", "s1")
GRANT = Grant("g1", "k1", "s1", "", "shell", "{}", Choice.ACCEPT, ADA, 1.0, 2.0, 3)
NOTICE = Notice("b1", "ping", "c1", "m7")
SCHEDULE = Schedule("s1", 1, "c1", "0 9 * * *", "look", "interactive", ADA, 1.0, 1e9)
USE = ModelUse("m", 1, 2, None, 1.0)
ACCOUNT = Account(Budget.THREAD, "s1", "c1")
RULE = ServerRule("r1", "s1", Rule("shell", Verdict.ASK), ADA, 1.0)


def settle_with_card(tx: Tx) -> None:
    tx.set_card("b1", "m1")
    tx.settle(settled(a_request("b1-q1")))


WORKS = {
    "is_settled": lambda tx: (tx.is_settled("b1"), settle_with_card(tx), tx.is_settled("b1")),
    "batch": lambda tx: tx.batch("b1"),
    "batch_about": lambda tx: (tx.batch_about("b1-q1"), tx.batch_about("b1")),
    "batch_of_card": lambda tx: tx.batch_of_card("m1"),
    "open_in": lambda tx: tx.open_in("c1"),
    "insert_batch": lambda tx: tx.insert_batch(a_batch("b2")),
    "settle": lambda tx: tx.settle(settled(a_request("b1-q1"))),
    "set_card": lambda tx: tx.set_card("b1", "m2"),
    "set_card_final": lambda tx: tx.set_card_final("b1"),
    "due": lambda tx: tx.due(1e9),
    # A turn has few batches; here, all old ones are of turn t1.
    "batches_of": lambda tx: tx.batches_of("waiting"),
    "settled_by_grants": lambda tx: tx.settled_by_grants("waiting"),
    "save_summary": lambda tx: tx.save_summary("c1", Summary(1, "short")),
    "next_deadline": lambda tx: tx.next_deadline(),
    "decision_for": lambda tx: tx.decision_for(KEY, "t1"),
    "decisions_at": lambda tx: tx.decisions_at("c1", 1, "t1"),
    "step_input": lambda tx: (tx.put_call(KNOWN, "t1", 1.0), tx.step_input(a_turn())),
    "open_of": lambda tx: tx.open_of("s1"),
    "open_approvers": lambda tx: tx.open_approvers(),
    "rewrite": lambda tx: tx.rewrite(a_request("b1-q1")),
    "set_revision": lambda tx: tx.set_revision("b1", 1),
    "take_reminders": lambda tx: tx.take_reminders(1e9),
    "inquiring": lambda tx: tx.inquiring(),
    "escalations_due": lambda tx: tx.escalations_due(1e9),
    "add_copy": lambda tx: tx.add_copy("b1", CardCopy("c2", "m9")),
    "copy_of_a_batch": lambda tx: (tx.add_copy("b3", CardCopy("c2", "m8")), tx.batch("b3")),
    "copies_of": lambda tx: tx.copies_of("b3"),
    "drop_copies": lambda tx: (tx.add_copy("b3", CardCopy("c2", "m8")), tx.drop_copies("c2", "m8")),
    "drop_copies_of_a_channel": lambda tx: (tx.add_copy("b3", CardCopy("c2", "m8")), tx.drop_copies("c2")),
    "add_notice": lambda tx: tx.add_notice(NOTICE),
    "notices_of": lambda tx: tx.notices_of("b1"),
    "drop_notice": lambda tx: (tx.add_notice(NOTICE), tx.drop_notice(NOTICE)),
    "set_untold": lambda tx: tx.set_untold("b1", True),
    "untold": lambda tx: (tx.set_untold("b3", True), tx.untold()),
    "insert_grant": lambda tx: tx.insert_grant(GRANT),
    "grants_under": lambda tx: tx.grants_under(["k1", "k2"]),
    "grants_naming": lambda tx: tx.grants_naming("s1", "t1"),
    "grants_of": lambda tx: tx.grants_of("s1"),
    "use_grant": lambda tx: tx.use_grant("g1"),
    "revoke_grant": lambda tx: tx.revoke_grant("old1", "old1", 1.0),
    "rules_of": lambda tx: tx.rules_of("s1"),
    "insert_rule": lambda tx: tx.insert_rule(RULE),
    "drop_rule": lambda tx: tx.drop_rule("old1", "old1"),
    "pause_of": lambda tx: tx.pause_of("s1"),
    "set_pause": lambda tx: tx.set_pause(Pause("s1", ADA, 1.0)),
    "clear_pause": lambda tx: tx.clear_pause("s1"),
    "key": lambda tx: tx.key("masks"),
    "audit": lambda tx: tx.audit("k", "s", "x", "a", {}, 1.0),
    "audit_with_text": lambda tx: tx.audit("k", "s", "x", "a", {}, 1.0, tool="t", text="new"),
    "audit_page": lambda tx: tx.audit_page("s", before=9, limit=3),
    "audit_page_of_actor": lambda tx: tx.audit_page("s", before=9, limit=3, actor="a"),
    "audit_page_of_tool": lambda tx: tx.audit_page("s", limit=3, tool="t"),
    "audit_page_of_kind": lambda tx: tx.audit_page("s", limit=3, kind="k"),
    "audit_page_of_subject": lambda tx: tx.audit_page("s", limit=3, subject="old1"),
    "audit_page_of_nobody": lambda tx: tx.audit_page("s", limit=3, actor="nobody"),
    "audit_text": lambda tx: tx.audit_text("d"),
    "prune_texts": lambda tx: tx.prune_texts(0.5),
    "turn": lambda tx: tx.turn("t1"),
    "is_running": lambda tx: tx.is_running("t1"),
    "insert_turn": lambda tx: tx.insert_turn(a_turn("t2")),
    "move": lambda tx: tx.move("t1", TurnState.QUEUED, TurnState.RUNNING),
    "stop": lambda tx: tx.move("t1", TurnState.QUEUED, TurnState.STOPPED),
    "relocate": lambda tx: tx.relocate("t1", a_place()),
    "await_batch": lambda tx: tx.await_batch("t1", "b1"),
    "finish": lambda tx: tx.finish("waiting", TurnState.WAITING, TurnState.STOPPED, "done"),
    "set_reply_posted": lambda tx: tx.set_reply_posted("t1"),
    "set_status": lambda tx: tx.set_status("t1", "m1"),
    "clear_status": lambda tx: tx.clear_status("t1", "m1"),
    "left_statuses": lambda tx: tx.left_statuses(),
    "turns_in": lambda tx: tx.turns_in(TurnState.RUNNING, TurnState.WAITING),
    "unposted_replies": lambda tx: tx.unposted_replies(),
    "unfinished_cards": lambda tx: (tx.unfinished_cards(), settle_with_card(tx), tx.unfinished_cards()),
    "active": lambda tx: (tx.active(asker="u1"), tx.active(conversation="c"), tx.active(asker="u1", conversation="c")),
    "queued": lambda tx: (tx.queued(asker="u1"), tx.queued(conversation="c"), tx.queued(asker="u1", conversation="c")),
    "load": lambda tx: tx.load("u1", "c"),
    "next_startable": lambda tx: tx.next_startable(3, ["t9"]),
    "resumable": lambda tx: tx.resumable(),
    "nothing_due": lambda tx: (tx.due(0.0), tx.take_reminders(0.0), tx.escalations_due(0.0)),
    "history": lambda tx: tx.history("c1"),
    "save_history": lambda tx: tx.save_history("c1", [HistoryEntry(0, b"")]),
    "files_of": lambda tx: tx.files_of("t1"),
    "set_files": lambda tx: tx.set_files("t1", [A_FILE], 1.0),
    "prune_files": lambda tx: tx.prune_files(0.5),
    "set_prompted": lambda tx: tx.set_prompted("t1"),
    "call": lambda tx: tx.call(KEY),
    "put_call": lambda tx: tx.put_call(RECORD, "t1", 1.0),
    "drop_call": lambda tx: tx.drop_call(KEY),
    "begin_inner_run": lambda tx: tx.begin_inner_run("c1/1", KEY, "t1", "researcher"),
    "set_inner_run": lambda tx: tx.set_inner_run("c1/1", requests=1, ended=True),
    "has_inner_runs": lambda tx: tx.has_inner_runs(KEY),
    "open_inner_runs": lambda tx: tx.open_inner_runs(KEY),
    "set_listened_until": lambda tx: tx.set_listened_until(1.0),
    "listened_until": lambda tx: tx.listened_until(),
    "note_heard": lambda tx: tx.note_heard(["m1"], 1.0),
    "was_heard": lambda tx: (tx.was_heard("m1"), tx.was_heard("t1")),
    "forget_heard": lambda tx: tx.forget_heard(0.5),
    "recent_turns": lambda tx: tx.recent_turns(5),
    "own_mode": lambda tx: tx.own_mode("t1"),
    "schedules_of": lambda tx: tx.schedules_of("s1"),
    "schedule": lambda tx: tx.schedule("s1", 1),
    "next_number": lambda tx: tx.next_number("s1"),
    "insert_schedule": lambda tx: tx.insert_schedule(SCHEDULE),
    "remove_schedule": lambda tx: tx.remove_schedule("s1", 1, 1.0),
    "due_schedules": lambda tx: tx.due_schedules(1.0),
    "next_due": lambda tx: tx.next_due(),
    "claim_schedule": lambda tx: tx.claim_schedule(SCHEDULE, 1.0, 2.0),
    "note_beginning": lambda tx: tx.note_beginning(SCHEDULE, "m1", "t1"),
    "end_claim": lambda tx: tx.end_claim(SCHEDULE, 1.0),
    "skip_schedules": lambda tx: tx.skip_schedules(1.0),
    "pause_schedule": lambda tx: tx.pause_schedule(SCHEDULE, "why"),
    "add_use": lambda tx: tx.add_use(a_turn(), USE),
    "used": lambda tx: [tx.used(account) for account in accounts_of(a_place(), "u1")],
    "used_by": lambda tx: [tx.used_by("s1", budget, 1e8, 5) for budget in (Budget.PERSON, Budget.THREAD)],
    "raise_limit": lambda tx: tx.raise_limit(ACCOUNT, Unit.TOKENS, "", 2, "b1-q1", 1.0),
    "raised_to": lambda tx: tx.raised_to(ACCOUNT, Unit.TOKENS, ""),
    "work_left": lambda tx: tx.work_left(),
}


# Old rows of every kind, which no lookup may read.


def an_old_round(tx: Tx, n: int) -> None:
    name = f"old{n}"
    for state in (TurnState.DONE, TurnState.FAILED, TurnState.STOPPED):
        tx.insert_turn(a_turn(f"{name}-{state}", conversation="c1", state=state, reply="x", reply_posted=True))
    tx.insert_batch(a_batch(name, settled(a_request(name)), card_message=name, card_final=True))
    tx.insert_batch(a_batch(f"{name}-by-mode", settled(a_request(f"{name}-by-mode"))))
    tx.put_call(CallRecord(CallKey(name, 3, "call_0"), "shell", "d", CallState.DONE), name, 1.0)
    tx.set_files(name, [A_FILE], 1.0)
    tx.save_history(name, [HistoryEntry(0, b"x")])
    tx.audit("k", "s", name, "a", {}, 1.0, tool="t", text=name)
    tx.insert_grant(replace(GRANT, id=name, key=name, server=name))
    tx.insert_rule(replace(RULE, id=name, server=name))
    tx.set_pause(Pause(name, ADA, 1.0))
    tx.note_heard([name], 1.0)
    tx.add_use(a_turn(name, asker=name, place=replace(a_place(name), server=name)), USE)
    tx.insert_schedule(replace(SCHEDULE, server=name))
    tx.note_beginning(replace(SCHEDULE, server=name), "m", name)
    tx.raise_limit(replace(ACCOUNT, subject=name), Unit.TOKENS, "", 2, name, 1.0)


def somebody_else_waiting(tx: Tx, n: int) -> None:
    name = f"else{n}"
    tx.insert_turn(a_turn(name, asker=name, state=TurnState.WAITING, batch=name))
    tx.insert_turn(a_turn(f"{name}-next", asker=name, conversation=f"c-{name}"))
    tx.insert_batch(a_batch(name, a_request(name), card_message=name))


def filled(path: Path, rounds: int, others: int = 0) -> SqliteDatabase:
    db = open_sqlite(path)
    migrate(db, shipped("sqlite"), place="here")
    tx = Tx(db)
    db.begin()
    tx.insert_turn(a_turn())
    tx.insert_turn(a_turn("waiting", state=TurnState.WAITING, batch="b1"))
    tx.insert_batch(a_batch(card_message=None))
    tx.insert_batch(a_batch("b3", a_request("b3-q1"), card_message="m3", notify=("channel:c2",)))
    for n in range(rounds):
        an_old_round(tx, n)
    for n in range(others):
        somebody_else_waiting(tx, n)
    db.commit()
    return db


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SqliteDatabase]]:
    folder = tmp_path_factory.mktemp("plans")
    opened = {
        "young": filled(folder / "young.db", 10),
        "old": filled(folder / "old.db", 500),
        "busy": filled(folder / "busy.db", 10, others=300),
    }
    yield opened
    for db in opened.values():
        db.close()


def connection_of(db: SqliteDatabase) -> sqlite3.Connection:
    raw = db._connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def steps_of(db: SqliteDatabase, work: Callable[[Tx], object]) -> int:
    """Return how many steps SQLite's virtual machine takes for this work."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    db.begin()
    connection_of(db).set_progress_handler(count, 1)
    work(Tx(db))
    connection_of(db).set_progress_handler(None, 1)
    db.abandon()
    return steps


def test_every_method_of_a_transaction_is_looked_at() -> None:
    public = {name for name in dir(Tx) if not name.startswith("_")} - {"db"}
    # Read whole, once at the start: one row per paused server, and one per message about an open card.
    public -= {"pauses", "outlived_notices"}
    assert public - set(WORKS) == set()


@pytest.mark.parametrize("name", WORKS)
def test_no_statement_reads_a_whole_table(name: str, databases: dict[str, SqliteDatabase]) -> None:
    db = databases["young"]
    raw = connection_of(db)
    statements: list[str] = []
    db.begin()
    raw.set_trace_callback(statements.append)
    WORKS[name](Tx(db))
    raw.set_trace_callback(None)
    db.abandon()
    assert statements
    for statement in statements:
        if statement.startswith("--"):
            continue  # a statement inside a trigger
        for *_, step in raw.execute(f"EXPLAIN QUERY PLAN {statement}"):
            reads_all = step.startswith("SCAN") and step != "SCAN CONSTANT ROW"  # the latter reads no table
            assert not reads_all, f"{step}\n{statement}"


@pytest.mark.parametrize("name", WORKS)
def test_work_does_not_grow_with_what_is_long_settled(name: str, databases: dict[str, SqliteDatabase]) -> None:
    young, old = (steps_of(databases[age], WORKS[name]) for age in ("young", "old"))
    assert young > 0
    assert old <= young + 50, f"{young} steps with 10 old rounds, {old} with 500"


COUNTS_ALL = {"turns_in", "due", "resumable", "open_of", "open_approvers", "work_left"}
"""They are about everybody's work, and no click or mention waits for them."""


@pytest.mark.parametrize("name", sorted(set(WORKS) - COUNTS_ALL))
def test_clicks_and_mentions_do_not_pay_for_others_who_wait(name: str, databases: dict[str, SqliteDatabase]) -> None:
    quiet, busy = (steps_of(databases[age], WORKS[name]) for age in ("young", "busy"))
    assert busy <= quiet + 50, f"{quiet} steps alone, {busy} with 300 others"

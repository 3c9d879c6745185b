from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from signoff.approvals.model import CallKey
from signoff.errors import StoreError
from signoff.store import Store
from signoff.store.store import Tx
from signoff.turns.model import MOVES, CallRecord, CallState, HistoryEntry, Load, TurnState
from tests.rigs.store_samples import a_batch, a_place, a_request, a_turn, settled

QUEUED, RUNNING, WAITING = TurnState.QUEUED, TurnState.RUNNING, TurnState.WAITING


async def insert(store: Store, *turns) -> None:
    await store.run(lambda tx: [tx.insert_turn(turn) for turn in turns])


async def test_a_turn_comes_back_as_it_was(store: Store) -> None:
    turn = a_turn(prompted=True, rounds=3, batch="b1", reply="", reply_posted=True, state=TurnState.DONE)
    await insert(store, turn, a_turn("t2"))
    assert await store.run(lambda tx: tx.turn("t1")) == turn
    assert await store.run(lambda tx: tx.turn("t2")) == a_turn("t2")
    assert await store.run(lambda tx: tx.turn("t3")) is None


async def test_a_replayed_event_is_the_same_turn(store: Store) -> None:
    assert await store.run(lambda tx: tx.insert_turn(a_turn()))
    await store.run(lambda tx: tx.move("t1", QUEUED, RUNNING))
    assert not await store.run(lambda tx: tx.insert_turn(a_turn(text="changed")))
    assert await store.run(lambda tx: tx.turn("t1")) == a_turn(state=RUNNING)


@pytest.mark.parametrize(("old", "new"), list(product(TurnState, TurnState)))
async def test_move_allows_the_legal_moves_and_no_other(store: Store, old: TurnState, new: TurnState) -> None:
    await insert(store, a_turn(state=old))
    if new in MOVES[old]:
        assert await store.run(lambda tx: tx.move("t1", old, new))
        assert not await store.run(lambda tx: tx.move("t1", old, new)), "it is no longer there"
    else:
        for work in (lambda tx: tx.move("t1", old, new), lambda tx: tx.finish("t1", old, new, "done")):
            with pytest.raises(ValueError, match=f"from {old} to {new}"):
                await store.run(work)


async def test_of_a_hundred_claims_one_wins(store: Store) -> None:
    await insert(store, a_turn())
    claims = await asyncio.gather(*(store.run(lambda tx: tx.move("t1", QUEUED, RUNNING)) for _ in range(100)))
    assert claims.count(True) == 1
    assert not await store.run(lambda tx: tx.move("unknown", QUEUED, RUNNING))


async def test_a_conversation_has_one_active_turn(store: Store) -> None:
    await insert(store, *(a_turn(f"t{n}", conversation="c1") for n in range(3)))
    claims = await asyncio.gather(*(store.run(lambda tx, n=n: tx.move(f"t{n}", QUEUED, RUNNING)) for n in range(3)))
    assert claims.count(True) == 1
    assert await store.run(lambda tx: tx.move("t0", RUNNING, WAITING))
    assert not await store.run(lambda tx: tx.move("t1", QUEUED, RUNNING))
    assert await store.run(lambda tx: tx.move("t0", WAITING, RUNNING))
    assert await store.run(lambda tx: tx.move("t0", RUNNING, TurnState.DONE))
    assert await store.run(lambda tx: tx.move("t1", QUEUED, RUNNING))


async def test_the_database_itself_refuses_a_second_active_turn(store: Store) -> None:
    await insert(store, a_turn("t1", conversation="c1", state=WAITING))
    with pytest.raises(StoreError):
        await insert(store, a_turn("t2", conversation="c1", state=RUNNING))


async def test_only_a_queued_turn_is_relocated(store: Store) -> None:
    await insert(store, a_turn())
    await store.run(lambda tx: tx.relocate("t1", a_place("thread")))
    assert await store.run(lambda tx: tx.turn("t1")) == replace(a_turn(), place=a_place("thread"))
    await store.run(lambda tx: tx.move("t1", QUEUED, RUNNING))
    await store.run(lambda tx: tx.relocate("t1", a_place("elsewhere")))
    assert await store.run(lambda tx: tx.turn("t1")) == replace(a_turn(), place=a_place("thread"), state=RUNNING)


async def test_a_turn_collects_rounds_prompt_and_reply(store: Store) -> None:
    await insert(store, a_turn(state=RUNNING))

    def live(tx: Tx) -> None:
        tx.set_prompted("t1")
        tx.await_batch("t1", "b1")
        tx.await_batch("t1", "b2")
        assert tx.is_running("t1")
        assert tx.finish("t1", RUNNING, TurnState.DONE, "all done", 105.0)
        assert not tx.is_running("t1")
        assert not tx.finish("t1", RUNNING, TurnState.FAILED, "again"), "it has ended"
        tx.set_reply_posted("t1")

    await store.run(live)
    expected = a_turn(state=TurnState.DONE, prompted=True, rounds=2, batch="b2", reply="all done", ended=105.0)
    assert await store.run(lambda tx: tx.turn("t1")) == replace(expected, reply_posted=True)
    for work in (
        lambda tx: tx.set_prompted("t9"),
        lambda tx: tx.await_batch("t9", "b1"),
        lambda tx: tx.set_reply_posted("t9"),
    ):
        with pytest.raises(LookupError, match="t9"):
            await store.run(work)


async def test_turns_in_is_oldest_first_and_by_arrival_when_clocks_stand_still(store: Store) -> None:
    await insert(store, a_turn("z"), a_turn("a"), a_turn("old", created=1.0), a_turn("r", state=RUNNING))
    assert [t.id for t in await store.run(lambda tx: tx.turns_in(QUEUED))] == ["old", "z", "a"]
    assert [t.id for t in await store.run(lambda tx: tx.turns_in(QUEUED, RUNNING))] == ["old", "z", "a", "r"]
    assert await store.run(lambda tx: tx.turns_in()) == []
    assert await store.run(lambda tx: tx.turns_in(WAITING)) == []


async def test_unposted_replies_are_of_ended_turns(store: Store) -> None:
    await insert(
        store,
        a_turn("failed", state=TurnState.FAILED, reply="sorry", created=2.0),
        a_turn("done", state=TurnState.DONE, reply="here", created=1.0),
        a_turn("posted", state=TurnState.DONE, reply="here", reply_posted=True),
        a_turn("stopped", state=TurnState.STOPPED, reply="Stopped.", created=3.0),
        a_turn("running", state=RUNNING),
    )
    assert [turn.id for turn in await store.run(lambda tx: tx.unposted_replies())] == ["done", "failed", "stopped"]


async def test_active_and_queued_count_by_person_and_conversation(store: Store) -> None:
    await insert(
        store,
        a_turn("t1", conversation="c1", asker="ada", state=RUNNING),
        a_turn("t2", conversation="c2", asker="ada", state=WAITING),
        a_turn("t3", conversation="c3", asker="bob", state=WAITING),
        a_turn("t4", conversation="c1", asker="bob"),
        a_turn("t5", conversation="c1", asker="ada", state=TurnState.DONE),
    )

    def count(tx: Tx) -> list[int]:
        return [
            tx.active(),
            tx.active(asker="ada"),
            tx.active(conversation="c1"),
            tx.active(asker="bob", conversation="c1"),
            tx.queued(),
            tx.queued(asker="bob"),
            tx.queued(asker="ada"),
            tx.queued(conversation="c1"),
        ]

    assert await store.run(count) == [3, 2, 1, 0, 1, 1, 0, 1]
    assert await store.run(lambda tx: tx.load("ada", "c1")) == Load(2, 2, 1)
    assert await store.run(lambda tx: tx.load("bob", "c3")) == Load(2, 1, 0)
    assert await store.run(lambda tx: tx.load("cyd", "c4")) == Load(0, 0, 0)


async def test_next_startable_skips_busy_conversations_and_busy_people(store: Store) -> None:
    await insert(
        store,
        a_turn("r1", conversation="c1", asker="ada", state=RUNNING),
        a_turn("r2", conversation="c2", asker="ada", state=WAITING),
        a_turn("q1", conversation="c1", asker="bob", created=1.0),
        a_turn("q2", conversation="c3", asker="ada", created=2.0),
        a_turn("q3", conversation="c4", asker="bob", created=3.0),
    )

    def next_id(per_person: int, *skip: str):
        def work(tx: Tx) -> str | None:
            turn = tx.next_startable(per_person, set(skip))
            return turn.id if turn else None

        return work

    assert await store.run(next_id(2)) == "q3"
    assert await store.run(next_id(3)) == "q2"
    assert await store.run(next_id(0)) is None
    assert await store.run(next_id(3, "q2")) == "q3"
    assert await store.run(next_id(3, "q2", "q3", "' OR 1=1 --")) is None


async def test_resumable_are_waiting_turns_whose_batch_is_settled(store: Store) -> None:
    await insert(
        store,
        a_turn("decided", state=WAITING, batch="b1"),
        a_turn("undecided", state=WAITING, batch="b2"),
        a_turn("long done", state=TurnState.DONE, batch="b3"),
        a_turn("running", state=RUNNING, batch="b4"),
    )

    def fill(tx: Tx) -> None:
        for name in ("b1", "b3", "b4"):
            tx.insert_batch(a_batch(name))
            tx.settle(settled(a_request(f"{name}-q1")))
        tx.insert_batch(a_batch("b2", settled(a_request("x")), a_request("y")))

    await store.run(fill)
    assert [turn.id for turn in await store.run(lambda tx: tx.resumable())] == ["decided"]


async def test_history_is_replaced_from_the_given_positions_on(store: Store) -> None:
    def entries(**bodies: bytes) -> list[HistoryEntry]:
        return [HistoryEntry(int(name[1:]), body) for name, body in bodies.items()]

    raw = bytes(range(256))
    await store.run(lambda tx: tx.save_history("c1", entries(p1=b"b", p0=raw, p2=b"", p10=b"k")))
    await store.run(lambda tx: tx.save_history("c2", entries(p0=b"other")))
    assert await store.run(lambda tx: tx.history("c1")) == entries(p0=raw, p1=b"b", p2=b"", p10=b"k")
    await store.run(lambda tx: tx.save_history("c1", entries(p1=b"B")))
    assert await store.run(lambda tx: tx.history("c1")) == entries(p0=raw, p1=b"B")
    await store.run(lambda tx: tx.save_history("c1", []))
    assert await store.run(lambda tx: tx.history("c1")) == entries(p0=raw, p1=b"B")
    assert await store.run(lambda tx: tx.history("c2")) == entries(p0=b"other")
    assert await store.run(lambda tx: tx.history("c3")) == []


async def test_the_journal_keeps_calls_apart_that_share_an_id(store: Store) -> None:
    started = CallRecord(CallKey("c1", 1, "call_0"), "shell", "d1", CallState.STARTED)
    other = replace(started, key=CallKey("c1", 3, "call_0"), state=CallState.FAILED, result=b"\x00no", request="q1")
    done = replace(started, state=CallState.DONE, result=b"")
    await store.run(lambda tx: tx.put_call(started, "t1", 1.0))
    await store.run(lambda tx: tx.put_call(other, "t1", 2.0))
    assert await store.run(lambda tx: tx.call(started.key)) == started
    await store.run(lambda tx: tx.put_call(done, "t1", 3.0))
    assert await store.run(lambda tx: tx.call(started.key)) == done
    assert await store.run(lambda tx: tx.call(other.key)) == other
    await store.run(lambda tx: tx.drop_call(started.key))
    assert await store.run(lambda tx: tx.call(started.key)) is None
    assert await store.run(lambda tx: tx.call(other.key)) == other


async def test_one_transaction_spans_turn_batch_history_journal_and_audit(store: Store) -> None:
    def half(tx: Tx) -> None:
        tx.insert_turn(a_turn())
        tx.save_history("c1", [HistoryEntry(0, b"x")])
        tx.put_call(CallRecord(CallKey("c1", 0, "x"), "shell", "d", CallState.STARTED), "t1", 1.0)
        tx.audit("asked", "s1", "t1", "u1", {}, 1.0)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        await store.run(half)

    def look(tx: Tx) -> list[object]:
        rows = tx.db.one("SELECT COUNT(*) FROM audit")
        return [tx.turn("t1"), tx.history("c1"), tx.call(CallKey("c1", 0, "x")), rows]

    assert await store.run(look) == [None, [], None, (0,)]

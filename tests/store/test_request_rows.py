from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from signoff.approvals.model import CallKey, Choice, GrantNote, Remember, RequestKind, RequestState, Settlement, Vote
from signoff.errors import StoreError
from signoff.store import Store
from signoff.store.codec import dump_actor, load_votes
from signoff.store.store import Tx
from tests.rigs.store_samples import APPROVER, ASKER, a_batch, a_request, settled


async def test_a_batch_comes_back_as_it_was_by_id_request_and_card(store: Store) -> None:
    batch = a_batch(
        "b1",
        a_request("q2"),
        a_request("q1", kind=RequestKind.MAY_HAVE_RUN, approvers=(), metadata={}),
        settled(a_request("q0")),
    )
    await store.run(lambda tx: tx.insert_batch(batch))
    assert await store.run(lambda tx: tx.batch("b1")) == batch
    for target in ("b1", "q1", "q2"):
        assert await store.run(lambda tx, target=target: tx.batch_about(target)) == batch
    assert await store.run(lambda tx: tx.batch_of_card("m1")) is None
    await store.run(lambda tx: tx.set_card("b1", "m1"))
    assert await store.run(lambda tx: tx.batch_of_card("m1")) == replace(batch, card_message="m1")
    for missing in ("", "b2", "q1' OR '1'='1"):
        assert await store.run(lambda tx, missing=missing: tx.batch(missing)) is None
        assert await store.run(lambda tx, missing=missing: tx.batch_about(missing)) is None


async def test_an_id_of_a_batch_counts_before_the_same_id_of_a_request(store: Store) -> None:
    first, second = a_batch("same", a_request("q1")), replace(a_batch("b1", a_request("same")), opened=0.5)
    await store.run(lambda tx: (tx.insert_batch(first), tx.insert_batch(second)))
    assert await store.run(lambda tx: tx.batch_about("same")) == first


async def test_votes_come_back_whether_they_count_or_not(store: Store) -> None:
    counted, void = Vote(APPROVER, 110.0, Remember.SESSION), Vote(ASKER, 0.1 + 0.2)
    waiting = a_request("q1", quorum=3, votes=(counted,), void=(void,))
    batch = a_batch("b1", a_request("q1", quorum=3), a_request("q2"))
    await store.run(lambda tx: tx.insert_batch(batch))
    await store.run(lambda tx: tx.rewrite(waiting))
    assert await store.run(lambda tx: tx.batch("b1")) == replace(batch, requests=(waiting, batch.requests[1]))
    ended = settled(waiting, RequestState.REJECTED)
    await store.run(lambda tx: tx.settle(ended))
    assert await store.run(lambda tx: tx.batch("b1")) == replace(batch, requests=(ended, batch.requests[1]))


async def test_votes_written_before_any_could_be_void_are_read(store: Store) -> None:
    column = json.dumps([[json.loads(dump_actor(APPROVER)), 110.0, "session"]])
    assert load_votes(column) == ((Vote(APPROVER, 110.0, Remember.SESSION),), ())


async def test_whom_open_requests_name_is_known_by_server(store: Store) -> None:
    elsewhere = replace(a_batch().place, server="s2")
    for batch in (
        a_batch("b1", a_request("q1", approvers=("role:1", "asker")), a_request("q2", approvers=("asker",))),
        a_batch("b2", a_request("q3", approvers=("role:1", "asker")), settled(a_request("q4", approvers=("role:4",)))),
        a_batch("b3", a_request("q5", approvers=("user:2&role:3",)), place=elsewhere),
        a_batch("b4", settled(a_request("q6", approvers=("role:6",)))),
    ):
        await store.run(lambda tx, batch=batch: tx.insert_batch(batch))
    found = await store.run(lambda tx: tx.open_approvers())
    assert found == {"s1": {"role:1", "asker"}, "s2": {"user:2&role:3"}}


async def test_a_batch_that_is_there_is_left_as_it_is(store: Store) -> None:
    batch = a_batch()
    request = settled(batch.requests[0])
    await store.run(lambda tx: tx.insert_batch(batch))
    await store.run(lambda tx: tx.settle(request))
    await store.run(lambda tx: tx.insert_batch(replace(batch, model_text="other", requests=(a_request("new"),))))
    assert await store.run(lambda tx: tx.batch("b1")) == replace(batch, requests=(request,))


async def test_a_request_of_another_batch_cannot_be_taken_over(store: Store) -> None:
    await store.run(lambda tx: tx.insert_batch(a_batch("b1", a_request("q1"))))
    with pytest.raises(StoreError):
        await store.run(lambda tx: tx.insert_batch(a_batch("b2", a_request("q1"))))
    assert await store.run(lambda tx: tx.batch("b2")) is None


@pytest.mark.parametrize(
    ("state", "choice"),
    [
        (RequestState.APPROVED, Choice.RERUN),
        (RequestState.REJECTED, Choice.SKIP),
        (RequestState.EXPIRED, None),
        (RequestState.CANCELLED, None),
    ],
)
async def test_a_settlement_comes_back_as_it_was(store: Store, state: RequestState, choice: Choice | None) -> None:
    batch = a_batch()
    by = batch.asker if choice else None
    note = GrantNote("g1", batch.asker, 0.7, True, ("path",)) if choice else None
    ended = replace(batch.requests[0], state=state, settlement=Settlement(choice, by, 0.1 + 0.2, "", grant=note))
    await store.run(lambda tx: tx.insert_batch(batch))
    assert await store.run(lambda tx: tx.settle(ended))
    assert await store.run(lambda tx: tx.batch("b1")) == replace(batch, requests=(ended,))


async def test_batches_that_grants_settled_are_known_by_turn_unless_a_card_shows_them(store: Store) -> None:
    batch = a_batch()
    end = Settlement(Choice.ACCEPT, None, 1.0, "", grant=GrantNote("g1", batch.asker, 9.0, True))
    ended = replace(batch.requests[0], state=RequestState.APPROVED, settlement=end)
    await store.run(lambda tx: (tx.insert_batch(batch), tx.insert_batch(a_batch("b2"))))
    assert await store.run(lambda tx: tx.settled_by_grants(batch.turn)) == []
    await store.run(lambda tx: tx.settle(ended))
    assert [one.id for one in await store.run(lambda tx: tx.settled_by_grants(batch.turn))] == [batch.id]
    assert await store.run(lambda tx: tx.settled_by_grants("another")) == []
    await store.run(lambda tx: tx.set_card(batch.id, "m5"))
    assert await store.run(lambda tx: tx.settled_by_grants(batch.turn)) == []


async def test_of_a_hundred_settling_at_once_one_wins(store: Store) -> None:
    batch = a_batch()
    await store.run(lambda tx: tx.insert_batch(batch))

    def by(n: int):
        state = RequestState.APPROVED if n % 2 else RequestState.REJECTED
        return settled(batch.requests[0], state, at=float(n))

    results = await asyncio.gather(*(store.run(lambda tx, n=n: tx.settle(by(n))) for n in range(100)))
    assert results.count(True) == 1
    stored = await store.run(lambda tx: tx.batch("b1"))
    assert stored is not None
    assert stored.requests == (by(results.index(True)),)


async def test_a_request_cannot_be_settled_as_pending_and_an_unknown_one_not_at_all(store: Store) -> None:
    batch = a_batch()
    await store.run(lambda tx: tx.insert_batch(batch))
    with pytest.raises(ValueError, match="pending"):
        await store.run(lambda tx: tx.settle(batch.requests[0]))
    assert not await store.run(lambda tx: tx.settle(settled(a_request("unknown"))))


async def test_due_and_next_deadline_count_only_batches_with_a_pending_request(store: Store) -> None:
    def fill(tx: Tx) -> None:
        tx.insert_batch(a_batch("late", deadline=300.0))
        tx.insert_batch(a_batch("early", a_request("e1"), a_request("e2"), deadline=100.0))
        tx.insert_batch(a_batch("never", settled(a_request("n1")), deadline=50.0))
        tx.insert_batch(replace(a_batch("empty", deadline=10.0), requests=()))

    await store.run(fill)
    assert await store.run(lambda tx: tx.next_deadline()) == 100.0
    assert [b.id for b in await store.run(lambda tx: tx.due(99.9))] == []
    assert [b.id for b in await store.run(lambda tx: tx.due(100.0))] == ["early"]
    assert [b.id for b in await store.run(lambda tx: tx.due(1000.0))] == ["early", "late"]
    await store.run(lambda tx: tx.settle(settled(a_request("e1"))))
    assert await store.run(lambda tx: tx.next_deadline()) == 100.0, "its sibling is still pending"
    await store.run(lambda tx: tx.settle(settled(a_request("e2"))))
    assert [b.id for b in await store.run(lambda tx: tx.due(1000.0))] == ["late"]
    await store.run(lambda tx: tx.settle(settled(a_request("late-q1"))))
    assert await store.run(lambda tx: tx.next_deadline()) is None


async def test_unfinished_cards_are_the_missing_and_the_stale(store: Store) -> None:
    def fill(tx: Tx) -> None:
        tx.insert_batch(a_batch("missing", opened=2.0))
        tx.insert_batch(a_batch("shown", opened=3.0))
        tx.set_card("shown", "m1")
        tx.insert_batch(a_batch("stale", opened=1.0))
        tx.set_card("stale", "m2")
        tx.settle(settled(a_request("stale-q1")))
        tx.insert_batch(a_batch("final", opened=4.0))
        tx.set_card("final", "m3")
        tx.settle(settled(a_request("final-q1")))
        tx.set_card_final("final")
        tx.insert_batch(a_batch("never shown", opened=5.0))
        tx.settle(settled(a_request("never shown-q1"), RequestState.EXPIRED))

    await store.run(fill)
    found = await store.run(lambda tx: tx.unfinished_cards())
    assert [batch.id for batch in found] == ["stale", "missing"]
    assert all(batch.requests for batch in found)
    final = await store.run(lambda tx: tx.batch("final"))
    assert final is not None
    assert final.card_final


async def test_a_card_of_no_batch_is_an_error(store: Store) -> None:
    for work in (lambda tx: tx.set_card("b9", "m1"), lambda tx: tx.set_card_final("b9")):
        with pytest.raises(LookupError, match="b9"):
            await store.run(work)


async def test_decision_for_is_the_newest_about_that_very_call(store: Store) -> None:
    key, turn = CallKey("c1", 3, "call_0"), a_batch().turn
    first = settled(a_request("q1", key=key))
    again = a_request("q0", key=key, kind=RequestKind.MAY_HAVE_RUN)
    # The times are equal, and the newer id sorts first: only the order of arrival decides.
    await store.run(lambda tx: tx.insert_batch(a_batch("b2", first)))
    await store.run(lambda tx: tx.insert_batch(a_batch("b1", again)))
    await store.run(lambda tx: tx.insert_batch(a_batch("b3", a_request("q9", key=CallKey("c1", 5, "call_0")))))
    assert await store.run(lambda tx: tx.decision_for(key, turn)) == again
    assert await store.run(lambda tx: tx.decision_for(CallKey("c1", 4, "call_0"), turn)) is None
    assert await store.run(lambda tx: tx.decision_for(CallKey("c2", 3, "call_0"), turn)) is None
    assert await store.run(lambda tx: tx.decision_for(key, "another turn")) is None


async def test_the_audit_is_numbered_and_only_grows(store: Store) -> None:
    data = {"tool": "shell", "args": {"n": 1}}
    await store.run(lambda tx: tx.audit("asked", "s1", "q1", "u1", data, 1.5))
    await store.run(lambda tx: tx.audit("approved", "s1", "q1", "u2", {}, 2.5))
    rows = "SELECT seq, at, kind, server, subject, actor, data FROM audit ORDER BY seq"
    before = await store.run(lambda tx: tx.db.all(rows))
    assert before == [
        (1, 1.5, "asked", "s1", "q1", "u1", '{"tool":"shell","args":{"n":1}}'),
        (2, 2.5, "approved", "s1", "q1", "u2", "{}"),
    ]
    for tampering in (
        "UPDATE audit SET actor = 'nobody'",
        "DELETE FROM audit WHERE seq = 2",
        "INSERT INTO audit (seq, at, kind, server, subject, actor, data) VALUES (9, 1, '', '', '', '', '')",
    ):
        with pytest.raises(StoreError):
            await store.run(lambda tx, sql=tampering: tx.db.change(sql))
    assert await store.run(lambda tx: tx.db.all(rows)) == before


async def test_the_audit_cannot_be_replaced_either(store: Store) -> None:
    await store.run(lambda tx: tx.audit("asked", "s1", "q1", "u1", {}, 1.5))
    replacing = "INSERT OR REPLACE INTO audit (seq, at, kind, server, subject, actor, data) VALUES (1,0,'','','','','')"
    with pytest.raises(StoreError):
        await store.run(lambda tx: tx.db.change(replacing))

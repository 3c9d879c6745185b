"""Text from a model, a person or a tool comes back unchanged, and none of it is ever SQL."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signoff.approvals.model import Actor, CallKey, Choice, Place, RequestState, Settlement, ToolCall
from signoff.store import Store
from signoff.store.codec import DEPTH, dump_actor, dump_object, escape, load_actor, load_object, unescape
from signoff.store.sqlite import open_sqlite
from signoff.store.store import Tx
from signoff.turns.model import CallRecord, CallState, HistoryEntry, Quoted, TurnFile, TurnState
from tests.rigs.store_samples import a_batch, a_request, a_turn

HOSTILE = [
    "'; DROP TABLE turns; --",
    '"; DELETE FROM audit; --',
    "' OR '1'='1",
    "x', 'y'); UPDATE requests SET state = 'approved'; --",
    "? %s :name $1 @x {where} {0} %(x)s",
    "nul \0 inside",
    "\0",
    "lone \ud800 surrogate \udfff",
    '"already quoted"',
    '"',
    '"\\ud800"',
    "\\ud800",
    "",
    "\u202e\u200b🙂\U0010ffff\r\n\t\x1b[31m",
    "x" * 100_000,
    "NULL",
    "1e999",
    "007",
]

ANY_TEXT = st.text(st.characters(codec=None), max_size=30)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats(allow_nan=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=15,
)
OBJECTS = st.dictionaries(ANY_TEXT, JSON, max_size=4)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_in_every_field_comes_back(store: Store, text: str) -> None:
    actor = Actor(id=text, name=text, server=text, roles=frozenset({text}))
    place = Place(text, text, text)
    key = CallKey(text, 1, text)
    call = ToolCall(key=key, tool=text, args={text: [text]}, schema=text, digest=text)
    request = a_request(text, call=call, why=text, approvers=(text,), metadata={text: {text: text}})
    batch = a_batch(
        text, request, turn=text, place=place, asker=actor, model_text=text, already_ran=(text,), card_message=text
    )
    turn = a_turn(text, place=place, message=text, text=text, batch=text, reply=text)
    turn = replace(turn, asker=actor, quoted=Quoted(text, text))
    file = TurnFile(text, 3, text, text.encode(errors="surrogatepass"), text)
    record = CallRecord(key, text, text, CallState.DONE, text.encode(errors="surrogatepass"), request=text)
    won = replace(request, state=RequestState.REJECTED, settlement=Settlement(Choice.REJECT, actor, 1.0, text))
    bystander = a_turn("bystander", conversation="c9", asker="u9")

    def write(tx: Tx) -> None:
        tx.insert_turn(bystander)
        assert tx.insert_turn(replace(turn, files=(file,)))
        tx.relocate(text, place)
        tx.insert_batch(batch)
        tx.set_card(text, text)
        tx.put_call(record, text, 1.0)
        tx.save_history(text, [HistoryEntry(0, b"x")])
        tx.audit(text, text, text, text, {text: text}, 1.0)

    await store.run(write)

    def read(tx: Tx) -> None:
        assert tx.turn(text) == turn
        assert tx.files_of(text) == [file]
        assert tx.batch(text) == tx.batch_about(text) == tx.batch_of_card(text) == batch
        assert tx.decision_for(key, batch.turn) == request
        assert tx.call(key) == record
        assert tx.queued(asker=text) == tx.queued(conversation=text) == tx.queued(asker=text, conversation=text) == 1
        assert tx.active(asker=text) == tx.active(conversation=text) == 0
        assert len(tx.history(text)) == 1
        assert tx.next_startable(1, {text}) == bystander
        row = tx.db.one("SELECT kind, server, subject, actor, data FROM audit")
        assert row is not None
        assert row[:4] == (text,) * 4
        assert load_object(row[4]) == {text: text}
        assert tx.settle(won)
        assert tx.batch(text) == replace(batch, requests=(won,))
        assert tx.move(text, TurnState.QUEUED, TurnState.RUNNING)
        assert tx.active(asker=text) == 1
        assert tx.finish(text, TurnState.RUNNING, TurnState.DONE, text)
        tx.drop_call(key)
        assert tx.call(key) is None
        assert tx.turn("bystander") == bystander

    await store.run(read)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(args=OBJECTS, metadata=OBJECTS, words=ANY_TEXT, call_id=ANY_TEXT)
async def test_json_and_text_round_trip_through_the_database(
    store: Store, args: dict[str, Any], metadata: dict[str, Any], words: str, call_id: str
) -> None:
    request = a_request("q", key=CallKey("c", 1, call_id), args=args, metadata=metadata)
    batch = a_batch("b", request, model_text=words)

    class Undo(Exception):
        pass

    def work(tx: Tx) -> None:
        tx.insert_batch(batch)
        assert tx.batch("b") == batch
        assert tx.decision_for(request.call.key, batch.turn) == request
        raise Undo

    with pytest.raises(Undo):
        await store.run(work)


@given(OBJECTS)
def test_json_comes_back_with_its_types_and_its_order(value: dict[str, Any]) -> None:
    text = dump_object(value)
    assert text.isascii()
    # repr distinguishes 1 from 1.0 from True and 0.0 from -0.0, and shows the order of keys.
    assert repr(load_object(text)) == repr(value)


@given(ANY_TEXT, ANY_TEXT)
def test_escaping_keeps_different_texts_different(one: str, other: str) -> None:
    assert unescape(escape(one)) == one
    escape(one).encode()
    assert "\0" not in escape(one)
    assert (escape(one) == escape(other)) == (one == other)


@given(st.builds(Actor, ANY_TEXT, ANY_TEXT, ANY_TEXT, st.frozensets(ANY_TEXT), st.booleans(), st.booleans()))
def test_people_round_trip(actor: Actor) -> None:
    assert load_actor(dump_actor(actor)) == actor


def test_floats_that_json_has_no_word_for_come_back_too() -> None:
    back = load_object(dump_object({"inf": math.inf, "nan": math.nan, "tiny": 5e-324, "third": 1 / 3}))
    assert back["inf"] == math.inf
    assert math.isnan(back["nan"])
    assert (back["tiny"], back["third"]) == (5e-324, 1 / 3)


@pytest.mark.parametrize(
    "args",
    [
        {"x": object()},
        {"x": {1: "a", "1": "b"}},
        {"x": [{"\ud83d\ude00": "two halves", "\U0001f600": "one character"}]},
        {"x": b"bytes"},
        {"x": {1, 2}},
    ],
)
async def test_what_is_not_json_is_refused_before_it_is_written(store: Store, args: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        await store.run(lambda tx: tx.insert_batch(a_batch("b1", a_request(args=args))))
    assert await store.run(lambda tx: tx.batch("b1")) is None
    assert await store.run(lambda tx: tx.due(1e9)) == []


@pytest.mark.parametrize("depth", [DEPTH - 1, DEPTH, 900, 100_000])
async def test_arguments_nested_too_deeply_are_refused_and_not_stored(store: Store, depth: int) -> None:
    deep: Any = "bottom"
    for _ in range(depth):
        deep = [deep]
    with pytest.raises(ValueError, match="too deeply"):
        await store.run(lambda tx: tx.insert_batch(a_batch("b1", a_request(args={"deep": deep}))))
    assert await store.run(lambda tx: tx.due(1e9)) == []


@pytest.mark.parametrize("bottom", ["bottom", Choice.ACCEPT, 1, None])
def test_the_deepest_value_that_is_stored_is_as_deep_for_every_type(bottom: Any) -> None:
    deepest: Any = bottom
    for _ in range(DEPTH - 2):
        deepest = [deepest]
    assert load_object(dump_object({"deep": deepest})) == {"deep": deepest}
    with pytest.raises(ValueError, match="too deeply"):
        dump_object({"deep": [deepest]})


@pytest.mark.parametrize("text", ['"quoted', '"', "NUL \0", "half \ud800 a pair", "é", "", ' "in the middle"'])
def test_a_text_comes_back_from_every_place_of_a_row(tmp_path: Path, text: str) -> None:
    db = open_sqlite(tmp_path / "x.db")
    try:
        for place in range(5):
            row: list[str | bytes | float | None] = ["plain", None, 1.5, b'"bytes']
            row.insert(place, text)
            assert db.all("SELECT ?, ?, ?, ?, ?", *row) == [tuple(row)]
    finally:
        db.close()

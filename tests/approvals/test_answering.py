"""Answers at the desk: parts are kept for each person, the answer settles once, and the record has it masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.answer_forms import inquire
from signoff.approvals.answering import Answering
from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import LOST_INQUIRY, Desk
from signoff.approvals.edits import Editor
from signoff.approvals.errors import AlreadySettled, NotAllowed, Outdated, Refused, UnknownRequest
from signoff.approvals.model import ApprovalRequest, Batch, Choice, JsonObject, Remember, RequestKind, RequestState
from signoff.store import Store
from tests.conftest import ADA, MAX, PLACE, HandClock, make_batch, make_request
from tests.rigs.desk import opened

INQUIRY = inquire(
    "How many?",
    {
        "properties": {"count": {"type": "integer"}, "why": {"type": "string"}, "note": {"type": "string"}},
        "required": ["count", "why"],
    },
)
BY_SERVER = replace(INQUIRY, server="workshop")


def inquiring(**fields: Any) -> ApprovalRequest:
    return make_request(kind=RequestKind.ANSWER, inquiry=fields.pop("inquiry", INQUIRY), **fields)


@pytest.fixture
def answering(desk: Desk) -> Answering:
    return Answering(desk)


async def stored(store: Store, batch: Batch) -> Batch:
    found = await store.run(lambda tx: tx.batch(batch.id))
    assert found
    return found


async def test_an_answer_settles_the_request_and_wakes_the_run(desk: Desk, store: Store, answering: Answering) -> None:
    batch = make_batch(inquiring())
    future = await opened(desk, batch)
    outcome = await answering.answer(batch.requests[0].id, {"count": 2, "why": "x"}, ADA, PLACE.channel, None)
    (request,) = future.result().requests
    assert request == outcome.settled[0] == (await stored(store, batch)).requests[0]
    assert request.state is RequestState.APPROVED
    assert request.settlement
    assert (request.settlement.choice, request.settlement.by) == (Choice.ANSWER, ADA)
    assert request.settlement.answer == {"count": 2, "why": "x"}


async def test_an_edit_of_another_call_leaves_the_question_as_it_was(desk: Desk, store: Store) -> None:
    batch = make_batch(make_request(), inquiring())
    await opened(desk, batch)
    await store.run(lambda tx: tx.set_revision(batch.id, 1))
    answer = Click(batch.requests[1].id, Choice.ANSWER, ADA, PLACE.channel, answer={"count": 2, "why": "x"})
    assert (await desk.decide(answer)).settled
    with pytest.raises(Outdated):
        await desk.decide(Click(batch.requests[0].id, Choice.ACCEPT, ADA, PLACE.channel))


async def test_parts_are_kept_for_each_person_until_they_send_them(
    desk: Desk, store: Store, answering: Answering
) -> None:
    batch = make_batch(inquiring(approvers=("asker", "manage_server")), asker=MAX)
    await opened(desk, batch)
    target = batch.requests[0].id
    await answering.keep(target, {"count": 2}, ADA, PLACE.channel, None)
    await answering.keep(target, {"count": 9, "why": "Max"}, MAX, PLACE.channel, None)
    again = Answering(Desk(store, desk.clock))  # another process
    kept = await again.keep(target, {"why": "Ada", "note": None}, ADA, PLACE.channel, None)
    assert kept.drafts == {ADA.id: {"count": 2, "why": "Ada", "note": None}, MAX.id: {"count": 9, "why": "Max"}}
    outcome = await again.send(target, ADA, PLACE.channel, None)
    assert outcome.settled[0].settlement
    assert outcome.settled[0].settlement.answer == {"count": 2, "why": "Ada"}


@pytest.mark.parametrize("choice", [Choice.ANSWER, Choice.DECLINE, None])
async def test_what_was_filled_in_and_not_sent_is_forgotten_when_the_request_is_settled(
    desk: Desk, store: Store, clock: HandClock, answering: Answering, choice: Choice | None
) -> None:
    batch = make_batch(inquiring(approvers=("asker", "manage_server")), asker=MAX)
    await opened(desk, batch)
    target = batch.requests[0].id
    await answering.keep(target, {"why": "nobody shall know"}, MAX, PLACE.channel, None)
    if choice:
        answer = {"count": 2, "why": "x"}
        outcome = await desk.decide(Click(target, choice, ADA, PLACE.channel, answer=answer))
        assert outcome.batch.requests[0].drafts == {}
    else:
        clock.at = batch.deadline
        await desk.expire_due()
    assert (await stored(store, batch)).requests[0].drafts == {}


async def test_an_incomplete_draft_is_not_sent(desk: Desk, answering: Answering) -> None:
    batch = make_batch(inquiring())
    await opened(desk, batch)
    target = batch.requests[0].id
    await answering.keep(target, {"count": 2}, ADA, PLACE.channel, None)
    with pytest.raises(Refused, match="why: must not be empty"):
        await answering.send(target, ADA, PLACE.channel, None)
    with pytest.raises(Refused, match="count: must be a whole number"):
        await answering.keep(target, {"count": "two"}, ADA, PLACE.channel, None)


async def test_only_those_who_may_answer_do(desk: Desk, answering: Answering) -> None:
    batch = make_batch(inquiring())
    await opened(desk, batch)
    target, answer = batch.requests[0].id, {"count": 2, "why": "x"}
    for work in (
        answering.answer(target, answer, MAX, PLACE.channel, None),
        answering.keep(target, answer, MAX, PLACE.channel, None),
        answering.request(target, MAX, PLACE.channel, None),
    ):
        with pytest.raises(NotAllowed):
            await work
    with pytest.raises(UnknownRequest):
        await answering.answer(target, answer, ADA, "999", None)


async def test_the_second_answer_and_one_after_the_deadline_are_too_late(
    desk: Desk, clock: HandClock, answering: Answering
) -> None:
    first, second = make_batch(inquiring()), replace(make_batch(inquiring()), id="other")
    await opened(desk, first)
    await opened(desk, second)
    answer = {"count": 2, "why": "x"}
    await answering.answer(first.requests[0].id, answer, ADA, PLACE.channel, None)
    with pytest.raises(AlreadySettled):
        await answering.answer(first.requests[0].id, {"count": 3, "why": "y"}, ADA, PLACE.channel, None)
    clock.at = second.deadline
    with pytest.raises(AlreadySettled):
        await answering.answer(second.requests[0].id, answer, ADA, PLACE.channel, None)


async def test_accept_and_reject_do_nothing_to_an_inquiry(desk: Desk, store: Store) -> None:
    batch = make_batch(inquiring())
    await opened(desk, batch)
    for choice in (Choice.ACCEPT, Choice.REJECT, Choice.RERUN, Choice.SKIP):
        for target in (batch.id, batch.requests[0].id):
            with pytest.raises(UnknownRequest):
                await desk.decide(Click(target, choice, ADA, PLACE.channel))
    assert (await stored(store, batch)).requests[0].state is RequestState.PENDING


async def test_an_approval_cannot_be_answered_and_an_inquiry_cannot_be_edited_or_remembered(desk: Desk) -> None:
    call, asks = make_request(), inquiring()
    batch = make_batch(call, asks)
    await opened(desk, batch)
    with pytest.raises(Refused, match="a decision, not an answer"):
        await Answering(desk).request(call.id, ADA, PLACE.channel, None)
    with pytest.raises(UnknownRequest):
        await Answering(desk).answer(call.id, {"count": 1}, ADA, PLACE.channel, None)
    editor: Any = Editor(desk, reviser=None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(Refused, match="needs an answer"):
        await editor.edit(asks.id, {}, asks.call.digest, ADA, PLACE.channel, None)
    answer = {"count": 2, "why": "x"}
    remembering = Click(asks.id, Choice.ANSWER, ADA, PLACE.channel, answer=answer, remember=Remember.SESSION)
    await desk.decide(remembering)
    assert await desk.standing_grants(PLACE.server) == []


@pytest.mark.parametrize(
    ("modes", "state"),
    [
        (Modes("auto_deny"), RequestState.REJECTED),
        (Modes("auto_approve"), RequestState.PENDING),
        (Modes("interactive", "approve"), RequestState.PENDING),
    ],
)
async def test_no_mode_invents_an_answer(desk: Desk, store: Store, modes: Modes, state: RequestState) -> None:
    desk.modes = modes
    batch = make_batch(inquiring())
    await opened(desk, batch)
    assert (await stored(store, batch)).requests[0].state is state


async def test_without_anybody_who_may_answer_it_is_declined(desk: Desk, store: Store) -> None:
    desk.modes = Modes("interactive", "approve")
    batch = make_batch(inquiring(approvers=()))
    await opened(desk, batch)
    (request,) = (await stored(store, batch)).requests
    assert request.settlement
    assert (request.state, request.settlement.choice) == (RequestState.REJECTED, Choice.DECLINE)


async def test_the_record_has_who_answered_what_with_secrets_masked(store: Store, clock: HandClock) -> None:
    def mask(args: JsonObject) -> JsonObject:
        return {name: "***" if name in ("why", "Password") else value for name, value in args.items()}

    desk = Desk(store, clock, mask=mask)
    events: list[Mapping[str, Any]] = []
    desk.subscribers.append(events.append)
    answered, declined = inquiring(), inquiring()
    await opened(desk, make_batch(answered, declined))
    await Answering(desk).answer(answered.id, {"count": 2, "why": "hunter2"}, ADA, PLACE.channel, None)
    await desk.decide(Click(declined.id, Choice.DECLINE, ADA, PLACE.channel, note="ask Max"))
    rows = list(reversed(await store.run(lambda tx: tx.audit_page(PLACE.server))))
    settled = [row for row in rows if row.kind in ("answered", "declined")]
    assert [(row.kind, row.actor) for row in settled] == [("answered", ADA.id), ("declined", ADA.id)]
    texts = [await store.run(lambda tx, row=row: tx.audit_text(row.text)) for row in rows]
    asked = '{"arguments":{"path":"a.txt"},"fields":["count","why","note"],"question":"How many?"}'
    assert texts[0] == asked
    assert texts[rows.index(settled[0])] == '{"count":2,"why":"***"}'
    assert "hunter2" not in f"{rows} {texts}"
    assert [event["answer"] for event in events] == [{"count": 2, "why": "***"}, None]


@pytest.mark.parametrize(
    ("words", "field"), [("?", {"title": "Password"}), ("?", {"description": "Password"}), ("Password", {})]
)
async def test_a_secret_is_masked_by_the_label_the_hint_and_the_only_question_too(
    store: Store, clock: HandClock, words: str, field: JsonObject
) -> None:
    def mask(args: JsonObject) -> JsonObject:
        return {name: "***" if name == "Password" else value for name, value in args.items()}

    desk = Desk(store, clock, mask=mask)
    events: list[Mapping[str, Any]] = []
    desk.subscribers.append(events.append)
    asked = inquiring(inquiry=inquire(words, {"properties": {"value": {"type": "string", **field}}}))
    await opened(desk, make_batch(asked))
    await Answering(desk).answer(asked.id, {"value": "hunter2"}, ADA, PLACE.channel, None)
    rows = await store.run(lambda tx: tx.audit_page(PLACE.server))
    texts = [await store.run(lambda tx, row=row: tx.audit_text(row.text)) for row in rows]
    assert "hunter2" not in f"{texts} {events}"
    assert events[0]["answer"] == {"value": "***"}


async def test_what_a_server_asked_is_cancelled_at_the_next_start_and_its_siblings_stay(
    desk: Desk, store: Store, clock: HandClock
) -> None:
    lost, stays, call = inquiring(inquiry=BY_SERVER), inquiring(), make_request()
    batch = make_batch(lost, stays, call)
    await opened(desk, batch)
    again = Desk(store, clock)
    (changed,) = await again.cancel_lost_inquiries()
    states = {request.id: request.state for request in changed.requests}
    assert states == {lost.id: RequestState.CANCELLED, stays.id: RequestState.PENDING, call.id: RequestState.PENDING}
    cancelled = next(request for request in changed.requests if request.id == lost.id)
    assert cancelled.settlement
    assert cancelled.settlement.note == LOST_INQUIRY
    assert await again.cancel_lost_inquiries() == []

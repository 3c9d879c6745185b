"""An edit is judged anew, voids the votes for what was there before, and is no vote itself."""

from __future__ import annotations

import pytest

from signoff.approvals.desk import Click, Desk
from signoff.approvals.edits import Editor
from signoff.approvals.model import Choice, RequestKind, RequestState, Ruling, Terms, Verdict
from signoff.errors import AlreadySettled, NotAllowed, Outdated, Refused, UnknownRequest
from signoff.store import Store
from tests.approvals.people import BY_ROLE, GRACE, HandDirectory, HandReviser
from tests.approvals.test_desk import opened
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_call, make_request

AFTER = {"path": "b.txt"}


@pytest.fixture
def desk(store: Store, clock: HandClock) -> Desk:
    return Desk(store, clock, directory=HandDirectory())


@pytest.fixture
def reviser() -> HandReviser:
    return HandReviser()


@pytest.fixture
def editor(desk: Desk, reviser: HandReviser) -> Editor:
    return Editor(desk, reviser, Terms(approvers=("manage_server",)))


async def test_an_edit_replaces_the_arguments_keeps_the_original_and_voids_the_votes(
    desk: Desk, editor: Editor
) -> None:
    request = make_request(approvers=BY_ROLE, quorum=2)
    batch = make_batch(request)
    await opened(desk, batch)
    await desk.decide(Click(batch.id, Choice.ACCEPT, OLGA, PLACE.channel))
    outcome = await editor.edit(request.id, AFTER, request.call.digest, GRACE, PLACE.channel, None)
    for seen in (outcome.batch, await desk.store.run(lambda tx: tx.batch(batch.id))):
        assert seen is not None
        edited = seen.requests[0]
        assert edited.call.args == AFTER
        assert edited.call.digest != request.call.digest
        assert edited.votes == ()
        assert edited.edit is not None
        assert edited.edit.original == request.call.args
        assert edited.called == request.call.digest
        assert [voter.name for voter in edited.edit.voided] == ["Olga"]
        assert edited.state is RequestState.PENDING
        assert seen.revision == 1
    for voter in (OLGA, GRACE):
        outcome = await desk.decide(Click(batch.id, Choice.ACCEPT, voter, PLACE.channel, revision=1))
    assert outcome.batch.requests[0].state is RequestState.APPROVED


async def test_an_accept_from_a_card_drawn_before_the_edit_does_not_count(desk: Desk, editor: Editor) -> None:
    """What was shown is what runs: the click was for other arguments."""
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    with pytest.raises(Outdated):
        await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, revision=0))
    rejected = await desk.decide(Click(batch.id, Choice.REJECT, ADA, PLACE.channel, revision=0))
    assert rejected.batch.settled


async def test_two_edits_of_the_same_card_the_second_is_told_to_look_again(desk: Desk, editor: Editor) -> None:
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    with pytest.raises(Outdated):
        await editor.edit(request.id, {"path": "c.txt"}, request.call.digest, ADA, PLACE.channel, None)


async def test_a_second_edit_keeps_what_the_model_sent_as_the_original(desk: Desk, editor: Editor) -> None:
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    once = await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    digest = once.batch.requests[0].call.digest
    twice = await editor.edit(request.id, {"path": "c.txt"}, digest, ADA, PLACE.channel, None)
    edited = twice.batch.requests[0]
    assert (edited.edit.original if edited.edit else None) == request.call.args
    assert edited.called == request.call.digest


async def test_what_the_policy_denies_is_not_taken(desk: Desk, editor: Editor, reviser: HandReviser) -> None:
    reviser.ruling = Ruling(Verdict.DENY, "never there")
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    with pytest.raises(Refused, match="never there"):
        await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    assert stored.requests[0].call.args == request.call.args
    assert stored.revision == 0


async def test_the_rule_for_the_new_arguments_decides_who_may_accept(
    desk: Desk, editor: Editor, reviser: HandReviser
) -> None:
    reviser.ruling = Ruling(Verdict.ASK, "a stricter rule", BY_ROLE, quorum=2, four_eyes=True, message="careful")
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    outcome = await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    edited = outcome.batch.requests[0]
    assert (edited.why, edited.approvers, edited.quorum) == ("a stricter rule", BY_ROLE, 2)
    assert (edited.four_eyes, edited.message) == (True, "careful")
    with pytest.raises(NotAllowed):
        await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))


async def test_an_edit_to_something_allowed_still_waits_for_those_who_were_asked(desk: Desk, editor: Editor) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    request = batch.requests[0]
    outcome = await editor.edit(request.id, AFTER, request.call.digest, OLGA, PLACE.channel, None)
    edited = outcome.batch.requests[0]
    assert (edited.approvers, edited.quorum, edited.state) == (BY_ROLE, 2, RequestState.PENDING)


async def test_who_may_not_decide_may_not_edit(desk: Desk, editor: Editor) -> None:
    batch = make_batch(make_request(approvers=("asker", *BY_ROLE), four_eyes=True))
    await opened(desk, batch)
    request = batch.requests[0]
    for actor in (ADA, MAX):
        with pytest.raises(NotAllowed):
            await editor.edit(request.id, AFTER, request.call.digest, actor, PLACE.channel, None)
        with pytest.raises(NotAllowed):
            await editor.request(request.id, actor, PLACE.channel, None)


async def test_what_is_settled_or_expired_cannot_be_edited(desk: Desk, editor: Editor, clock: HandClock) -> None:
    settled, late = make_batch(), make_batch()
    for batch in (settled, late):
        await opened(desk, batch)
    await desk.decide(Click(settled.id, Choice.ACCEPT, ADA, PLACE.channel))
    clock.at = late.deadline
    for batch in (settled, late):
        request = batch.requests[0]
        with pytest.raises(AlreadySettled):
            await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)


async def test_a_call_that_may_have_run_cannot_be_edited(desk: Desk, editor: Editor) -> None:
    batch = make_batch(make_request(kind=RequestKind.MAY_HAVE_RUN))
    await opened(desk, batch)
    with pytest.raises(Refused):
        await editor.request(batch.requests[0].id, ADA, PLACE.channel, None)


async def test_nothing_changed_is_said(desk: Desk, editor: Editor) -> None:
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    with pytest.raises(Refused, match="Nothing was changed"):
        await editor.edit(request.id, request.call.args, request.call.digest, ADA, PLACE.channel, None)


async def test_a_modal_for_another_place_or_card_is_unknown(desk: Desk, editor: Editor) -> None:
    batch = make_batch(make_request(make_call()), card="555")
    await opened(desk, batch)
    request = batch.requests[0]
    for channel, card in (("elsewhere", None), (PLACE.channel, "556")):
        with pytest.raises(UnknownRequest):
            await editor.edit(request.id, AFTER, request.call.digest, ADA, channel, card)
    with pytest.raises(UnknownRequest):
        await editor.edit(batch.id, AFTER, request.call.digest, ADA, PLACE.channel, None)


async def test_an_edit_is_on_record_with_both_digests(desk: Desk, editor: Editor) -> None:
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    outcome = await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    row = (await desk.store.run(lambda tx: tx.audit_page(PLACE.server, kind="edited")))[0]
    assert request.call.digest in row.data
    assert outcome.batch.requests[0].call.digest in row.data
    assert await desk.store.run(lambda tx: tx.audit_text(row.text)) == '{"path":"b.txt"}'

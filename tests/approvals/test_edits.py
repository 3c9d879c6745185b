"""An edit is checked against the policy again, voids earlier votes, and is not a vote itself."""

from __future__ import annotations

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.errors import AlreadySettled, NotAllowed, Outdated, Refused, UnknownRequest
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    JsonObject,
    RequestKind,
    RequestState,
    Ruling,
    Terms,
    Verdict,
)
from signoff.approvals.ports import Revised
from tests.conftest import ADA, MAX, OLGA, PLACE, SERVER, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, GRACE, HandDirectory, HandReviser

AFTER = {"path": "b.txt"}


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


async def test_what_the_tool_said_of_the_old_arguments_goes_with_them(desk: Desk, editor: Editor) -> None:
    request = make_request(metadata={"summary": "Announce: free pizza"})
    batch = make_batch(request)
    await opened(desk, batch)
    outcome = await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored
    assert outcome.batch.requests[0].summary == stored.requests[0].summary == ""


async def test_after_an_edit_no_vote_is_left_neither_counted_nor_void(
    desk: Desk, editor: Editor, directory: HandDirectory
) -> None:
    request = make_request(approvers=BY_ROLE, quorum=2)
    batch = make_batch(request)
    await opened(desk, batch)
    await desk.decide(Click(batch.id, Choice.ACCEPT, OLGA, PLACE.channel))
    directory.people[OLGA.id] = None
    assert (await desk.decide(Click(batch.id, Choice.ACCEPT, GRACE, PLACE.channel))).batch.requests[0].void
    outcome = await editor.edit(request.id, AFTER, request.call.digest, GRACE, PLACE.channel, None)
    edited = outcome.batch.requests[0]
    assert (edited.votes, edited.void) == ((), ())
    assert edited.edit is not None
    assert [voter.name for voter in edited.edit.voided] == ["Grace"]


async def test_an_accept_from_a_card_drawn_before_the_edit_does_not_count(desk: Desk, editor: Editor) -> None:
    """Only what was shown runs: the click was for other arguments."""
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    for before in (
        Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel),
        Click(request.id, Choice.ACCEPT, ADA, PLACE.channel),
    ):
        with pytest.raises(Outdated):
            await desk.decide(before)
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


async def test_an_edit_notes_that_an_approver_of_the_new_rule_is_gone(
    desk: Desk, editor: Editor, reviser: HandReviser, directory: HandDirectory
) -> None:
    directory.gone = set(BY_ROLE)
    reviser.ruling = Ruling(Verdict.ASK, "a stricter rule", (*BY_ROLE, "manage_server"))
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    outcome = await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert outcome.batch.requests[0].missing == BY_ROLE
    assert stored == outcome.batch


async def test_an_edit_that_brings_other_approvers_forgets_who_of_the_old_ones_was_gone(
    desk: Desk, editor: Editor, reviser: HandReviser
) -> None:
    reviser.ruling = Ruling(Verdict.ASK, "another rule", ("manage_server",))
    batch = make_batch(make_request(approvers=("manage_server", *BY_ROLE), missing=BY_ROLE))
    await opened(desk, batch)
    request = batch.requests[0]
    outcome = await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    assert outcome.batch.requests[0].missing == ()


@pytest.mark.parametrize(
    "ruling",
    [
        Ruling(Verdict.ASK, "a rule for b", BY_ROLE),
        Ruling(Verdict.ASK, "a rule for b", ("asker",), four_eyes=True),
        Ruling(Verdict.ASK, "a rule for b", (f"user:{ADA.id}",), quorum=2),
    ],
    ids=["gone", "four eyes", "too few"],
)
async def test_an_edit_to_what_nobody_could_decide_changes_nothing(
    desk: Desk, editor: Editor, reviser: HandReviser, directory: HandDirectory, ruling: Ruling
) -> None:
    directory.gone = set(BY_ROLE)
    reviser.ruling = ruling
    batch = make_batch(asker=MAX)
    await opened(desk, batch)
    request = batch.requests[0]
    with pytest.raises(Refused, match="nobody could decide") as caught:
        await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    assert "a rule for b" in str(caught.value)
    assert (BY_ROLE[0] in str(caught.value)) == (ruling.approvers == BY_ROLE)
    assert await desk.store.run(lambda tx: tx.batch(batch.id)) == batch
    await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))


async def test_there_and_back_while_an_edit_is_checked_is_another_card(desk: Desk) -> None:
    """The arguments are the same again, but perhaps on other terms, so the editing person has to look again."""
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]

    class Slow(HandReviser):
        async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
            if args == AFTER:
                digest = request.call.digest
                for other in ({"path": "c.txt"}, request.call.args):
                    done = await Editor(desk, HandReviser()).edit(request.id, other, digest, ADA, PLACE.channel, None)
                    digest = done.batch.requests[0].call.digest
            return await super().revise(batch, request, args)

    with pytest.raises(Outdated):
        await Editor(desk, Slow()).edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)


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
    batch = make_batch(make_request(make_call()), card_message="555")
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


@pytest.mark.parametrize("after_another_edit", [False, True])
async def test_with_four_eyes_somebody_else_has_to_accept_an_edit(
    desk: Desk, editor: Editor, reviser: HandReviser, after_another_edit: bool
) -> None:
    reviser.ruling = Ruling(Verdict.ASK, "a rule", approvers=("manage_server", *BY_ROLE), four_eyes=True)
    request = make_request(approvers=("manage_server", *BY_ROLE), four_eyes=True)
    batch = make_batch(request)
    await opened(desk, batch)
    outcome = await editor.edit(request.id, AFTER, request.call.digest, GRACE, PLACE.channel, None)
    if after_another_edit:
        digest = outcome.batch.requests[0].call.digest
        outcome = await editor.edit(request.id, {"path": "c.txt"}, digest, OLGA, PLACE.channel, None)
        with pytest.raises(NotAllowed, match="you edited this call"):
            await desk.decide(Click(batch.id, Choice.ACCEPT, OLGA, PLACE.channel, revision=2))
    revision = outcome.batch.revision
    with pytest.raises(NotAllowed, match="you edited this call, so somebody else has to accept it"):
        await desk.decide(Click(batch.id, Choice.ACCEPT, GRACE, PLACE.channel, revision=revision))
    other = Actor("100000000000000077", "Paul", SERVER, manages_server=True)
    outcome = await desk.decide(Click(batch.id, Choice.ACCEPT, other, PLACE.channel, revision=revision))
    assert outcome.batch.requests[0].state is RequestState.APPROVED


async def test_with_four_eyes_an_editor_may_still_reject(desk: Desk, editor: Editor, reviser: HandReviser) -> None:
    reviser.ruling = Ruling(Verdict.ASK, "a rule", approvers=BY_ROLE, four_eyes=True)
    request = make_request(approvers=BY_ROLE, four_eyes=True)
    batch = make_batch(request)
    await opened(desk, batch)
    await editor.edit(request.id, AFTER, request.call.digest, GRACE, PLACE.channel, None)
    outcome = await desk.decide(Click(batch.id, Choice.REJECT, GRACE, PLACE.channel, revision=1))
    assert outcome.batch.requests[0].state is RequestState.REJECTED


async def test_with_four_eyes_the_only_approver_cannot_edit_because_nobody_could_accept(
    desk: Desk, editor: Editor, reviser: HandReviser
) -> None:
    only = (f"user:{GRACE.id}",)
    reviser.ruling = Ruling(Verdict.ASK, "a rule", approvers=only, four_eyes=True)
    request = make_request(approvers=only, four_eyes=True)
    batch = make_batch(request)
    await opened(desk, batch)
    with pytest.raises(Refused, match="nobody could decide the call"):
        await editor.edit(request.id, AFTER, request.call.digest, GRACE, PLACE.channel, None)

"""A grant covers exactly one call, in one place, for a time and a number of uses, until it is revoked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.digest import bind
from signoff.approvals.errors import Refused
from signoff.approvals.grants import DAY, GrantTerms
from signoff.approvals.model import (
    DIRECT,
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    GrantNote,
    Place,
    Remember,
    RequestKind,
    RequestState,
)
from signoff.store import Store
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, GRACE, HandDirectory

ELSEWHERE = Place(PLACE.server, "700000000000000002", "700000000000000002")
ARGS = {"path": "a.txt"}


@pytest.fixture
def desk(store: Store, clock: HandClock) -> Desk:
    terms = GrantTerms(Remember.ALWAYS, seconds=30 * DAY, uses=3)
    return Desk(store, clock, grants=terms, directory=HandDirectory())


def same(place: Place = PLACE, **fields: Any) -> Batch:
    """Return a batch that asks about the same call as all others made here."""
    call = make_call("delete_file", ARGS, place)
    return make_batch(make_request(call, **fields), place=place)


async def remembered(
    desk: Desk, scope: Remember, batch: Batch | None = None, choice: Choice = Choice.ACCEPT, by: Actor = ADA
) -> None:
    asked = batch or same()
    await opened(desk, asked)
    click = Click(asked.id, choice, by, asked.place.channel, remember=scope)
    await desk.decide(click)


async def outcome(desk: Desk, batch: Batch) -> ApprovalRequest:
    await opened(desk, replace(batch, opened=desk.clock.now(), deadline=desk.clock.now() + 300))
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    return stored.requests[0]


async def test_a_session_grant_covers_the_same_call_in_the_same_conversation_only(desk: Desk) -> None:
    await remembered(desk, Remember.SESSION)
    covered = await outcome(desk, same())
    assert covered.state is RequestState.APPROVED
    assert covered.settlement is not None
    assert covered.settlement.by is None
    assert "Ada" in covered.settlement.note
    assert (await outcome(desk, same(ELSEWHERE))).state is RequestState.PENDING


async def test_an_always_grant_covers_every_conversation_of_the_server(desk: Desk) -> None:
    await remembered(desk, Remember.ALWAYS)
    assert (await outcome(desk, same(ELSEWHERE))).state is RequestState.APPROVED
    other = Place("900000000000000002", "7", "7")
    asked = make_batch(make_request(make_call("delete_file", ARGS, other)), place=other)
    assert (await outcome(desk, asked)).state is RequestState.PENDING


@pytest.mark.parametrize(
    "change",
    [
        {"args": {"path": "a.txt "}},
        {"args": {"path": "a.txt", "force": True}},
        {"args": {}},
        {"schema": "another schema, or the same tool of another server"},
        {"tool": "delete_files"},
        {"operands": {"a.txt": "digest"}},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_any_other_call_asks_again(desk: Desk, change: dict[str, Any]) -> None:
    """Row 16, exact scope: arguments, tool, schema and source."""
    await remembered(desk, Remember.ALWAYS)
    asked = same()
    call = bind(replace(asked.requests[0].call, **change), PLACE)
    batch = replace(asked, requests=(replace(asked.requests[0], call=call),))
    assert (await outcome(desk, batch)).state is RequestState.PENDING


@pytest.mark.parametrize("terms", [{"quorum": 2}, {"four_eyes": True}, {"approvers": BY_ROLE}], ids=str)
async def test_a_rule_made_stricter_since_then_asks_again(desk: Desk, terms: dict[str, Any]) -> None:
    await remembered(desk, Remember.ALWAYS)
    assert (await outcome(desk, same(**terms))).state is RequestState.PENDING


@pytest.mark.parametrize("shown", [{"preview": "3,000,000 rows"}, {"metadata": {"reason": "x"}}], ids=str)
async def test_what_the_tool_says_about_the_call_is_part_of_what_was_remembered(
    desk: Desk, shown: dict[str, Any]
) -> None:
    said = {"preview": "3 rows", "metadata": {"reason": "few"}}
    await remembered(desk, Remember.ALWAYS, same(**said))
    assert (await outcome(desk, same(**said))).state is RequestState.APPROVED
    assert (await outcome(desk, same(**(said | shown)))).state is RequestState.PENDING


async def test_a_grant_does_not_let_anybody_approve_their_own_request_under_four_eyes(desk: Desk) -> None:
    await remembered(desk, Remember.ALWAYS, same(four_eyes=True))
    assert (await outcome(desk, same(four_eyes=True))).state is RequestState.APPROVED
    own = replace(same(four_eyes=True), asker=ADA)
    assert (await outcome(desk, own)).state is RequestState.PENDING


async def test_what_an_asker_remembers_for_themselves_decides_for_nobody_else(desk: Desk) -> None:
    asked = replace(same(approvers=("asker",)), asker=OLGA)
    await remembered(desk, Remember.SESSION, asked, by=OLGA)
    again = replace(same(approvers=("asker",)), asker=OLGA)
    assert (await outcome(desk, again)).state is RequestState.APPROVED
    assert (await outcome(desk, same(approvers=("asker",)))).state is RequestState.PENDING


@pytest.mark.parametrize("left", [Remember.NONE, Remember.SESSION])
async def test_what_the_operator_no_longer_permits_is_not_used(desk: Desk, left: Remember) -> None:
    await remembered(desk, Remember.ALWAYS)
    desk.grants = GrantTerms(left)
    assert (await outcome(desk, same())).state is RequestState.PENDING
    desk.grants = GrantTerms(Remember.ALWAYS)
    assert (await outcome(desk, same())).state is RequestState.APPROVED


async def test_a_grant_is_used_up(desk: Desk) -> None:
    await remembered(desk, Remember.SESSION)
    states = [(await outcome(desk, same())).state for _ in range(4)]
    assert states == [RequestState.APPROVED] * 3 + [RequestState.PENDING]


async def test_a_grant_expires(desk: Desk, clock: HandClock) -> None:
    await remembered(desk, Remember.SESSION)
    clock.at += 30 * DAY - 1
    assert (await outcome(desk, same())).state is RequestState.APPROVED
    clock.at += 1
    assert (await outcome(desk, same())).state is RequestState.PENDING
    assert await desk.standing_grants(PLACE.server) == []


async def test_a_grant_is_listed_and_revoked(desk: Desk) -> None:
    await remembered(desk, Remember.ALWAYS)
    await outcome(desk, same())
    (grant,) = await desk.standing_grants(PLACE.server)
    assert (grant.tool, grant.args, grant.uses_left, grant.by.name) == ("delete_file", '{"path":"a.txt"}', 2, "Ada")
    with pytest.raises(Refused):
        await desk.revoke(grant.id, MAX)
    with pytest.raises(Refused):
        await desk.revoke(grant.id, replace(ADA, server="900000000000000002"))
    await desk.revoke(grant.id, ADA)
    assert (await outcome(desk, same())).state is RequestState.PENDING
    assert await desk.standing_grants(PLACE.server) == []
    with pytest.raises(Refused):
        await desk.revoke(grant.id, ADA)


async def test_a_remembered_no_rejects_and_wins_over_a_yes(desk: Desk) -> None:
    await remembered(desk, Remember.SESSION, choice=Choice.REJECT)
    assert (await outcome(desk, same())).state is RequestState.REJECTED
    await remembered(desk, Remember.ALWAYS, same(ELSEWHERE))
    assert (await outcome(desk, same())).state is RequestState.REJECTED
    assert (await outcome(desk, same(ELSEWHERE))).state is RequestState.APPROVED


async def test_always_takes_manage_server(desk: Desk) -> None:
    batch = same(approvers=BY_ROLE)
    await opened(desk, batch)
    with pytest.raises(Refused, match="Manage Server"):
        await desk.decide(Click(batch.id, Choice.ACCEPT, OLGA, PLACE.channel, remember=Remember.ALWAYS))
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    assert not stored.settled


@pytest.mark.parametrize(("widest", "scope"), [(Remember.NONE, Remember.SESSION), (Remember.SESSION, Remember.ALWAYS)])
async def test_the_operator_says_how_far(desk: Desk, widest: Remember, scope: Remember) -> None:
    desk.grants = replace(desk.grants, widest=widest)
    batch = same()
    await opened(desk, batch)
    with pytest.raises(Refused, match="operator"):
        await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, remember=scope))


async def test_a_quorum_remembers_no_farther_than_every_voter_said(desk: Desk) -> None:
    chief = replace(OLGA, manages_server=True)
    assert desk.directory is not None
    desk.directory.people[OLGA.id] = chief  # type: ignore[attr-defined]
    batch = same(approvers=BY_ROLE, quorum=2)
    await opened(desk, batch)
    await desk.decide(Click(batch.id, Choice.ACCEPT, chief, PLACE.channel, remember=Remember.ALWAYS))
    assert await desk.standing_grants(PLACE.server) == []
    await desk.decide(Click(batch.id, Choice.ACCEPT, GRACE, PLACE.channel))
    assert await desk.standing_grants(PLACE.server) == []
    again = same(approvers=BY_ROLE, quorum=2)
    await opened(desk, again)
    await desk.decide(Click(again.id, Choice.ACCEPT, chief, PLACE.channel, remember=Remember.ALWAYS))
    await desk.decide(Click(again.id, Choice.ACCEPT, GRACE, PLACE.channel, remember=Remember.SESSION))
    (grant,) = await desk.standing_grants(PLACE.server)
    assert grant.conversation == PLACE.conversation


async def test_always_falls_back_if_that_voter_lost_the_server_meanwhile(desk: Desk) -> None:
    chief = replace(OLGA, manages_server=True)
    batch = same(approvers=BY_ROLE, quorum=2)
    await opened(desk, batch)
    await desk.decide(Click(batch.id, Choice.ACCEPT, chief, PLACE.channel, remember=Remember.ALWAYS))
    other = replace(GRACE, manages_server=True)
    await desk.decide(Click(batch.id, Choice.ACCEPT, other, PLACE.channel, remember=Remember.ALWAYS))
    (grant,) = await desk.standing_grants(PLACE.server)
    assert grant.conversation == PLACE.conversation


async def test_people_revoke_their_own_decisions_of_direct_conversations_and_no_others(desk: Desk) -> None:
    mine, olga = replace(MAX, server=DIRECT), replace(OLGA, server=DIRECT)
    asked = replace(same(Place(DIRECT, "1", "1"), approvers=("asker",)), asker=mine)
    await remembered(desk, Remember.ALWAYS, asked, by=mine)
    await remembered(desk, Remember.ALWAYS)
    (direct,), (of_server,) = await desk.standing_grants(DIRECT), await desk.standing_grants(PLACE.server)
    assert [direct.concerns(one) for one in (mine, olga, MAX, ADA)] == [True, False, False, False]
    assert [of_server.concerns(one) for one in (mine, replace(ADA, server=DIRECT), MAX)] == [False, False, True]
    for who, grant in ((olga, direct), (ADA, direct), (mine, of_server), (MAX, of_server)):
        with pytest.raises(Refused):
            await desk.revoke(grant.id, who)
    assert await desk.standing_grants(DIRECT) == [direct]
    assert await desk.standing_grants(PLACE.server) == [of_server]
    await desk.revoke(direct.id, mine)
    assert await desk.standing_grants(DIRECT) == []
    rows = await desk.store.run(lambda tx: tx.audit_page(DIRECT, kind="revoked"))
    assert [(row.subject, row.actor) for row in rows] == [(direct.id, MAX.id)]


async def test_in_a_direct_conversation_always_stays_in_it(desk: Desk) -> None:
    mine, yours = Place(DIRECT, "1", "1"), Place(DIRECT, "2", "2")
    asker = replace(MAX, server=DIRECT)
    batch = replace(same(mine, approvers=("asker",)), asker=asker)
    await remembered(desk, Remember.ALWAYS, batch, by=asker)
    assert (await outcome(desk, same(mine, approvers=("asker",)))).state is RequestState.APPROVED
    assert (await outcome(desk, same(yours, approvers=("asker",)))).state is RequestState.PENDING


@pytest.mark.parametrize("fields", [{"kind": RequestKind.MAY_HAVE_RUN}, {"held": True}], ids=["may have run", "held"])
async def test_what_is_never_remembered(desk: Desk, fields: dict[str, Any]) -> None:
    await remembered(desk, Remember.ALWAYS)
    batch = make_batch(same(**fields).requests[0], make_request(make_call(args={"path": "other"})))
    await opened(desk, batch)
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    assert stored.requests[0].state is RequestState.PENDING


async def test_a_call_that_touches_something_is_accepted_without_a_grant(desk: Desk) -> None:
    asked = same()
    request = replace(asked.requests[0], call=replace(asked.requests[0].call, operands={"a.txt": "x"}))
    await remembered(desk, Remember.ALWAYS, replace(asked, requests=(request,)))
    assert await desk.standing_grants(PLACE.server) == []


async def test_what_was_only_held_runs_with_the_call_that_a_grant_covers(desk: Desk) -> None:
    await remembered(desk, Remember.SESSION)
    batch = make_batch(same().requests[0], make_request(held=True))
    future = await opened(desk, batch)
    assert [r.state for r in future.result().requests] == [RequestState.APPROVED] * 2


async def test_auto_deny_is_stronger_than_a_grant(desk: Desk) -> None:
    await remembered(desk, Remember.SESSION)
    desk.modes = Modes("auto_deny")
    assert (await outcome(desk, same())).state is RequestState.REJECTED


async def test_grants_are_on_record(desk: Desk) -> None:
    await remembered(desk, Remember.ALWAYS)
    await outcome(desk, same())
    (grant,) = await desk.standing_grants(PLACE.server)
    await desk.revoke(grant.id, ADA)
    rows = await desk.store.run(lambda tx: tx.audit_page(PLACE.server))
    assert [row.kind for row in reversed(rows)] == ["asked", "approved", "granted", "asked", "approved", "revoked"]
    assert grant.id in rows[1].data


async def test_a_settled_request_knows_the_grant_that_it_made_or_that_settled_it(desk: Desk, clock: HandClock) -> None:
    asked = same()
    await remembered(desk, Remember.SESSION, asked)
    made = await desk.store.run(lambda tx: tx.batch(asked.id))
    (grant,) = await desk.standing_grants(PLACE.server)
    note = GrantNote(grant.id, ADA, grant.expires, here=True)
    assert made is not None
    assert made.requests[0].settlement is not None
    assert made.requests[0].settlement.grant == note
    later = await outcome(desk, same())
    assert later.settlement is not None
    assert (later.settlement.by, later.settlement.grant) == (None, note)

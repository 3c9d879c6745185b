"""A grant with named arguments covers every call that has them the same, and nothing that differs in anything else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.coverage import Coverage
from signoff.approvals.desk import Desk
from signoff.approvals.digest import bind
from signoff.approvals.errors import Refused
from signoff.approvals.grants import DAY, Grant, GrantTerms
from signoff.approvals.model import Actor, ApprovalRequest, Batch, Choice, Place, Remember, RequestState
from signoff.store import Store
from tests.conftest import ADA, OLGA, PLACE, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, HandDirectory

ELSEWHERE = Place(PLACE.server, "700000000000000002", "700000000000000002")
BY_PATH = Coverage(("path",))


@pytest.fixture
def desk(store: Store, clock: HandClock) -> Desk:
    return Desk(store, clock, grants=GrantTerms(Remember.ALWAYS, 30 * DAY, uses=3), directory=HandDirectory())


def asks(place: Place = PLACE, terms: dict[str, Any] | None = None, **args: Any) -> Batch:
    call = make_call("delete_file", {"path": "a.txt", "mode": "fast"} | args, place)
    return make_batch(make_request(call, **(terms or {})), place=place)


async def remember(
    desk: Desk,
    coverage: Coverage = BY_PATH,
    scope: Remember = Remember.ALWAYS,
    choice: Choice = Choice.ACCEPT,
    by: Actor = ADA,
    asked: Batch | None = None,
) -> Grant:
    batch = asked or asks()
    await opened(desk, replace(batch, opened=desk.clock.now(), deadline=desk.clock.now() + 300))
    target = batch.requests[0].id
    await desk.decide(Click(target, choice, by, PLACE.channel, remember=scope, coverage=coverage))
    return (await desk.standing_grants(PLACE.server))[0]


async def outcome(desk: Desk, batch: Batch) -> ApprovalRequest:
    await opened(desk, replace(batch, opened=desk.clock.now(), deadline=desk.clock.now() + 300))
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    return stored.requests[0]


async def is_covered(desk: Desk, batch: Batch) -> bool:
    return (await outcome(desk, batch)).state is RequestState.APPROVED


async def test_the_named_arguments_must_be_the_same_and_the_rest_is_free(desk: Desk) -> None:
    made = await remember(desk)
    assert (made.named, made.args) == (("path",), '{"path":"a.txt"}')
    assert await is_covered(desk, asks(mode="slow"))
    assert await is_covered(desk, asks(ELSEWHERE, mode="slow", more=[1]))
    assert not await is_covered(desk, asks(path="b.txt"))


async def test_without_names_every_call_of_the_tool_is_covered(desk: Desk) -> None:
    await remember(desk, Coverage(()))
    assert await is_covered(desk, asks(path="b.txt", mode="slow"))


async def test_in_one_conversation_it_holds_only_there(desk: Desk) -> None:
    await remember(desk, scope=Remember.SESSION)
    assert await is_covered(desk, asks(mode="slow"))
    assert not await is_covered(desk, asks(ELSEWHERE, mode="slow"))


@pytest.mark.parametrize(
    "change",
    [{"tool": "delete_files"}, {"schema": "of another server"}, {"operands": {"a.txt": "digest"}}, {"args": {}}],
    ids=lambda change: next(iter(change)),
)
async def test_any_other_tool_or_schema_asks_again(desk: Desk, change: dict[str, Any]) -> None:
    """Row 16."""
    await remember(desk)
    asked = asks(mode="slow")
    call = bind(replace(asked.requests[0].call, **change), PLACE)
    assert not await is_covered(desk, replace(asked, requests=(replace(asked.requests[0], call=call),)))


@pytest.mark.parametrize("terms", [{"quorum": 2}, {"four_eyes": True}, {"approvers": BY_ROLE}, {"held": True}], ids=str)
async def test_a_call_with_other_terms_asks_again(desk: Desk, terms: dict[str, Any]) -> None:
    await remember(desk)
    asked = asks(mode="slow", terms=terms)
    batch = replace(asked, requests=(*asked.requests, *asks(path="other").requests))
    assert (await outcome(desk, batch)).state is RequestState.PENDING


async def test_it_ends_with_its_time_its_uses_and_its_revocation(desk: Desk, clock: HandClock) -> None:
    made = await remember(desk, Coverage(("path",), 3600.0))
    assert made.expires - made.at == 3600.0
    clock.at += 3599
    assert await is_covered(desk, asks(mode="slow"))
    clock.at += 2
    assert not await is_covered(desk, asks(mode="slow"))
    await remember(desk)
    assert [await is_covered(desk, asks(mode=str(n))) for n in range(4)] == [True, True, True, False]
    await desk.revoke((await remember(desk)).id, ADA)
    assert not await is_covered(desk, asks(mode="slow"))


async def test_the_operators_lifetime_is_the_longest(store: Store, clock: HandClock) -> None:
    desk = Desk(store, clock, grants=GrantTerms(Remember.ALWAYS, 60.0, uses=3), directory=HandDirectory())
    made = await remember(desk, Coverage(None, DAY))
    assert made.expires - made.at == 60.0


async def test_a_remembered_reject_wins(desk: Desk) -> None:
    await remember(desk)
    await remember(desk, Coverage(("mode",)), choice=Choice.REJECT, asked=asks(path="other.txt"))
    assert (await outcome(desk, asks())).state is RequestState.REJECTED
    assert await is_covered(desk, asks(mode="slow"))


async def test_what_the_operator_no_longer_permits_covers_nothing(desk: Desk) -> None:
    await remember(desk, scope=Remember.SESSION)
    desk.grants = GrantTerms(Remember.SESSION)
    assert not await is_covered(desk, asks(mode="slow"))


@pytest.mark.parametrize("scope", [Remember.SESSION, Remember.NONE])
@pytest.mark.parametrize("coverage", [Coverage(("path",)), Coverage(()), Coverage(None, 3600.0)], ids=str)
async def test_free_arguments_and_chosen_ends_take_manage_server_and_the_operators_permission(
    desk: Desk, coverage: Coverage, scope: Remember
) -> None:
    own = asks(terms={"approvers": (f"user:{OLGA.id}", "manage_server")})
    with pytest.raises(Refused, match="Manage Server"):
        await remember(desk, coverage, scope, by=OLGA, asked=own)
    desk.grants = GrantTerms(Remember.SESSION)
    with pytest.raises(Refused, match="Manage Server"):
        await remember(desk, coverage, scope)
    assert await desk.standing_grants(PLACE.server) == []


async def test_under_a_quorum_only_the_exact_call_is_remembered(desk: Desk) -> None:
    with pytest.raises(Refused, match="only exactly this call"):
        await remember(desk, asked=asks(terms={"quorum": 2}))

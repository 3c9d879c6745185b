"""A role deleted while its card is open: the card says so, and so does a message that admins can read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from discord_sandbox import Person
from discord_sandbox.seen import SeenMessage
from signoff.approvals.model import Actor, Batch, Place, RequestState
from signoff.errors import StoreError
from signoff.turns.messages import missing_approvers_notice
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import make_batch, make_request


async def open_card(rig: Rig, *approvers: str) -> tuple[Batch, SeenMessage]:
    return await show(rig, make_batch(await rig.place(), await rig.asker(), make_request(approvers=approvers)))


async def told(person: Person, card: SeenMessage, *words: str) -> SeenMessage:
    return await person.wait_for_message(
        card.channel_id, lambda m: all(w in m.text for w in ("For the admins", *words))
    )


async def test_the_card_says_that_a_role_is_gone_and_the_admins_are_told(rig: Rig, ada: Person) -> None:
    """Attack 20, while the card is open."""
    role = await rig.sandbox.create_role("Doomed")
    batch, card = await open_card(rig, f"role:{role}", "manage_server")
    assert f"<@&{role}>" in card.text
    await rig.sandbox.delete_role(role)
    changed = await ada.wait_for_change(card, lambda m: "no longer exists" in m.text)
    assert f"The approver role no longer exists: {role}" in changed.text
    assert f"<@&{role}>" not in changed.text
    said = await told(ada, card, f"role {role}", "Other approvers can still decide")
    assert said.pings == []
    await ada.click(changed, "Accept")
    assert rig.desk.batches[batch.id].requests[0].state is RequestState.APPROVED


async def test_a_role_that_no_open_card_names_changes_nothing(rig: Rig, ada: Person) -> None:
    kept, other = await rig.sandbox.create_role("Kept"), await rig.sandbox.create_role("Other")
    batch, card = await open_card(rig, f"role:{kept}")
    looked: list[str] = []
    look = rig.bot.missing_approvers.role

    async def record(role: int) -> None:
        await look(role)
        looked.append(str(role))

    rig.bot.missing_approvers.role = record  # type: ignore[method-assign]
    await rig.sandbox.delete_role(other)
    await until(lambda: looked == [str(other)])
    assert rig.desk.batches[batch.id] == batch
    assert not any("For the admins" in m.text for m in await ada.messages(card.channel_id))


async def test_a_role_deleted_while_the_bot_was_away_is_noticed_when_it_is_back(idle: Rig, ada: Person) -> None:
    role, left = await idle.sandbox.create_role("Doomed"), await idle.sandbox.person("Olga")
    async with idle.running():
        _, card = await open_card(idle, f"role:{role}", "manage_server")
        lost, _ = await open_card(idle, f"user:{left.id}")
    await idle.sandbox.delete_role(role)
    await idle.sandbox.leave(left)
    async with idle.running():
        await ada.wait_for_change(card, lambda m: "The approver role no longer exists" in m.text)
        await told(ada, card, f"role {role}", "Other approvers can still decide")
        await told(ada, card, f"user {left.id}", "nobody can decide")
        assert idle.desk.batches[lost.id].requests[0].state is RequestState.REJECTED


async def test_a_card_that_is_decided_while_it_is_drawn_ends_as_decided(rig: Rig, ada: Person) -> None:
    """The drawing with the buttons must not be the last one."""
    role = await rig.sandbox.create_role("Doomed")
    _, card = await open_card(rig, f"role:{role}", "manage_server")
    draws: list[bool] = []
    refresh = rig.front_end.refresh_card

    async def slowly(batch: Batch, page: int = 0, drawn: str | None = None) -> None:
        if not draws:
            await ada.click(card, "Reject")
        draws.append(batch.settled)
        await refresh(batch, page, drawn)

    rig.bot.missing_approvers._refresh = slowly
    await rig.sandbox.delete_role(role)
    await until(lambda: draws == [False, True])
    closed = await ada.wait_for_change(card, lambda m: not m.buttons)
    assert f"REJECTED by <@{ada.id}>" in closed.text


async def test_what_fails_is_logged_and_decides_nothing(rig: Rig, ada: Person) -> None:
    role, second = await rig.sandbox.create_role("Doomed"), await rig.sandbox.create_role("Second")
    batch, card = await open_card(rig, f"role:{role}", f"role:{second}", "manage_server")
    run = rig.desk.memory.run
    failed = asyncio.Event()

    async def broken(work: object) -> object:
        failed.set()
        raise StoreError("the disk is full")

    rig.desk.memory.run = broken  # type: ignore[method-assign, assignment]
    await rig.sandbox.delete_role(role)
    await asyncio.wait_for(failed.wait(), 10)
    rig.desk.memory.run = run  # type: ignore[method-assign]
    assert rig.desk.batches[batch.id] == replace(batch)
    await rig.sandbox.fault("POST", "/messages", status=403, code=50013, times=1)
    await rig.sandbox.delete_role(second)
    await ada.wait_for_change(card, lambda m: "no longer exists" in m.text)


LOST = {"approvers": ("role:7",), "missing": ("role:7",)}
SHARED = {"approvers": ("role:7", "manage_server"), "missing": ("role:7",)}
NOBODY = {"approvers": ()}


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([LOST], "So nobody can decide."),
        ([LOST, LOST], "So nobody can decide."),
        ([{}, LOST], "So nobody can decide call 2 of 2."),
        ([LOST, SHARED, LOST], "So nobody can decide calls 1, 3 of 3."),
        ([SHARED, {}], "Other approvers can still decide."),
        ([SHARED, NOBODY], "Other approvers can still decide."),
    ],
)
def test_that_nobody_may_decide_is_said_of_the_calls_that_it_is_true_of(calls: list[Any], words: str) -> None:
    asker = Actor("100", "Max", "1")
    batch = make_batch(Place("1", "10", "10"), asker, *(make_request(**fields) for fields in calls))
    assert (
        f"a rule names role 7 as approver, but that role no longer exists. {words} Change"
        in missing_approvers_notice(batch)
    )

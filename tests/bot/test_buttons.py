"""Clicks on a card: whose clicks count, the responses, and a response that fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from discord_sandbox import Person
from signoff.approvals.model import Choice, Place, RequestKind
from signoff.bot.buttons import read_terms
from signoff.bot.card_view import render
from signoff.errors import StoreError
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import make_batch, make_request


async def test_accept_is_answered_with_the_card_itself(rig: Rig, ada: Person) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    answer = await ada.click(seen, "Accept")
    assert answer.updated is not None
    assert f"APPROVED by <@{ada.id}>" in answer.updated.text
    assert "a.txt" in answer.updated.text
    assert answer.updated.buttons == []
    await until(lambda: rig.desk.final == [batch.id])
    (click,) = rig.desk.calls
    assert (click.target, click.choice, click.channel) == (batch.id, Choice.ACCEPT, batch.place.channel)
    assert (click.card_message, click.revision, click.page) == (str(seen.id), 0, 0)
    assert click.actor.manages_server
    assert click.actor.server == rig.server
    assert await rig.sandbox.rest_calls("PATCH") == []


async def test_reject_keeps_the_content(rig: Rig, ada: Person) -> None:
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    answer = await ada.click(seen, "Reject")
    assert answer.updated is not None
    assert f"REJECTED by <@{ada.id}>" in answer.updated.text
    assert "a.txt" in answer.updated.text


async def test_the_wrong_person_is_told_privately_who_may_decide(rig: Rig, max_: Person) -> None:
    """Attack 12."""
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    answer = await max_.click(seen, "Accept")
    assert answer.reply is not None
    assert answer.reply.ephemeral
    assert "Manage Server" in answer.reply.text
    assert not rig.desk.batches[batch.id].settled
    now = await max_.see(seen)
    assert now is not None
    assert now.buttons


async def test_a_role_is_judged_as_it_is_at_the_click(rig: Rig) -> None:
    """Attack 12: a role lost between card and click."""
    role = await rig.sandbox.role_id("Approvers")
    olga = await rig.sandbox.person("Olga")
    request = make_request({"path": "a"}, approvers=(f"role:{role}",))
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    await rig.sandbox.revoke(olga, role)
    refused = await olga.click(seen, "Accept")
    assert refused.reply is not None
    assert f"<@&{role}>" in refused.reply.text
    await rig.sandbox.grant(olga, role)
    accepted = await olga.click(seen, "Accept")
    assert accepted.updated is not None
    assert "APPROVED" in accepted.updated.text


@pytest.mark.slow
async def test_two_hundred_clicks_get_one_outcome_and_two_hundred_answers(rig: Rig, ada: Person) -> None:
    """Attack 11."""
    olga = await rig.sandbox.person("Olga")
    request = make_request({"path": "a"}, approvers=("manage_server", f"user:{olga.id}"))
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    ids = {button.label: str(button.custom_id) for button in seen.buttons}
    rig.desk.delay = 0.05
    presses = [
        person.click(seen, ids["Accept" if number % 2 else "Reject"], forged=True)
        for number, person in enumerate([ada, olga] * 100)
    ]
    answers = await asyncio.gather(*presses)
    assert not [answer for answer in answers if answer.failed or not answer.answered]
    winners = [answer for answer in answers if answer.updated is not None]
    others = [answer.reply for answer in answers if answer.reply is not None]
    assert (len(winners), len(others)) == (1, 199)
    settlement = rig.desk.batches[batch.id].requests[0].settlement
    assert settlement is not None
    assert settlement.by is not None
    assert all(reply.ephemeral and f"by <@{settlement.by.id}>" in reply.text for reply in others)
    await until(lambda: rig.desk.final == [batch.id])


async def test_a_click_whose_button_has_just_left_is_told_who_decided(rig: Rig, ada: Person, max_: Person) -> None:
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    accept = str(seen.buttons[0].custom_id)
    await ada.click(seen, "Accept")
    late = await max_.click(seen, accept, forged=True)
    assert late.reply is not None
    assert late.reply.ephemeral
    assert f"APPROVED by <@{ada.id}>" in late.reply.text


@pytest.mark.parametrize(
    "custom_id",
    [
        "signoff:accept:ffffffffffffffff:0:0",
        "signoff:accept:{batch}",
        "signoff:accept:{batch}:0",
        "signoff:approve:{batch}:0:0",
        "signoff:accept:{batch}:0:0\n",
        "signoff:accept:' or 1=1 --",
        "signoff:accept:",
        "other:thing",
        "x" * 100,
    ],
)
async def test_a_forged_or_malformed_id_is_an_unknown_request(rig: Rig, ada: Person, custom_id: str) -> None:
    """Attacks 12 and 27."""
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    answer = await ada.click(seen, custom_id.replace("{batch}", batch.id), forged=True)
    assert answer.reply is not None
    assert answer.reply.ephemeral
    assert answer.reply.text.startswith("Unknown request")
    assert not rig.desk.batches[batch.id].settled


async def test_a_request_of_another_channel_is_unknown_here(rig: Rig, ada: Person) -> None:
    elsewhere = rig.desk.open(make_batch(await rig.place("ops"), await rig.asker()))
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    answer = await ada.click(seen, f"signoff:accept:{elsewhere.id}:0:0", forged=True)
    assert answer.reply is not None
    assert answer.reply.text.startswith("Unknown request")
    assert not rig.desk.batches[elsewhere.id].settled


async def test_a_bot_cannot_decide(rig: Rig) -> None:
    """Attack 13."""
    echo = await rig.sandbox.person("Echo")
    request = make_request({"path": "a"}, approvers=(f"user:{echo.id}",))
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    answer = await echo.click(seen, str(seen.buttons[0].custom_id), forged=True)
    assert answer.reply is not None
    assert answer.reply.text == "Bots cannot decide."
    assert rig.desk.calls == []


async def test_a_failing_desk_is_said_and_decides_nothing(rig: Rig, ada: Person) -> None:
    """Attack 29."""
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    rig.desk.fails_with = StoreError("disk full")
    answer = await ada.click(seen, "Accept")
    assert answer.reply is not None
    assert answer.reply.ephemeral
    assert "Nothing was decided" in answer.reply.text
    rig.desk.fails_with = None
    again = await ada.click(seen, "Accept")
    assert again.updated is not None


@pytest.mark.slow
async def test_a_slow_desk_still_gets_its_answer_out(rig: Rig, ada: Person, max_: Person) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await rig.sandbox.settings(interaction_deadline=2.0)
    rig.bot.clicks.responses.patience = 0.1
    rig.desk.delay = 2.2
    await ada.click(seen, "Accept", wait=0.3)
    refused = asyncio.create_task(max_.click(seen, str(seen.buttons[0].custom_id), forged=True))
    changed = await max_.wait_for_change(seen, lambda m: "APPROVED" in m.text)
    assert changed.buttons == []
    await refused
    private = await max_.wait_for_message(seen.channel_id, lambda m: m.ephemeral and "Already decided" in m.text)
    assert private.ephemeral
    await until(lambda: rig.desk.final == [batch.id])


@pytest.mark.parametrize("code", [10062, 40060])
async def test_a_refused_answer_becomes_a_plain_edit(rig: Rig, ada: Person, code: int) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await rig.sandbox.fault("POST", r"/callback", status=404 if code == 10062 else 400, code=code)
    await ada.click(seen, "Accept", wait=0.2)
    changed = await ada.wait_for_change(seen, lambda m: "APPROVED" in m.text)
    assert changed.buttons == []
    await until(lambda: rig.desk.final == [batch.id])


async def test_a_click_before_the_cards_message_is_stored_still_ends_the_card(rig: Rig, ada: Person) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    rig.desk.open(replace(batch, card_message=None))
    await rig.sandbox.fault("POST", r"/callback", status=404, code=10062)
    await ada.click(seen, "Accept", wait=0.2)
    await ada.wait_for_change(seen, lambda m: "APPROVED" in m.text)


async def test_buttons_work_after_a_restart(idle: Rig) -> None:
    ada = await idle.sandbox.person("Ada")
    async with idle.running():
        _, seen = await show(idle, make_batch(await idle.place(), await idle.asker()))
    async with idle.running():
        assert idle.driver.order == ["recover", "recover"]
        answer = await ada.click(seen, "Accept")
        assert answer.updated is not None
        assert "APPROVED" in answer.updated.text


async def test_in_a_direct_message_the_listed_person_decides(rig: Rig, max_: Person) -> None:
    direct = await max_.dm(rig.sandbox.bot_id)
    asker = replace(await rig.asker(), server="dm")
    request = make_request({"path": "a"}, approvers=("asker",))
    card = make_batch(Place("dm", str(direct.id), str(direct.id)), asker, request)
    _, seen = await show(rig, card)
    answer = await max_.click(seen, "Accept")
    assert answer.updated is not None
    assert "APPROVED" in answer.updated.text
    actor = rig.desk.calls[0].actor
    assert (actor.server, actor.roles, actor.manages_server) == ("dm", frozenset(), False)


async def test_a_may_have_run_card_has_its_own_choices(rig: Rig, ada: Person) -> None:
    request = make_request({"path": "a"}, kind=RequestKind.MAY_HAVE_RUN)
    batch = make_batch(await rig.place(), await rig.asker(), request)
    _, seen = await show(rig, batch)
    assert [button.label for button in seen.buttons] == ["It ran", "Run it again", "Skip"]
    assert render(batch, batch.opened).view.is_persistent()
    await ada.click(seen, "Skip")
    assert (rig.desk.calls[0].target, rig.desk.calls[0].choice) == (request.id, Choice.SKIP)


async def test_every_route_used_is_one_of_discords(rig: Rig, ada: Person) -> None:
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await ada.click(seen, "Accept")
    assert await rig.sandbox.unknown_routes() == []


def test_a_plan_that_names_every_argument_is_exactly_this_call() -> None:
    """Otherwise it would not cover what the tool's preview said, although no argument is free."""
    some, every = read_terms("accept.always.1", ["env", "ref"]), read_terms("accept.always.3", ["env", "ref"])
    assert some is not None
    assert every is not None
    assert (some.named, every.named) == (("env",), None)

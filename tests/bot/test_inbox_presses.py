"""A press in the inbox always gets its response in time, and the response says what happened."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from discord_sandbox import Person
from discord_sandbox.seen import SeenMessage
from signoff.approvals.errors import Refused
from signoff.approvals.model import Actor, Batch
from signoff.bot import inbox as inbox_module
from signoff.bot.inbox_view import SENTENCE
from signoff.errors import StoreError
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import make_batch


async def listed(rig: Rig, person: Person, monkeypatch: pytest.MonkeyPatch) -> tuple[Batch, SeenMessage]:
    """Open an inbox with one card. Here, a card's "More…" leads to it: the rig has no commands."""

    async def inbox(interaction: Any, visit: Any, panel: Any) -> None:
        await rig.bot.clicks.inbox.show(interaction, visit.actor)

    monkeypatch.setattr(rig.bot.clicks.responses, "panel", inbox)
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    opened = await person.click(seen, "More…")
    assert opened.reply is not None
    assert "1 open card" in opened.reply.text
    return batch, opened.reply


def hurried(rig: Rig, monkeypatch: pytest.MonkeyPatch, patience: float) -> None:
    """Let the bot ask for more time after this many seconds."""
    rig.bot.clicks.responses.patience = patience
    monkeypatch.setattr(inbox_module, "PATIENCE", patience)


def looks_slowly(rig: Rig, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let every look for somebody's open cards take this long."""
    of = rig.bot.clicks.inbox.of

    async def slowly(actor: Actor) -> Any:
        await asyncio.sleep(seconds)
        return await of(actor)

    monkeypatch.setattr(rig.bot.clicks.inbox, "of", slowly)


async def test_a_refusal_that_is_too_long_for_the_list_is_said_below_it(
    rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, inbox = await listed(rig, ada, monkeypatch)
    rig.desk.fails_with = Refused("not today, " * (SENTENCE // 10) + "because of the audit")
    await ada.click(inbox, "Accept")
    said = await ada.wait_for_message(inbox.channel_id, lambda m: m.ephemeral and "because of the audit" in m.text)
    assert said.id != inbox.id
    assert batch.id in rig.desk.batches


async def test_slow_steps_together_do_not_exceed_the_time_for_a_response(
    rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, inbox = await listed(rig, ada, monkeypatch)
    await rig.sandbox.settings(interaction_deadline=1.2)
    hurried(rig, monkeypatch, 0.8)
    rig.desk.delay = 0.7
    looks_slowly(rig, monkeypatch, 0.7)
    await ada.click(inbox, "Accept", wait=0)
    drawn = await ada.wait_for_change(inbox, lambda m: "Done: APPROVED by" in m.text, timeout=5)
    assert "No open card waits for your decision" in drawn.text
    await until(lambda: rig.desk.final == [batch.id])


async def test_a_person_who_is_looked_up_slowly_in_the_cards_server_gets_a_response(
    rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, inbox = await listed(rig, ada, monkeypatch)
    at_home = rig.bot.clicks.inbox.at_home

    async def slowly(*args: Any) -> Any:
        await asyncio.sleep(0.7)
        return await at_home(*args)

    monkeypatch.setattr(rig.bot.clicks.inbox, "at_home", slowly)
    await rig.sandbox.settings(interaction_deadline=0.5)
    hurried(rig, monkeypatch, 0.1)
    await ada.click(inbox, "Accept", wait=0)
    await ada.wait_for_change(inbox, lambda m: "Done: APPROVED by" in m.text, timeout=5)


async def test_a_failing_store_is_said_to_somebody_who_presses_in_the_inbox(
    rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, inbox = await listed(rig, ada, monkeypatch)

    async def fails(target: str) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(rig.desk, "find", fails)
    answer = await ada.click(inbox, "Accept")
    assert answer.updated is not None
    assert "Nothing was changed; try again" in answer.updated.text
    assert rig.desk.calls == []


async def test_a_panel_is_opened_also_if_the_person_is_looked_up_slowly(
    rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, inbox = await listed(rig, ada, monkeypatch)
    monkeypatch.undo()
    opened = await ada.click(inbox, "Open…")
    assert opened.updated is not None
    at_home = rig.bot.clicks.inbox.at_home

    async def slowly(*args: Any) -> Any:
        await asyncio.sleep(0.4)
        return await at_home(*args)

    monkeypatch.setattr(rig.bot.clicks.inbox, "at_home", slowly)
    await rig.sandbox.settings(interaction_deadline=0.3)
    rig.bot.clicks.responses.patience = 0.1
    await ada.click(opened.updated, "More…", wait=0)
    panel = await ada.wait_for_change(inbox, lambda m: any("reason" in b.label for b in m.buttons), timeout=5)
    refused = await ada.click(panel, "Reject with a reason…")
    assert "I am slow right now" in refused.text, "a form cannot be opened after asking for more time"


async def test_an_inbox_is_still_followed_after_a_press_in_another_private_message(
    rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, inbox = await listed(rig, ada, monkeypatch)
    monkeypatch.undo()
    card = await ada.wait_for_message(batch.place.channel, lambda m: str(m.id) == batch.card_message)
    panel = await ada.click(card, "More…")
    assert panel.reply is not None
    assert (await ada.click(panel.reply, "Reject with a reason…")).modal is not None
    await ada.click(card, "Reject")
    drawn = await ada.wait_for_change(inbox, lambda m: "Just now: `delete_file` was rejected" in m.text, timeout=5)
    assert "No open card waits for your decision" in drawn.text

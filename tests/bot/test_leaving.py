"""Work in progress when the client closes ends quietly and is left to the next start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from discord_sandbox import Person
from signoff.approvals.clicks import Click
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import DIRECT, Actor, Batch, Outcome, Remember
from signoff.bot.client import SignoffClient
from signoff.bot.directory import DiscordDirectory
from signoff.bot.front_end import DiscordFrontEnd
from signoff.cards.actions import Offers
from signoff.turns.model import Admission, Turn
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import RecordingDesk, RecordingDriver, make_batch


class LastInstant(RecordingDriver):
    """Stores a mention and closes the client before anything else happens to it."""

    client: SignoffClient | None = None

    async def submit(self, turn: Turn) -> Admission:
        admission = await super().submit(turn)
        assert self.client
        await self.client.close()
        return admission


async def heard() -> None:
    """Wait until the bot has handled its messages."""
    await until(lambda: not any(task.get_name() == "discord.py: on_message" for task in asyncio.all_tasks()))


def said(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.INFO]


@pytest.mark.parametrize("kind", ["started", "queued", "refused"])
async def test_a_mention_in_the_last_instant_is_left_as_it_was_stored(
    idle: Rig, max_: Person, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    driver = idle.driver = LastInstant(Admission(kind, "Something to say."))  # type: ignore[arg-type]
    async with idle.running() as driver.client:
        caplog.clear()
        asked = await max_.say("general", f"{idle.sandbox.mention} hi")
        await until(driver.client.is_closed)
        await heard()
        assert [record for record in said(caplog) if record.exc_info] == []
        assert len(said(caplog)) <= 1, caplog.text
    assert driver.order == ["recover", f"submit {asked.id}"][: 1 if kind == "refused" else 2]
    assert [turn.place.channel for turn in driver.turns.values()] == [str(asked.id)][: kind != "refused"]


async def test_a_thread_that_is_being_opened_when_the_client_closes_is_left_to_the_next_start(
    idle: Rig, max_: Person, caplog: pytest.LogCaptureFixture
) -> None:
    """The turn is not moved to the channel, because Discord did not refuse the thread."""
    await idle.sandbox.fault("POST", "/threads", delay=60)
    async with idle.running() as client:
        caplog.clear()
        asked = await max_.say("general", f"{idle.sandbox.mention} hi")
        await until(lambda: idle.driver.turns)
        await asyncio.sleep(0.3)  # until the request for the thread has been sent
        await client.close()
        await heard()
        assert len(said(caplog)) <= 1, caplog.text
    assert idle.driver.order == ["recover", f"submit {asked.id}"]
    assert idle.driver.only.place.channel == str(asked.id)


SENDING: dict[str, Callable[[DiscordFrontEnd, Turn, Batch], Awaitable[object]]] = {
    "card": lambda front, turn, batch: front.post_card(batch),
    "card_again": lambda front, turn, batch: front.repost_card(batch),
    "end_of_card": lambda front, turn, batch: front.refresh_card(batch),
    "old_card": lambda front, turn, batch: front.retire_card(batch),
    "reminder": lambda front, turn, batch: front.remind(batch),
    "reply": lambda front, turn, batch: front.reply(turn, "three"),
    "notice": lambda front, turn, batch: front.notice(turn, "three"),
}


@pytest.mark.parametrize("what", SENDING)
async def test_whatever_is_sent_on_a_closed_client_ends_like_a_cancelled_task(
    rig: Rig, max_: Person, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """Above all it must not end as a card that failed, because that would cancel its request."""
    turn = await rig.turn(max_)
    batch = make_batch(turn.place, turn.asker, turn=turn.id, card_message=turn.message)
    await rig.client.close()
    caplog.clear()
    with pytest.raises(asyncio.CancelledError):
        await SENDING[what](rig.front_end, turn, batch)
    assert [record for record in said(caplog) if record.exc_info] == []


class ClosingDesk(RecordingDesk):
    """Decides, and closes the client before the response is sent."""

    client: SignoffClient

    async def decide(self, click: Click) -> Outcome:
        try:
            return await super().decide(click)
        finally:
            await self.client.close()

    async def look(self, target: str, actor: Actor, channel: str, card: str | None) -> Batch:
        try:
            return await super().look(target, actor, channel, card)
        finally:
            await self.client.close()


PRESSES = {
    "decided": ("Ada", "Accept"),
    "refused": ("Max", "Accept"),
    "panel": ("Ada", "More…"),
}


@pytest.mark.parametrize("what", PRESSES)
async def test_a_click_in_the_last_instant_counts_or_not_and_makes_no_noise(
    idle: Rig, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    who, button = PRESSES[what]
    desk = idle.desk = ClosingDesk()
    desk.grants = GrantTerms(Remember.ALWAYS)
    idle.offers = Offers(grants=desk.grants)
    async with idle.running() as desk.client:
        batch, seen = await show(idle, make_batch(await idle.place(), await idle.asker()))
        caplog.clear()
        await (await idle.sandbox.person(who)).click(seen, button, wait=0)
        await until(desk.client.is_closed)
        await until(lambda: not any("on_interaction" in task.get_name() for task in asyncio.all_tasks()))
        assert [record for record in said(caplog) if record.levelno > logging.INFO] == []
    assert desk.batches[batch.id].settled == (what == "decided")


LOOKING: dict[str, Callable[[Rig, Batch], Awaitable[object]]] = {
    "person": lambda rig, batch: DiscordDirectory(rig.client).person(DIRECT, batch.asker.id),
    "member": lambda rig, batch: DiscordDirectory(rig.client).person(batch.place.server, batch.asker.id),
    "server": lambda rig, batch: DiscordDirectory(rig.client).missing("1", ["asker"]),
    "channel_deleted": lambda rig, batch: rig.bot.deleted_cards.channel(int(batch.place.channel)),
}


@pytest.mark.parametrize("what", LOOKING)
async def test_whatever_is_asked_of_a_closed_client_ends_like_a_cancelled_task(
    rig: Rig, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    batch = rig.desk.open(make_batch(await rig.place(), await rig.asker()))
    await rig.client.close()
    caplog.clear()
    with pytest.raises(asyncio.CancelledError):
        await LOOKING[what](rig, batch)
    assert [record for record in said(caplog) if record.exc_info] == []

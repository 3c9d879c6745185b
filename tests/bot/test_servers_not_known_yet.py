"""Attack 54: mentions and clicks in the first seconds, before the data of their server have arrived."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from discord_sandbox import SandboxClient
from discord_sandbox.permissions import Permission
from signoff.bot.access import Access
from signoff.bot.client import Bot, SignoffClient
from signoff.bot.directory import DiscordDirectory
from signoff.bot.front_end import DiscordFrontEnd
from signoff.cards.actions import Offers
from tests.rigs.bot import TOKEN, Rig, show, until
from tests.rigs.bot_fakes import make_batch, make_request


class Early(Rig):
    """A rig whose bot is connected, but has no data of its server."""

    async def start(self) -> asyncio.Task[None]:
        await self.sandbox.settings(hold_servers=True)
        self.client = SignoffClient(guild_ready_timeout=0.05)
        self.desk.directory = DiscordDirectory(self.client)
        self.front_end = DiscordFrontEnd(self.client, Offers(), time.time)
        self.bot = Bot(self.client, self.front_end, self.desk, self.driver, self.access)
        task = asyncio.create_task(self.bot.run(TOKEN))
        await until(lambda: task.done() or self.client.guilds)
        assert [guild.unavailable for guild in self.client.guilds] == [True] * len(self.client.guilds)
        return task


@pytest.fixture
async def early(sandbox: SandboxClient, pointed: None) -> AsyncIterator[Early]:
    """Start the bot with `await early.start()`."""
    early = Early(sandbox, str(await sandbox.guild_id()))
    yield early
    await early.client.close()


async def test_a_rightful_approver_is_not_refused(early: Early) -> None:
    await early.start()
    role = await early.sandbox.role_id("Approvers")
    request = make_request({"path": "a"}, approvers=(f"role:{role}",))
    _, seen = await show(early, make_batch(await early.place(), await early.asker(), request))
    accepted = await (await early.sandbox.person("Olga")).click(seen, "Accept")
    assert accepted.updated is not None
    assert "APPROVED" in accepted.updated.text
    assert early.client.guilds[0].unavailable


async def test_an_admin_is_not_refused_and_others_still_are(early: Early) -> None:
    await early.start()
    _, seen = await show(early, make_batch(await early.place(), await early.asker()))
    refused = await (await early.sandbox.person("Max")).click(seen, "Accept")
    assert refused.reply is not None
    assert "Manage Server" in refused.reply.text
    accepted = await (await early.sandbox.person("Ada")).click(seen, "Accept")
    assert accepted.updated is not None
    assert "APPROVED" in accepted.updated.text


async def test_a_mention_counts_with_the_roles_of_its_author(early: Early) -> None:
    role = str(await early.sandbox.role_id("Approvers"))
    early.access = Access(roles=frozenset({role}))
    await early.start()
    olga, max_ = await early.sandbox.person("Olga"), await early.sandbox.person("Max")
    said = await olga.say("general", f"{early.sandbox.mention} count the cats")
    await early.hears()
    turn = early.driver.only
    assert (turn.asker.id, turn.asker.roles, turn.asker.manages_server) == (str(olga.id), frozenset({role}), False)
    assert turn.place.channel == str(said.id)
    await max_.say("general", f"{early.sandbox.mention} count the dogs")
    await max_.wait_for_message("general", lambda m: "only from members with certain roles" in m.text)
    assert early.client.guilds[0].unavailable


async def test_the_rights_of_the_author_are_looked_up(early: Early) -> None:
    await early.start()
    ada = await early.sandbox.person("Ada")
    await ada.say("general", f"{early.sandbox.mention} count the cats")
    await early.hears()
    assert early.driver.only.asker.manages_server


async def test_a_mention_is_taken_even_if_the_author_cannot_be_looked_up(early: Early) -> None:
    role = str(await early.sandbox.role_id("Approvers"))
    early.access = Access(roles=frozenset({role}))
    await early.start()
    olga = await early.sandbox.person("Olga")
    await early.sandbox.fault("GET", f"/members/{olga.id}", status=403, code=50001, times=9)
    await olga.say("general", f"{early.sandbox.mention} count the cats")
    await early.hears()
    assert early.driver.only.asker.roles == frozenset({role})
    assert not early.driver.only.asker.manages_server


async def test_a_channel_that_the_bot_may_not_write_in_is_known_by_asking(early: Early) -> None:
    denied = Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS | Permission.CREATE_PUBLIC_THREADS
    await early.sandbox.overwrite("general", "Signoff", deny=int(denied))
    await early.start()
    max_ = await early.sandbox.person("Max")
    await max_.say("general", f"{early.sandbox.mention} count the cats")
    direct = await max_.dm(early.sandbox.bot_id)
    await max_.wait_for_message(direct, lambda m: "I lack Send Messages there" in m.text)
    assert early.driver.turns == {}


async def test_once_the_data_are_there_nothing_is_looked_up(early: Early) -> None:
    await early.start()
    await early.sandbox.settings(hold_servers=False)
    await until(lambda: not any(guild.unavailable for guild in early.client.guilds))
    before = await early.sandbox.head()
    await (await early.sandbox.person("Ada")).say("general", f"{early.sandbox.mention} count the cats")
    await early.hears()
    assert early.driver.only.asker.manages_server
    assert await early.sandbox.rest_calls("GET", after=before) == []

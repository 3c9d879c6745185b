"""Kicks, bans, timeouts, roles, pins and bulk deletion, with the rules that Discord has for them."""

from __future__ import annotations

from typing import Any

import aiohttp
import discord
import pytest

from discord_sandbox import Permission, Plan, SandboxClient, SandboxError, SandboxServer
from discord_sandbox.person import Person
from tests.rigs.real_client import Bot, running, until

DENIED = (403, 50013)
P = Permission
MODERATOR = int(
    P.VIEW_CHANNEL | P.SEND_MESSAGES | P.READ_MESSAGE_HISTORY | P.MANAGE_MESSAGES | P.MANAGE_CHANNELS
    | P.MANAGE_ROLES | P.KICK_MEMBERS | P.BAN_MEMBERS | P.MODERATE_MEMBERS | P.PIN_MESSAGES
)  # fmt: skip


class Api:
    """Calls the REST API as the bot does, and returns the status and the error code."""

    def __init__(self, server: SandboxServer, session: aiohttp.ClientSession, guild: int) -> None:
        self.server, self.session, self.guild = server, session, guild

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, int]:
        url = self.server.api_url + path.replace("@guild", f"/guilds/{self.guild}")
        async with self.session.request(method, url, json=body) as response:
            said = await response.json() if response.status >= 400 else {}
            return response.status, int(said.get("code", 0))


@pytest.fixture
async def api(sandbox_server: SandboxServer, sandbox: SandboxClient) -> Any:
    await sandbox.change_role("Bot", permissions=MODERATOR)
    async with aiohttp.ClientSession(headers={"Authorization": "Bot " + Plan.token}) as session:
        yield Api(sandbox_server, session, await sandbox.guild_id())


@pytest.fixture
async def max_(sandbox: SandboxClient) -> Person:
    return await sandbox.person("Max")


ON_A_MEMBER = {
    "kick": ("DELETE", "@guild/members/{id}", None),
    "ban": ("PUT", "@guild/bans/{id}", {}),
    "timeout": ("PATCH", "@guild/members/{id}", {"communication_disabled_until": "2020-01-01T00:00:00+00:00"}),
    "rename": ("PATCH", "@guild/members/{id}", {"nick": "M"}),
}


@pytest.mark.parametrize("deed", ON_A_MEMBER)
async def test_only_members_below_the_bot_can_be_touched(
    api: Api, sandbox: SandboxClient, max_: Person, deed: str
) -> None:
    method, path, body = ON_A_MEMBER[deed]
    ada = await sandbox.person("Ada")
    await sandbox.change_role("Bot", permissions=MODERATOR | int(P.MANAGE_NICKNAMES))
    assert await api(method, path.format(id=ada.id), body) == DENIED, "the owner"
    high = await sandbox.create_role("High")
    await sandbox.grant(max_, high)
    assert await api(method, path.format(id=max_.id), body) == DENIED, "a higher role"
    await sandbox.revoke(max_, high)
    assert (await api(method, path.format(id=max_.id), body))[0] < 300
    await sandbox.change_role("Bot", permissions=int(P.VIEW_CHANNEL))
    nina = await sandbox.person("Nina")
    assert await api(method, path.format(id=nina.id), body) == DENIED, "without the permission"


async def test_an_administrator_cannot_be_timed_out(api: Api, sandbox: SandboxClient, max_: Person) -> None:
    await sandbox.change_role("Approvers", permissions=int(P.ADMINISTRATOR))
    olga = await sandbox.person("Olga")
    body = {"communication_disabled_until": "2020-01-01T00:00:00+00:00"}
    assert await api("PATCH", f"@guild/members/{olga.id}", body) == DENIED
    assert await api("PATCH", f"@guild/members/{max_.id}", {"communication_disabled_until": "2999-01-01"}) == (
        400,
        50035,
    )


async def test_only_roles_below_the_bot_can_be_given(api: Api, sandbox: SandboxClient, max_: Person) -> None:
    low, high = await sandbox.role_id("Approvers"), await sandbox.create_role("High")
    one = f"@guild/members/{max_.id}/roles/"
    assert (await api("PUT", f"{one}{low}"))[0] == 204
    assert (await api("DELETE", f"{one}{low}"))[0] == 204
    assert await api("PUT", f"{one}{high}") == DENIED
    assert await api("PUT", f"{one}{await sandbox.role_id('Echo')}") == DENIED
    assert await api("PUT", f"{one}{await sandbox.guild_id()}") == DENIED
    assert await api("PATCH", f"@guild/members/{max_.id}", {"roles": [str(high)]}) == DENIED


async def test_a_ban_takes_messages_with_it_and_can_be_lifted(api: Api, sandbox: SandboxClient, max_: Person) -> None:
    ada = await sandbox.person("Ada")
    await max_.say("general", "spam")
    await ada.say("general", "hello")
    assert await api("DELETE", f"@guild/bans/{max_.id}") == (404, 10026)
    assert await api("PUT", f"@guild/bans/{max_.id}", {"delete_message_seconds": 999_999}) == (400, 50035)
    assert (await api("PUT", f"@guild/bans/{max_.id}", {"delete_message_seconds": 60}))[0] == 204
    assert [m.content for m in await ada.messages("general")] == ["hello"]
    assert (await api("GET", f"@guild/bans/{max_.id}"))[0] == 200
    assert await api("GET", f"@guild/members/{max_.id}") == (404, 10007)
    assert (await api("DELETE", f"@guild/bans/{max_.id}"))[0] == 204
    assert await api("PUT", "@guild/bans/1", {}) == (404, 10013)


async def test_old_messages_are_not_deleted_together(api: Api, sandbox: SandboxClient, max_: Person) -> None:
    where = (await sandbox.channel("general")).id
    old = [(await max_.say("general", f"old {n}")).id for n in range(2)]
    await sandbox.settings(clock_shift=15 * 86_400)
    new = [(await max_.say("general", f"new {n}")).id for n in range(2)]
    path = f"/channels/{where}/messages/bulk-delete"
    assert await api("POST", path, {"messages": [str(n) for n in (*old, *new)]}) == (400, 50034)
    assert (await api("POST", path, {"messages": [str(n) for n in new]}))[0] == 204
    assert [m.content for m in await max_.messages("general")] == ["old 0", "old 1"]


async def test_a_channel_in_a_category_takes_over_its_overwrites(api: Api, sandbox: SandboxClient) -> None:
    assert (await api("POST", "@guild/channels", {"name": "Staff", "type": 4}))[0] == 201
    staff = await sandbox.channel("Staff")
    await sandbox.overwrite(staff, await sandbox.guild_id(), deny=int(P.VIEW_CHANNEL))
    max_ = await sandbox.person("Max")
    assert await api("POST", "@guild/channels", {"name": "room", "parent_id": str(staff.id)}) == DENIED
    await sandbox.overwrite(staff, sandbox.bot_id, allow=int(P.VIEW_CHANNEL))
    assert (await api("POST", "@guild/channels", {"name": "room", "parent_id": str(staff.id)}))[0] == 201
    assert not await max_.permissions("room") & P.VIEW_CHANNEL
    assert await api("POST", "@guild/channels", {"name": "x", "parent_id": "1"}) == (400, 50035)
    assert await api("POST", "@guild/channels", {"name": "x", "type": 2}) == (400, 50035)


async def test_slow_mode_can_be_turned_off_again(api: Api, sandbox: SandboxClient) -> None:
    where = await sandbox.channel("general")
    for seconds in (10, 0):
        assert (await api("PATCH", f"/channels/{where.id}", {"rate_limit_per_user": seconds}))[0] == 200
        [entry] = [c for g in (await sandbox.world())["guilds"] for c in g["channels"] if c["id"] == str(where.id)]
        assert entry["rate_limit_per_user"] == seconds


async def test_slow_mode_holds_back_those_who_do_not_manage_the_channel(
    api: Api, sandbox: SandboxClient, max_: Person
) -> None:
    where, ada = await sandbox.channel("general"), await sandbox.person("Ada")
    await api("PATCH", f"/channels/{where.id}", {"rate_limit_per_user": 60})
    for person in (ada, max_):
        await person.say("general", "one")
    await ada.say("general", "two")
    with pytest.raises(SandboxError) as refused:
        await max_.say("general", "two")
    assert refused.value.code == 20016
    await sandbox.settings(clock_shift=61)
    await max_.say("general", "two")


async def test_somebody_who_is_banned_cannot_join(api: Api, sandbox: SandboxClient, max_: Person) -> None:
    await api("PUT", f"@guild/bans/{max_.id}", {})
    with pytest.raises(SandboxError, match="banned"):
        await sandbox.join(max_)
    await api("DELETE", f"@guild/bans/{max_.id}")
    await sandbox.join(max_)


async def test_a_client_hears_of_bans_pins_and_bulk_deletion(
    api: Api, sandbox: SandboxClient, max_: Person, discord_py_pointed: None
) -> None:
    bot = Bot(discord.Intents(guilds=True, guild_messages=True, moderation=True))
    where = (await sandbox.channel("general")).id
    async with running(bot):
        said = [(await max_.say("general", f"{n}")).id for n in range(3)]
        assert (await api("PUT", f"/channels/{where}/messages/pins/{said[2]}"))[0] == 204
        assert (await api("PUT", f"/channels/{where}/messages/pins/{said[2]}"))[0] == 204, "once more changes nothing"
        await bot.receives("CHANNEL_PINS_UPDATE")
        await until(lambda: discord.MessageType.pins_add in [m.type for m in bot.heard])
        await api("POST", f"/channels/{where}/messages/bulk-delete", {"messages": [str(n) for n in said[:2]]})
        await bot.receives("MESSAGE_DELETE_BULK")
        await api("PUT", f"@guild/bans/{max_.id}", {})
        await api("DELETE", f"@guild/bans/{max_.id}")
        await bot.receives("GUILD_BAN_ADD")
        await bot.receives("GUILD_BAN_REMOVE")
        assert bot.events.count("CHANNEL_PINS_UPDATE") == 1


async def test_the_log_has_the_reason_for_the_audit_log(
    sandbox_server: SandboxServer, sandbox: SandboxClient, api: Api, max_: Person
) -> None:
    api.session.headers["X-Audit-Log-Reason"] = "because%20of%20%C3%BC"
    await api("DELETE", f"@guild/members/{max_.id}")
    [call] = await sandbox.rest_calls("DELETE", "/members/")
    assert call["reason"] == "because of ü"

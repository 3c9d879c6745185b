"""Every kind of response that the sandbox gives over REST, checked against Discord's own schema."""

import json
from typing import Any

import aiohttp
import pytest

from discord_sandbox import Plan, SandboxClient, SandboxServer
from tests.rigs import discord_schema

pytestmark = pytest.mark.skipif(discord_schema.document_path() is None, reason="Discord's schema is not at hand")

PERMISSIONS = (1 << 53) - 1
LINK = {"type": 2, "style": 5, "label": "x", "url": "https://example.org"}
PICTURE = {"type": 11, "media": {"url": "attachment://dot.png"}}
CARD: list[dict[str, Any]] = [
    {
        "type": 17,
        "accent_color": 0x336699,
        "components": [
            {"type": 10, "content": "Tool Approval Required"},
            {"type": 9, "components": [{"type": 10, "content": "a"}], "accessory": LINK},
            {"type": 9, "components": [{"type": 10, "content": "b"}], "accessory": PICTURE},
            {"type": 12, "items": [{"media": {"url": "attachment://dot.png"}}]},
            {"type": 13, "file": {"url": "attachment://whole.txt"}},
            {"type": 14},
            {"type": 1, "components": [{"type": 2, "style": 3, "label": "Accept", "custom_id": "ok"}]},
            {"type": 1, "components": [{"type": 3, "custom_id": "s", "options": [{"label": "a", "value": "a"}]}]},
            {"type": 1, "components": [{"type": 5, "custom_id": "u"}]},
        ],
    }
]


class Tour:
    """Calls the API by the document's own path templates and collects the responses that do not match."""

    def __init__(self, sandbox_server: SandboxServer, session: aiohttp.ClientSession) -> None:
        self.server = sandbox_server
        self.session = session
        self.found: list[str] = []
        self.calls = 0

    async def __call__(
        self,
        method: str,
        template: str,
        body: Any = None,
        *,
        files: dict[str, bytes] | None = None,
        query: str = "",
        **ids: Any,
    ) -> Any:
        assert discord_schema.knows(method, template), f"{method} {template} is not in the document"
        url = self.server.api_url + template.format(**ids) + query
        data: Any = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if files is not None:
            data, headers = aiohttp.FormData(quote_fields=False), {}
            data.add_field("payload_json", json.dumps(body))
            for number, (name, content) in enumerate(files.items()):
                data.add_field(f"files[{number}]", content, filename=name)
        async with self.session.request(method, url, data=data, headers=headers) as response:
            text = await response.text()
            value = json.loads(text) if text else None
            self.calls += 1
            for line in discord_schema.problems(method, template, response.status, value):
                self.found.append(f"{method} {template} {response.status}: {line}")
            return value


@pytest.fixture
async def tour(sandbox_server: SandboxServer, sandbox: SandboxClient) -> Any:
    async with aiohttp.ClientSession(headers={"Authorization": "Bot " + Plan.token}) as session:
        walk = Tour(sandbox_server, session)
        await sandbox.change_role("Bot", permissions=PERMISSIONS)
        await sandbox.settings(members=True)
        yield walk
        assert walk.found == [], "\n".join(walk.found)
        assert await sandbox.unknown_routes() == []


async def test_identity_and_servers_match_the_schema(tour: Tour, sandbox: SandboxClient) -> None:
    me = await tour("GET", "/users/@me")
    guild = str(await sandbox.guild_id())
    max_ = str((await sandbox.person("Max")).id)
    await tour("GET", "/gateway")
    await tour("GET", "/gateway/bot")
    await tour("GET", "/oauth2/applications/@me")
    await tour("GET", "/applications/@me")
    await tour("GET", "/users/{user_id}", user_id=max_)
    await tour("GET", "/users/{user_id}", user_id="1")
    await tour("GET", "/users/@me/guilds")
    await tour("POST", "/users/@me/channels", {"recipient_id": max_})
    await tour("GET", "/guilds/{guild_id}", guild_id=guild, query="?with_counts=true")
    await tour("GET", "/guilds/{guild_id}/channels", guild_id=guild)
    made = await tour("POST", "/guilds/{guild_id}/channels", {"name": "new"}, guild_id=guild)
    await tour("PATCH", "/channels/{channel_id}", {"topic": "things"}, channel_id=made["id"])
    overwrite = {"type": 1, "allow": "0", "deny": "2048"}
    await tour(
        "PUT", "/channels/{channel_id}/permissions/{overwrite_id}", overwrite, channel_id=made["id"], overwrite_id=max_
    )
    await tour("DELETE", "/channels/{channel_id}/permissions/{overwrite_id}", channel_id=made["id"], overwrite_id=max_)
    await tour("DELETE", "/channels/{channel_id}", channel_id=made["id"])
    roles = await tour("GET", "/guilds/{guild_id}/roles", guild_id=guild)
    await tour("GET", "/guilds/{guild_id}/roles/{role_id}", guild_id=guild, role_id=roles[1]["id"])
    await tour("GET", "/guilds/{guild_id}/members", guild_id=guild, query="?limit=10")
    await tour("GET", "/guilds/{guild_id}/members/search", guild_id=guild, query="?query=ma&limit=2")
    await tour("GET", "/guilds/{guild_id}/members/{user_id}", guild_id=guild, user_id=me["id"])
    await tour("PATCH", "/guilds/{guild_id}/members/{user_id}", {"nick": "M"}, guild_id=guild, user_id=max_)
    ids: dict[str, Any] = {"guild_id": guild, "user_id": max_, "role_id": roles[2]["id"]}
    await tour("PUT", "/guilds/{guild_id}/members/{user_id}/roles/{role_id}", **ids)
    await tour("DELETE", "/guilds/{guild_id}/members/{user_id}/roles/{role_id}", **ids)
    new = await tour("POST", "/guilds/{guild_id}/roles", {"name": "Temp"}, guild_id=guild)
    await tour("DELETE", "/guilds/{guild_id}/roles/{role_id}", guild_id=guild, role_id=new["id"])
    await tour("DELETE", "/guilds/{guild_id}/members/{user_id}", guild_id=guild, user_id=max_)


async def test_moderation_matches_the_schema(tour: Tour, sandbox: SandboxClient) -> None:
    guild: dict[str, Any] = {"guild_id": str(await sandbox.guild_id())}
    max_, nina = await sandbox.person("Max"), await sandbox.person("Nina")
    where: dict[str, Any] = {"channel_id": str((await sandbox.channel("general")).id)}
    until = "2020-01-01T00:00:00+00:00"
    one = "/guilds/{guild_id}/members/{user_id}"
    await tour("PATCH", one, {"communication_disabled_until": until}, user_id=str(max_.id), **guild)
    await tour("PATCH", one, {"communication_disabled_until": "soon"}, user_id=str(max_.id), **guild)
    said = [str((await max_.say("general", f"spam {n}")).id) for n in range(3)]
    await tour("POST", "/channels/{channel_id}/messages/bulk-delete", {"messages": said[:2]}, **where)
    await tour("POST", "/channels/{channel_id}/messages/bulk-delete", {"messages": ["1", "2"]}, **where)
    await tour("PATCH", "/channels/{channel_id}", {"rate_limit_per_user": 5}, **where)
    await tour("PATCH", "/channels/{channel_id}", {"rate_limit_per_user": 99_999}, **where)
    ban = "/guilds/{guild_id}/bans/{user_id}"
    await tour("GET", ban, user_id=str(max_.id), **guild)
    await tour("PUT", ban, {"delete_message_seconds": 3600}, user_id=str(max_.id), **guild)
    await tour("GET", ban, user_id=str(max_.id), **guild)
    await tour("GET", "/guilds/{guild_id}/bans", **guild)
    await tour("DELETE", ban, user_id=str(max_.id), **guild)
    await tour("DELETE", ban, user_id=str(max_.id), **guild)
    await tour("PUT", ban, {}, user_id=str((await sandbox.person("Ada")).id), **guild)
    await tour("DELETE", one, user_id=str(nina.id), **guild)
    category = await tour("POST", "/guilds/{guild_id}/channels", {"name": "Events", "type": 4}, **guild)
    body = {"name": "Party", "parent_id": category["id"]}
    await tour("POST", "/guilds/{guild_id}/channels", body, **guild)
    await tour("POST", "/guilds/{guild_id}/channels", body | {"parent_id": where["channel_id"]}, **guild)


async def test_messages_and_threads_match_the_schema(tour: Tour, sandbox: SandboxClient) -> None:
    ada = await sandbox.person("Ada")
    where: dict[str, Any] = {"channel_id": str((await sandbox.channel("general")).id)}
    said = await ada.say("general", f"{sandbox.mention} look", files={"a.txt": b"hello"})
    await ada.react(said, "🔥")
    one = "/channels/{channel_id}/messages/{message_id}"
    plain = await tour(
        "POST",
        "/channels/{channel_id}/messages",
        {"content": f"hi {ada.mention} <@&{await sandbox.role_id('Admins')}>", "nonce": "n1"},
        **where,
    )
    reply = {
        "content": "re",
        "message_reference": {"message_id": str(said.id)},
        "embeds": [{"title": "t", "description": "d"}],
    }
    await tour("POST", "/channels/{channel_id}/messages", reply, **where)
    body = {"flags": 1 << 15, "components": CARD}
    card = await tour(
        "POST", "/channels/{channel_id}/messages", body, files={"dot.png": b"png", "whole.txt": b"all"}, **where
    )
    assert card["attachments"] == []
    await tour(
        "PATCH",
        one,
        {"components": [{"type": 10, "content": "done"}], "attachments": []},
        message_id=card["id"],
        **where,
    )
    await tour("GET", one, message_id=str(said.id), **where)
    await tour("GET", "/channels/{channel_id}/messages", query="?limit=20", **where)
    await tour("PUT", one + "/reactions/{emoji_name}/@me", message_id=plain["id"], emoji_name="👍", **where)
    await tour("GET", one + "/reactions/{emoji_name}", message_id=plain["id"], emoji_name="👍", **where)
    await tour("DELETE", one + "/reactions/{emoji_name}/@me", message_id=plain["id"], emoji_name="👍", **where)
    await tour("POST", "/channels/{channel_id}/typing", **where)
    await tour("PUT", "/channels/{channel_id}/messages/pins/{message_id}", message_id=plain["id"], **where)
    await tour("GET", "/channels/{channel_id}/messages/pins", **where)
    thread = await tour("POST", one + "/threads", {"name": "t"}, message_id=str(said.id), **where)
    await tour("POST", one + "/threads", {"name": "t"}, message_id=str(said.id), **where)
    await tour("POST", "/channels/{channel_id}/threads", {"name": "alone", "type": 11}, **where)
    inside: dict[str, Any] = {"channel_id": thread["id"]}
    await tour("POST", "/channels/{channel_id}/messages", {"content": "in"}, **inside)
    await tour("GET", "/channels/{channel_id}/messages", **inside)
    await tour("GET", "/channels/{channel_id}", **inside)
    await tour("PUT", "/channels/{channel_id}/thread-members/{user_id}", user_id=str(ada.id), **inside)
    await tour("GET", "/channels/{channel_id}/thread-members", **inside)
    await tour("GET", "/channels/{channel_id}/thread-members/{user_id}", user_id=str(ada.id), **inside)
    await tour("DELETE", "/channels/{channel_id}/thread-members/@me", **inside)
    await tour("GET", "/guilds/{guild_id}/threads/active", guild_id=thread["guild_id"])
    await tour("PATCH", "/channels/{channel_id}", {"archived": True}, **inside)
    await tour("GET", "/channels/{channel_id}/threads/archived/public", **where)
    await tour("GET", "/channels/{channel_id}/messages", **where)
    await tour("POST", "/channels/{channel_id}/messages", {"content": "x" * 2001}, **where)
    await tour("POST", "/channels/{channel_id}/messages", {}, **where)
    await tour("DELETE", one, message_id=plain["id"], **where)
    await tour("GET", "/channels/{channel_id}", channel_id="1")


async def test_commands_and_answers_match_the_schema(
    tour: Tour, sandbox: SandboxClient, sandbox_server: SandboxServer
) -> None:
    app: dict[str, Any] = {"application_id": str(sandbox.bot_id)}
    options = [{"type": 3, "name": "what", "description": "what", "autocomplete": True}]
    bodies = [{"name": "ask", "description": "asks", "options": options, "type": 1}, {"name": "Look", "type": 3}]
    made = await tour("PUT", "/applications/{application_id}/commands", bodies, **app)
    await tour("GET", "/applications/{application_id}/commands", **app)
    await tour("POST", "/applications/{application_id}/commands", {"name": "more", "description": "m"}, **app)
    one: dict[str, Any] = {"command_id": made[0]["id"], **app}
    await tour("GET", "/applications/{application_id}/commands/{command_id}", **one)
    await tour("PATCH", "/applications/{application_id}/commands/{command_id}", {"description": "new"}, **one)
    guild: dict[str, Any] = {"guild_id": str(await sandbox.guild_id()), **app}
    await tour("PUT", "/applications/{application_id}/guilds/{guild_id}/commands", bodies[:1], **guild)
    await tour("GET", "/applications/{application_id}/guilds/{guild_id}/commands", **guild)
    await tour("POST", "/applications/{application_id}/commands", {"name": "Bad Name", "description": ""}, **app)

    async with tour.session.ws_connect(sandbox_server.gateway_url) as socket:
        identify = {"op": 2, "d": {"token": Plan.token, "intents": 1, "properties": {}}}
        await socket.send_json(identify)
        await sandbox.wait_for_bot()
        max_ = await sandbox.person("Max")
        callback = "/interactions/{interaction_id}/{interaction_token}/callback"
        asked = await max_.run("general", "ask", what="x", wait=0)
        ids = _callback_path(sandbox_server, asked.id)
        answer = {"type": 4, "data": {"content": "hello", "flags": 64}}
        await tour("POST", callback, answer, query="?with_response=true", **ids)
        await tour("POST", callback, answer, query="?with_response=true", **ids)
        hook: dict[str, Any] = {"webhook_id": str(sandbox.bot_id), "webhook_token": ids["interaction_token"]}
        original = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
        await tour("GET", original, **hook)
        await tour("PATCH", original, {"content": "changed"}, **hook)
        row = [{"type": 1, "components": [{"type": 2, "style": 1, "label": "b", "custom_id": "b"}]}]
        more = await tour(
            "POST",
            "/webhooks/{webhook_id}/{webhook_token}",
            {"content": "more", "components": row},
            query="?wait=true",
            **hook,
        )
        by_id = "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}"
        await tour("PATCH", by_id, {"content": "more still"}, message_id=more["id"], **hook)
        card = await max_.wait_for_message("general", lambda m: m.buttons)
        for kind, data in ((7, {"content": "updated"}), (6, None), (5, {"flags": 64}), (9, _modal())):
            pressed = await max_.click(card, "b", wait=0)
            body = {"type": kind} if data is None else {"type": kind, "data": data}
            await tour(
                "POST", callback, body, query="?with_response=true", **_callback_path(sandbox_server, pressed.id)
            )
        sent = await max_.submit(pressed, {"t": "words"}, wait=0)
        await tour(
            "POST",
            callback,
            {"type": 4, "data": {"content": "read"}},
            query="?with_response=true",
            **_callback_path(sandbox_server, sent.id),
        )
        typed = await _typing(max_)
        await tour(
            "POST",
            callback,
            {"type": 8, "data": {"choices": []}},
            query="?with_response=true",
            **_callback_path(sandbox_server, typed),
        )
        await tour("DELETE", by_id, message_id=more["id"], **hook)
        await tour("GET", by_id, message_id=more["id"], **hook)


def _callback_path(sandbox_server: SandboxServer, interaction: int) -> dict[str, Any]:
    found = sandbox_server.sandbox.interactions.get(interaction)
    assert found is not None
    return {"interaction_id": str(interaction), "interaction_token": found.token}


def _modal() -> dict[str, Any]:
    field = {"type": 4, "custom_id": "t", "style": 1}
    return {"custom_id": "m", "title": "Why", "components": [{"type": 18, "label": "Reason", "component": field}]}


async def _typing(person: Any) -> int:
    body = {"channel": "general", "line": "ask", "options": {"what": "ab"}, "focused": "what", "wait": 0}
    return int((await person.line.call("POST", f"/people/{person.id}/command", body))["id"])

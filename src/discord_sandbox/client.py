"""Drives the people of a sandbox from Python, over its control API, in this process or in another.

    async with SandboxClient(url, key) as sandbox:
        max_ = await sandbox.person("Max")
        message = await max_.say("general", f"{sandbox.mention} hello")
        card = await max_.wait_for_message(message.id, lambda m: m.buttons)
        answer = await max_.click(card, "Accept")

What one person does is in `person`; here are the world, the log and the levers.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import aiohttp

from discord_sandbox.person import PATIENCE, Line, Person, SandboxError, SandboxTimeout, Where, place_id
from discord_sandbox.seen import Json, Outcome, Place, SeenMessage

__all__ = ["Person", "SandboxClient", "SandboxError", "SandboxTimeout"]

_READY = re.compile(r"^sandbox ready (?P<api>\S+) (?P<gateway>\S+) control (?P<url>\S+) key=(?P<key>\S+)$")


class SandboxClient(Line):
    def __init__(self, control_url: str, key: str, *, bot: str | None = None) -> None:
        self.control_url = control_url.rstrip("/")
        self._key = key
        self._bot = bot
        self._session: aiohttp.ClientSession | None = None
        self.bot_id = 0

    @classmethod
    def from_ready_line(cls, line: str) -> "SandboxClient":
        match = _READY.match(line.strip())
        if match is None:
            raise SandboxError(f"not a sandbox's ready line: {line!r}")
        return cls(match["url"], match["key"])

    async def __aenter__(self) -> "SandboxClient":
        # No limit on connections: two hundred people may be waiting for their answers at once.
        connector = aiohttp.TCPConnector(limit=0)
        headers = {"Authorization": f"Sandbox {self._key}"}
        timeout = aiohttp.ClientTimeout(total=120)
        self._session = aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout)
        try:
            self.bot_id = await self._find_bot()
        except BaseException:
            await self._session.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def _find_bot(self) -> int:
        """The bot that was named, else the first one: the one that the sandbox was started for."""
        if self._bot is not None:
            return (await self.person(self._bot)).id
        return int((await self.world())["applications"][0]["id"])

    @property
    def mention(self) -> str:
        """The text that mentions the bot."""
        return f"<@{self.bot_id}>"

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """One control request; raises SandboxError with the server's words."""
        if self._session is None:
            raise SandboxError("use the client with `async with`")
        params = {key: str(value) for key, value in query.items()}
        url = self.control_url + path
        async with self._session.request(method, url, json=body, params=params) as response:
            value = await response.json()
            if response.status >= 400:
                raise SandboxError(value.get("error", str(value)), value.get("code"))
            return value

    async def fetch(self, url: str) -> bytes:
        """The bytes of an attachment."""
        async with aiohttp.ClientSession() as anonymous, anonymous.get(url) as response:
            response.raise_for_status()
            return await response.read()

    # Who and what there is.

    async def world(self) -> Json:
        return await self.call("GET", "/world")

    async def person(self, name: str | int) -> Person:
        for user in (await self.world())["users"]:
            if str(name).lower() in (user["id"], user["name"].lower()):
                return Person(self, int(user["id"]), user["name"])
        raise SandboxError(f"nobody here is called {name!r}")

    async def add_person(self, name: str, *, accepts_dms: bool = True) -> Person:
        user = await self.call("POST", "/users", {"name": name, "accepts_dms": accepts_dms})
        return Person(self, int(user["id"]), name)

    async def channel(self, name: str | int) -> Place:
        wanted = str(name).removeprefix("#")
        for guild in (await self.world())["guilds"]:
            for channel in [*guild["channels"], *guild["threads"]]:
                if wanted in (channel["id"], channel["name"]):
                    return Place(channel)
        raise SandboxError(f"there is no channel {name!r}")

    async def guild_id(self, name: str | None = None) -> int:
        """The id of the server with this name, or of the bot's server."""
        return int((await self._guild(name))["id"])

    async def role_id(self, name: str, guild: str | None = None) -> int:
        """The id of a role in the server with this name, or in the bot's server."""
        for role in (await self._guild(guild))["roles"]:
            if role["name"] == name:
                return int(role["id"])
        raise SandboxError(f"there is no role {name!r}")

    async def _guild(self, name: str | None) -> Json:
        for guild in (await self.world())["guilds"]:
            if name in (None, guild["name"]):
                return guild
        raise SandboxError(f"there is no server {name!r}")

    # What happened.

    async def head(self) -> int:
        return int((await self.world())["head"])

    async def log(self, after: int = 0, *, timeout: float = 0, kind: str = "", name: str = "") -> list[Json]:
        answer = await self.call("GET", "/log", after=after, timeout=timeout, kind=kind, name=name)
        return answer["entries"]

    async def wait_for(
        self,
        name: str,
        matches: Callable[[Json], bool] | None = None,
        *,
        after: int = 0,
        timeout: float = PATIENCE,
        kind: str = "",
    ) -> Json:
        """The first log entry after `after` whose name starts with `name` and whose data match."""
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            answer = await self.call("GET", "/log", after=after, timeout=left, kind=kind, name=name)
            for entry in answer["entries"]:
                if matches is None or matches(entry["data"]):
                    return entry
            after = answer["head"]
        raise SandboxTimeout(f"no {name!r} within {timeout} s")

    async def rest_calls(self, method: str = "", path: str = "", *, after: int = 0) -> list[Json]:
        """The bot's REST calls, oldest first: method, path, status, body."""
        entries = [entry["data"] for entry in await self.log(after, kind="rest") if "status" in entry["data"]]
        return [e for e in entries if method in ("", e["method"]) and re.search(path, e["path"])]

    async def unknown_routes(self) -> list[str]:
        found = await self.log(kind="rest", name="unknown_route")
        return [f"{entry['data']['method']} {entry['data']['path']}" for entry in found]

    async def pings(self, *, after: int = 0) -> list[Json]:
        return [entry["data"] for entry in await self.log(after, kind="world", name="ping")]

    async def unfurls(self, *, after: int = 0) -> list[str]:
        return [entry["data"]["url"] for entry in await self.log(after, kind="world", name="unfurl")]

    async def sessions(self) -> list[Json]:
        return await self.call("GET", "/gateway")

    async def wait_for_bot(self, *, timeout: float = PATIENCE) -> None:
        """Until the bot is connected to the gateway."""
        end = time.monotonic() + timeout
        while not any(s["live"] and s["bot_id"] == str(self.bot_id) for s in await self.sessions()):
            if time.monotonic() > end:
                raise SandboxTimeout(f"the bot did not connect within {timeout} s")
            await asyncio.sleep(0.02)

    async def interaction(self, answer: Outcome | int, *, wait: float = 0) -> Outcome:
        number = answer if isinstance(answer, int) else answer.id
        return Outcome(await self.call("GET", f"/interactions/{number}", wait=wait))

    # Levers.

    async def grant(self, person: Person, role: str | int) -> None:
        await self.call("POST", "/roles", {"do": "grant", "role": str(role), "user": str(person.id)})

    async def revoke(self, person: Person, role: str | int) -> None:
        await self.call("POST", "/roles", {"do": "revoke", "role": str(role), "user": str(person.id)})

    async def create_role(self, name: str, permissions: int = 0) -> int:
        role = await self.call("POST", "/roles", {"do": "create", "role": name, "permissions": permissions})
        return int(role["id"])

    async def change_role(self, role: str | int, **changes: Any) -> None:
        """`permissions=...` or `mentionable=...`."""
        await self.call("POST", "/roles", {"do": "change", "role": str(role), **changes})

    async def delete_role(self, role: str | int) -> None:
        await self.call("POST", "/roles", {"do": "delete", "role": str(role)})

    async def overwrite(self, where: Where, target: str | int, *, allow: int = 0, deny: int = 0) -> None:
        """What a channel allows or denies to a role or user (id or name); neither clears it."""
        body = {"channel": place_id(where), "target": str(target), "allow": allow, "deny": deny}
        await self.call("POST", "/overwrites", body)

    async def join(self, person: Person, guild: str | None = None) -> None:
        await self.call("POST", "/members", {"do": "join", "user": str(person.id), "guild": guild})

    async def leave(self, person: Person, guild: str | None = None) -> None:
        await self.call("POST", "/members", {"do": "leave", "user": str(person.id), "guild": guild})

    async def create_channel(self, name: str, guild: str | None = None) -> Place:
        return Place(await self.call("POST", "/channels", {"name": name, "guild": guild}))

    async def delete_channel(self, where: Where) -> None:
        await self.call("POST", "/channels", {"do": "delete", "channel": place_id(where)})

    async def archive(self, thread: Where, archived: bool = True, *, locked: bool | None = None) -> Place:
        body = {"channel": place_id(thread), "archived": archived, "locked": locked}
        return Place(await self.call("POST", "/threads", body))

    async def archive_idle(self) -> list[str]:
        """Archives threads whose quiet time has passed; move the clock first."""
        return (await self.call("POST", "/threads/archive-idle"))["archived"]

    async def drop_sockets(self, *, resumable: bool = True, code: int | None = None) -> int:
        return (await self.call("POST", "/gateway", {"do": "drop", "resumable": resumable, "code": code}))["sockets"]

    async def ask_reconnect(self) -> None:
        """Gateway op 7."""
        await self.call("POST", "/gateway", {"do": "reconnect"})

    async def invalidate_sessions(self, *, resumable: bool = False) -> None:
        """Gateway op 9."""
        await self.call("POST", "/gateway", {"do": "invalidate", "resumable": resumable})

    async def inject(self, event: str, data: Json, guild_id: int | None = None) -> int:
        """Sends any event as it is, whether or not it is true."""
        body = {"do": "inject", "event": event, "data": data, "guild_id": guild_id}
        return (await self.call("POST", "/gateway", body))["sockets"]

    async def replay(self, answer: Outcome | int, *, wait: float = 0.5) -> Outcome:
        """Delivers an old interaction again, id and token included."""
        number = answer if isinstance(answer, int) else answer.id
        return Outcome(await self.call("POST", f"/interactions/{number}/replay", {"wait": wait}))

    async def fault(self, method: str = "*", path: str = "", **how: Any) -> None:
        """The next matching calls fail: `status`, `code`, `message`, `times`, `delay`, `retry_after`, `headers`,
        `body`, `drop` (cut the connection), `after` (carry the call out first)."""
        await self.call("POST", "/faults", {"method": method, "path": path, **how})

    async def clear_faults(self) -> None:
        await self.call("DELETE", "/faults")

    async def rate_limits(
        self, rules: Sequence[Json] | None = None, *, enabled: bool = True, per_second: int | None = 50
    ) -> None:
        """Switches rate limits on, the usual ones or `rules` of method, path, limit and per."""
        body: Json = {"enabled": enabled, "per_second": per_second}
        await self.call("POST", "/ratelimits", body if rules is None else body | {"rules": list(rules)})

    async def settings(self, **changes: Any) -> Json:
        """`interaction_deadline`, `token_life`, `clock_shift`, `message_content`, `members`, `attachment_limit`,
        `heartbeat_ms`, `add_token`, `remove_token`; returns what holds now."""
        return await self.call("POST", "/settings", changes)

    async def post_as_webhook(self, content: str, *, username: str | None = None, **fields: Any) -> SeenMessage:
        hook = (await self.world())["webhooks"][0]["id"]
        body = {"content": content, "username": username, **fields}
        return SeenMessage(await self.call("POST", f"/webhooks/{hook}/messages", body))

    async def shutdown(self) -> None:
        await self.call("POST", "/shutdown")

"""Drives the people of a sandbox from Python, over its control API, in this process or in another.

    async with SandboxClient(url, key) as sandbox:
        max_ = await sandbox.person("Max")
        message = await max_.say("general", f"{sandbox.mention} hello")
        card = await max_.wait_for_message(message.id, lambda m: m.buttons)
        outcome = await max_.click(card, "Accept")

`person` has the actions of one person, and `administration` has the changes of the world. This module reads the world
and its log.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import aiohttp

from discord_sandbox.administration import Administration
from discord_sandbox.person import PATIENCE, Person, SandboxError, SandboxTimeout
from discord_sandbox.seen import Json, Outcome, Place

__all__ = ["Person", "SandboxClient", "SandboxError", "SandboxTimeout"]

_READY = re.compile(r"^sandbox ready (?P<api>\S+) (?P<gateway>\S+) control (?P<url>\S+) key=(?P<key>\S+)$")


class SandboxClient(Administration):
    """A connection to a sandbox's control API. Use it with `async with`."""

    def __init__(self, control_url: str, key: str, *, bot: str | None = None) -> None:
        self.control_url = control_url.rstrip("/")
        self._key = key
        self._bot = bot
        self._session: aiohttp.ClientSession | None = None
        self.bot_id = 0

    @classmethod
    def from_ready_line(cls, line: str) -> "SandboxClient":
        """Returns a client for the sandbox that printed this line first."""
        match = _READY.match(line.strip())
        if match is None:
            raise SandboxError(f"not a sandbox's ready line: {line!r}")
        return cls(match["url"], match["key"])

    async def __aenter__(self) -> "SandboxClient":
        # No limit on connections: two hundred people may wait for a response at once.
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
        """Find the bot that was named, or else the first one, which the sandbox was started for."""
        if self._bot is not None:
            return (await self.person(self._bot)).id
        return int((await self.world())["applications"][0]["id"])

    @property
    def mention(self) -> str:
        """The text that mentions the bot."""
        return f"<@{self.bot_id}>"

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Sends one request to the control API. Raises `SandboxError` with the server's message if it is refused."""
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
        """Downloads the bytes of an attachment."""
        async with aiohttp.ClientSession() as anonymous, anonymous.get(url) as response:
            response.raise_for_status()
            return await response.read()

    # The contents of the world.

    async def world(self) -> Json:
        """Everything that exists, as JSON: `users`, `applications`, `guilds`, `webhooks`, and the log's `head`."""
        return await self.call("GET", "/world")

    async def person(self, name: str | int) -> Person:
        """Finds somebody by name or id, bots included."""
        for user in (await self.world())["users"]:
            if str(name).lower() in (user["id"], user["name"].lower()):
                return Person(self, int(user["id"]), user["name"])
        raise SandboxError(f"nobody here is called {name!r}")

    async def add_person(self, name: str, *, accepts_dms: bool = True, number: int | None = None) -> Person:
        """Adds a person, in no server yet. If the name is taken, sets `accepts_dms` of that person.

        `number` can choose the id of a new person.
        """
        user = await self.call("POST", "/users", {"name": name, "accepts_dms": accepts_dms, "number": number})
        return Person(self, int(user["id"]), name)

    async def channel(self, name: str | int) -> Place:
        """Finds a server's channel or thread, by name or id."""
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

    # The log.

    async def head(self) -> int:
        """The number of the newest log entry."""
        return int((await self.world())["head"])

    async def log(self, after: int = 0, *, timeout: float = 0, kind: str = "", name: str = "") -> list[Json]:
        """Returns the log entries after a number. `name` is a prefix; with `timeout`, waits for the first entry."""
        page = await self.call("GET", "/log", after=after, timeout=timeout, kind=kind, name=name)
        return page["entries"]

    async def wait_for(
        self,
        name: str,
        matches: Callable[[Json], bool] | None = None,
        *,
        after: int = 0,
        timeout: float = PATIENCE,
        kind: str = "",
    ) -> Json:
        """Waits for the first log entry after `after` whose name starts with `name` and whose data match."""
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            page = await self.call("GET", "/log", after=after, timeout=left, kind=kind, name=name)
            for entry in page["entries"]:
                if matches is None or matches(entry["data"]):
                    return entry
            after = page["head"]
        raise SandboxTimeout(f"no {name!r} within {timeout} s")

    async def rest_calls(self, method: str = "", path: str = "", *, after: int = 0) -> list[Json]:
        """Returns the bot's REST calls, oldest first: method, path, status, body."""
        entries = [entry["data"] for entry in await self.log(after, kind="rest") if "status" in entry["data"]]
        return [e for e in entries if method in ("", e["method"]) and re.search(path, e["path"])]

    async def unknown_routes(self) -> list[str]:
        """Returns the bot's calls to routes that the sandbox does not have: method and path."""
        entries = await self.log(kind="rest", name="unknown_route")
        return [f"{entry['data']['method']} {entry['data']['path']}" for entry in entries]

    async def pings(self, *, after: int = 0) -> list[Json]:
        """Returns one entry for each time that people were really notified."""
        return [entry["data"] for entry in await self.log(after, kind="world", name="ping")]

    async def unfurls(self, *, after: int = 0) -> list[str]:
        """Returns the links that Discord would have fetched for a preview."""
        return [entry["data"]["url"] for entry in await self.log(after, kind="world", name="unfurl")]

    async def sessions(self) -> list[Json]:
        """Returns the gateway's sessions: `id`, `bot_id`, `intents`, `shard`, `seq`, and whether they are `live`."""
        return await self.call("GET", "/gateway")

    async def wait_for_bot(self, *, timeout: float = PATIENCE) -> None:
        """Waits until the bot is connected to the gateway."""
        end = time.monotonic() + timeout
        while not any(s["live"] and s["bot_id"] == str(self.bot_id) for s in await self.sessions()):
            if time.monotonic() > end:
                raise SandboxTimeout(f"the bot did not connect within {timeout} s")
            await asyncio.sleep(0.02)

    async def interaction(self, outcome: Outcome | int, *, wait: float = 0) -> Outcome:
        """Returns an interaction's present state, after waiting up to `wait` seconds for the bot."""
        number = outcome if isinstance(outcome, int) else outcome.id
        return Outcome(await self.call("GET", f"/interactions/{number}", wait=wait))

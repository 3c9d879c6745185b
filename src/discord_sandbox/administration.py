"""The methods of `SandboxClient` that change the world and cause faults.

Ordinary people cannot do these things; administrators, Discord itself or failures can. Each method sends one control
request.
"""

from collections.abc import Sequence
from typing import Any

from discord_sandbox.person import Line, Person, Where, place_id
from discord_sandbox.seen import Json, Outcome, Place, SeenMessage


class Administration(Line):
    """Roles, members, channels, the gateway's connections, faults, rate limits and settings."""

    async def grant(self, person: Person, role: str | int) -> None:
        """Gives a role to somebody."""
        await self.call("POST", "/roles", {"do": "grant", "role": str(role), "user": str(person.id)})

    async def revoke(self, person: Person, role: str | int) -> None:
        """Takes a role from somebody."""
        await self.call("POST", "/roles", {"do": "revoke", "role": str(role), "user": str(person.id)})

    async def create_role(self, name: str, permissions: int = 0, *, number: int | None = None) -> int:
        """Creates a role in the bot's server and returns its id, which `number` can choose."""
        body = {"do": "create", "role": name, "permissions": permissions, "number": number}
        role = await self.call("POST", "/roles", body)
        return int(role["id"])

    async def change_role(self, role: str | int, **changes: Any) -> None:
        """Changes a role: `permissions=...` or `mentionable=...`."""
        await self.call("POST", "/roles", {"do": "change", "role": str(role), **changes})

    async def delete_role(self, role: str | int) -> None:
        """Deletes a role, by name or id."""
        await self.call("POST", "/roles", {"do": "delete", "role": str(role)})

    async def overwrite(self, where: Where, target: str | int, *, allow: int = 0, deny: int = 0) -> None:
        """Sets what a channel allows or denies to a role or user, by id or name. With neither, removes the entry."""
        body = {"channel": place_id(where), "target": str(target), "allow": allow, "deny": deny}
        await self.call("POST", "/overwrites", body)

    async def join(self, person: Person, guild: str | None = None) -> None:
        """Adds a person or the bot to a server; without `guild`, to the bot's server."""
        await self.call("POST", "/members", {"do": "join", "user": str(person.id), "guild": guild})

    async def leave(self, person: Person, guild: str | None = None) -> None:
        """Removes a person or the bot from a server; without `guild`, from the bot's server."""
        await self.call("POST", "/members", {"do": "leave", "user": str(person.id), "guild": guild})

    async def create_channel(self, name: str, guild: str | None = None, *, number: int | None = None) -> Place:
        """Creates a text channel. `number` can choose its id."""
        return Place(await self.call("POST", "/channels", {"name": name, "guild": guild, "number": number}))

    async def delete_channel(self, where: Where) -> None:
        """Deletes a channel or a thread."""
        await self.call("POST", "/channels", {"do": "delete", "channel": place_id(where)})

    async def archive(self, thread: Where, archived: bool = True, *, locked: bool | None = None) -> Place:
        """Archives a thread or opens it again, and locks it if `locked` is given."""
        body = {"channel": place_id(thread), "archived": archived, "locked": locked}
        return Place(await self.call("POST", "/threads", body))

    async def archive_idle(self) -> list[str]:
        """Archives the threads that were quiet for long enough; shift the clock first."""
        return (await self.call("POST", "/threads/archive-idle"))["archived"]

    async def drop_sockets(self, *, resumable: bool = True, code: int | None = None) -> int:
        """Cuts the gateway's connections, with a close code if one is given, and returns their number."""
        return (await self.call("POST", "/gateway", {"do": "drop", "resumable": resumable, "code": code}))["sockets"]

    async def ask_reconnect(self) -> None:
        """Tells the bots to reconnect (gateway operation 7)."""
        await self.call("POST", "/gateway", {"do": "reconnect"})

    async def invalidate_sessions(self, *, resumable: bool = False) -> None:
        """Tells the bots that their session is invalid (gateway operation 9)."""
        await self.call("POST", "/gateway", {"do": "invalidate", "resumable": resumable})

    async def inject(self, event: str, data: Json, guild_id: int | None = None) -> int:
        """Sends a gateway event with this data, true or not, and returns the number of connections that got it."""
        body = {"do": "inject", "event": event, "data": data, "guild_id": guild_id}
        return (await self.call("POST", "/gateway", body))["sockets"]

    async def replay(self, outcome: Outcome | int, *, wait: float = 0.5) -> Outcome:
        """Delivers an old interaction again, with the same id and token."""
        number = outcome if isinstance(outcome, int) else outcome.id
        return Outcome(await self.call("POST", f"/interactions/{number}/replay", {"wait": wait}))

    async def fault(self, method: str = "*", path: str = "", **how: Any) -> None:
        """Makes the next matching calls fail.

        The keywords are `status`, `code`, `message`, `times`, `delay`, `retry_after`, `headers`, `body`, `drop` (cut
        the connection) and `after` (carry the call out first).
        """
        await self.call("POST", "/faults", {"method": method, "path": path, **how})

    async def clear_faults(self) -> None:
        """Removes all faults that are left."""
        await self.call("DELETE", "/faults")

    async def rate_limits(
        self, rules: Sequence[Json] | None = None, *, enabled: bool = True, per_second: int | None = 50
    ) -> None:
        """Switches rate limits on: the usual ones, or `rules` with the keys method, path, limit and per."""
        body: Json = {"enabled": enabled, "per_second": per_second}
        await self.call("POST", "/ratelimits", body if rules is None else body | {"rules": list(rules)})

    async def settings(self, **changes: Any) -> Json:
        """Changes the settings that are named. Returns the first five of the names below with their values.

        The names are `interaction_deadline`, `token_life`, `clock_shift`, `message_content`, `members`, `presences`,
        `attachment_limit`, `heartbeat_ms`, `nonce_seconds`, `hold_servers`, `add_token` and `remove_token`. While
        `hold_servers` is true, a bot that connects gets no data of its servers; false sends them. `bot` is the id or
        name of the bot whose intents and tokens change; without it, the first bot is meant.
        """
        return await self.call("POST", "/settings", changes)

    async def post_as_webhook(self, content: str, *, username: str | None = None, **fields: Any) -> SeenMessage:
        """Posts a message through the webhook; further fields are Discord's own."""
        hook = (await self.call("GET", "/world"))["webhooks"][0]["id"]
        body = {"content": content, "username": username, **fields}
        return SeenMessage(await self.call("POST", f"/webhooks/{hook}/messages", body))

    async def shutdown(self) -> None:
        """Stops the server."""
        await self.call("POST", "/shutdown")

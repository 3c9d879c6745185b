"""The page's event stream: the changes of the world as one person sees them, over a websocket.

It follows the event log from the number that the page names, so a page that was disconnected misses nothing. It only
sends; `page` handles actions.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from discord_sandbox.bundle import Sandbox
from discord_sandbox.eventlog import Entry
from discord_sandbox.model import Json, User
from discord_sandbox.web import view

QUIET_SECONDS = 20.0
_PLACES = ("thread.", "channel.", "guild.")
_CAUSES = ("interaction.create", "message.create")


@dataclass
class Batch:
    """The changes in some log entries, for one person. A later change to the same thing replaces an earlier one."""

    sandbox: Sandbox
    user: User
    events: list[Json] = field(default_factory=list[Json])
    _changed: dict[str, str] = field(default_factory=dict[str, str])
    _created: set[str] = field(default_factory=set[str])
    _places: bool = False
    _bot: bool = False

    def take(self, entries: list[Entry]) -> list[Json]:
        for entry in entries:
            if entry.kind == "world":
                self._world(entry)
            else:
                self._traffic(entry)
        for message_id, channel_id in self._changed.items():
            self._message(channel_id, message_id)
        if self._places or self._bot:
            self.events.append({"type": "state", "state": view.state(self.sandbox, self.user)})
        return self.events

    def _world(self, entry: Entry) -> None:
        data, name = entry.data, entry.name
        if name in ("message.create", "message.update", "reaction"):
            self._changed[data["message_id"]] = data["channel_id"]
            if name == "message.create":
                self._created.add(data["message_id"])
                where = self.sandbox.world.channels.get(int(data["channel_id"]))
                # A direct conversation is a place of its own from its first message on.
                self._places = self._places or (where is not None and self.user.id in where.recipients)
        elif name == "message.delete":
            self._changed.pop(data["message_id"], None)
            self.events.append({"type": "gone", "channel": data["channel_id"], "message": data["message_id"]})
        elif name == "typing" and data["user_id"] != str(self.user.id):
            where = self.sandbox.world.channels.get(int(data["channel_id"]))
            if where and view.may_see(self.sandbox, self.user, where):
                self.events.append({"type": "typing", "channel": data["channel_id"], "user": data["user_id"]})
        elif name.startswith(_PLACES):
            self._places = True
        if name in _CAUSES and self._by_a_person(entry):
            self.events.append({"type": "cause", "seq": entry.seq, "at": entry.at, "name": name, "data": data})

    def _by_a_person(self, entry: Entry) -> bool:
        author = entry.data.get("author_id") or entry.data.get("user_id")
        user = self.sandbox.world.users.get(int(author or 0))
        return user is not None and not user.bot

    def _traffic(self, entry: Entry) -> None:
        if entry.name in ("READY", "RESUMED", "DISCONNECTED", "CLOSE"):
            self._bot = True
        self.events.append({"type": "traffic", **entry.as_json()})

    def _message(self, channel_id: str, message_id: str) -> None:
        sb = self.sandbox
        where = sb.world.channels.get(int(channel_id))
        message = sb.world.message(int(channel_id), int(message_id))
        if where is None or message is None or not view.may_see(sb, self.user, where, message):
            return
        body = view.message(sb, message, self.user)
        self.events.append({"type": "message", "message": body, "created": message_id in self._created})


async def serve(
    sandbox: Sandbox, user: User, after: int, run: str, request: web.Request, tour: Callable[[], Json] | None
) -> web.WebSocketResponse:
    """Send changes until the page is closed. A page that knows another run of the sandbox reloads everything.

    `tour` returns how far the steps of the guide are.
    """
    socket = web.WebSocketResponse(heartbeat=QUIET_SECONDS)
    await socket.prepare(request)
    if request.query.get("run", run) != run or after > sandbox.log.head:
        await socket.send_json({"head": sandbox.log.head, "events": [{"type": "reset"}]})
        after = sandbox.log.head
    writer = asyncio.create_task(_write(sandbox, user, after, socket, tour))
    try:
        async for _ in socket:  # the page sends nothing, but reading is needed to notice pongs and the end
            pass
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
    return socket


async def _write(
    sandbox: Sandbox, user: User, after: int, socket: web.WebSocketResponse, tour: Callable[[], Json] | None
) -> None:
    told: Json | None = None  # a page that was disconnected does not know how far the steps are now
    while not socket.closed:
        entries = await sandbox.log.wait(after, None, QUIET_SECONDS)
        if entries:
            after = entries[-1].seq
            events = Batch(sandbox, user).take(entries)
            if tour and any(entry.name.startswith("message.") for entry in entries) and (now := tour()) != told:
                told = now
                events.append({"type": "tour", "tour": told})
            await socket.send_json({"head": after, "events": events})

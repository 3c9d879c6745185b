"""The gateway's protocol over one websocket: hello, identify, heartbeat, resume, and the close codes.

This module handles sessions and sends a new bot its servers; it does not know why events happen.
"""

import asyncio
import json
import zlib
from typing import Any

from aiohttp import WSMsgType, web

from discord_sandbox import guilds
from discord_sandbox.eventlog import EventLog
from discord_sandbox.model import Application, Json
from discord_sandbox.payloads import Payloads
from discord_sandbox.reading import entries, fields, numbers
from discord_sandbox.sessions import Closing, Outbox, Session, Sessions, Viewer

HEARTBEAT, IDENTIFY, PRESENCE, VOICE_STATE, RESUME, RECONNECT = 1, 2, 3, 4, 6, 7
REQUEST_MEMBERS, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 8, 9, 10, 11
GUILDS, MEMBERS, PRESENCES, MESSAGE_CONTENT = 1 << 0, 1 << 1, 1 << 8, 1 << 15
KNOWN_INTENTS = (1 << 26) - 1
MAX_FRAME = 4096
ACK_SECONDS = 0.1
"""How long an acknowledgement takes, as on a network. discord.py notes the time of a heartbeat after it was sent. It
compares an acknowledgement that comes at once with the heartbeat before, and logs that it is 41 seconds behind."""


class Refused(Exception):
    """A client's frame was refused; the connection ends with this close code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Gateway:
    def __init__(self, payloads: Payloads, sessions: Sessions, log: EventLog) -> None:
        self.payloads = payloads
        self.sessions = sessions
        self.log = log
        self.url = ""
        self.heartbeat_ms = 41_250
        self.holds_guilds = False
        """Whether new sessions get no data of their servers, as in the first seconds of a bot with many servers."""
        self._connections: set[Connection] = set()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        # Discord compresses whole connections with its own scheme (`compress`), not with the one of websockets.
        socket = web.WebSocketResponse(max_msg_size=1 << 20, compress=False)
        await socket.prepare(request)
        connection = Connection(self, request, socket)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
        return socket

    def drop(self, *, resumable: bool, code: int | None = None) -> int:
        """Cut every socket and return their number."""
        for connection in list(self._connections):
            if connection.session is not None and not resumable:
                self.sessions.forget(connection.session)
            connection.outbox.put_nowait(Closing(code))
        return len(self._connections)

    def release_guilds(self) -> None:
        """Send the data of the servers that were held back."""
        self.holds_guilds = False
        for connection in self._connections:
            if connection.session is not None:
                connection.send_guilds(connection.session)

    def tell_all(self, op: int, data: Any) -> int:
        """Send a bare operation (reconnect, invalid session, heartbeat request) to all sockets."""
        for connection in self._connections:
            if op == INVALID_SESSION and data is False and connection.session is not None:
                self.sessions.forget(connection.session)
            connection.send(op, data)
        return len(self._connections)


class Connection:
    def __init__(self, gateway: Gateway, request: web.Request, socket: web.WebSocketResponse) -> None:
        self.gateway = gateway
        self.request = request
        self.socket = socket
        self.outbox: Outbox = asyncio.Queue()
        self.session: Session | None = None
        self._deflate = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None

    async def run(self) -> None:
        writer = asyncio.create_task(self._write())
        self.send(HELLO, {"heartbeat_interval": self.gateway.heartbeat_ms, "_trace": ["sandbox"]})
        try:
            async for frame in self.socket:
                if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                self._receive(frame.data)
        finally:
            writer.cancel()
            if self.session is not None:
                # With codes 1000 and 1001 a client ends its session; with any other, the session can be resumed.
                resumable = self.socket.close_code not in (1000, 1001)
                self.gateway.sessions.detach(self.session, self.outbox, resumable=resumable)
            self.gateway.log.add("gateway", "DISCONNECTED", {"code": self.socket.close_code})

    def send(self, op: int, data: Any) -> None:
        self.outbox.put_nowait(json.dumps({"op": op, "d": data, "s": None, "t": None}))

    def close(self, code: int, reason: str) -> None:
        self.gateway.log.add("gateway", "CLOSE", {"code": code, "reason": reason})
        self.outbox.put_nowait(Closing(code, reason))

    async def _write(self) -> None:
        try:
            while not isinstance(item := await self.outbox.get(), Closing):
                await self._send_frame(item)
        except ConnectionError:
            return  # the reader notices the same end and cleans up
        if item.code is not None:
            await self.socket.close(code=item.code, message=item.reason.encode())
        elif self.request.transport is not None:
            self.request.transport.abort()

    async def _send_frame(self, text: str) -> None:
        """Send a frame as text, or with `compress=zlib-stream` as part of the connection's compressed stream."""
        if self._deflate is None:
            await self.socket.send_str(text)
        else:
            part = self._deflate.compress(text.encode()) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
            await self.socket.send_bytes(part)

    def _receive(self, raw: str | bytes) -> None:
        try:
            if len(raw) > MAX_FRAME:
                raise Refused(4002, "Payload too large.")
            try:
                frame = fields(json.loads(raw))
            except ValueError:
                raise Refused(4002, "Error while decoding payload.") from None
            self._obey(frame.get("op"), fields(frame.get("d")))
        except Refused as refused:
            self.close(refused.code, refused.reason)

    def _obey(self, op: Any, data: Json) -> None:
        if op == HEARTBEAT:
            asyncio.get_running_loop().call_later(ACK_SECONDS, self.send, HEARTBEAT_ACK, None)
            return
        self.gateway.log.add("gateway", f"RECEIVED {op}", {"op": op})
        if op in (IDENTIFY, RESUME):
            if self.session is not None:
                raise Refused(4005, "Already authenticated.")
            app = self.gateway.payloads.world.application_of_token(str(data.get("token", "")).removeprefix("Bot "))
            if app is None:
                raise Refused(4004, "Authentication failed.")
            (self._identify if op == IDENTIFY else self._resume)(app, data)
        elif self.session is None:
            raise Refused(4003, "Not authenticated.")
        elif op == REQUEST_MEMBERS:
            self._send_members(self.session, data)
        elif op not in (PRESENCE, VOICE_STATE):
            raise Refused(4001, "Unknown opcode.")

    def _identify(self, app: Application, data: Json) -> None:
        intents = data.get("intents")
        if not isinstance(intents, int) or intents & ~KNOWN_INTENTS:
            raise Refused(4013, "Invalid intent(s).")
        if _privileged(intents) & ~_granted(app):
            raise Refused(4014, "Disallowed intent(s).")
        number, count = numbers(data.get("shard")) or (0, 1)
        if not 0 <= number < count:
            raise Refused(4010, "Invalid shard.")
        session = self.gateway.sessions.open(Viewer(app.id, intents), (number, count), self.outbox)
        self.session = session
        self._introduce(session, app)

    def _introduce(self, session: Session, app: Application) -> None:
        payloads = self.gateway.payloads
        places = [guild for guild in payloads.world.guilds_of(app.id) if session.hears(guild.id)]
        ready: Json = {
            "v": 10,
            "user": payloads.own_user(payloads.world.users[app.id]),
            "guilds": [{"id": str(guild.id), "unavailable": True} for guild in places],
            "session_id": session.id,
            "resume_gateway_url": self.gateway.url,
            "session_type": "normal",
            "private_channels": [],
            "relationships": [],
            "shard": list(session.shard),
            "application": {"id": str(app.id), "flags": guilds.application_flags(app)},
        }
        session.send("READY", ready)
        self.gateway.log.add("gateway", "READY", {"session": session.id, "bot": str(app.id)})
        if not self.gateway.holds_guilds:
            self.send_guilds(session)

    def send_guilds(self, session: Session) -> None:
        payloads, viewer = self.gateway.payloads, session.viewer
        if viewer.intents & GUILDS:
            for guild in payloads.world.guilds_of(viewer.bot_id):
                if session.hears(guild.id):
                    session.send("GUILD_CREATE", guilds.guild_create(payloads, guild, viewer.bot_id, viewer.intents))

    def _resume(self, app: Application, data: Json) -> None:
        gateway = self.gateway
        session = gateway.sessions.find(str(data.get("session_id")))
        seq = data.get("seq")
        if session is None or session.viewer.bot_id != app.id or not isinstance(seq, int):
            gateway.log.add("gateway", "RESUME REFUSED", {"session": data.get("session_id")})
            self.send(INVALID_SESSION, False)
            return
        if seq > session.seq:
            raise Refused(4007, "Invalid seq.")
        if not session.can_replay(seq):
            gateway.sessions.forget(session)
            self.send(INVALID_SESSION, False)
            return
        self.session = session
        session.outbox, session.detached_at = self.outbox, None
        missed = [frame for number, frame in session.frames if number > seq]
        for frame in missed:
            self.outbox.put_nowait(frame)
        session.send("RESUMED", {"_trace": ["sandbox"]})
        gateway.log.add("gateway", "RESUMED", {"session": session.id, "bot": str(app.id), "replayed": len(missed)})

    def _send_members(self, session: Session, data: Json) -> None:
        payloads = self.gateway.payloads
        asked = data.get("guild_id")
        guild = payloads.world.guilds.get(int((entries(asked) or [asked])[0] or 0))
        if guild is None or session.viewer.bot_id not in guild.members:
            return
        query, wanted = data.get("query"), data.get("user_ids")
        members = list(guild.members.values())
        if wanted is not None:
            ids = set(numbers(wanted if isinstance(wanted, list) else [wanted]))
            members = [member for member in members if member.user_id in ids]
        elif query or data.get("limit"):
            prefix = str(query or "").lower()
            members = [m for m in members if payloads.world.users[m.user_id].name.lower().startswith(prefix)]
            members = members[: int(data.get("limit") or 100)]
        elif not session.viewer.intents & MEMBERS:
            raise Refused(4014, "Disallowed intent(s).")
        chunk: Json = {
            "guild_id": str(guild.id),
            "members": [payloads.member(member) for member in members],
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": [],
        }
        session.send("GUILD_MEMBERS_CHUNK", chunk | ({"nonce": data["nonce"]} if data.get("nonce") else {}))


def _privileged(intents: int) -> int:
    return intents & (MEMBERS | PRESENCES | MESSAGE_CONTENT)


def _granted(app: Application) -> int:
    return (app.members * MEMBERS) | (app.presences * PRESENCES) | (app.message_content * MESSAGE_CONTENT)

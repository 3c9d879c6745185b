"""Gateway sessions: who is connected, what each one receives, and what is replayed after a dropped socket.

This module numbers and stores frames; `gateway` has the protocol.
"""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from discord_sandbox.clock import Clock
from discord_sandbox.eventlog import EventLog
from discord_sandbox.model import Json

REPLAY_KEPT = 5000
RESUME_SECONDS = 180.0


@dataclass(frozen=True)
class Viewer:
    """The receiver of an event: a bot, and the intents that it asked for."""

    bot_id: int
    intents: int


Render = Callable[[Viewer], Json | None]
Outbox = asyncio.Queue["str | Closing"]


@dataclass(frozen=True)
class Closing:
    """The last entry of an outbox: how to end the connection. Without a code, it is cut without a close frame."""

    code: int | None
    reason: str = ""


@dataclass
class Session:
    id: str
    viewer: Viewer
    shard: tuple[int, int]
    seq: int = 0
    frames: deque[tuple[int, str]] = field(default_factory=lambda: deque[tuple[int, str]](maxlen=REPLAY_KEPT))
    outbox: Outbox | None = None
    detached_at: float | None = None

    def send(self, name: str, data: Json) -> None:
        self.seq += 1
        frame = json.dumps({"op": 0, "t": name, "s": self.seq, "d": data})
        self.frames.append((self.seq, frame))
        if self.outbox is not None:
            self.outbox.put_nowait(frame)

    def hears(self, guild_id: int | None) -> bool:
        """Whether this session gets a server's events. They go to one shard; direct messages go to shard 0."""
        number, count = self.shard
        return number == 0 if guild_id is None else (guild_id >> 22) % count == number

    def can_replay(self, seq: int) -> bool:
        return seq == self.seq or bool(self.frames and self.frames[0][0] <= seq + 1 <= self.seq)


@dataclass(frozen=True)
class Reach:
    """The number of sessions that an event reached: connected ones, and ones that may still resume."""

    live: int
    waiting: int


class Sessions:
    def __init__(self, clock: Clock, log: EventLog) -> None:
        self._clock = clock
        self._log = log
        self._sessions: dict[str, Session] = {}

    def open(self, viewer: Viewer, shard: tuple[int, int], outbox: Outbox) -> Session:
        session = Session(secrets.token_hex(16), viewer, shard, outbox=outbox)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str) -> Session | None:
        self._forget_old()
        return self._sessions.get(session_id)

    def detach(self, session: Session, outbox: Outbox, *, resumable: bool) -> None:
        """Handle the end of a socket. A session that cannot be resumed ends with it."""
        if session.outbox is not outbox:
            return  # another socket has already resumed the session
        session.outbox = None
        session.detached_at = self._clock.now()
        if not resumable:
            self._sessions.pop(session.id, None)

    def forget(self, session: Session) -> None:
        self._sessions.pop(session.id, None)

    def all(self) -> list[Session]:
        return list(self._sessions.values())

    def live(self) -> list[Session]:
        return [session for session in self._sessions.values() if session.outbox is not None]

    def publish(self, name: str, render: Render, *, guild_id: int | None, intent: int = 0) -> Reach:
        """Send an event to the sessions that asked for it. `render` returns None for a bot that may not see it."""
        self._forget_old()
        live = waiting = 0
        for session in self._sessions.values():
            if not session.hears(guild_id) or (intent and not session.viewer.intents & intent):
                continue
            data = render(session.viewer)
            if data is None:
                continue
            session.send(name, data)
            live, waiting = (live + 1, waiting) if session.outbox is not None else (live, waiting + 1)
            self._log.add("gateway", name, {"session": session.id, "live": session.outbox is not None, "d": data})
        return Reach(live, waiting)

    def _forget_old(self) -> None:
        horizon = self._clock.now() - RESUME_SECONDS
        old = [s for s in self._sessions.values() if s.detached_at is not None and s.detached_at < horizon]
        for session in old:
            if session.outbox is None:
                self._sessions.pop(session.id, None)

"""The way to a server for the tools. `bot` implements it; without Discord there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from signoff.dataclass import dataclass
from signoff.errors import SignoffError
from signoff.servers.model import Act, Channel, Member, Message, Role, Situation


class NotDone(SignoffError):
    """Nothing was changed. The text says why."""


class MayHaveRun(SignoffError):
    """Discord did not answer: nobody knows whether the act was done."""


@dataclass(frozen=True, slots=True)
class ChannelEntry:
    channel: Channel
    inside: str
    """The name of its category, or of the channel of a thread; empty if none."""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class MemberList:
    members: Sequence[Member]
    has_more: bool
    """Whether there are further members."""


class Servers(Protocol):
    """Each method may be called on any event loop, and raises NotDone if something cannot be looked up."""

    async def look(self, server: str, asker: str, act: Act) -> Situation:
        """Return everything that the act depends on, fresh from Discord."""
        ...

    async def carry_out(self, server: str, act: Act, now: Situation, reason: str) -> str:
        """Do it, and return the id of what was made. Raises NotDone or MayHaveRun. Checks no authority."""
        ...

    async def history(
        self, server: str, asker: str, channel: str, limit: int, before: str
    ) -> tuple[Channel, Sequence[Message]]:
        """Return a channel that the asker can see, and its messages before a message or the newest, oldest first."""
        ...

    async def members(self, server: str, asker: str, name: str, limit: int) -> MemberList:
        """Return members whose name begins so; an empty name means all of them, which needs a privileged intent."""
        ...

    async def roles(self, server: str, asker: str) -> Sequence[Role]:
        """Return all roles, the highest first."""
        ...

    async def channels(self, server: str, asker: str) -> Sequence[ChannelEntry]:
        """Return the channels and open threads that the asker can see."""
        ...

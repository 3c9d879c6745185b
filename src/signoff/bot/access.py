"""Who may ask: a pure decision on plain ids. This module knows neither Discord objects nor who may decide."""

from __future__ import annotations

from signoff.approvals.model import DIRECT, Actor
from signoff.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's limits, as ids. An empty set means no limit, except for `dm_users`, where it means nobody."""

    servers: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    dm_users: frozenset[str] = frozenset()

    def refusal(self, actor: Actor, channels: frozenset[str]) -> str | None:
        """Say why this person may not ask here; None if they may.

        `channels` holds the ids of this place: the channel, and for a thread its parent too.
        """
        if actor.is_bot:
            return "I don't take requests from bots."
        if actor.server == DIRECT:
            return None if actor.id in self.dm_users else "I don't take requests from you in direct messages."
        if self.servers and actor.server not in self.servers:
            return "I don't take requests in this server."
        if self.channels and not self.channels & channels:
            return "I don't take requests in this channel."
        if self.roles and not self.roles & actor.roles:
            return "I take requests only from members with certain roles, and you have none of those roles."
        return None

"""Who may ask: a pure decision on plain ids. Knows nothing of Discord's objects, and nothing of who may decide."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.approvals.model import DIRECT, Actor


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's limits, as ids. Empty means no limit, except for direct messages: there empty means nobody."""

    servers: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    dm_users: frozenset[str] = frozenset()

    def refusal(self, actor: Actor, channels: frozenset[str]) -> str | None:
        """Why this person may not ask here, in words for them; None if they may.

        `channels` holds the ids that count as this place: the channel, and for a thread its parent too.
        """
        if actor.is_bot:
            return "I do not take requests from bots."
        if actor.server == DIRECT:
            return None if actor.id in self.dm_users else "I do not take requests in direct messages from you."
        if self.servers and actor.server not in self.servers:
            return "I do not take requests in this server."
        if self.channels and not self.channels & channels:
            return "I do not take requests in this channel."
        if self.roles and not self.roles & actor.roles:
            return "I take requests only from members with certain roles, and you have none of them."
        return None

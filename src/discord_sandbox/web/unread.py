"""What each person has not read yet: the newest message that they saw per channel, and which later ones mention them.

The marks are kept in memory. Messages from before the start of this run count as read.
"""

from dataclasses import dataclass, field

from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import Channel, ChannelType, Json, User
from discord_sandbox.web import view


@dataclass
class Unread:
    sandbox: Sandbox
    marks: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """(user id, channel id) -> the id of the newest message that the person has seen there."""
    start: int = 0
    """Messages up to this id count as read by everybody."""

    def __post_init__(self) -> None:
        self.start = self.sandbox.world.ids.next()

    def read(self, user: User, where: Channel) -> None:
        """Note that the person has seen everything in this channel."""
        self.marks[user.id, where.id] = where.last_message_id or 0

    def of(self, user: User) -> Json:
        """Return channel id -> the ids of the unread messages that mention the person; empty if none of them does."""
        unread: Json = {}
        for where in self.sandbox.world.channels.values():
            mark = max(self.marks.get((user.id, where.id), 0), self.start)
            if (where.last_message_id or 0) <= mark or not view.may_see(self.sandbox, user, where):
                continue
            if where.type == ChannelType.DM and user.id not in where.recipients:
                continue
            later = [
                message
                for message in self.sandbox.world.history(where.id)
                if message.id > mark and message.author_id != user.id and message.ephemeral_to is None
            ]
            if later:
                unread[str(where.id)] = [str(m.id) for m in later if view.pings(m, user)]
        return unread

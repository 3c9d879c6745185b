"""The tools that change a Discord server. Each of them asks for approval, with a preview on its card.

Before the card is made, and again when the tool runs, the situation is fetched from Discord: an act that the asker
could not do themselves, or that the bot cannot do, is refused. The model reads the docstrings of the tools.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints
from pydantic_ai import ApprovalRequired, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.servers.arguments import (
    MOST_DELETED,
    ChannelId,
    ChannelIdOrNone,
    MessageId,
    MessageIdOrNone,
    Reason,
    RoleId,
    UserId,
    server_of,
)
from signoff.dataclass import dataclass
from signoff.gate.lost_calls import CallLost
from signoff.gate.pending_call import Preview
from signoff.servers.authority import refusal
from signoff.servers.model import Act, Kind, Ping, Situation
from signoff.servers.permissions import NEEDS
from signoff.servers.ports import MayHaveRun, NotDone, Servers
from signoff.servers.wording import audit_reason, describe, done, operands

PostText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Messages = Annotated[list[MessageId], Field(min_length=1, max_length=MOST_DELETED)]
LONGEST_TIMEOUT = 28 * 24 * 60
LONGEST_SLOW_MODE = 21_600


@dataclass(frozen=True, slots=True)
class ActingTools:
    servers: Servers | None

    def tools(self) -> list[Tool[Any]]:
        return [self._tool(kind, getattr(self, kind.value)) for kind in Kind]

    def _tool(self, kind: Kind, function: Any) -> Tool[Any]:
        marks = {"acts": True, "destructive": NEEDS[kind].destructive, "idempotent": NEEDS[kind].idempotent}
        return Tool(function, requires_approval=True, metadata={"preview": partial(self._preview, kind), **marks})

    async def post_message(
        self,
        ctx: RunContext[Any],
        channel: ChannelId,
        text: PostText,
        ping: Literal["nobody", "people", "everyone"] = "nobody",
    ) -> str:
        """Post a message in a channel or thread. A person must accept it first.

        Args:
            channel: The channel's id.
            text: The message, in Discord's Markdown.
            ping: Whom it notifies: nobody, the people whom the text mentions as <@id>, or everyone by @everyone.
        """
        return await self._do(ctx, Kind.POST, channel=channel, text=text, ping=ping)

    async def pin_message(self, ctx: RunContext[Any], channel: ChannelId, message: MessageId) -> str:
        """Pin a message of a channel. A person must accept it first.

        Args:
            channel: The channel's id.
            message: The message's id.
        """
        return await self._do(ctx, Kind.PIN, channel=channel, message=message)

    async def unpin_message(self, ctx: RunContext[Any], channel: ChannelId, message: MessageId) -> str:
        """Unpin a message of a channel. A person must accept it first.

        Args:
            channel: The channel's id.
            message: The message's id.
        """
        return await self._do(ctx, Kind.UNPIN, channel=channel, message=message)

    async def create_thread(
        self, ctx: RunContext[Any], channel: ChannelId, name: Name, message: MessageIdOrNone = ""
    ) -> str:
        """Create a public thread in a text channel. A person must accept it first.

        Args:
            channel: The channel's id.
            name: The thread's name.
            message: The id of the message that the thread starts from. Empty: it starts from none.
        """
        return await self._do(ctx, Kind.THREAD, channel=channel, name=name, message=message)

    async def create_channel(
        self,
        ctx: RunContext[Any],
        name: Name,
        topic: Annotated[str, Field(max_length=1024)] = "",
        category: ChannelIdOrNone = "",
    ) -> str:
        """Create a text channel. A person must accept it first.

        Args:
            name: The channel's name, in lower case and with hyphens.
            topic: The channel's topic.
            category: The id of the category that it is created in. Empty: in none.
        """
        return await self._do(ctx, Kind.CHANNEL, name=name, topic=topic, category=category)

    async def set_slow_mode(
        self, ctx: RunContext[Any], channel: ChannelId, seconds: Annotated[int, Field(ge=0, le=LONGEST_SLOW_MODE)]
    ) -> str:
        """Set the slow mode of a channel: the time between two messages of one person. A person must accept it first.

        Args:
            channel: The channel's id.
            seconds: The time in seconds. 0 turns the slow mode off.
        """
        return await self._do(ctx, Kind.SLOW_MODE, channel=channel, seconds=seconds)

    async def time_out_member(
        self,
        ctx: RunContext[Any],
        member: UserId,
        minutes: Annotated[int, Field(ge=0, le=LONGEST_TIMEOUT)],
        reason: Reason = "",
    ) -> str:
        """Time out a member, who then cannot write, or end a timeout. A person must accept it first.

        Args:
            member: The member's id.
            minutes: How long, in minutes. 0 ends a timeout.
            reason: Why, for the server's audit log.
        """
        return await self._do(ctx, Kind.TIME_OUT, member=member, minutes=minutes, reason=reason)

    async def kick_member(self, ctx: RunContext[Any], member: UserId, reason: Reason = "") -> str:
        """Kick a member from the server. They can come back with an invitation. A person must accept it first.

        Args:
            member: The member's id.
            reason: Why, for the server's audit log.
        """
        return await self._do(ctx, Kind.KICK, member=member, reason=reason)

    async def ban_member(
        self,
        ctx: RunContext[Any],
        member: UserId,
        delete_days: Annotated[int, Field(ge=0, le=7)] = 0,
        reason: Reason = "",
    ) -> str:
        """Ban a member from the server. A person must accept it first.

        Args:
            member: The member's id.
            delete_days: Also delete their messages of this many last days.
            reason: Why, for the server's audit log.
        """
        return await self._do(ctx, Kind.BAN, member=member, delete_days=delete_days, reason=reason)

    async def unban_user(self, ctx: RunContext[Any], user: UserId, reason: Reason = "") -> str:
        """Lift the ban of a user. A person must accept it first.

        Args:
            user: The user's id.
            reason: Why, for the server's audit log.
        """
        return await self._do(ctx, Kind.UNBAN, user=user, reason=reason)

    async def delete_messages(
        self, ctx: RunContext[Any], channel: ChannelId, messages: Messages, reason: Reason = ""
    ) -> str:
        """Delete messages of a channel for good. Read the channel first. A person must accept it first.

        Args:
            channel: The channel's id.
            messages: The ids of the messages.
            reason: Why, for the server's audit log.
        """
        return await self._do(ctx, Kind.DELETE, channel=channel, messages=messages, reason=reason)

    async def assign_role(self, ctx: RunContext[Any], member: UserId, role: RoleId, reason: Reason = "") -> str:
        """Give a role to a member. A person must accept it first.

        Args:
            member: The member's id.
            role: The role's id.
            reason: Why, for the server's audit log.
        """
        return await self._do(ctx, Kind.ASSIGN, member=member, role=role, reason=reason)

    async def remove_role(self, ctx: RunContext[Any], member: UserId, role: RoleId, reason: Reason = "") -> str:
        """Take a role from a member. A person must accept it first.

        Args:
            member: The member's id.
            role: The role's id.
            reason: Why, for the server's audit log.
        """
        return await self._do(ctx, Kind.REMOVE, member=member, role=role, reason=reason)

    async def _preview(self, kind: Kind, ctx: RunContext[Any], **args: Any) -> Preview:
        servers, info = server_of(ctx, self.servers)
        act = act_of(kind, args)
        now = await _allowed(servers, info.place.server, info.asker.id, act)
        return Preview(describe(act, now), operands(act, now))

    async def _do(self, ctx: RunContext[Any], kind: Kind, **args: Any) -> str:
        servers, info = server_of(ctx, self.servers)
        act = act_of(kind, args)
        now = await _allowed(servers, info.place.server, info.asker.id, act)
        if ctx.tool_call_approved and operands(act, now) != dict(info.operands):
            raise ApprovalRequired(metadata={"summary": "Something has changed since this was approved. Look again."})
        assert now.asker is not None
        reason = audit_reason(now.asker, info.approved_by, str(args.get("reason", "")))
        try:
            made = await servers.carry_out(info.place.server, act, now, reason)
        except NotDone as error:
            raise ToolFailed(f"Not done: {error}") from error
        except MayHaveRun as error:
            raise CallLost(f"{error} It may have been done: look before you repeat it.") from error
        return done(act, now, made)


async def _allowed(servers: Servers, server: str, asker: str, act: Act) -> Situation:
    """Return the situation of now. Raises ToolFailed if the act is refused."""
    try:
        now = await servers.look(server, asker, act)
    except NotDone as error:
        raise ToolFailed(f"Refused: {error}") from error
    if why := refusal(act, now):
        raise ToolFailed(f"Refused: {why}")
    return now


def act_of(kind: Kind, args: dict[str, Any]) -> Act:
    """Return the act that a tool's arguments mean."""
    messages = args.get("messages") or ([args["message"]] if args.get("message") else [])
    name = str(args.get("name", ""))
    return Act(
        kind,
        channel=args.get("channel") or args.get("category") or "",
        member=args.get("member") or args.get("user") or "",
        role=args.get("role", ""),
        messages=tuple(dict.fromkeys(messages)),
        text=args.get("text") or name,
        topic=args.get("topic", ""),
        number=args.get("seconds", 0) or args.get("minutes", 0) or args.get("delete_days", 0),
        ping=Ping(args.get("ping", "nobody")),
    )

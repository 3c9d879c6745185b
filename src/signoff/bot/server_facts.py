"""From discord.py's people, roles, channels and messages to plain data for the Discord tools."""

from __future__ import annotations

from collections.abc import Iterable

import discord

from signoff.servers.model import Channel, ChannelKind, Member, Message, Role

AnyChannel = discord.abc.GuildChannel | discord.Thread


def role_facts(role: discord.Role) -> Role:
    return Role(
        str(role.id),
        role.name,
        (role.position, -role.id),
        rights_of(role.permissions),
        is_everyone=role.is_default(),
        is_managed=role.managed,
    )


def member_facts(member: discord.Member, here: frozenset[str] = frozenset()) -> Member:
    return Member(
        str(member.id),
        member.display_name,
        tuple(role_facts(role) for role in reversed(member.roles) if not role.is_default()),
        rights_of(member.guild_permissions),
        here,
        is_owner=member.guild.owner_id == member.id,
        is_bot=member.bot,
        silenced_until=stamp(member.timed_out_until) if member.is_timed_out() and member.timed_out_until else "",
    )


def channel_facts(channel: AnyChannel) -> Channel:
    return Channel(
        str(channel.id),
        channel.name,
        _kind(channel),
        int(getattr(channel, "slowmode_delay", 0)),
        is_locked=isinstance(channel, discord.Thread) and channel.locked,
    )


def message_facts(message: discord.Message, me: int, *, reads_text: bool) -> Message:
    """Return a message. `reads_text`: whether the application has the Message Content intent.

    Without it Discord sends the text only of messages by the bot itself and of those that mention it.
    """
    extras = [
        *_count(len(message.attachments), "file"),
        *_count(len(message.embeds), "embed"),
        *(["components"] if message.components else []),
    ]
    is_own = message.author.id == me or any(user.id == me for user in message.mentions)
    text = message.content or ("" if message.type is discord.MessageType.default else message.system_content or "")
    return Message(
        str(message.id),
        str(message.author.id),
        message.author.display_name,
        stamp(message.created_at),
        text,
        is_withheld=not (text or extras or reads_text or is_own),
        is_pinned=message.pinned,
        extras=", ".join(extras),
    )


def rights_of(permissions: discord.Permissions) -> frozenset[str]:
    names = {name for name, granted in permissions if granted}
    return frozenset(names | {"view_channel"}) if permissions.view_channel else frozenset(names)


def stamp(moment: object) -> str:
    """Return a moment to the second, in UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _kind(channel: AnyChannel) -> ChannelKind:
    match channel:
        case discord.Thread():
            return ChannelKind.THREAD
        case discord.TextChannel():
            return ChannelKind.TEXT
        case discord.CategoryChannel():
            return ChannelKind.CATEGORY
        case discord.VoiceChannel() | discord.StageChannel():
            return ChannelKind.VOICE
        case discord.ForumChannel():
            return ChannelKind.FORUM
        case _:
            return ChannelKind.OTHER


def _count(number: int, what: str) -> Iterable[str]:
    return [f"{number} {what}{'' if number == 1 else 's'}"] if number else []

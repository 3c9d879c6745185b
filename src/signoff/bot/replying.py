"""Whether the bot can reply in a channel, from what Discord reported about roles and permissions. Sends nothing.

Three outcomes, because data about a server may not have arrived yet: yes, no, and not known. Not known is not no.
"""

from __future__ import annotations

import discord

THREADED = (discord.ChannelType.text, discord.ChannelType.news)
Channel = discord.abc.GuildChannel | discord.Thread


def permissions(channel: Channel, me: discord.Member | None) -> discord.Permissions | None:
    """Return the bot's permissions in a channel. None: not known."""
    if me is None or me.guild.unavailable or channel.guild.unavailable or me.guild.default_role is None:  # pyright: ignore[reportUnnecessaryComparison]
        return None
    try:
        return channel.permissions_for(me)
    except discord.ClientException:  # a thread whose channel is not cached
        return None


def opens_thread(channel: Channel, allowed: discord.Permissions | None) -> bool:
    """Whether to open a thread for the reply. If it is not known whether the bot may, try."""
    if isinstance(channel, discord.Thread) or channel.type not in THREADED:
        return False
    return allowed is None or (
        allowed.view_channel and allowed.create_public_threads and allowed.send_messages_in_threads
    )


def missing(channel: Channel, allowed: discord.Permissions | None) -> list[str]:
    """Return the permissions without which no reply can be posted. Empty: a reply can be posted, or it is not known."""
    if allowed is None:
        return []
    send = {"Send Messages": allowed.send_messages}
    if isinstance(channel, discord.Thread):
        send = {"Send Messages in Threads": allowed.send_messages_in_threads}
    elif opens_thread(channel, allowed):
        send = {}
    return [name for name, given in {"View Channel": allowed.view_channel, **send}.items() if not given]


def may_ask(channel: discord.abc.GuildChannel, person: discord.Member) -> bool:
    """Whether this person may write in the channel."""
    rights = channel.permissions_for(person)
    return rights.view_channel and rights.send_messages

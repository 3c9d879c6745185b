"""The world as the page shows it to one person: places, people, messages with their text already rendered.

This module only reads, and only what that person may see. The page inserts `html` as HTML and everything else as plain
text.
"""

from typing import Any, cast

from discord_sandbox import people
from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import Channel, ChannelType, Guild, Json, Message, MessageFlag, MessageType, User
from discord_sandbox.permissions import Permission, can, in_guild, send_permission
from discord_sandbox.reading import fields, items
from discord_sandbox.web.markdown import render

TEXT, FILE = 10, 13


def bot_of(sb: Sandbox) -> User | None:
    """Find the bot that the page is about: the first application that was registered."""
    return next((sb.world.users[app] for app in sb.world.applications), None)


def state(sb: Sandbox, user: User) -> Json:
    """Return everything but the messages."""
    world = sb.world
    return {
        "me": str(user.id),
        "people": [_person(sb, other) for other in world.users.values() if not other.bot],
        "users": {str(other.id): {"name": _name(other), "bot": other.bot} for other in world.users.values()},
        "roles": {str(role.id): role.name for guild in world.guilds.values() for role in guild.roles.values()},
        "guilds": [_guild(sb, guild, user) for guild in world.guilds_of(user.id)],
        "direct": [_direct(channel, user) for channel in world.channels.values() if _talks(channel, user)],
        "bot": bot_state(sb),
        "head": sb.log.head,
        "now": sb.clock.now(),
    }


def bot_state(sb: Sandbox) -> Json:
    bot = bot_of(sb)
    if bot is None:
        return {"id": None, "name": "Bot", "online": False}
    return {"id": str(bot.id), "name": _name(bot), "online": _online(sb, bot.id)}


def _online(sb: Sandbox, bot_id: int) -> bool:
    return any(session.viewer.bot_id == bot_id for session in sb.sessions.live())


def _name(user: User) -> str:
    return user.global_name or user.name


def _person(sb: Sandbox, user: User) -> Json:
    return {"id": str(user.id), "name": _name(user), "word": _word(sb, user)}


def _word(sb: Sandbox, user: User) -> str:
    """Return a word for somebody's place in the bot's server: outsider, admin, their first role, or member."""
    bot = bot_of(sb)
    home = next((guild for guild in sb.world.guilds.values() if bot and bot.id in guild.members), None)
    if home is None or user.id not in home.members:
        return "outsider"
    if in_guild(home, user.id) & Permission.MANAGE_GUILD:
        return "admin"
    names = [home.roles[role].name for role in home.members[user.id].roles if role in home.roles]
    return names[0].lower().removesuffix("s") if names else "member"


def _guild(sb: Sandbox, guild: Guild, user: User) -> Json:
    bot = bot_of(sb)
    threads = sorted(sb.world.threads_of(guild.id), key=lambda thread: -thread.id)
    seen = [thread for thread in threads if can(sb.world, thread, user.id, Permission.VIEW_CHANNEL)]
    return {
        "id": str(guild.id),
        "name": guild.name,
        "has_bot": bool(bot and bot.id in guild.members),
        "channels": [
            _place(sb, channel, user) | {"threads": [_place(sb, t, user) for t in seen if t.parent_id == channel.id]}
            for channel in sorted(sb.world.channels_of(guild.id), key=lambda channel: (channel.position, channel.id))
            if can(sb.world, channel, user.id, Permission.VIEW_CHANNEL) and channel.type != ChannelType.CATEGORY
        ],
        "members": [
            {
                "id": str(member.user_id),
                "roles": [guild.roles[r].name for r in member.roles if r in guild.roles and not guild.roles[r].bot_id],
                "online": _online(sb, member.user_id) or not sb.world.users[member.user_id].bot,
            }
            for member in guild.members.values()
            if member.user_id in sb.world.users
        ],
    }


def _place(sb: Sandbox, channel: Channel, user: User) -> Json:
    thread = channel.thread
    return {
        "id": str(channel.id),
        "name": channel.name,
        "topic": channel.topic,
        "parent": None if channel.parent_id is None else str(channel.parent_id),
        "last": None if channel.last_message_id is None else str(channel.last_message_id),
        "archived": bool(thread and thread.archived),
        "private": channel.type == ChannelType.PRIVATE_THREAD,
        "count": thread.message_count if thread else None,
        "writable": can(sb.world, channel, user.id, send_permission(channel)) and not (thread and thread.locked),
    }


def _talks(channel: Channel, user: User) -> bool:
    return channel.type == ChannelType.DM and user.id in channel.recipients and channel.last_message_id is not None


def _direct(channel: Channel, user: User) -> Json:
    other = next((number for number in channel.recipients if number != user.id), user.id)
    return {"id": str(channel.id), "with": str(other)}


def may_see(sb: Sandbox, user: User, where: Channel, message: Message | None = None) -> bool:
    if message is not None and message.ephemeral_to not in (None, user.id):
        return False
    return can(sb.world, where, user.id, Permission.VIEW_CHANNEL, Permission.READ_MESSAGE_HISTORY)


def pings(posted: Message, user: User) -> bool:
    """Whether the message notified this person."""
    return posted.author_id != user.id and any(str(user.id) in ping["users"] for ping in posted.pings)


def message(sb: Sandbox, posted: Message, user: User) -> Json:
    raw = people.as_seen(sb, posted, user.id)
    author = raw["author"]
    body: Json = {
        "id": raw["id"],
        "channel": raw["channel_id"],
        "type": raw["type"],
        "author": {
            "id": author["id"],
            "name": _display(author),
            "bot": bool(author.get("bot")),
        },
        "at": raw["timestamp"],
        "edited": raw["edited_timestamp"],
        "html": render(posted.content),
        "source": posted.content if posted.author_id == user.id else None,
        "embeds": [_embed(embed) for embed in posted.embeds],
        "parts": [_part(sb, part) for part in raw["components"]],
        "files": [_file(sb, file) for file in raw["attachments"]],
        "reactions": [
            {"emoji": entry["emoji"]["name"], "count": entry["count"], "me": entry["me"]}
            for entry in raw.get("reactions", [])
        ],
        "private": posted.ephemeral_to is not None,
        "loading": bool(posted.flags & MessageFlag.LOADING),
        "pings": pings(posted, user),
    }
    original = raw.get("referenced_message")
    if original and posted.type == MessageType.THREAD_STARTER:
        author = original["author"]
        body["html"], body["source"] = render(original["content"]), None
        body["author"] = {"id": author["id"], "name": _display(author), "bot": bool(author.get("bot"))}
    if thread := raw.get("thread"):
        body["thread"] = {"id": thread["id"], "name": thread["name"], "count": thread["message_count"]}
    if original and posted.type == MessageType.REPLY:
        body["replies_to"] = {
            "id": original["id"],
            "author": _display(original["author"]),
            "html": render(_first_line(original["content"])),
        }
    if (meta := raw.get("interaction_metadata")) and meta["type"] == 2:
        body["command"] = {"user": _display(meta["user"])}
    return body


def _display(user: Json) -> str:
    return str(user.get("global_name") or user["username"])


def outcome(sb: Sandbox, raw: Json) -> Json:
    """Return the outcome of a click, a submission or a command, as its person sees it."""
    modal = raw["modal"]
    return {
        "id": raw["id"],
        "state": raw["state"],
        "error": raw["error"],
        "choices": raw["choices"],
        "modal": modal and {**modal, "components": [_part(sb, part) for part in modal["components"]]},
    }


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 80 else line[:80] + "…"


def _embed(embed: Json) -> Json:
    return {
        "title": embed.get("title"),
        "html": render(str(embed.get("description") or "")),
        "color": embed.get("color"),
        "fields": [{"name": f["name"], "html": render(str(f["value"]))} for f in items(embed.get("fields"))],
        "footer": fields(embed.get("footer")).get("text"),
    }


def _part(sb: Sandbox, part: Json) -> Json:
    """Return a component with its text rendered. The page loads nothing from other addresses."""
    done: Json = {key: _inner(sb, value) for key, value in part.items()}
    if part["type"] == TEXT:
        done["html"] = render(str(done.pop("content", "")))
    if part["type"] == FILE:
        done["file"] = _file(sb, {"filename": part.get("name"), "size": part.get("size"), **part["file"]})
    elif isinstance(part.get("media"), dict):
        done["media"] = _file(sb, part["media"])
    return done


def _inner(sb: Sandbox, value: Any) -> Any:
    if isinstance(value, list):
        return [_inner(sb, entry) for entry in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    part = cast(Json, value)
    if isinstance(part.get("type"), int):
        return _part(sb, part)
    return part | {"media": _file(sb, part["media"])} if isinstance(part.get("media"), dict) else part


def _file(sb: Sandbox, file: Json) -> Json:
    url = str(file.get("url") or "")
    own = sb.payloads.cdn and url.startswith(sb.payloads.cdn + "/attachments/")
    kind = str(file.get("content_type") or "")
    return {
        "name": file.get("filename"),
        "size": file.get("size"),
        "url": url.removeprefix(sb.payloads.cdn) if own else None,
        "elsewhere": None if own else url,
        "image": bool(own) and kind in ("image/png", "image/jpeg", "image/gif", "image/webp"),
        "description": file.get("description"),
    }

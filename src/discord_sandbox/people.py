"""Ordinary actions of people: write, edit, delete, react, read.

The rules are those of Discord's own client; an action that it would not offer raises `NotPossible`. `presses` has the
buttons, and `slash_commands` has the commands.
"""

from collections.abc import Mapping

from discord_sandbox import access, announce, message_contents, posting
from discord_sandbox.bundle import Sandbox
from discord_sandbox.message_contents import Upload
from discord_sandbox.model import Channel, Json, Message, Reaction, User
from discord_sandbox.payloads import emoji as emoji_json
from discord_sandbox.permissions import Permission, can
from discord_sandbox.posting import Sender


class NotPossible(Exception):
    """Discord's client does not offer this action."""


def find_user(sb: Sandbox, who: str) -> User:
    """Find a user by id or by name."""
    user = sb.world.users.get(int(who)) if who.isdecimal() else sb.world.user_named(who)
    if user is None:
        raise NotPossible(f"nobody here is called {who!r}")
    return user


def find_channel(sb: Sandbox, where: str) -> Channel:
    """Find a channel by id or, for a server's channels and threads, by name."""
    channel = sb.world.channels.get(int(where)) if where.isdecimal() else sb.world.channel_named(where)
    if channel is None:
        raise NotPossible(f"there is no channel {where!r}")
    return channel


def find_message(sb: Sandbox, where: Channel, message_id: int, viewer: int) -> Message:
    message = sb.world.message(where.id, message_id)
    if message is None or message.ephemeral_to not in (None, viewer):
        raise NotPossible(f"{sb.world.users[viewer].name} sees no message {message_id} in {where.name or where.id}")
    return message


def see(sb: Sandbox, user: User, where: Channel) -> None:
    if not can(sb.world, where, user.id, Permission.VIEW_CHANNEL):
        raise NotPossible(f"{user.name} cannot see {where.name or where.id}")


def say(sb: Sandbox, user: User, where: Channel, body: Json, uploads: Mapping[int, Upload]) -> Message:
    """Post a message as a person or as another bot."""
    see(sb, user, where)
    if not user.bot and (body.get("components") or body.get("embeds")):
        raise NotPossible("only bots and webhooks can send components and embeds")
    contents = message_contents.for_create(body, uploads, sb.world.ids)
    posting.check_may_post(sb, where, user.id, contents)
    return posting.create(sb, where, Sender(user.id), contents)


def say_as_webhook(sb: Sandbox, webhook_id: int, name: str | None, body: Json) -> Message:
    hook = sb.world.webhooks.get(webhook_id)
    if hook is None:
        raise NotPossible(f"there is no webhook {webhook_id}")
    where = sb.world.channels[int(body.get("thread_id") or hook.channel_id)]
    contents = message_contents.for_create(body, {}, sb.world.ids)
    return posting.create(sb, where, Sender(hook.id, webhook=hook, webhook_name=name or hook.name), contents)


def edit(sb: Sandbox, user: User, where: Channel, message_id: int, body: Json) -> Message:
    see(sb, user, where)
    message = find_message(sb, where, message_id, user.id)
    contents = message_contents.for_edit(body, {}, sb.world.ids, message)
    posting.check_may_edit(sb, where, message, user.id, contents)
    return posting.edit(sb, where, message, contents)


def delete(sb: Sandbox, user: User, where: Channel, message_id: int) -> None:
    see(sb, user, where)
    message = find_message(sb, where, message_id, user.id)
    own = message.author_id == user.id or message.ephemeral_to == user.id
    if not own:
        access.require(sb.world, where, user.id, Permission.MANAGE_MESSAGES)
    posting.delete(sb, message)


def react(sb: Sandbox, user_id: int, where: Channel, message: Message, name: str, emoji_id: int | None) -> None:
    reaction = next((r for r in message.reactions if (r.emoji, r.emoji_id) == (name, emoji_id)), None)
    if reaction is None:
        # Everybody may join a reaction; adding a new one needs a permission.
        access.require(sb.world, where, user_id, Permission.ADD_REACTIONS)
        reaction = Reaction(name, emoji_id)
        message.reactions.append(reaction)
    if user_id not in reaction.users:
        reaction.users.append(user_id)
        _tell_reaction(sb, "MESSAGE_REACTION_ADD", where, message, reaction, user_id)


def unreact(sb: Sandbox, user_id: int, where: Channel, message: Message, name: str, emoji_id: int | None) -> None:
    reaction = next((r for r in message.reactions if (r.emoji, r.emoji_id) == (name, emoji_id)), None)
    if reaction is None or user_id not in reaction.users:
        return
    reaction.users.remove(user_id)
    if not reaction.users:
        message.reactions.remove(reaction)
    _tell_reaction(sb, "MESSAGE_REACTION_REMOVE", where, message, reaction, user_id)


def _tell_reaction(sb: Sandbox, name: str, where: Channel, message: Message, reaction: Reaction, user: int) -> None:
    sb.log.world("reaction", channel_id=str(where.id), message_id=str(message.id), user_id=str(user), event=name)
    body: Json = {
        "user_id": str(user),
        "channel_id": str(where.id),
        "message_id": str(message.id),
        "emoji": emoji_json(reaction),
        "burst": False,
        "type": 0,
    }
    if where.guild_id is not None:
        body["guild_id"] = str(where.guild_id)
        member = sb.world.member(where.guild_id, user)
        if name == "MESSAGE_REACTION_ADD" and member is not None:
            body |= {"member": sb.payloads.member(member), "message_author_id": str(message.author_id)}
    announce.in_channel(sb, name, where, body, announce.GUILD_REACTIONS, announce.DM_REACTIONS)


def history(sb: Sandbox, user: User, where: Channel, limit: int) -> list[Json]:
    """Return a channel as this person sees it, oldest first, with the private responses to them."""
    see(sb, user, where)
    if not can(sb.world, where, user.id, Permission.READ_MESSAGE_HISTORY):
        return []
    seen = [m for m in sb.world.history(where.id) if m.ephemeral_to in (None, user.id)]
    return [as_seen(sb, message, user.id) for message in seen[-limit:]]


def as_seen(sb: Sandbox, message: Message, viewer: int | None) -> Json:
    """Return the message as Discord sends it, plus the key `sandbox` with facts that only the sandbox knows."""
    body = sb.payloads.message(message, viewer)
    body["sandbox"] = {
        "ephemeral_to": None if message.ephemeral_to is None else str(message.ephemeral_to),
        "edits": message.edits,
        "pings": message.pings,
        "unfurls": message.unfurls,
        "files": [sb.payloads.attachment(message.channel_id, a) for a in message.attachments],
    }
    return body

"""Posts, edits and deletes messages for bots, people, webhooks and interaction responses.

This is the only place where messages enter the world, with their mentions, pings, unfurls, nonces and threads. Callers
have checked the form (`message_contents`). An interaction response needs no permission, so its caller skips that check.
"""

from dataclasses import dataclass

from discord_sandbox import access, announce, apierrors, mentions
from discord_sandbox.bundle import Sandbox
from discord_sandbox.mentions import Mentions
from discord_sandbox.message_contents import MessageContents
from discord_sandbox.model import (
    Channel,
    Json,
    Message,
    MessageFlag,
    MessageType,
    Webhook,
)
from discord_sandbox.permissions import Permission, can, send_permission
from discord_sandbox.snowflake import moment
from discord_sandbox.threads import add_members, unarchive


@dataclass(frozen=True)
class Sender:
    """The sender of a message: a user, a webhook, or a bot that responds to an interaction."""

    user_id: int
    webhook: Webhook | None = None
    webhook_name: str | None = None
    application_id: int | None = None
    interaction: Json | None = None
    ephemeral_to: int | None = None
    type: int = MessageType.DEFAULT


def check_may_post(sb: Sandbox, where: Channel, user_id: int, contents: MessageContents) -> None:
    """Raise Discord's refusals for a message to a channel. Interaction responses need no such check."""
    if where.guild_id is None:
        other = next((user for user in where.recipients if user != user_id), user_id)
        shared = any(user_id in guild.members for guild in sb.world.guilds_of(other))
        if not sb.world.users[other].accepts_dms or not shared:
            raise apierrors.cannot_dm()
    access.require(sb.world, where, user_id, send_permission(where))
    if contents.attachments:
        access.require(sb.world, where, user_id, Permission.ATTACH_FILES)
    locked = where.thread is not None and where.thread.locked
    if locked and not can(sb.world, where, user_id, Permission.MANAGE_THREADS):
        raise apierrors.locked_thread()
    _check_slow_mode(sb, where, user_id)
    if contents.reference is not None and not can(sb.world, where, user_id, Permission.READ_MESSAGE_HISTORY):
        raise apierrors.ApiError(403, 160002, "Cannot reply without permission to read message history")


def _check_slow_mode(sb: Sandbox, where: Channel, user_id: int) -> None:
    """Refuse a message that comes too early for the channel's slow mode. It holds for people, not for bots here."""
    spared = any(can(sb.world, where, user_id, p) for p in (Permission.MANAGE_MESSAGES, Permission.MANAGE_CHANNELS))
    if not where.slowmode or spared or sb.world.users[user_id].bot:
        return
    horizon = sb.clock.now() - where.slowmode
    for message in sb.world.latest(where.id):
        if moment(message.id) < horizon:
            return
        if message.author_id == user_id:
            raise apierrors.ApiError(429, 20016, "This action cannot be performed due to slowmode rate limit")


def create(sb: Sandbox, where: Channel, sender: Sender, contents: MessageContents) -> Message:
    if contents.enforce_nonce and contents.nonce and (twin := _same_nonce(sb, where, sender, contents.nonce)):
        sb.log.world("message.deduplicated", channel_id=str(where.id), message_id=str(twin.id))
        return twin
    reference = _reference(sb, where, contents)
    kind = sender.type
    if reference is not None and kind == MessageType.DEFAULT:
        kind = MessageType.REPLY
    message = Message(
        id=sb.world.ids.next(),
        channel_id=where.id,
        author_id=sender.user_id,
        timestamp=sb.clock.iso(),
        type=kind,
        content=contents.content,
        embeds=contents.embeds if _may_embed(sb, where, sender) else [],
        components=contents.components,
        flags=contents.flags,
        attachments=contents.attachments,
        nonce=contents.nonce,
        tts=contents.tts,
        reference=reference,
        webhook_id=sender.webhook.id if sender.webhook else sender.application_id,
        webhook_name=sender.webhook_name,
        application_id=sender.application_id,
        interaction=sender.interaction,
        ephemeral_to=sender.ephemeral_to,
    )
    if sender.ephemeral_to is not None:
        message.flags |= MessageFlag.EPHEMERAL
        for attachment in message.attachments:
            attachment.ephemeral = True
    if where.thread is not None and where.thread.archived:
        unarchive(sb, where)
    sb.world.add_message(message)
    _settle_text(sb, where, message, contents, "create")
    if message.ephemeral_to is None:
        where.last_message_id = message.id
        if where.thread is not None:
            where.thread.message_count += 1
            where.thread.total_sent += 1
            add_members(sb, where, [] if sender.webhook else [sender.user_id, *message.mentions])
    announce.message(sb, "MESSAGE_CREATE", message)
    return message


def check_may_edit(sb: Sandbox, where: Channel, message: Message, user_id: int, contents: MessageContents) -> None:
    if message.author_id != user_id or message.webhook_name is not None:
        only_flags = contents.touched <= {"flags", "allowed_mentions"}
        if not (only_flags and can(sb.world, where, user_id, Permission.MANAGE_MESSAGES)):
            raise apierrors.not_your_message()
    if where.thread is not None and where.thread.archived:
        raise apierrors.archived_thread()


def edit(sb: Sandbox, where: Channel, message: Message, contents: MessageContents) -> Message:
    message.content = contents.content
    message.embeds = contents.embeds
    message.components = contents.components
    message.attachments = contents.attachments
    message.flags = contents.flags
    if message.flags & MessageFlag.EPHEMERAL:
        for attachment in message.attachments:
            attachment.ephemeral = True
    message.edited_timestamp = sb.clock.iso()
    message.edits += 1
    if contents.touched & {"content", "components"}:
        _settle_text(sb, where, message, contents, "edit")
    announce.message(sb, "MESSAGE_UPDATE", message)
    return message


def delete(sb: Sandbox, message: Message) -> None:
    take_away(sb, message)
    announce.message_deleted(sb, message)


def take_away(sb: Sandbox, message: Message) -> None:
    """Remove a message without announcing it."""
    sb.world.messages[message.channel_id].pop(message.id, None)
    where = sb.world.channels[message.channel_id]
    if where.thread is not None and message.ephemeral_to is None:
        where.thread.message_count = max(where.thread.message_count - 1, 0)


def _same_nonce(sb: Sandbox, where: Channel, sender: Sender, nonce: str) -> Message | None:
    horizon = sb.clock.now() - sb.nonce_seconds
    for message in sb.world.latest(where.id):
        if moment(message.id) < horizon:
            return None
        if message.nonce == nonce and message.author_id == sender.user_id:
            return message
    return None


def _reference(sb: Sandbox, where: Channel, contents: MessageContents) -> Json | None:
    given = contents.reference
    if given is None:
        return None
    target = sb.world.message(int(given.get("channel_id") or where.id), int(given.get("message_id") or 0))
    if target is None:
        if given.get("fail_if_not_exists", True):
            message = "Unknown message"
            raise apierrors.bad_field(("message_reference",), "REPLIES_UNKNOWN_MESSAGE", message)
        return None
    body: Json = {"type": 0, "channel_id": str(target.channel_id), "message_id": str(target.id)}
    return body if where.guild_id is None else body | {"guild_id": str(where.guild_id)}


def _may_embed(sb: Sandbox, where: Channel, sender: Sender) -> bool:
    if sender.webhook is not None or sender.interaction is not None:
        return True
    return can(sb.world, where, sender.user_id, Permission.EMBED_LINKS)


def _settle_text(sb: Sandbox, where: Channel, message: Message, contents: MessageContents, on: str) -> None:
    """Find the mentions, pings and unfurls of a new or changed text."""
    mentioned = _mentioned(sb, where, message, contents)
    message.mentions = list(mentioned.users)
    message.mention_roles = list(mentioned.roles)
    message.mention_everyone = mentioned.everyone
    if mentioned and not message.flags & MessageFlag.SUPPRESS_NOTIFICATIONS:
        pinged = _pinged(sb, where, message, mentioned)
        record: Json = {
            "on": on,
            "users": [str(user) for user in pinged],
            "mentions": [str(user) for user in mentioned.users],
            "roles": [str(role) for role in mentioned.roles],
            "everyone": mentioned.everyone,
        }
        message.pings.append(record)
        sb.log.world("ping", channel_id=str(where.id), message_id=str(message.id), **record)
    # The V2 layout never previews links. Plain text does, unless the sender suppresses it. Nothing is fetched here.
    if not message.flags & (MessageFlag.SUPPRESS_EMBEDS | MessageFlag.COMPONENTS_V2):
        fresh = [link for link in mentions.links(message.content) if link not in message.unfurls]
        message.unfurls.extend(fresh)
        for link in fresh:
            sb.log.world("unfurl", channel_id=str(where.id), message_id=str(message.id), url=link)


def _mentioned(sb: Sandbox, where: Channel, message: Message, contents: MessageContents) -> Mentions:
    allowed = contents.allowed.filter(mentions.find(contents.all_text))
    guild = sb.world.guild_of(where)
    users = [user for user in allowed.users if user in sb.world.users]
    if message.type == MessageType.REPLY and message.reference and contents.allowed.replied_user:
        original = sb.world.message(int(message.reference["channel_id"]), int(message.reference["message_id"]))
        if original and original.author_id != message.author_id and original.author_id not in users:
            users.append(original.author_id)
    if guild is None:
        return Mentions(tuple(users))
    loud = message.webhook_name is not None or can(sb.world, where, message.author_id, Permission.MENTION_EVERYONE)
    roles = [guild.roles[role] for role in allowed.roles if role in guild.roles]
    return Mentions(
        tuple(users),
        tuple(role.id for role in roles if loud or role.mentionable),
        allowed.everyone and loud,
    )


def _pinged(sb: Sandbox, where: Channel, message: Message, mentioned: Mentions) -> list[int]:
    """Return the people who are notified: those mentioned who can see the message."""
    guild = sb.world.guild_of(where)
    everybody = [*where.recipients] if guild is None else [*guild.members]
    reached = set(mentioned.users)
    if guild is not None:
        for user_id, member in guild.members.items():
            if mentioned.everyone or set(member.roles) & set(mentioned.roles):
                reached.add(user_id)
    if message.ephemeral_to is not None:
        reached &= {message.ephemeral_to}
    reached.discard(message.author_id)
    return [user for user in everybody if user in reached and can(sb.world, where, user, Permission.VIEW_CHANNEL)]

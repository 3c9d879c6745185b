"""The world as Discord sends it.

This module reads the world, changes nothing and decides nothing: callers have checked who may see what. The fields are
those that Discord's published schema requires and that an unmodified discord.py reads.
"""

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from discord_sandbox import components
from discord_sandbox.model import (
    Attachment,
    Channel,
    ChannelType,
    Json,
    Member,
    Message,
    MessageFlag,
    MessageType,
    Reaction,
    Role,
    Thread,
    User,
)
from discord_sandbox.world import World

ATTACHMENT_LIMIT = 25 * 1024 * 1024
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass
class Payloads:
    """Writes the world's records as JSON. `cdn` is the address of attachments, known only once the server listens."""

    world: World
    cdn: str = ""

    def user(self, user: User) -> Json:
        body: Json = {
            "id": str(user.id),
            "username": user.name.lower() if not user.bot else user.name,
            "global_name": None if user.bot else user.global_name or user.name,
            "discriminator": "0" if not user.bot else "0001",
            "avatar": None,
            "banner": None,
            "accent_color": None,
            "avatar_decoration_data": None,
            "collectibles": None,
            "primary_guild": None,
            "public_flags": 0,
            "flags": 0,
        }
        return body | {"bot": True} if user.bot else body

    def own_user(self, user: User) -> Json:
        more = {"mfa_enabled": True, "locale": "en-US", "premium_type": 0, "email": None, "verified": True, "bio": ""}
        return self.user(user) | more

    def author(self, message: Message) -> Json:
        if message.webhook_id is not None and message.webhook_name is not None:
            hook = User(message.webhook_id, message.webhook_name, bot=True)
            return self.user(hook) | {"discriminator": "0000"}
        return self.user_by_id(message.author_id)

    def user_by_id(self, user_id: int) -> Json:
        return self.user(self.world.users.get(user_id) or User(user_id, "Deleted User"))

    def member(self, member: Member, *, with_user: bool = True) -> Json:
        body: Json = {
            "avatar": None,
            "banner": None,
            "communication_disabled_until": member.timed_out_until,
            "flags": 0,
            "joined_at": member.joined_at,
            "nick": member.nick,
            "pending": False,
            "premium_since": None,
            "roles": [str(role) for role in member.roles],
            "mute": False,
            "deaf": False,
        }
        return body | {"user": self.user_by_id(member.user_id)} if with_user else body

    def role(self, role: Role) -> Json:
        body: Json = {
            "id": str(role.id),
            "name": role.name,
            "description": None,
            "permissions": str(role.permissions),
            "position": role.position,
            "color": role.color,
            "colors": {"primary_color": role.color, "secondary_color": None, "tertiary_color": None},
            "hoist": role.hoist,
            "managed": role.bot_id is not None,
            "mentionable": role.mentionable,
            "icon": None,
            "unicode_emoji": None,
            "flags": 0,
        }
        return body if role.bot_id is None else body | {"tags": {"bot_id": str(role.bot_id)}}

    def channel(self, channel: Channel, viewer: int | None = None) -> Json:
        last = None if channel.last_message_id is None else str(channel.last_message_id)
        body: Json = {"id": str(channel.id), "type": channel.type, "flags": 0, "last_message_id": last}
        if channel.type == ChannelType.DM:
            others = [user for user in channel.recipients if user != viewer]
            return body | {"recipients": [self.user_by_id(user) for user in others]}
        body |= {
            "guild_id": str(channel.guild_id),
            "name": channel.name,
            "parent_id": None if channel.parent_id is None else str(channel.parent_id),
            "rate_limit_per_user": channel.slowmode,
        }
        if channel.thread is not None:
            return body | self._thread(channel, channel.thread, viewer)
        return body | {
            "topic": channel.topic,
            "position": channel.position,
            "nsfw": False,
            "permission_overwrites": [
                {"id": str(o.id), "type": o.kind, "allow": str(o.allow), "deny": str(o.deny)}
                for o in channel.overwrites
            ],
        }

    def _thread(self, channel: Channel, thread: Thread, viewer: int | None) -> Json:
        body: Json = {
            "owner_id": str(thread.owner_id),
            "message_count": thread.message_count,
            "total_message_sent": thread.total_sent,
            "member_count": min(len(thread.members), 50),
            "thread_metadata": {
                "archived": thread.archived,
                "locked": thread.locked,
                "auto_archive_duration": thread.auto_archive_minutes,
                "archive_timestamp": thread.archive_stamp,
                "create_timestamp": thread.created_at,
            },
        }
        if channel.type == ChannelType.PRIVATE_THREAD:
            body["thread_metadata"]["invitable"] = thread.invitable
        if viewer in thread.members:
            body["member"] = self.thread_member(channel, viewer)
        return body

    def thread_member(self, channel: Channel, user_id: int) -> Json:
        assert channel.thread is not None
        joined = channel.thread.members[user_id]
        return {"id": str(channel.id), "user_id": str(user_id), "join_timestamp": joined, "flags": 0}

    def attachment(self, channel_id: int, attachment: Attachment) -> Json:
        url = f"{self.cdn}/attachments/{channel_id}/{attachment.id}/{quote(attachment.filename)}"
        body: Json = {
            "id": str(attachment.id),
            "filename": attachment.filename,
            "size": len(attachment.data),
            "url": url,
            "proxy_url": url,
        }
        if attachment.content_type is not None:
            body["content_type"] = attachment.content_type
        if attachment.content_type in _IMAGES:
            body |= {"width": 64, "height": 64}
        if attachment.description is not None:
            body["description"] = attachment.description
        return body | {"ephemeral": True} if attachment.ephemeral else body

    def message(self, message: Message, viewer: int | None = None, *, readable: bool = True) -> Json:
        """Return a message. With `readable` False, for a bot without the Message Content intent, the text is empty."""
        shown = components.media_names(message.components)
        loose = [a for a in message.attachments if a.filename not in shown]
        body: Json = {
            "id": str(message.id),
            "type": message.type,
            "channel_id": str(message.channel_id),
            "author": self.author(message),
            "content": message.content if readable else "",
            "embeds": message.embeds if readable else [],
            "components": self._components(message) if readable else [],
            "attachments": [self.attachment(message.channel_id, a) for a in loose] if readable else [],
            "mentions": [self.user_by_id(user) for user in message.mentions],
            "mention_roles": [str(role) for role in message.mention_roles],
            "mention_everyone": message.mention_everyone,
            "timestamp": message.timestamp,
            "edited_timestamp": message.edited_timestamp,
            "flags": message.flags,
            "pinned": message.pinned,
            "tts": message.tts,
        }
        if message.nonce is not None:
            body["nonce"] = message.nonce
        for name, value in (("webhook_id", message.webhook_id), ("application_id", message.application_id)):
            if value is not None:
                body[name] = str(value)
        if message.interaction is not None:
            body["interaction_metadata"] = self._interaction(message.interaction)
        if message.reactions:
            body["reactions"] = [self._reaction(reaction, viewer) for reaction in message.reactions]
        if message.flags & MessageFlag.HAS_THREAD and (thread := self.world.channels.get(message.id)):
            body["thread"] = self.channel(thread, viewer)
        return body | self._reference(message, viewer, readable)

    def _reference(self, message: Message, viewer: int | None, readable: bool) -> Json:
        if message.reference is None:
            return {}
        body: Json = {"message_reference": message.reference}
        if message.type in (MessageType.REPLY, MessageType.THREAD_STARTER):
            original = self.world.message(int(message.reference["channel_id"]), int(message.reference["message_id"]))
            # Only one level is included, as on Discord: not the original of the original.
            whole = original and self.message(original, viewer, readable=readable)
            if whole:
                whole.pop("referenced_message", None)
                whole.pop("thread", None)
            body["referenced_message"] = whole
        return body

    def _interaction(self, kept: Json) -> Json:
        body = {key: value for key, value in kept.items() if key != "user_id"}
        if isinstance(cause := kept.get("triggering_interaction_metadata"), dict):
            body["triggering_interaction_metadata"] = self._interaction(cast(Json, cause))
        return body | {"user": self.user_by_id(int(kept["user_id"]))}

    def _reaction(self, reaction: Reaction, viewer: int | None) -> Json:
        return {
            "emoji": emoji(reaction),
            "count": len(reaction.users),
            "count_details": {"burst": 0, "normal": len(reaction.users)},
            "burst_colors": [],
            "burst_count": 0,
            "me": viewer in reaction.users,
            "me_burst": False,
            "burst_me": False,
        }

    def _components(self, message: Message) -> list[Json]:
        by_name = {attachment.filename: attachment for attachment in message.attachments}

        def resolved(value: Any) -> Any:
            if isinstance(value, list):
                return [resolved(entry) for entry in cast(list[Any], value)]
            if not isinstance(value, dict):
                return value
            part = {key: resolved(entry) for key, entry in cast(Json, value).items()}
            for key in ("file", "media"):
                if isinstance(media := part.get(key), dict):
                    url = str(cast(Json, media).get("url", ""))
                    attachment = by_name.get(url.removeprefix("attachment://"))
                    part[key] = self._media(message, url, attachment)
                    if key == "file":
                        part |= {
                            "name": attachment and attachment.filename,
                            "size": attachment and len(attachment.data),
                        }
            return part

        return cast(list[Json], resolved(message.components))

    def _media(self, message: Message, url: str, attachment: Attachment | None) -> Json:
        if attachment is None:
            return {"id": str(message.id), "url": url, "proxy_url": url, "width": 0, "height": 0, "content_type": None}
        body = self.attachment(message.channel_id, attachment)
        return {
            "id": body["id"],
            "url": body["url"],
            "proxy_url": body["proxy_url"],
            "width": body.get("width"),
            "height": body.get("height"),
            "content_type": attachment.content_type,
            "attachment_id": body["id"],
        }


def emoji(reaction: Reaction) -> Json:
    return {"id": None if reaction.emoji_id is None else str(reaction.emoji_id), "name": reaction.emoji}

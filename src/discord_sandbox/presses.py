"""A person presses, chooses, submits or runs something, and the bot receives an interaction.

This module builds the payload, sends it, and starts the three seconds; `callbacks` has the bot's side. A *forged* press
skips the checks of Discord's client, for tests that attack the bot; the interaction stays marked as forged.
"""

import asyncio
import base64
import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any

from discord_sandbox import components, modal_values, people
from discord_sandbox.bundle import Sandbox
from discord_sandbox.controls import BUTTON, CHANNEL_SELECT, ROLE_SELECT, STRING_SELECT, USER_SELECT
from discord_sandbox.interactions import Interaction, Kind
from discord_sandbox.model import Attachment, Channel, ChannelType, Json, Message, User
from discord_sandbox.people import NotPossible
from discord_sandbox.permissions import in_channel


def press(
    sb: Sandbox,
    user: User,
    message: Message,
    custom_id: str,
    values: Sequence[str] | None = None,
    *,
    forged: bool = False,
    guild_id: int | None = None,
) -> Interaction:
    """Press a button or, with `values`, choose from a select."""
    where = sb.world.channels[message.channel_id]
    part = components.interactive(message.components, custom_id)
    if not forged:
        people.see(sb, user, where)
        if part is None:
            raise NotPossible(f"message {message.id} has no component {custom_id!r}")
        if part.get("disabled"):
            raise NotPossible(f"{custom_id!r} is disabled")
        if (values is None) != (part["type"] == BUTTON):
            raise NotPossible(f"{custom_id!r} is {'a button' if part['type'] == BUTTON else 'a select'}")
    kind = part["type"] if part else (BUTTON if values is None else STRING_SELECT)
    data: Json = {"custom_id": custom_id, "component_type": kind, "id": part["id"] if part else 1}
    if values is not None:
        if part and not forged:
            _check_values(part, values)
        data |= {"values": list(values)}
        if kind != STRING_SELECT:
            data["resolved"] = resolve(sb, where, kind, values)
    return start(sb, Kind.COMPONENT, user, where, message.author_id, data, message, forged=forged, guild_id=guild_id)


def _check_values(part: Json, values: Sequence[str]) -> None:
    if not part["min_values"] <= len(values) <= part["max_values"]:
        raise NotPossible(f"{part['custom_id']!r} takes {part['min_values']} to {part['max_values']} values")
    if part["type"] == STRING_SELECT:
        offered = {option["value"] for option in part["options"]}
        if strange := set(values) - offered:
            raise NotPossible(f"{part['custom_id']!r} does not offer {', '.join(sorted(strange))}")


def resolve(sb: Sandbox, where: Channel, kind: int, values: Sequence[str]) -> Json:
    """Return the objects behind the chosen ids, as the payload's `resolved`."""
    guild = sb.world.guild_of(where)
    objects: Json = {}
    for value in values:
        number = int(value)
        if kind == CHANNEL_SELECT and number in sb.world.channels:
            channel = sb.world.channels[number]
            body = sb.payloads.channel(channel) | {"permissions": "0"}
            objects.setdefault("channels", {})[value] = body
        elif kind != USER_SELECT and guild and number in guild.roles:
            objects.setdefault("roles", {})[value] = sb.payloads.role(guild.roles[number])
        elif kind != ROLE_SELECT and number in sb.world.users:
            objects.setdefault("users", {})[value] = sb.payloads.user(sb.world.users[number])
            if member := sb.world.member(where.guild_id, number):
                body = sb.payloads.member(member, with_user=False)
                objects.setdefault("members", {})[value] = body | {
                    "permissions": str(in_channel(sb.world, where, number))
                }
    return objects


def submit(
    sb: Sandbox, user: User, opened_by: Interaction, values: Mapping[str, Any], *, forged: bool = False
) -> Interaction:
    """Submit the modal that an earlier interaction opened for this person."""
    if opened_by.modal is None:
        raise NotPossible(f"interaction {opened_by.id} opened no modal")
    if opened_by.user_id != user.id and not forged:
        raise NotPossible(f"the modal was opened for somebody else, not {user.name}")

    def keep(name: str, data: str) -> Attachment:
        return Attachment(sb.world.ids.next(), name, base64.b64decode(data), mimetypes.guess_type(name)[0])

    try:
        filled = modal_values.fill(opened_by.modal, values, keep, forged=forged)
    except modal_values.BadValue as wrong:
        raise NotPossible(str(wrong)) from None
    where = sb.world.channels[opened_by.channel_id]
    resolved: Json = {}
    for kind, chosen in filled.picked:
        for key, objects in resolve(sb, where, kind, chosen).items():
            resolved.setdefault(key, {}).update(objects)
    for attachment in filled.files:
        sb.interactions.files[attachment.id] = attachment
        resolved.setdefault("attachments", {})[str(attachment.id)] = sb.payloads.attachment(where.id, attachment)
    data: Json = {"custom_id": opened_by.modal["custom_id"], "components": filled.components, "resolved": resolved}
    message = sb.world.message(where.id, opened_by.message_id) if opened_by.message_id else None
    return start(
        sb, Kind.MODAL_SUBMIT, user, where, opened_by.application_id, data, message, forged=forged, cause=opened_by
    )


def start(
    sb: Sandbox,
    kind: Kind,
    user: User,
    where: Channel,
    application_id: int,
    data: Json,
    message: Message | None = None,
    *,
    forged: bool = False,
    guild_id: int | None = None,
    cause: Interaction | None = None,
) -> Interaction:
    """Send INTERACTION_CREATE and start the clock. The interaction fails at once if no session can receive it."""
    place = guild_id if guild_id is not None else where.guild_id
    made = Interaction(
        id=sb.world.ids.next(),
        application_id=application_id,
        kind=kind,
        user_id=user.id,
        channel_id=where.id,
        guild_id=place,
        created=sb.clock.now(),
        message_id=message.id if message else None,
        forged=forged,
    )
    made.metadata = _metadata(made, cause)
    made.payload = _payload(sb, made, user, where, data, message)
    sb.interactions.add(made)
    sb.log.world(
        "interaction.create",
        interaction_id=str(made.id),
        kind=int(kind),
        user_id=str(user.id),
        channel_id=str(where.id),
        custom_id=data.get("custom_id"),
        forged=forged,
    )
    deliver(sb, made)
    return made


def deliver(sb: Sandbox, made: Interaction) -> None:
    """Send the interaction. A replay sends it again with the same id and token."""

    def render(viewer: Any) -> Json | None:
        return made.payload if viewer.bot_id == made.application_id else None

    reach = sb.sessions.publish("INTERACTION_CREATE", render, guild_id=made.guild_id)
    if made.state != "waiting":
        return
    if reach.live + reach.waiting == 0:
        _expire(sb, made)
    else:
        asyncio.get_running_loop().call_later(sb.interactions.deadline, _expire, sb, made)


def _expire(sb: Sandbox, made: Interaction) -> None:
    if made.state == "waiting":
        made.fail()
        sb.log.world("interaction.failed", interaction_id=str(made.id), user_id=str(made.user_id), error=made.error)


def _metadata(made: Interaction, cause: Interaction | None) -> Json:
    owners = {"0": str(made.guild_id or 0)}
    body: Json = {
        "id": str(made.id),
        "type": int(made.kind),
        "user_id": str(made.user_id),
        "authorizing_integration_owners": owners,
    }
    if made.kind == Kind.COMPONENT:
        body["interacted_message_id"] = str(made.message_id)
    if made.kind == Kind.MODAL_SUBMIT and cause is not None:
        body["triggering_interaction_metadata"] = cause.metadata
    return body


def _payload(sb: Sandbox, made: Interaction, user: User, where: Channel, data: Json, message: Message | None) -> Json:
    own = in_channel(sb.world, where, user.id)
    body: Json = {
        "id": str(made.id),
        "application_id": str(made.application_id),
        "type": int(made.kind),
        "token": made.token,
        "version": 1,
        "data": data,
        "channel_id": str(where.id),
        "channel": sb.payloads.channel(where, made.application_id) | {"permissions": str(own)},
        "locale": "en-US",
        "app_permissions": str(in_channel(sb.world, where, made.application_id)),
        "entitlements": [],
        "authorizing_integration_owners": {"0": str(made.guild_id or 0)},
        "context": 1 if where.type == ChannelType.DM else 0,
        "attachment_size_limit": sb.attachment_limit,
    }
    if message is not None:
        body["message"] = sb.payloads.message(message, made.application_id)
    if made.guild_id is None:
        return body | {"user": sb.payloads.user(user)}
    member = sb.world.member(made.guild_id, user.id)
    shown = sb.payloads.member(member) if member else _stranger(sb, user)
    return body | {
        "guild_id": str(made.guild_id),
        "guild": {"id": str(made.guild_id), "locale": "en-US", "features": []},
        "guild_locale": "en-US",
        "member": shown | {"permissions": str(own)},
    }


def _stranger(sb: Sandbox, user: User) -> Json:
    """Return a member's fields for somebody who is not a member; forged presses need them."""
    return {
        "user": sb.payloads.user(user),
        "roles": [],
        "joined_at": sb.clock.iso(),
        "premium_since": None,
        "deaf": False,
        "mute": False,
        "flags": 0,
        "nick": None,
        "avatar": None,
        "pending": False,
    }


def as_seen(sb: Sandbox, made: Interaction) -> Json:
    """Return the interaction as its person saw it, for the control API."""
    where = made.channel_id
    shown = [sb.world.message(where, number) for number in made.messages]
    source = sb.world.message(where, made.message_id) if made.message_id and made.updated else None
    return {
        "id": str(made.id),
        "kind": int(made.kind),
        "user_id": str(made.user_id),
        "state": made.state,
        "error": made.error,
        "callback_type": made.callback_type,
        "messages": [people.as_seen(sb, message, made.user_id) for message in shown if message is not None],
        "updated": people.as_seen(sb, source, made.user_id) if source else None,
        "modal": made.modal,
        "choices": made.choices,
        "forged": made.forged,
        "custom_id": made.payload["data"].get("custom_id"),
    }

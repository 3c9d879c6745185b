"""The bot's response to an interaction: the callback within three seconds, then followups by token.

This module carries out the response. `presses` creates interactions, and `interactions` has the rules about time.
"""

from collections.abc import Mapping
from dataclasses import replace

from discord_sandbox import apierrors, message_contents, modals, posting
from discord_sandbox.bundle import Sandbox
from discord_sandbox.interactions import Interaction, Kind
from discord_sandbox.message_contents import MessageContents, Upload
from discord_sandbox.model import Json, Message, MessageFlag, MessageType
from discord_sandbox.posting import Sender
from discord_sandbox.reading import fields, items

PONG, MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE, CHOICES, MODAL = 1, 4, 5, 6, 7, 8, 9
ALLOWED = {
    Kind.PING: {PONG},
    Kind.COMMAND: {MESSAGE, DEFERRED_MESSAGE, MODAL},
    Kind.COMPONENT: {MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE, MODAL},
    Kind.AUTOCOMPLETE: {CHOICES},
    Kind.MODAL_SUBMIT: {MESSAGE, DEFERRED_MESSAGE, DEFERRED_UPDATE, UPDATE},
}


def respond(sb: Sandbox, interaction_id: int, token: str, body: Json, uploads: Mapping[int, Upload]) -> Json:
    """Carries out the one response and returns the body for `with_response`."""
    interaction = sb.interactions.get(interaction_id)
    if interaction is None or interaction.token != token:
        raise apierrors.unknown_interaction()
    if interaction.state == "answered":
        raise apierrors.already_acknowledged()
    if not sb.interactions.can_answer(interaction, sb.clock.now()):
        raise apierrors.unknown_interaction()
    kind, data = int(body.get("type") or 0), fields(body.get("data"))
    allowed = ALLOWED[interaction.kind]
    if kind in (DEFERRED_UPDATE, UPDATE) and interaction.message_id is None:
        allowed = allowed - {DEFERRED_UPDATE, UPDATE}
    if kind not in allowed:
        refusal = f"Value must be one of {{{', '.join(map(str, sorted(allowed)))}}}."
        raise apierrors.bad_field(("type",), "BASE_TYPE_CHOICES", refusal)
    try:
        message = _carry_out(sb, interaction, kind, data, uploads)
    except apierrors.ApiError as error:
        if error.errors and "data" not in error.errors:
            error.errors = {"data": error.errors}
        raise
    interaction.answered(kind)
    sb.log.world(
        "interaction.answered", interaction_id=str(interaction.id), user_id=str(interaction.user_id), type=kind
    )
    return _with_response(sb, interaction, kind, message)


def _carry_out(
    sb: Sandbox, interaction: Interaction, kind: int, data: Json, uploads: Mapping[int, Upload]
) -> Message | None:
    if kind == MESSAGE:
        contents = message_contents.for_create(data, uploads, sb.world.ids)
        message = _post(sb, interaction, contents)
        interaction.original_id = message.id
        return message
    if kind == DEFERRED_MESSAGE:
        flags = int(data.get("flags") or 0) & MessageFlag.EPHEMERAL
        message = _post(sb, interaction, MessageContents(flags=flags | MessageFlag.LOADING))
        interaction.original_id = message.id
        return message
    if kind in (UPDATE, DEFERRED_UPDATE):
        interaction.original_id = interaction.message_id
        if kind == UPDATE:
            interaction.updated = True
            return _rewrite(sb, _source(sb, interaction), data, uploads)
    if kind == CHOICES:
        interaction.choices = items(data.get("choices"))
        if len(interaction.choices) > 25:
            raise apierrors.bad_field(("data", "choices"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    if kind == MODAL:
        interaction.modal = modals.check(data)
    return None


def _with_response(sb: Sandbox, interaction: Interaction, kind: int, message: Message | None) -> Json:
    body: Json = {
        "id": str(interaction.id),
        "type": int(interaction.kind),
        "channel_id": str(interaction.channel_id),
        "response_message_loading": kind == DEFERRED_MESSAGE,
        "response_message_ephemeral": bool(message and message.ephemeral_to is not None),
    }
    if interaction.guild_id is not None:
        body["guild_id"] = str(interaction.guild_id)
    if message is None:
        return {"interaction": body}
    body["response_message_id"] = str(message.id)
    resource_type = MESSAGE if kind == DEFERRED_MESSAGE else kind
    body_of_message = sb.payloads.message(message, interaction.application_id)
    return {"interaction": body, "resource": {"type": resource_type, "message": body_of_message}}


def of_token(sb: Sandbox, application_id: int, token: str) -> Interaction | None:
    """Find the interaction that a followup's token belongs to. Raise if the token has expired."""
    interaction = sb.interactions.of_token(token)
    if interaction is None or interaction.application_id != application_id:
        return None
    if not sb.interactions.token_lives(interaction, sb.clock.now()):
        raise apierrors.invalid_webhook_token()
    return interaction


def follow_up(sb: Sandbox, interaction: Interaction, body: Json, uploads: Mapping[int, Upload]) -> Message:
    if interaction.state != "answered":
        raise apierrors.unknown_webhook()
    original = sb.world.message(interaction.channel_id, interaction.original_id or 0)
    if original is not None and original.flags & MessageFlag.LOADING:
        # The first followup replaces "is thinking" and is private if the deferral was.
        return _rewrite(sb, original, body, uploads)
    return _post(sb, interaction, message_contents.for_create(body, uploads, sb.world.ids))


def message_of(sb: Sandbox, interaction: Interaction, which: str) -> Message:
    """Find `@original`, or a message by id that this interaction made or updated."""
    if which == "@original":
        number = interaction.original_id or 0
    elif which.isdecimal() and int(which) in {*interaction.messages, interaction.original_id, interaction.message_id}:
        number = int(which)
    else:
        raise apierrors.unknown_message()
    message = sb.world.message(interaction.channel_id, number)
    if message is None:
        raise apierrors.unknown_message()
    return message


def edit(sb: Sandbox, interaction: Interaction, which: str, body: Json, uploads: Mapping[int, Upload]) -> Message:
    message = message_of(sb, interaction, which)
    if message.id == interaction.message_id:
        interaction.updated = True
    changed = _rewrite(sb, message, body, uploads)
    sb.log.world("interaction.edited", interaction_id=str(interaction.id), message_id=str(message.id))
    return changed


def _source(sb: Sandbox, interaction: Interaction) -> Message:
    message = sb.world.message(interaction.channel_id, interaction.message_id or 0)
    if message is None:
        raise apierrors.unknown_message()
    return message


def _rewrite(sb: Sandbox, message: Message, body: Json, uploads: Mapping[int, Upload]) -> Message:
    contents = message_contents.for_edit(body, uploads, sb.world.ids, message)
    if message.flags & MessageFlag.LOADING:
        contents = replace(contents, flags=contents.flags & ~MessageFlag.LOADING)
    return posting.edit(sb, sb.world.channels[message.channel_id], message, contents)


def _post(sb: Sandbox, interaction: Interaction, contents: MessageContents) -> Message:
    private = bool(contents.flags & MessageFlag.EPHEMERAL)
    sender = Sender(
        user_id=interaction.application_id,
        application_id=interaction.application_id,
        interaction=interaction.metadata,
        ephemeral_to=interaction.user_id if private else None,
        type=_message_type(interaction),
    )
    message = posting.create(sb, sb.world.channels[interaction.channel_id], sender, contents)
    interaction.messages.append(message.id)
    sb.log.world("interaction.message", interaction_id=str(interaction.id), message_id=str(message.id))
    return message


def _message_type(interaction: Interaction) -> MessageType:
    """Return the type of a message: the first response to a command has its own type, all others are ordinary."""
    if interaction.kind != Kind.COMMAND or interaction.original_id is not None:
        return MessageType.DEFAULT
    typed = interaction.payload["data"]["type"] == 1
    return MessageType.CHAT_INPUT_COMMAND if typed else MessageType.CONTEXT_MENU_COMMAND

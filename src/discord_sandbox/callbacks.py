"""The bot's answer to an interaction: the callback within three seconds, then followups by token.

Carries out what the bot sends; who pressed what is `presses`'s work, and the clock rules are the ledger's.
"""

from collections.abc import Mapping
from dataclasses import replace

from discord_sandbox import apierrors, drafts, modals, posting
from discord_sandbox.bundle import Sandbox
from discord_sandbox.drafts import Draft, Upload
from discord_sandbox.interactions import Interaction, Kind
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


def answer(sb: Sandbox, interaction_id: int, token: str, body: Json, uploads: Mapping[int, Upload]) -> Json:
    """Takes the one answer and returns what `with_response` would show."""
    found = sb.interactions.get(interaction_id)
    if found is None or found.token != token:
        raise apierrors.unknown_interaction()
    if found.state == "answered":
        raise apierrors.already_acknowledged()
    if not sb.interactions.can_answer(found, sb.clock.now()):
        raise apierrors.unknown_interaction()
    kind, data = int(body.get("type") or 0), fields(body.get("data"))
    allowed = ALLOWED[found.kind]
    if kind in (DEFERRED_UPDATE, UPDATE) and found.message_id is None:
        allowed = allowed - {DEFERRED_UPDATE, UPDATE}
    if kind not in allowed:
        message = f"Value must be one of {{{', '.join(map(str, sorted(allowed)))}}}."
        raise apierrors.bad_field(("type",), "BASE_TYPE_CHOICES", message)
    try:
        shown = _carry_out(sb, found, kind, data, uploads)
    except apierrors.ApiError as error:
        if error.errors and "data" not in error.errors:
            error.errors = {"data": error.errors}
        raise
    found.answered(kind)
    sb.log.world("interaction.answered", interaction_id=str(found.id), user_id=str(found.user_id), type=kind)
    return _with_response(sb, found, kind, shown)


def _carry_out(sb: Sandbox, found: Interaction, kind: int, data: Json, uploads: Mapping[int, Upload]) -> Message | None:
    if kind == MESSAGE:
        draft = drafts.for_create(data, uploads, sb.world.ids)
        shown = _post(sb, found, draft)
        found.original_id = shown.id
        return shown
    if kind == DEFERRED_MESSAGE:
        flags = int(data.get("flags") or 0) & MessageFlag.EPHEMERAL
        shown = _post(sb, found, Draft(flags=flags | MessageFlag.LOADING))
        found.original_id = shown.id
        return shown
    if kind in (UPDATE, DEFERRED_UPDATE):
        found.original_id = found.message_id
        if kind == UPDATE:
            found.updated = True
            return _rewrite(sb, _source(sb, found), data, uploads)
    if kind == CHOICES:
        found.choices = items(data.get("choices"))
        if len(found.choices) > 25:
            raise apierrors.bad_field(("data", "choices"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    if kind == MODAL:
        found.modal = modals.check(data)
    return None


def _with_response(sb: Sandbox, found: Interaction, kind: int, shown: Message | None) -> Json:
    body: Json = {
        "id": str(found.id),
        "type": int(found.kind),
        "channel_id": str(found.channel_id),
        "response_message_loading": kind == DEFERRED_MESSAGE,
        "response_message_ephemeral": bool(shown and shown.ephemeral_to is not None),
    }
    if found.guild_id is not None:
        body["guild_id"] = str(found.guild_id)
    if shown is None:
        return {"interaction": body}
    body["response_message_id"] = str(shown.id)
    resource_type = MESSAGE if kind == DEFERRED_MESSAGE else kind
    message = sb.payloads.message(shown, found.application_id)
    return {"interaction": body, "resource": {"type": resource_type, "message": message}}


def of_token(sb: Sandbox, application_id: int, token: str) -> Interaction | None:
    """The interaction behind a followup's token; raises once the token has run out."""
    found = sb.interactions.of_token(token)
    if found is None or found.application_id != application_id:
        return None
    if not sb.interactions.token_lives(found, sb.clock.now()):
        raise apierrors.invalid_webhook_token()
    return found


def follow_up(sb: Sandbox, found: Interaction, body: Json, uploads: Mapping[int, Upload]) -> Message:
    if found.state != "answered":
        raise apierrors.unknown_webhook()
    original = sb.world.message(found.channel_id, found.original_id or 0)
    if original is not None and original.flags & MessageFlag.LOADING:
        # The first followup takes the place of "is thinking", and its privacy is the deferral's.
        return _rewrite(sb, original, body, uploads)
    return _post(sb, found, drafts.for_create(body, uploads, sb.world.ids))


def message_of(sb: Sandbox, found: Interaction, which: str) -> Message:
    """`@original` or the id of a message that this interaction made or updated."""
    if which == "@original":
        number = found.original_id or 0
    elif which.isdecimal() and int(which) in {*found.messages, found.original_id, found.message_id}:
        number = int(which)
    else:
        raise apierrors.unknown_message()
    message = sb.world.message(found.channel_id, number)
    if message is None:
        raise apierrors.unknown_message()
    return message


def edit(sb: Sandbox, found: Interaction, which: str, body: Json, uploads: Mapping[int, Upload]) -> Message:
    message = message_of(sb, found, which)
    if message.id == found.message_id:
        found.updated = True
    changed = _rewrite(sb, message, body, uploads)
    sb.log.world("interaction.edited", interaction_id=str(found.id), message_id=str(message.id))
    return changed


def _source(sb: Sandbox, found: Interaction) -> Message:
    message = sb.world.message(found.channel_id, found.message_id or 0)
    if message is None:
        raise apierrors.unknown_message()
    return message


def _rewrite(sb: Sandbox, message: Message, body: Json, uploads: Mapping[int, Upload]) -> Message:
    draft = drafts.for_edit(body, uploads, sb.world.ids, message)
    if message.flags & MessageFlag.LOADING:
        draft = replace(draft, flags=draft.flags & ~MessageFlag.LOADING)
    return posting.edit(sb, sb.world.channels[message.channel_id], message, draft)


def _post(sb: Sandbox, found: Interaction, draft: Draft) -> Message:
    private = bool(draft.flags & MessageFlag.EPHEMERAL)
    sender = Sender(
        user_id=found.application_id,
        application_id=found.application_id,
        interaction=found.metadata,
        ephemeral_to=found.user_id if private else None,
        type=_message_type(found),
    )
    message = posting.create(sb, sb.world.channels[found.channel_id], sender, draft)
    found.messages.append(message.id)
    sb.log.world("interaction.message", interaction_id=str(found.id), message_id=str(message.id))
    return message


def _message_type(found: Interaction) -> MessageType:
    """The first answer to a command is shown as such; everything else is an ordinary message."""
    if found.kind != Kind.COMMAND or found.original_id is not None:
        return MessageType.DEFAULT
    typed = found.payload["data"]["type"] == 1
    return MessageType.CHAT_INPUT_COMMAND if typed else MessageType.CONTEXT_MENU_COMMAND

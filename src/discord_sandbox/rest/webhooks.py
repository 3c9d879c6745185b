"""The routes for interaction responses and for webhooks.

The token in the path authorises both. `callbacks` carries out the responses.
"""

from typing import Any

from discord_sandbox import apierrors, callbacks, guilds, message_contents, posting
from discord_sandbox.interactions import Interaction
from discord_sandbox.model import Message, Webhook
from discord_sandbox.posting import Sender
from discord_sandbox.rest.api import Call, Route


async def callback(call: Call) -> Any:
    sb = call.sandbox
    token = call.request.match_info["token"]
    body = callbacks.respond(sb, call.id("interaction_id"), token, call.json, call.body.uploads)
    return body if call.flag("with_response") else None


def _behind(call: Call) -> Interaction | Webhook:
    """Find the interaction or the webhook that the token in the path belongs to."""
    token = call.request.match_info["token"]
    number = call.id("webhook_id")
    target = callbacks.of_token(call.sandbox, number, token)
    if target is not None:
        return target
    hook = call.sandbox.world.webhooks.get(number)
    if hook is not None and hook.token == token:
        return hook
    if hook is not None or number in call.sandbox.world.applications:
        raise apierrors.invalid_webhook_token()
    raise apierrors.unknown_webhook()


def _as_json(call: Call, message: Message) -> Any:
    return call.sandbox.payloads.message(message, call.application.id if call.application else None)


async def execute(call: Call) -> Any:
    target, sb = _behind(call), call.sandbox
    if isinstance(target, Interaction):
        return _as_json(call, callbacks.follow_up(sb, target, call.json, call.body.uploads))
    contents = message_contents.for_create(call.json, call.body.uploads, sb.world.ids)
    where = sb.world.channels.get(call.query_id("thread_id") or target.channel_id)
    if where is None:
        raise apierrors.unknown_channel()
    sender = Sender(target.id, webhook=target, webhook_name=call.json.get("username") or target.name)
    message = posting.create(sb, where, sender, contents)
    return _as_json(call, message) if call.flag("wait") else None


def _message(call: Call) -> tuple[Interaction | Webhook, Message]:
    target = _behind(call)
    which = call.request.match_info["message_id"]
    if isinstance(target, Interaction):
        return target, callbacks.message_of(call.sandbox, target, which)
    where = call.query_id("thread_id") or target.channel_id
    message = call.sandbox.world.message(where, call.id("message_id"))
    if message is None or message.webhook_id != target.id:
        raise apierrors.unknown_message()
    return target, message


async def get_message(call: Call) -> Any:
    return _as_json(call, _message(call)[1])


async def edit_message(call: Call) -> Any:
    sb = call.sandbox
    target, message = _message(call)
    if isinstance(target, Interaction):
        which = call.request.match_info["message_id"]
        return _as_json(call, callbacks.edit(sb, target, which, call.json, call.body.uploads))
    contents = message_contents.for_edit(call.json, call.body.uploads, sb.world.ids, message)
    return _as_json(call, posting.edit(sb, sb.world.channels[message.channel_id], message, contents))


async def delete_message(call: Call) -> Any:
    posting.delete(call.sandbox, _message(call)[1])


async def get_webhook(call: Call) -> Any:
    target = _behind(call)
    if not isinstance(target, Webhook):
        raise apierrors.unknown_webhook()
    return guilds.webhook(target, call.sandbox.api_url)


_HOOK = "/webhooks/{webhook_id}/{token}"
ROUTES = [
    Route("POST", "/interactions/{interaction_id}/{token}/callback", callback),
    Route("POST", _HOOK, execute),
    Route("GET", _HOOK, get_webhook),
    Route("GET", _HOOK + "/messages/{message_id}", get_message),
    Route("PATCH", _HOOK + "/messages/{message_id}", edit_message),
    Route("DELETE", _HOOK + "/messages/{message_id}", delete_message),
]

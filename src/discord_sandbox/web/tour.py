"""Which steps of the guide were really done, as the messages of the world show it.

A step is under way when a person has sent its text. It is done when the bot's messages that followed, in the thread of
that message or in the direct conversation, contain every text in the step's `done`. Nothing is remembered: the world
has it all, also after a restart.
"""

import re
from collections.abc import Sequence

from discord_sandbox import components
from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import ChannelType, Json, Message

ASKER = "{asker}"
"""In a pattern of `done`, this stands for the id of the person who sent the step's text."""
_MENTION = re.compile(r"<@!?\d+>\s*")


def done(sb: Sandbox, steps: Sequence[Json]) -> list[str]:
    """Return the ids of the steps that were done."""
    by_text: dict[str, list[Json]] = {}
    for step in steps:
        by_text.setdefault(str(step["text"]), []).append(step)
    finished: set[str] = set()
    for stored in sb.world.messages.values():
        for message in stored.values():
            for step in by_text.get(_MENTION.sub("", message.content).strip(), ()):
                if step["id"] not in finished and _is_done(sb, step, message):
                    finished.add(step["id"])
    return [step["id"] for step in steps if step["id"] in finished]


def _is_done(sb: Sandbox, step: Json, message: Message) -> bool:
    author = sb.world.users.get(message.author_id)
    wanted: list[str] = step.get("done") or [r"\S"]
    if author is None or author.bot:
        return False
    replies = [text for reply in _replies(sb, message) if (text := _text(reply))]
    patterns = [pattern.replace(ASKER, str(author.id)) for pattern in wanted]
    return all(any(re.search(pattern, text) for text in replies) for pattern in patterns)


def _replies(sb: Sandbox, message: Message) -> list[Message]:
    """Return the bots' messages that followed, visible to everybody there."""
    where = sb.world.channels.get(message.channel_id)
    direct = where is not None and where.type == ChannelType.DM
    in_thread = where is not None and where.thread is not None
    place = (
        message.channel_id if direct or in_thread else message.id
    )  # a thread has the id of the message it starts from
    return [
        reply
        for reply in sb.world.history(place)
        if reply.id > message.id and reply.author_id in sb.world.applications and reply.ephemeral_to is None
    ]


def _text(message: Message) -> str:
    return "\n".join([message.content, *components.texts(message.components)]).strip()

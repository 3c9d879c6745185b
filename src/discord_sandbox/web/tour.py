"""Which steps of the guide were really done, as the messages of the world show it.

A run of a step begins when a person sends its text. It is done when the bot's messages that followed, in the thread of
that message or in the direct conversation, contain every text in the step's `done`. A step was done if one of its runs
was, but a new run of it begins without that. Nothing is remembered: the world has it all, also after a restart.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from discord_sandbox import components
from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import ChannelType, Json, Message, User
from discord_sandbox.reading import items

ASKER = "{asker}"
"""In a pattern of a step, this stands for the id of the person who sent the step's text."""
_MENTION = re.compile(r"<@!?\d+>\s*")


@dataclass(frozen=True)
class Run:
    """One run of a step: the message that began it, whether it is done, and what to do next, in Markdown."""

    message: str
    done: bool
    then: str


@dataclass(frozen=True)
class Progress:
    """`done` has the ids of the steps that were done at some time, `runs` step id -> its latest run."""

    done: list[str] = field(default_factory=list[str])
    runs: dict[str, Run] = field(default_factory=dict[str, Run])


def progress(sb: Sandbox, steps: Sequence[Json]) -> Progress:
    begun = _begun(sb)
    done: list[str] = []
    runs: dict[str, Run] = {}
    for step in steps:
        # The latest first: the earlier ones matter only if it is not done.
        for author, message in sorted(begun.get(str(step["text"]), ()), key=lambda each: -each[1].id):
            run = _run(sb, step, author, message)
            runs.setdefault(step["id"], run)
            if run.done:
                done.append(step["id"])
                break
    return Progress(done, runs)


def _begun(sb: Sandbox) -> dict[str, list[tuple[User, Message]]]:
    """Return text without mentions -> the people's messages with that text, with their authors."""
    begun: dict[str, list[tuple[User, Message]]] = {}
    for stored in sb.world.messages.values():
        for message in stored.values():
            author = sb.world.users.get(message.author_id)
            if author is not None and not author.bot:
                begun.setdefault(_MENTION.sub("", message.content).strip(), []).append((author, message))
    return begun


def _run(sb: Sandbox, step: Json, author: User, message: Message) -> Run:
    texts = [text for reply in _replies(sb, message) if (text := _text(reply))]

    def shows(pattern: str) -> bool:
        wanted = re.compile(pattern.replace(ASKER, str(author.id)))
        return any(wanted.search(text) for text in texts)

    then = [str(advice["then"]) for advice in items(step.get("advice")) if shows(advice["found"])]
    is_done = all(shows(pattern) for pattern in step.get("done") or [r"\S"])
    return Run(str(message.id), is_done, (then or [str(step["then"])])[-1])


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

"""The suggestions on the page: texts to send to the bot, and advice for what to do next.

The sandbox has no suggestions of its own, because it does not know the bot. Its user writes them into a JSON file:

    {
      "channel": "Try one of these:",
      "direct": "The bot replies only to its owner here.",
      "mark": "check",
      "people": {"admin": "may use every command"},
      "steps": [
        {"id": "hello", "title": "Say hello", "short": "Hello", "text": "hello", "then": "The bot says **hello** back."}
      ]
    }

`channel` and `direct` are shown in an empty channel and in an empty conversation with the bot. `mark` names the bot's
icon, one of those in `static/dom.js`. `people` has notes about admin, member, outsider, or a role (small letters,
no last s). In a step, `title` and `short` are its long and short name, `text` is sent after the mention, and
`then` is the advice, in Markdown.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from discord_sandbox.model import Json
from discord_sandbox.reading import fields, items

STEP_KEYS = ("id", "title", "short", "text", "then")


class BadGuide(ValueError):
    """The guide file cannot be used."""


@dataclass(frozen=True)
class Guide:
    """`steps` are dicts with the keys of `STEP_KEYS`, all strings. `restarts`: the page can ask to restart the bot."""

    steps: tuple[Json, ...] = ()
    channel: str = ""
    direct: str = ""
    mark: str = ""
    people: dict[str, str] = field(default_factory=dict[str, str])
    restarts: bool = False

    @classmethod
    def read(cls, path: Path, *, restarts: bool = False) -> "Guide":
        try:
            body = fields(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as problem:
            raise BadGuide(f"{path} cannot be read: {problem}") from None
        steps = tuple(items(body.get("steps")))
        for number, step in enumerate(steps):
            missing = [key for key in STEP_KEYS if not isinstance(step.get(key), str)]
            if missing:
                raise BadGuide(f"{path}: step {number} needs a text for {', '.join(missing)}")
        texts = {key: str(body.get(key) or "") for key in ("channel", "direct", "mark")}
        people = {kind: str(note) for kind, note in fields(body.get("people")).items()}
        return cls(steps, **texts, people=people, restarts=restarts)

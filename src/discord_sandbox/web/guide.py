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

A step may also have: `where` "direct", to send it to the bot privately; `as`, the name of the person who sends it;
`acts`, names of people to continue as; `answers`, texts that the page offers in the bot's forms; `done`, patterns that
must all be found in the bot's messages before the step counts as done (see `tour`); `advice`, a list of pairs
`{"found": pattern, "then": text}`: the last one whose pattern is found in the bot's messages takes the place of `then`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from discord_sandbox.model import Json
from discord_sandbox.reading import entries, fields, items

STEP_KEYS = ("id", "title", "short", "text", "then")
LISTS = ("acts", "answers", "done")


class BadGuide(ValueError):
    """The guide file cannot be used."""


def _check_further(step: Json, name: str) -> None:
    for key in LISTS:
        if key in step and not all(isinstance(text, str) for text in entries(step[key])):
            raise BadGuide(f"{name}: {key} is a list of texts")
    for advice in entries(step.get("advice")):
        if not all(isinstance(fields(advice).get(key), str) for key in ("found", "then")):
            raise BadGuide(f"{name}: each entry of advice needs a text for found and then")
    for key, pattern in _patterns(step):
        try:
            re.compile(pattern)
        except re.error as problem:
            raise BadGuide(f"{name}: {pattern!r} in {key} is not a pattern: {problem}") from None


def _patterns(step: Json) -> Iterator[tuple[str, str]]:
    yield from (("done", pattern) for pattern in entries(step.get("done")))
    yield from (("advice", advice["found"]) for advice in items(step.get("advice")))


@dataclass(frozen=True)
class Guide:
    """`steps` are dicts with the keys of `STEP_KEYS`, and further ones. `restarts`: the page can restart the bot."""

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
            _check_further(step, f"{path}: step {number}")
        texts = {key: str(body.get(key) or "") for key in ("channel", "direct", "mark")}
        people = {kind: str(note) for kind, note in fields(body.get("people")).items()}
        return cls(steps, **texts, people=people, restarts=restarts)

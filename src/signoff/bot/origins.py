"""The message that a turn came from, and the title of its thread. Pure; no Discord objects.

A turn's id is `CHANNEL-MESSAGE` of the mention. A replayed event gives the same id, and the id still names the channel
if the process ended between storing the turn and opening its thread.
"""

from __future__ import annotations

import re

from signoff.approvals.model import Place
from signoff.bot.split import size
from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import is_hidden

MAX_TITLE = 90
UNTITLED = "A request"

_ORIGIN = lazy_pattern(r"([0-9]{1,20})-([0-9]{1,20})")
_MARKS = lazy_pattern(r"<(?:@[!&]?|#|a?:\w+:|t:|/[^:>]*:)[^>\s]*>")


@dataclass(frozen=True, slots=True)
class Origin:
    channel: str
    message: str

    @property
    def turn(self) -> str:
        return f"{self.channel}-{self.message}"

    def opens(self, place: Place) -> bool:
        """Whether the place is the thread of the mention, which can be opened if it does not exist."""
        return place.channel == self.message


def origin(turn_id: str) -> Origin | None:
    match = _ORIGIN.fullmatch(turn_id)
    return Origin(match[1], match[2]) if match else None


def title(text: str, bot: str = "") -> str:
    """A thread title from the mention's text: the person's own words on one line, within Discord's limit.

    It leaves out mentions, hidden characters, lines that quote somebody, and the bot's name at the beginning.
    """
    own = _MARKS.sub(" ", "\n".join(line for line in text.splitlines() if not line.startswith(">")))
    if bot:
        own = re.sub(rf"\A\s*@?{re.escape(bot)}(?!\w)[\s,:;.!-]*", "", own, flags=re.IGNORECASE)
    shown = "".join(" " if char.isspace() else "" if is_hidden(char) else char for char in own)
    words = shown.split()
    line = " ".join(words)
    if size(line) <= MAX_TITLE:
        return line or UNTITLED
    kept = ""
    for word in words:
        if size(f"{kept} {word}") >= MAX_TITLE:
            break
        kept = f"{kept} {word}".strip()
    if not kept:
        kept = words[0][: MAX_TITLE // 2 - 1]
    return f"{kept}…"

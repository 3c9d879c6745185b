"""Short warnings about one call, collected from every untrusted text in it; and texts that are harmless on a line.

The warnings are trusted text; they name the argument in plain ASCII. This module knows neither batches nor any medium.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import is_plain_line, plain, visible

PADDING = 40
"""A run of this many spaces or tabs may push the rest of a line out of sight."""
SUMMARY_BUDGET = 72
_RUN_OF_SPACES = lazy_pattern(rf"[ \t]{{{PADDING},}}")
_REMARKABLE = lazy_pattern(rf"[^\n\t -~]|(?i:xn--)|[ \t]{{{PADDING}}}")
"""Every text with a warning has one of these."""
_SHORT = 2000
"""In a longer text, looking for all of them at every character is slower than looking for one after the other."""
_NAME_BUDGET = 32
SENTENCE = 240
"""Most characters of a text that is shown as a sentence."""
_HARMLESS = r"[\w.,;:!?'\"()/+=%&$-]+"
_OUR_WORDS = lazy_pattern(
    r"APPROVED|REJECTED|CONFIRMED|SKIPPED|CANCELLED|TIMEOUT|DECIDED|RUN AGAIN|ANSWERED|DECLINED"
    r"|(?i:tool approval|answer needed|may decide|may answer|asked by|accepted by|edited by|asks this|asked this"
    r"|answer goes to|answer given|reason given|answer to |warning:|why:|defaults:)"
)
"""The card's own words. A sentence or a name that has them could pass for a line of the card."""
_SENTENCE = lazy_pattern(rf"{_HARMLESS}(?: {_HARMLESS})*")


@dataclass(frozen=True, slots=True)
class CardWarning:
    kind: str
    """A short name, which still fits if the warning itself does not."""
    text: str


DESTRUCTIVE = CardWarning(
    "a destructive tool", "this tool is marked destructive: it may be impossible to undo what it does"
)


def warnings_in(where: str, texts: Iterable[str]) -> list[CardWarning]:
    """Return the warnings about these texts, each once. `where` names the texts for the reader."""
    warnings: dict[CardWarning, None] = {}
    for text in texts:
        if are_plain(text) or (len(text) <= _SHORT and not _REMARKABLE.search(text)):
            continue
        from signoff.text.lookalikes import lookalikes  # here, because most texts are plain

        for warning in visible(text).findings:
            warnings[CardWarning("hidden characters", f"{where}: {warning}")] = None
        for warning in lookalikes(text):
            warnings[CardWarning("look-alikes", f"{where}: {warning}")] = None
        if runs := _RUN_OF_SPACES.findall(text):
            widest = max(map(len, runs))
            warnings[CardWarning("padding", f"{where}: contains a run of {widest} spaces or tabs")] = None
    return list(warnings)


def are_plain(*texts: str) -> bool:
    """Whether a few quick looks tell that there is nothing to warn of, nor any mask, as in most texts."""
    # None of the signs has the character between the texts, so these looks find each sign that one of them has.
    text = "|".join(texts)
    return is_plain_line(text) and "--" not in text and "  " not in text


def argument_place(name: str) -> str:
    return f"argument {plain(name, _NAME_BUDGET)}"


def fit_warnings(warnings: Sequence[CardWarning], budget: int) -> tuple[tuple[str, ...], bool]:
    """Return the warnings that fit, followed by a summary of the others, and whether there are others."""
    if sum(len(f.text) for f in warnings) <= budget:
        return tuple(f.text for f in warnings), False
    shown: list[str] = []
    left = budget - SUMMARY_BUDGET
    for one in warnings:
        if len(one.text) > left:
            break
        shown.append(one.text)
        left -= len(one.text)
    others = warnings[len(shown) :]
    kinds = ", ".join(dict.fromkeys(f.kind for f in others))
    more = " more" if shown else ""
    return (*shown, f"{len(others)}{more} warnings about {kinds}"), True


def reads_as_sentence(text: str) -> bool:
    """Whether nobody could take the text for a line of ours: short, harmless, and with none of the card's own words."""
    if len(text) > SENTENCE or "://" in text or not _SENTENCE.fullmatch(text):
        return False
    return not has_our_words(text) and not are_odd(text)


def has_our_words(text: str) -> bool:
    return bool(_OUR_WORDS.search(text))


def are_odd(*texts: str) -> bool:
    return not are_plain(*texts) and bool(warnings_in("", texts))

"""Which untrusted texts may be shown on a line of a card, and which need a block of their own.

Nobody may take such a text for a line of ours. This module knows values, but neither batches nor any medium.
"""

from __future__ import annotations

import re
from dataclasses import replace

from signoff.cards.layout import Value
from signoff.cards.model import Shape
from signoff.cards.warnings import warnings_in

INLINE = 80
"""Most characters of a value on one line."""
SENTENCE = 240
"""Most characters of a text that is shown as a sentence."""
_WORD = re.compile(r"[\w.$-]+")
_NOT_INLINE = re.compile(r"[`\n\t\r]|  |^ | $")
_HARMLESS = r"[\w.,;:!?'\"()/+=%&$-]+"
_OUR_WORDS = re.compile(
    r"APPROVED|REJECTED|CONFIRMED|SKIPPED|CANCELLED|TIMEOUT|DECIDED|RUN AGAIN|ANSWERED|DECLINED"
    r"|(?i:tool approval|answer needed|may decide|may answer|asked by|accepted by|edited by|asks this|answer goes to"
    r"|warning:|why:|defaults:)"
)
"""The card's own words. A sentence or a name that has them could pass for a line of the card."""
_SENTENCE = re.compile(rf"{_HARMLESS}(?: {_HARMLESS})*")


def inline(value: Value, shape: Shape = Shape.INLINE) -> Value | None:
    """Return an argument in this shape; None if it needs a block.

    A value on one line is shown as code, so nothing in it takes effect, and it cannot end its own quotation. Its name
    is bold, as an outcome is, so a name with the card's own words gets a block, where it is shown as code.
    """
    if not _WORD.fullmatch(value.label) or value.label_cut or len(value.text) > INLINE:
        return None
    if _OUR_WORDS.search(value.label) or _NOT_INLINE.search(value.text) or _is_odd(value.label) or _is_odd(value.text):
        return None
    return replace(value, shape=shape)


def reads_as_sentence(text: str) -> bool:
    """Whether nobody could take the text for a line of ours: short, harmless, and with none of the card's own words."""
    if len(text) > SENTENCE or "://" in text or not _SENTENCE.fullmatch(text):
        return False
    return not _OUR_WORDS.search(text) and not _is_odd(text)


def _is_odd(text: str) -> bool:
    return bool(warnings_in("", [text]))

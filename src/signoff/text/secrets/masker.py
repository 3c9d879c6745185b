"""Masks secrets in everything that people see: arguments, texts, files, audit text and logs. Tools get the real value.

A secret is recognised by the name of its argument, by its shape, or by the operator's patterns. Only runs of letters,
digits and `_-./+=` are ever masked, so a mask hides no space, separator, quote or substitution. A mask shows the length
and a keyed digest: people can see that two secrets are equal, but cannot guess one without the installation's key.
Pure, and knows nothing of cards, stores or any medium.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, cast

from signoff.dataclass import dataclass
from signoff.text.log_lines import Line
from signoff.text.patterns import lazy_pattern
from signoff.text.secrets.kept_masks import KeptMasks
from signoff.text.secrets.names import DEFAULT, Words, expects_words, is_about, is_plural, says_secret, words_of
from signoff.text.secrets.shapes import Span, may_contain_secret, named_spans, token_spans
from signoff.text.secrets.values import RUN, reads_as_command, value_spans
from signoff.text.visible import escape

__all__ = ["DEFAULT", "MASK", "Masker", "MaskingFilter", "count_masks"]

MASK = lazy_pattern(r"‹masked (?:number of )?[0-9]+ characters #[0-9a-f]{8}›")
LEAST_KEY = 16
MOST_HARMLESS = 1000
_PASSES = 8
_TELLING = lazy_pattern(r"[A-Za-z0-9]")
_IMITATION = lazy_pattern(r"(?i)‹(?=\s{0,8}masked)")


@dataclass(frozen=True)
class Masker:
    key: bytes = field(repr=False)
    names: Sequence[str] = DEFAULT
    patterns: Sequence[str] = ()
    """Regular expressions: the whole match is masked, or group 1 if there is one."""
    _kept: KeptMasks = field(default_factory=KeptMasks, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.key) < LEAST_KEY:
            raise ValueError(f"the key for masks has fewer than {LEAST_KEY} bytes")
        _ = self._compiled

    def mask_text(self, text: str) -> str:
        """Mask logs and other text that may have been masked before. Masks in it stay as they are."""
        return self._mask(text, ())

    def mask_untrusted(self, text: str) -> str:
        """Mask text that somebody else wrote. Imitated masks in it are escaped, so that every mask is ours."""
        return self._kept.once("text", text, lambda: self._untrusted(text)) if text else ""

    def mask_args(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a masked copy of the same structure. Raises ValueError if two names are the same once masked."""
        shown = self._kept.once("arguments", args, lambda: self._arguments(args))
        if isinstance(shown, str):
            raise ValueError(shown)
        return shown

    def mask_digest(self, digest: str) -> str:
        """Key the digest of masked arguments: a short secret could be found from the plain digest by trying them all.

        The keyed text has a space in it, and no masked run has one. So nobody can get this value by passing a digest
        as a secret and reading its mask.
        """
        keyed = hmac.digest(self.key, f"digest {digest}".encode(), "sha256").hex()
        return f"keyed-{keyed}" if digest else ""

    def hides(self, args: Mapping[str, Any]) -> bool:
        """Whether any part of these arguments is not shown as it is, so that people cannot edit them from the card.

        Also true for arguments that imitate a mask or are already masked.
        """
        try:
            return self.mask_args(args) != args
        except (ValueError, RecursionError):
            return True

    @cached_property
    def _known(self) -> frozenset[Words]:
        return frozenset(words for name in self.names if (words := words_of(name)))

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(pattern) for pattern in self.patterns)

    def _secret(self, name: str) -> bool:
        return says_secret(name, self._known)

    def _untrusted(self, text: str) -> str:
        return self._mask(_without_imitations(text), ())

    def _arguments(self, args: Mapping[str, Any]) -> dict[str, Any] | str:
        """Return the masked arguments, or the reason why they cannot be masked. Either result may be cached."""
        try:
            return self._object(args, inherited=None)
        except ValueError as error:
            return str(error)

    def _object(self, members: Mapping[str, Any], inherited: str | None) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for name, value in members.items():
            safe = self._untrusted(name)
            if safe in shown:
                raise ValueError("two names are the same once masked")
            own = name if self._secret(name) else None if inherited is None or is_about(name) else inherited
            shown[safe] = self._value(value, own)
        return shown

    def _value(self, value: Any, secret: str | None) -> Any:
        """Mask one value. `secret`: the name that makes it a secret, its own or that of an object or list around it."""
        if isinstance(value, str):
            text = _without_imitations(value)
            return self._mask(text, list(value_spans(text, phrase=expects_words(secret))) if secret else ())
        if isinstance(value, Mapping):
            return self._object(cast("Mapping[str, Any]", value), secret)
        if isinstance(value, list | tuple):
            return [self._value(item, secret) for item in cast("Sequence[Any]", value)]
        if secret and isinstance(value, int | float) and not isinstance(value, bool) and not is_plural(secret):
            return self._write(json.dumps(value), "number of ")
        return value

    def _mask(self, text: str, more: Sequence[Span]) -> str:
        """Mask again until nothing changes: a token next to a secret may be found only once the secret is a mask."""
        for _ in range(_PASSES):
            before, text = text, self._mask_once(text, more)
            if text == before:
                break
            more = ()
        return text

    def _mask_once(self, text: str, more: Sequence[Span]) -> str:
        spans = [*more, *self._own_spans(text)] if more or self._compiled else []
        if may_contain_secret(text):
            spans += [*token_spans(text), *self._named_spans(text)]
        if not spans:
            return text
        kept = [match.span() for match in MASK.finditer(text)]
        parts: list[str] = []
        written: dict[str, str] = {}
        done = 0
        for start, end in _merged(text, spans, kept):
            run = text[start:end]
            mask = written.get(run) or written.setdefault(run, self._write(run))
            parts += [text[done:start], mask]
            done = end
        return "".join((*parts, text[done:]))

    def _named_spans(self, text: str) -> Iterable[Span]:
        for start, end, _ in named_spans(text, self._secret):
            yield from (Span(start + s, start + e, named) for s, e, named in value_spans(text[start:end]))

    def _own_spans(self, text: str) -> Iterable[Span]:
        for pattern in self._compiled:
            group = 1 if pattern.groups else 0
            yield from (Span(*match.span(group)) for match in pattern.finditer(text) if match[group])

    def _write(self, secret: str, kind: str = "") -> str:
        digest = hmac.digest(self.key, secret.encode("utf-8"), "sha256").hex()[:8]
        return f"‹masked {kind}{len(secret)} characters #{digest}›"


class MaskingFilter(logging.Filter):
    """Masks each log record as a whole: message with arguments, traceback and stack. Put it on handlers, not loggers.

    A filter on a logger sees only records of that logger; on a handler it sees all records.
    """

    def __init__(self, masker: Masker) -> None:
        super().__init__()
        self._masker = masker
        self._harmless: set[str] = set()
        """Values of fields with nothing to mask: the same few ids are in line after line."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, Line):
            if not all(self._is_harmless(value) for value in record.msg.texts if value not in self._harmless):
                record.msg = record.msg.changed(self._masker.mask_text)
            if self._masker.patterns:  # one of them may name a field, or a number
                record.msg = replace(record.msg, text=self._masker.mask_text(str(record.msg)))
        else:
            try:
                message = record.getMessage()
            except Exception:
                message = f"{record.msg} (its arguments could not be written)"
            record.msg, record.args = self._masker.mask_text(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        # A formatter that ignores `exc_text` would render the exception again, unmasked.
        record.exc_info = None
        if record.exc_text:
            record.exc_text = self._masker.mask_text(record.exc_text)
        if record.stack_info:
            record.stack_info = self._masker.mask_text(record.stack_info)
        return True

    def _is_harmless(self, value: str) -> bool:
        if self._masker.mask_text(value) != value:
            return False
        if len(self._harmless) >= MOST_HARMLESS:
            self._harmless.clear()
        self._harmless.add(value)
        return True


def _without_imitations(text: str) -> str:
    return _IMITATION.sub(lambda _: escape("‹"), text) if "‹" in text else text


def count_masks(texts: Iterable[str]) -> int:
    return sum(len(MASK.findall(text)) for text in texts if "‹" in text)


def _merged(text: str, spans: Iterable[Span], kept: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the runs to mask, in order: overlapping ones are joined, and existing masks are left out."""
    runs: list[tuple[int, int]] = []
    for span in spans:
        for run in RUN.finditer(text, span.start, span.end):
            if _TELLING.search(run[0]) and not (span.named and reads_as_command(run[0])):
                runs.append(run.span())
    merged: list[tuple[int, int]] = []
    masks = iter(kept)
    mask = next(masks, None)
    for start, end in sorted(runs):
        while mask and mask[1] <= start:
            mask = next(masks, None)
        if mask and mask[0] < end:
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged

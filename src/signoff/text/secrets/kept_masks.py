"""What was masked, kept for a while: a call is masked for its card, each row of the record and the event alike.

Kept as bytes, so that a reader who changes what they were given changes nothing for the next one. Nothing is kept as
it came: a key is a digest. Bounded in entries and in bytes; threads may share it. Knows nothing of secrets or masks.
"""

from __future__ import annotations

import hashlib
import marshal
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast

T = TypeVar("T")

ENTRIES = 64
BYTES = 16_000_000
LEAST = 2_000
"""Shorter values are masked about as quickly as they are found."""
_PLAIN = 2
"""The format in which equal values are equal bytes."""


class KeptMasks:
    def __init__(self, entries: int = ENTRIES, size: int = BYTES, least: int = LEAST) -> None:
        self._entries, self._size, self._least = entries, size, least
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """In bytes."""
        return self._bytes

    def once(self, kind: str, value: Any, work: Callable[[], T]) -> T:
        """What `work` makes of this value, a new copy each time; `kind` tells apart what else is made of it."""
        try:
            written = marshal.dumps((kind, value), _PLAIN)
        except ValueError:
            return work()  # no plain data, so it cannot be told from others
        if len(written) < self._least:
            return work()
        key = hashlib.sha256(written).digest()
        packed = self._get(key)
        if packed is not None:
            return marshal.loads(packed)
        made = work()
        self._put(key, marshal.dumps(cast(Any, made), _PLAIN))
        return made

    def _get(self, key: bytes) -> bytes | None:
        with self._lock:
            packed = self._kept.get(key)
            if packed is not None:
                self._kept.move_to_end(key)
            return packed

    def _put(self, key: bytes, made: bytes) -> None:
        if len(made) > self._size:
            return  # it would push out everything else
        with self._lock:
            self._bytes += len(made) - len(self._kept.pop(key, b""))
            self._kept[key] = made
            while len(self._kept) > self._entries or self._bytes > self._size:
                self._bytes -= len(self._kept.popitem(last=False)[1])

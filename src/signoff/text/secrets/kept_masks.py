"""A cache of masked values: the same call is masked for its card, for each row of the record and for the event.

Masked values are kept as bytes, so that a caller who changes a result does not change it for the next caller. Unmasked
values are not kept: each key is a digest. The cache is bounded in entries and in bytes, and threads may share it. It
knows nothing of secrets or masks.
"""

from __future__ import annotations

import hashlib
import marshal
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast

T = TypeVar("T")

ENTRIES = 512
BYTES = 16_000_000
LEAST = 40
"""Values of fewer bytes are not kept: masking them is about as fast as finding them here."""
_PLAIN = 2
"""The version of marshal's format in which equal values give equal bytes."""


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
        """The bytes of all kept values."""
        return self._bytes

    def once(self, kind: str, value: Any, work: Callable[[], T]) -> T:
        """Return the result of `work` for this value, a new copy each time. `kind` tells different work apart."""
        try:
            written = marshal.dumps((kind, value), _PLAIN)
        except ValueError:
            return work()  # not plain data, so it has no key
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

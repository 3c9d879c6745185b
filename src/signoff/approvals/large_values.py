"""Large values: work on them leaves the event loop, so that nobody waits for another person's long arguments.

Masking, laying out and binding half a megabyte takes a second of Python. In a thread it takes as long, but the event
loop gets its turn every few milliseconds. Small values stay on the loop, because a thread would cost more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from signoff.approvals.containment import in_thread
from signoff.approvals.model import Batch

T = TypeVar("T")
LARGE = 20_000
"""Values with more characters than this are large. Each number, name and list counts like a short text."""
EACH = 8


async def off_loop_if_large(value: Any, work: Callable[[], T], limit: int = LARGE) -> T:
    """Return the result of `work`, which handles this value: a thread does it if the value is large."""
    if not is_large(value, limit):
        return work()
    result, error = await asyncio.wrap_future(in_thread(work, "signoff-large"))
    if error is not None:
        raise error
    return cast("T", result)


def is_large(value: Any, limit: int = LARGE) -> bool:
    """Whether the value, or a batch's arguments, previews and texts, are large. Stops counting when it knows."""
    left, waiting = limit, [_texts_of(value) if isinstance(value, Batch) else value]
    while waiting:
        one = waiting.pop()
        left -= len(one) if isinstance(one, str | bytes) else EACH
        if left < 0:
            return True
        if isinstance(one, Mapping):
            members = cast("Mapping[Any, Any]", one)
            if len(members) * EACH > left:
                return True
            waiting += [*members.keys(), *members.values()]
        elif isinstance(one, list | tuple):
            items = cast("list[Any]", one)
            if len(items) * EACH > left:
                return True
            waiting += items
        elif one is not None and not isinstance(one, str | bytes | int | float):
            waiting.append(getattr(one, "__dict__", None))  # a model or a dataclass
    return False


def _texts_of(batch: Batch) -> list[Any]:
    shown = [(request.call.args, request.preview, request.metadata) for request in batch.requests]
    edits = [request.edit.original for request in batch.requests if request.edit]
    return [*shown, *edits, batch.model_text]

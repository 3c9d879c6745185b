"""Functions of other people's, sync or async: conditions, previews, validators, user interfaces."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def answered(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What the function says. A sync one is called in a thread: however slow it is, nothing else waits for it."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **named)

    def call() -> tuple[Any, Exception | None]:
        # As a value: not every exception survives the way out of a thread. For StopIteration the loop would wait for
        # ever, and a CancelledError of threads would be taken for the end of the task.
        try:
            return function(*args, **named), None
        except Exception as error:
            return None, error

    answer, error = await asyncio.to_thread(call)
    if error is not None:
        raise error
    return await answer if inspect.isawaitable(answer) else answer

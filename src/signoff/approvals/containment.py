"""Containment: runs other people's code (tools, conditions, previews, validators, user interfaces) safely.

Such code may fail, but it must not end the process, cancel its caller or delay other work.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any


class Overreach(Exception):
    """Contained code tried to end the process or its caller's task."""


@contextmanager
def contained() -> Generator[None]:
    """Turn an exit or a stray cancellation into an ordinary error."""
    try:
        yield
    except SystemExit as error:
        raise Overreach(f"it tried to end the process with {error.code!r}") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # we are cancelled ourselves
        raise Overreach("something that it waited for was cancelled") from error


async def answered(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call the function and return its result. A sync function runs in a thread, so that it blocks nothing else."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **named)
    answer, error = await asyncio.wrap_future(_start(lambda: function(*args, **named)))
    if error is not None:
        raise error
    return await answer if inspect.isawaitable(answer) else answer


def _start(call: Callable[[], Any]) -> Future[tuple[Any, BaseException | None]]:
    """Run the call in its own thread. In a pool, a few calls that never end would block all others.

    An exception is returned as a value, because a future cannot carry StopIteration.
    """
    future: Future[tuple[Any, BaseException | None]] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            future.set_result((context.run(call), None))
        except BaseException as error:
            future.set_result((None, error))

    threading.Thread(target=work, name="signoff-contained", daemon=True).start()
    return future

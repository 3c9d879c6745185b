"""What other people wrote: tools, conditions, previews, validators, user interfaces. It may fail, as anything may.

But it must not end, stop or hold up more than itself.
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
    """It would have ended more than itself."""


@contextmanager
def contained() -> Generator[None]:
    """What is called within fails like any other: it ends neither the process nor the task that called it."""
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
    """What the function says. A sync one is called in a thread: however slow it is, nothing else waits for it."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **named)
    answer, error = await asyncio.wrap_future(_start(lambda: function(*args, **named)))
    if error is not None:
        raise error
    return await answer if inspect.isawaitable(answer) else answer


def _start(call: Callable[[], Any]) -> Future[tuple[Any, BaseException | None]]:
    """In a thread of its own: of a pool, a few calls that never end would keep every other one waiting.

    An exception comes out as a value, since not each survives the way: for StopIteration the loop would wait for ever.
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

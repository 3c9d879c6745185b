"""Containment: runs other people's code (tools, conditions, previews, validators, user interfaces) safely.

Such code may fail, but it must not end the process, cancel its caller or delay other work.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Outcome = tuple[Any, BaseException | None]
"""A result, or the exception that came instead of it. A future cannot carry every exception, but it can carry this."""
Elsewhere = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Starts a function on another event loop and returns its result."""
_elsewhere: ContextVar[Elsewhere | None] = ContextVar("_elsewhere", default=None)


class Overreach(Exception):
    """Contained code tried to end the process or its caller's task."""


def ordinary(error: BaseException) -> Exception:
    """Return the error as one that ends nothing but the call: an `Exception` that any future can carry."""
    match error:
        case SystemExit():
            told = f"it tried to end the process with {error.code!r}"
        case asyncio.CancelledError() | FutureCancelled():
            told = "something that it waited for was cancelled"
        case StopIteration() | StopAsyncIteration():
            told = f"it raised {type(error).__name__}"
        case Exception():
            return error
        case _:
            told = f"it raised {described(error)}"
    overreach = Overreach(told)
    overreach.__cause__ = error
    return overreach


def described(error: BaseException) -> str:
    """Return the kind and the text of an error. The error may be other people's code, so its text may fail, too."""
    try:
        text = str(error)
    except BaseException as failure:
        text = f"its text cannot be read ({type(failure).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def contained() -> Generator[None]:
    """Turn an exit, an interrupt, a stray cancellation or a panic into an ordinary error."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # we are cancelled ourselves
        raise ordinary(error) from error
    except (Exception, GeneratorExit):
        raise  # the second one is how Python closes a coroutine that nobody waits for
    except BaseException as error:
        raise ordinary(error) from error


@contextmanager
def elsewhere(loop: Elsewhere | None) -> Generator[None]:
    """Make `answered` run async functions on another event loop; None: on this one."""
    token = _elsewhere.set(loop)
    try:
        yield
    finally:
        _elsewhere.reset(token)


async def answered(function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
    """Call the function and return its result. A sync function runs in a thread, so that it blocks nothing else."""
    other = _elsewhere.get()
    if inspect.iscoroutinefunction(function):
        if other is None:
            return await function(*args, **named)
        return await other(lambda: function(*args, **named))
    answer, error = await asyncio.wrap_future(in_thread(lambda: function(*args, **named)))
    if error is not None:
        # A coroutine that lets this one pass looks as if it were being closed.
        raise ordinary(error) if isinstance(error, GeneratorExit) else error
    if not inspect.isawaitable(answer):
        return answer
    return await (other(lambda: answer) if other else answer)


def in_thread(call: Callable[[], Any], name: str = "signoff-contained") -> Future[Outcome]:
    """Run the call in its own thread. In a pool, a few calls that never end would block all others."""
    future: Future[Outcome] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            future.set_result((context.run(call), None))
        except BaseException as error:
            future.set_result((None, error))

    threading.Thread(target=work, name=name, daemon=True).start()
    return future

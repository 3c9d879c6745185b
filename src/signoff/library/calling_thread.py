"""Whether a run was started by sync code: then a sync UI is called in the caller's thread, where `input()` works.

PydanticAI tells a capability nothing about this. `run_sync` and `run_stream_sync` drive the event loop from inside
their own call, so their frame lies below the running task on the stack of this thread.
"""

from __future__ import annotations

import inspect

DRIVES_A_LOOP = {"pydantic_graph._utils": "run_until_complete", "pydantic_ai._sync_stream": ""}
"""Module -> the function in it that drives the event loop for sync code; empty: every sync function."""


def is_driven_by_sync_code() -> bool:
    """Whether `run_sync` or `run_stream_sync` drives the event loop of this thread, and waits until it is done."""
    frame = inspect.currentframe()
    while frame is not None:
        name = DRIVES_A_LOOP.get(frame.f_globals.get("__name__", ""))
        is_sync = not frame.f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
        if name is not None and is_sync and name in ("", frame.f_code.co_name):
            return True
        frame = frame.f_back
    return False

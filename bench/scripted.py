"""The agent that both bots of the benchmark run: an instant model, and one tool that needs approval.

`restart web` makes the model call the tool once and then reply; `restart web 3 times` makes it call the tool three
times, one after the other; `restart web with 490000 characters` gives the call an argument of that size. The tool
writes the time at which it starts into the file that BENCH_TRACE names, and the model what it was sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import time
from collections.abc import AsyncIterator

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

DONE = "All done."
"""The text of the reply."""
TRACE = os.environ.get("BENCH_TRACE", os.devnull)
HASHES = bool(os.environ.get("BENCH_HASHES"))
"""Whether to write a hash of every message that the model is sent. That takes time, so it is off for measurements."""
PROBE = bool(os.environ.get("BENCH_PROBE"))
"""Whether to write each time that the event loop was stopped for longer than `STALL`."""
SLOW = "it answers slowly"
EVERY, STALL = 0.002, 0.01
watches: list[asyncio.Task[None]] = []


def restart(service: str, reason: str) -> str:
    """Restart a service."""
    _note("start")
    return f"{service} was restarted"


def _note(*words: str) -> None:
    with open(TRACE, "a", encoding="utf-8") as file:
        file.write(" ".join([repr(time.time()), *words]) + "\n")


async def _watch_the_loop() -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(EVERY)
        late = time.perf_counter() - began - EVERY
        if late > STALL:
            _note("stall", repr(late))


def _next_call(messages: list[ModelMessage]) -> dict[str, str] | None:
    """Return the arguments of the next call, or None if the work is done."""
    if PROBE and not watches:
        watches.append(asyncio.get_running_loop().create_task(_watch_the_loop()))
    if HASHES:
        dumped = [ModelMessagesTypeAdapter.dump_json([message]) for message in messages]
        _note("request", *(hashlib.sha256(body).hexdigest() for body in dumped))
    prompt, made = "", 0
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    prompt, made = str(part.content), 0
                elif isinstance(part, ToolReturnPart):
                    made += 1
    times = re.search(r"(\d+) times", prompt)
    if made >= (int(times[1]) if times else 1):
        return None
    size = re.search(r"(\d+) characters", prompt)
    reason = (
        SLOW if size is None else "".join(f"{n}: {SLOW} again\n" for n in range(int(size[1]) // 20))[: int(size[1])]
    )
    return {"service": "web", "reason": reason}


def _respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    args = _next_call(messages)
    if args is None:
        return ModelResponse(parts=[TextPart(DONE)])
    return ModelResponse(parts=[ToolCallPart("restart", args, f"call_{len(messages)}")])


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    args = _next_call(messages)
    if args is None:
        yield DONE
    else:
        yield {0: DeltaToolCall(name="restart", json_args=json.dumps(args), tool_call_id=f"call_{len(messages)}")}


agent = Agent(FunctionModel(_respond, stream_function=_stream), tools=[Tool(restart, requires_approval=True)])

"""A server on loopback that speaks OpenAI's chat completions protocol, streamed and whole, scripted by a test.

It is as strict about the conversation as the real one: the tool messages after an assistant message must have a result
for each of its calls, with the same ids, or the request is refused with status 400. It knows nothing about Signoff.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call. Arguments are text, as in the protocol, so that a test can send nonsense."""

    name: str
    arguments: str
    id: str = "call_0"

    @classmethod
    def of(cls, name: str, /, **arguments: Any) -> Call:
        return cls(name, json.dumps(arguments))


@dataclass(frozen=True)
class Say:
    """A model response: text, calls, or both."""

    words: str = ""
    calls: tuple[Call, ...] = ()
    seconds: float = 0.0
    """How long a streamed response takes."""
    at_once: int = 1
    """How many words each piece of a streamed response has."""


@dataclass(frozen=True)
class Trouble:
    """A failure instead of a model response: an HTTP error, or a stream that breaks. `sent` is sent unchanged."""

    status: int = 200
    sent: str = ""
    kind: str = "application/json"
    cut: bool = False
    """Whether the connection is cut after `sent`, so that the stream has no end."""


Answer = Say | Trouble
Script = Callable[[Json], Answer]


def in_turn(*answers: Answer) -> Script:
    """Return a script that plays these in order and repeats the last one."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def refusal(status: int, message: str) -> Trouble:
    """Return an error in the provider's format."""
    return Trouble(status, json.dumps({"error": {"message": message, "type": "server_error", "code": None}}))


@dataclass
class OpenAIServer:
    """`script` gives the responses; `requests` are the requests so far, oldest first."""

    script: Script = field(default_factory=lambda: in_turn(Say("nothing was scripted")))
    requests: list[Json] = field(default_factory=list[Json])
    sent: list[str] = field(default_factory=list[str])
    """The same requests as the texts that were sent."""
    keys: set[str] = field(default_factory=set[str])
    refused: list[str] = field(default_factory=list[str])
    """The errors in the client's requests."""
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def play(self, *answers: Answer) -> None:
        """Forget the requests so far and play these for the next ones."""
        self.requests.clear()
        self.sent.clear()
        self.script = in_turn(*answers)

    async def open(self) -> None:
        app = web.Application(client_max_size=8 << 20)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening; `open` listens on the same port again."""
        if self._runner:
            await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        self.keys.add(request.headers.get("Authorization", ""))
        self.requests.append(body)
        self.sent.append(await request.text())
        if problem := wrong_with(body):
            self.refused.append(problem)
            trouble = refusal(400, problem)
            return web.Response(status=trouble.status, text=trouble.sent, content_type=trouble.kind)
        answer = self.script(body)
        if isinstance(answer, Trouble):
            return await _fail(request, answer)
        if not body.get("stream"):
            return web.json_response(_whole(body, answer))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        chunks = list(_chunks(body, answer))
        begun = asyncio.get_running_loop().time()
        for number, chunk in enumerate(chunks, 1):
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            ahead = answer.seconds * number / len(chunks) - (asyncio.get_running_loop().time() - begun)
            await asyncio.sleep(ahead if ahead > 0.02 else 0)
        await response.write(b"data: [DONE]\n\n")
        return response


@asynccontextmanager
async def openai_server() -> AsyncGenerator[OpenAIServer]:
    server = OpenAIServer()
    await server.open()
    try:
        yield server
    finally:
        await server.close()


def tool_results(request: Json) -> dict[str, str]:
    """Return call id -> result, for the calls of the last model response, from a request's messages."""
    results: dict[str, str] = {}
    for message in reversed(request["messages"]):
        if message["role"] != "tool":
            break
        results[message["tool_call_id"]] = str(message["content"])
    return results


def texts_in(sent: str) -> dict[str, str]:
    """Return key -> the text of its value, exactly as it was sent, for a request."""
    decoder, at, found = json.JSONDecoder(), sent.index("{"), dict[str, str]()
    while sent[at] != "}":
        key, colon = decoder.raw_decode(sent, _skip(sent, at + 1))
        begin = _skip(sent, _skip(sent, colon) + 1)
        _, end = decoder.raw_decode(sent, begin)
        found[key] = sent[begin:end]
        at = _skip(sent, end)
    return found


def _skip(text: str, at: int) -> int:
    while text[at].isspace():
        at += 1
    return at


def wrong_with(request: Json) -> str:
    """Return why the real server would refuse this request; empty if it would not."""
    waiting: list[str] = []
    for number, message in enumerate(request.get("messages") or []):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"messages.{number}: a tool message must follow the tool_calls that it answers"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return f"messages.{number}: tool_call_ids without an answer: {', '.join(waiting)}"
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or []
            waiting = [call["id"] for call in calls]
            if not calls and not message.get("content"):
                return f"messages.{number}: an assistant message with neither content nor tool_calls"
    if waiting:
        return f"the conversation ends without an answer to {', '.join(waiting)}"
    return "" if request.get("messages") else "messages: missing"


async def _fail(request: web.Request, trouble: Trouble) -> web.StreamResponse:
    # The client retries failures that it considers temporary. With this header it does not sleep for seconds.
    headers = {"Content-Type": trouble.kind, "retry-after-ms": "5"}
    if not trouble.cut:
        return web.Response(status=trouble.status, text=trouble.sent, headers=headers)
    response = web.StreamResponse(status=trouble.status, headers=headers)
    await response.prepare(request)
    await response.write(trouble.sent.encode())
    if request.transport:
        request.transport.abort()
    return response


def sse(*chunks: Json | str) -> str:
    """Return chunks as they are sent; text is sent unchanged, even if it is wrong."""
    return "".join(f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n" for chunk in chunks)


def chunk_of(model: str, delta: Json, *, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}


def _chunks(request: Json, said: Say) -> Iterator[Json]:
    model = request["model"]
    yield chunk_of(model, {"role": "assistant", "content": "" if said.words else None})
    words = re.findall(r"\s*\S+|\s+", said.words)
    for start in range(0, len(words), said.at_once):
        yield chunk_of(model, {"content": "".join(words[start : start + said.at_once])})
    for index, call in enumerate(said.calls):
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield chunk_of(model, {"tool_calls": [head]})
    # The arguments of parallel calls arrive in alternating pieces.
    step = 7
    for start in range(0, max((len(call.arguments) for call in said.calls), default=0), step):
        for index, call in enumerate(said.calls):
            if piece := call.arguments[start : start + step]:
                yield chunk_of(model, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk_of(model, {}, finish="tool_calls" if said.calls else "stop")
    if (request.get("stream_options") or {}).get("include_usage"):
        yield chunk_of(model, {}) | {"choices": [], "usage": _USAGE}


def _whole(request: Json, said: Say) -> Json:
    message: Json = {"role": "assistant", "content": said.words or None}
    if said.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in said.calls
        ]
    finish = "tool_calls" if said.calls else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": _USAGE,
    }


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}

"""A workshop as an MCP server over stdio, for tests: strict schemas, hints, and requests of its own to the client.

    python workshop_tools.py FOLDER [SECONDS]

It takes SECONDS to start. If FOLDER has a file named `other`, the schema of `paint` is another one. If it
has a file named `die`, the server ends in every call.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
NEEDED = {"colour": {"enum": ["red", "blue"]}, "coats": {"type": "integer", "minimum": 1}}
TEXT = {"role": "user", "content": {"type": "text", "text": "Which colour?"}}
ASKING: dict[str, tuple[str, dict[str, Any]]] = {
    "ask_model": ("sampling/createMessage", {"messages": [TEXT], "maxTokens": 10}),
    "ask_person": (
        "elicitation/create",
        {"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {"c": {"type": "string"}}}},
    ),
    "ask_roots": ("roots/list", {}),
}
"""Tool name -> the request that it sends to the client, and its parameters."""


def note(**words: object) -> None:
    with (FOLDER / "ledger").open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps({"server": FOLDER.name, **words}) + "\n")


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def asked(method: str, params: dict[str, Any]) -> str:
    """Send a request to the client and return its answer as text."""
    send(id="mine", method=method, params=params)
    while (message := receive()).get("id") != "mine":
        pass
    answer = message.get("error") or message["result"]
    return json.dumps(answer)


def tools() -> list[dict[str, Any]]:
    extra = {"varnish": {"type": "boolean"}} if (FOLDER / "other").exists() else {}
    schema = {
        "type": "object",
        "properties": {**NEEDED, **extra},
        "required": ["colour"],
        "additionalProperties": False,
    }
    paint = {
        "name": "paint",
        "title": "Paint the fence",
        "description": "Paint the fence in one colour.",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
    }
    times = {"type": "object", "properties": {"times": {"type": "integer"}}}
    others = [{"name": name, "description": name, "inputSchema": times} for name in ("change", "flood", *ASKING)]
    return [paint, *others]


def called(name: str, arguments: dict[str, Any]) -> str:
    note(tool=name, arguments=arguments)
    if (FOLDER / "die").exists():
        os._exit(3)
    if name in ASKING:
        return "\n".join(asked(*ASKING[name]) for _ in range(arguments.get("times", 1)))
    if name == "change":
        (FOLDER / "other").write_text("")
        send(method="notifications/tools/list_changed")
    return "x" * 3_000_000 if name == "flood" else "done"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        about = {"name": "workshop", "version": "1"}
        note(capabilities=sorted(params["capabilities"]))
        return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": called(params["name"], params.get("arguments") or {})}]}
    return None


def main() -> None:
    note(started=time.time())
    time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
    note(ready=time.time())
    while True:
        message = receive()
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "unknown method"}}
        send(id=message["id"], **({"result": result} if result is not None else unknown))


if __name__ == "__main__":
    main()

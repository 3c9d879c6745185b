"""A shop as an MCP server over stdio, for tests: a line of JSON-RPC in, a line out. It starts fast.

    python shop_tools.py LEDGER

Each tool records its call in the ledger.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def note(**words: object) -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(words) + "\n")


def list_orders() -> str:
    """The orders of today."""
    note(tool="list_orders")
    return "A-1, A-2"


def refund(order: str, amount: int = 5) -> str:
    """Pay back an amount for an order."""
    note(tool="refund", order=order, amount=amount)
    return f"refunded {amount} for {order}"


def environment() -> str:
    """The names of its environment."""
    return " ".join(sorted(os.environ))


def fail() -> str:
    """Raise."""
    raise RuntimeError("out of stock")


def die() -> str:
    """End the process in the middle of a call."""
    os._exit(3)


def wait() -> str:
    """Wait until somebody kills the process."""
    note(waiting=os.getpid())
    time.sleep(60)
    return "nobody came"


TOOLS: tuple[Callable[..., str], ...] = (list_orders, refund, environment, fail, die, wait)
PARAMETERS = {"refund": {"order": {"type": "string"}, "amount": {"type": "integer"}}}


def described(tool: Callable[..., str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": PARAMETERS.get(tool.__name__, {})}
    hints = {"annotations": {"readOnlyHint": True}} if tool is list_orders else {}
    return {"name": tool.__name__, "description": tool.__doc__, "inputSchema": schema, **hints}


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    tool = next(tool for tool in TOOLS if tool.__name__ == name)
    try:
        return {"content": [{"type": "text", "text": tool(**arguments)}]}
    except RuntimeError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        about = {"name": "shop", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [described(tool) for tool in TOOLS]}
    return called(params["name"], params.get("arguments") or {}) if method == "tools/call" else None


def main() -> None:
    note(started=os.getpid())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            found = answer(message["method"], message.get("params", {}))
            unknown = {"error": {"code": -32601, "message": "unknown method"}}
            reply = {"result": found} if found is not None else unknown
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()

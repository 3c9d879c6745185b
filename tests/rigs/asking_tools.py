"""An MCP server over stdio that asks people while its tools run, for tests. It speaks the protocol of 2025.

    python asking_tools.py LEDGER

Each call has its own thread, as in most servers, so several calls may ask at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

LEDGER = Path(sys.argv[1])
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
answers: dict[str, SimpleQueue[dict[str, Any]]] = {}
"""Id of each of our requests -> where its answer goes."""
numbers = count()
writing = threading.Lock()


def note(**words: object) -> None:
    with writing, LEDGER.open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(words) + "\n")


def send(**message: Any) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message})
    with writing:
        print(line, flush=True)


def elicited(params: dict[str, Any]) -> dict[str, Any]:
    """Ask people, and return the client's result or error."""
    name = f"question-{next(numbers)}"
    answers[name] = SimpleQueue()
    send(id=name, method="elicitation/create", params=params)
    message = answers[name].get()
    return message.get("error") or message["result"]


def ask(message: str = "Who are you?", schema: dict[str, Any] = NAME, times: int = 1, **more: Any) -> str:
    params = {"message": message, "requestedSchema": schema, **more}
    return "\n".join(json.dumps(elicited(params)) for _ in range(times))


def ask_deeply(depth: int) -> str:
    """Ask with a schema that is nested too deep for any parser."""
    start, end = '{"type":"object","properties":{"a":', "}}"
    question = f'{{"message":"Who?","requestedSchema":{start * depth}{{}}{end * depth}}}'
    answers["deep"] = SimpleQueue()
    with writing:
        print(f'{{"jsonrpc":"2.0","id":"deep","method":"elicitation/create","params":{question}}}', flush=True)
    return json.dumps(answers["deep"].get())


def ask_both(first: str, second: str) -> str:
    """Ask two things at the same time."""
    got: dict[str, str] = {}
    threads = [
        threading.Thread(target=lambda words=words: got.update({words: ask(words)})) for words in (first, second)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    return json.dumps(got)


def ask_late(seconds: float, message: str = "Who are you?") -> str:
    """Ask only after a while, even if the client has cancelled the call."""
    time.sleep(seconds)
    return ask(message)


def ask_and_withdraw() -> str:
    """Ask, and take the question back at once."""
    name = f"question-{next(numbers)}"
    answers[name] = SimpleQueue()
    send(id=name, method="elicitation/create", params={"message": "Who are you?", "requestedSchema": NAME})
    time.sleep(0.5)
    send(method="notifications/cancelled", params={"requestId": name})
    return "never mind"


def ask_and_hang() -> str:
    ask()
    time.sleep(60)
    return "too late"


def die() -> str:
    os._exit(3)


def work(seconds: float) -> str:
    time.sleep(seconds)
    return "worked"


TOOLS = {
    function.__name__: function
    for function in (ask, ask_both, ask_deeply, ask_late, ask_and_withdraw, ask_and_hang, die, work)
}


def run(message: dict[str, Any]) -> None:
    name, arguments = message["params"]["name"], message["params"].get("arguments") or {}
    note(tool=name, arguments=arguments)
    text = TOOLS[name](**arguments)
    note(ended=name)
    send(id=message["id"], result={"content": [{"type": "text", "text": text}]})


def answer(message: dict[str, Any]) -> dict[str, Any]:
    match message["method"]:
        case "initialize":
            note(capabilities=message["params"]["capabilities"])
            about = {"name": "asking", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
        case _:
            return {"error": {"code": -32601, "message": "unknown method"}}
    return {"result": result}


def main() -> None:
    note(started=os.getpid())
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") in answers and "method" not in message:
            answers[message["id"]].put(message)
        elif message.get("method") == "tools/call":
            threading.Thread(target=run, args=(message,), daemon=True).start()
        elif "id" in message and "method" in message:
            send(id=message["id"], **answer(message))


if __name__ == "__main__":
    main()

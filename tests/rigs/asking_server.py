"""An MCP server that asks people while its tools run, made with the protocol's own library, for tests.

Usage: `python asking_server.py LEDGER [PORT]`

It speaks the protocol of 2026, in which a question is part of the call's result. With PORT it serves HTTP.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("asking")


def note(**words: object) -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(words) + "\n")


class Person(BaseModel):
    name: str


class Size(BaseModel):
    size: int


async def person() -> Elicit[Person]:
    note(asks="person")
    return Elicit("Who are you?", Person)


async def size(owner: Annotated[ElicitationResult[Person], Resolve(person)]) -> Elicit[Size]:
    note(asks="size")
    return Elicit("How large?", Size)


@server.tool()
async def greet(who: Annotated[ElicitationResult[Person], Resolve(person)]) -> str:
    note(tool="greet")
    return who.model_dump_json()


@server.tool()
async def order(
    who: Annotated[ElicitationResult[Person], Resolve(person)], how: Annotated[ElicitationResult[Size], Resolve(size)]
) -> str:
    note(tool="order")
    return who.model_dump_json() + how.model_dump_json()


if __name__ == "__main__":
    note(started=os.getpid())
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()

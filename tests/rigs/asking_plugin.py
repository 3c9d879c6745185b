"""Tools that ask people something, loaded by the bot or the chat as a plugin."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import CallDeferred


class Order(BaseModel):
    size: Literal["small", "large"]
    count: int
    note: str | None = None


def order(item: str) -> Order:
    """Ask a person for an order."""
    raise CallDeferred(metadata={"question": f"How much of {item}?"})


def ask(question: str, schema: str) -> str:
    """Ask a person anything."""
    raise CallDeferred(metadata={"question": question, "schema": json.loads(schema)})


tools = [order, ask]

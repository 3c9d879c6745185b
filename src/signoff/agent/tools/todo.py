"""The agent's own list of what is left to do, one per conversation. It never asks, because it changes nothing else.

The list is kept in the conversation itself, as the last result of this tool, so it outlives a restart of the bot. The
model reads the docstring of the tool.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import RunContext, Tool
from pydantic_ai.messages import ModelRequest, ToolReturnPart

NAME = "todo"
EMPTY = "The list is empty."
_MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]"}


class TodoItem(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=300, description="What is to be done.")
    state: Literal["open", "doing", "done"] = Field(default="open", description="open, doing or done")


def todo(ctx: RunContext[object], items: list[TodoItem] | None = None) -> str:
    """Keep a list of the steps of a larger task. Give the whole list each time, or nothing to read it.

    Args:
        items: The whole new list, at most 50 items; leave it out to read the present list.
    """
    if items is None:
        return _present(ctx)
    lines = [f"{_MARKS[item.state]} {' '.join(item.text.split())}" for item in items[:50]]
    return "\n".join(lines) or EMPTY


def todo_tool() -> Tool[object]:
    return Tool(todo, name=NAME, metadata={"approval": "never_require", "read_only": True})


def _present(ctx: RunContext[object]) -> str:
    for message in reversed(ctx.messages):
        for part in reversed(message.parts) if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and part.tool_name == NAME and _is_list(part.content):
                return str(part.content)
    return EMPTY


def _is_list(content: object) -> bool:
    """Whether a result is a list and not, for example, the news that the call was not run."""
    return isinstance(content, str) and (content == EMPTY or content.startswith(tuple(_MARKS.values())))

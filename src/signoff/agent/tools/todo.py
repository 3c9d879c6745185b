"""The agent's own list of what is left to do, one per conversation. It never asks, because it changes nothing else.

The list is kept in the conversation itself, as the last result of this tool, so it outlives a restart of the bot. If
the conversation is shortened, the list is copied below the summary. The model reads the docstring of the tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart

NAME = "todo"
EMPTY = "The list is empty."
_KEPT = "\n\nThe list of the tool todo at that time:\n"
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
        return _present(ctx.messages)
    lines = [f"{_MARKS[item.state]} {' '.join(item.text.split())}" for item in items[:50]]
    return "\n".join(lines) or EMPTY


def todo_tool() -> Tool[object]:
    return Tool(todo, name=NAME, metadata={"approval": "never_require", "read_only": True})


def with_list(summary: str, messages: Sequence[ModelMessage]) -> str:
    """Return a summary of these messages, with the list that they have at their end."""
    present = _present(messages)
    return summary if present == EMPTY else f"{summary}{_KEPT}{present}"


def _present(messages: Sequence[ModelMessage]) -> str:
    for message in reversed(messages):
        for part in reversed(message.parts) if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and part.tool_name == NAME and _is_list(part.content):
                return str(part.content)
    # The first message may be a summary.
    for part in messages[0].parts if messages else ():
        if isinstance(part, UserPromptPart) and isinstance(part.content, str) and _KEPT in part.content:
            return part.content.partition(_KEPT)[2]
    return EMPTY


def _is_list(content: object) -> bool:
    """Whether a result is a list and not, for example, the news that the call was not run."""
    return isinstance(content, str) and (content == EMPTY or content.startswith(tuple(_MARKS.values())))

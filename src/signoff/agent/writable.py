"""A model's response without what cannot be stored or sent: half a character (a lone surrogate) is not text."""

from __future__ import annotations

import json
from dataclasses import replace

from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ToolCallPart


def writable(response: ModelResponse) -> ModelResponse:
    """The same response in plain text.

    In arguments half a character becomes JSON's own escape: validation refuses it in words that the model can act on.
    """
    return replace(response, parts=[_writable(part) for part in response.parts])


def _writable(part: ModelResponsePart) -> ModelResponsePart:
    if isinstance(part, TextPart) and not _is_text(part.content):
        return replace(part, content=part.content.encode(errors="backslashreplace").decode())
    if (
        isinstance(part, ToolCallPart)
        and isinstance(part.args, dict)
        and not _is_text(json.dumps(part.args, ensure_ascii=False))
    ):
        return replace(part, args=json.dumps(part.args))
    if isinstance(part, ToolCallPart) and isinstance(part.args, str) and not _is_text(part.args):
        return replace(part, args=part.args.encode(errors="backslashreplace").decode())
    return part


def _is_text(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)

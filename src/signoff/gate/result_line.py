"""The first words of a tool's result, with its secrets masked, as one short line for people.

The text is masked before it is cut: a secret that was cut in two would no longer be recognised. A structure is masked
whole or not shown: what says that a value is secret may be anywhere around it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from pydantic_ai import ToolReturn

from signoff.approvals.model import JsonObject
from signoff.gate.wording import Noted

LINE = 200
"""Characters that are kept. A front end may show fewer."""
READ = 16_000
"""Characters of a text that are read and masked: longer than any secret that could begin in the line.

A structure of more bytes is not shown.
"""
UNREADABLE = "(a result that cannot be shown)"


def result_line(result: Any, kept: bytes, mask: Callable[[JsonObject], JsonObject]) -> str:
    """Return the beginning of a result or a failure as one line. Never raises: the result itself is stored anyway.

    `kept`: the result as it is stored. A structure is read from there, so that no code of a tool runs here. Of a large
    structure only the size is shown.
    """
    try:
        if isinstance(result, ToolReturn):
            result = cast("ToolReturn[Any]", result).return_value
        if result is None:
            return ""
        if isinstance(result, str):
            read: Any = result[:READ]
        elif len(kept) <= READ:
            # Mask a structure as a structure: the names in it say what is a secret.
            read = json.loads(kept)["return_value"]
            read = read["result"] if isinstance(result, Noted) else read
        else:
            return f"(a result of {len(kept):,} bytes)"
        masked = mask({"result": read}).get("result", UNREADABLE)
        text = masked if isinstance(masked, str) else json.dumps(masked, ensure_ascii=False)
        line = " ".join(text.split())[:LINE]
        return line.replace("\0", r"\0").encode(errors="backslashreplace").decode()
    except Exception:
        return UNREADABLE

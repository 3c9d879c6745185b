"""An agent's output as the text of a reply: a model or a dict as a list of names and values, a list as bullets.

Only text that this module writes is markup. Names and values are escaped, and each line of a longer text is quoted, so
no value looks like another field. Knows neither Discord nor the agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from pydantic_ai.messages import BinaryContent
from pydantic_core import to_jsonable_python

from signoff.approvals.model import JsonObject
from signoff.text.patterns import lazy_pattern

NOTHING = "The agent finished without an output."
EMPTY = "*(empty)*"
NONE = "*(none)*"
DEEPEST = 6
"""How many levels are shown as lists. Anything below is written as JSON."""
_MARKUP = lazy_pattern(r"[\\`*_~|<>#\[\]@]|:(?=//|\w|\Z)")
_LIST = lazy_pattern(r"^(\s*)([-+=]|\d+[.)])")
_URL = lazy_pattern(r"https?://[A-Za-z0-9._/?=&%#~:+,-]{1,500}")
_BREAK = lazy_pattern(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def text_of_output(output: Any, mask: Callable[[JsonObject], JsonObject] = dict) -> str:
    """Return the output as Markdown. Text stays as it is; secrets are masked by their names in everything else."""
    if isinstance(output, str):
        return output
    if output is None:
        return NOTHING
    if isinstance(output, BinaryContent):
        return f"The output is a file ({_escaped(output.media_type)}, {len(output.data)} bytes), which is not shown."
    # As one value below a name, so that masking sees every kind of output in the same way.
    plain = dict(mask({"output": to_jsonable_python(output, bytes_mode="base64", fallback=str)}))
    value = plain.get("output", plain)
    if not isinstance(value, Mapping | list):
        return "\n".join(_scalar(value))
    return "\n".join(_lines(cast("Mapping[str, Any] | list[Any]", value), 0)) if value else NOTHING


def _lines(value: Mapping[str, Any] | list[Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    entries = value.items() if isinstance(value, Mapping) else enumerate(value, start=1)
    for name, item in entries:
        titled = f"{indent}- **{_escaped(_flat(str(name)))}:**"
        if isinstance(item, Mapping | list) and item:
            inner = cast("Mapping[str, Any] | list[Any]", item)
            if depth + 1 < DEEPEST:
                yield titled
                yield from _lines(inner, depth + 1)
            else:
                yield f"{titled} {_escaped(_flat(json.dumps(inner, ensure_ascii=False)))}"
            continue
        texts = _scalar(item)
        if len(texts) > 1:
            yield titled
            yield from texts
        else:
            yield f"{titled} {texts[0]}" if isinstance(value, Mapping) else f"{indent}- {texts[0]}"


def _scalar(value: Any) -> list[str]:
    """Return a value as one line, or as several quoted lines."""
    if value is None:
        return [NONE]
    if isinstance(value, str):
        lines = _BREAK.split(value.strip())
        return [_escaped(lines[0]) or EMPTY] if len(lines) == 1 else [f"> {_escaped(line)}" for line in lines]
    return [EMPTY if value in ([], {}) else _escaped(json.dumps(value))]


def _flat(text: str) -> str:
    return _BREAK.sub(" ", text)


def _escaped(text: str) -> str:
    """Escape the text, so that no markup in it takes effect. An address alone stays an address."""
    if _URL.fullmatch(text):
        return text
    plain = _MARKUP.sub(r"\\\g<0>", text)
    return _LIST.sub(lambda match: match[1] + match[2][:-1] + "\\" + match[2][-1], plain)

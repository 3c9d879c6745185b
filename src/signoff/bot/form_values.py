"""What all forms share: their title and id, the values of a submitted form, and typed text that is given back.

This module knows the components of a form, but neither what a form is about nor who may submit it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import cast

import discord
from discord import ui

from signoff.approvals.model import ApprovalRequest
from signoff.bot import quoting
from signoff.bot.buttons import FormLocator
from signoff.bot.split import size
from signoff.text.visible import clip

MAX_TITLE = 45
MAX_ANSWER = 1900
SELECT, RADIO_GROUP, CHECKBOX_GROUP = 3, 21, 22
KEPT = "You typed:"
KEPT_FILE = "The text that you typed is attached."


def form_about(does: str, request: ApprovalRequest, locator: FormLocator) -> ui.Modal:
    title = does + clip(request.shown_tool, (MAX_TITLE - len(does)) // 2)[0]
    modal = ui.Modal(title=title, custom_id=str(locator))
    # discord.py forgets a stopped form, so every submission takes the same path, before and after a restart.
    modal.stop()
    return modal


def chosen_in(data: object) -> dict[str, list[str]]:
    """Field id -> the chosen values, for the selects, radio groups and checkbox groups of a submitted form."""
    chosen: dict[str, list[str]] = {}
    for fields in _fields(data):
        name, value, values = fields.get("custom_id"), fields.get("value"), fields.get("values")
        if not isinstance(name, str) or fields.get("type") not in (SELECT, RADIO_GROUP, CHECKBOX_GROUP):
            continue
        listed = cast("list[object]", values) if isinstance(values, list) else [value]
        chosen[name] = [one for one in listed if isinstance(one, str)]
    return chosen


def typed_in(data: object) -> dict[str, str]:
    """Field id -> text, for the text fields of a submitted form."""
    typed: dict[str, str] = {}
    for fields in _fields(data):
        name, value = fields.get("custom_id"), fields.get("value")
        if fields.get("type") == 4 and isinstance(name, str) and isinstance(value, str):
            typed[name] = value
    return typed


def _fields(data: object) -> Iterator[Mapping[str, object]]:
    """Yield every component of a submitted form."""
    waiting: list[object] = [data]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += cast("list[object]", part)
        elif isinstance(part, Mapping):
            fields = cast("Mapping[str, object]", part)
            yield fields
            waiting += [fields.get("components"), fields.get("component")]


def given_back(text: str, typed: str) -> tuple[str, discord.File | None]:
    """Return a response with the text that the person typed, unchanged: in the message, or as a file."""
    if not typed:
        return text, None
    block, changed = quoting.block(typed)
    whole = f"{text}\n{KEPT}\n{block}"
    if not changed and size(whole) <= MAX_ANSWER:
        return whole, None
    file = discord.File(io.BytesIO(typed.encode("utf-8", "replace")), filename="what-you-typed.txt")
    return f"{text}\n{KEPT_FILE}", file

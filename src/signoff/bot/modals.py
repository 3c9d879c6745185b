"""Forms: other arguments for a call, and a reason for a reject. Made from a request, read back from what Discord sends.

A form that was opened before a restart must work after it, so nothing of it is kept here: its id says what it is about,
and the client's event for submitted forms reads it. Decides nothing.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, cast

import discord
from discord import ui

from signoff.approvals.model import ApprovalRequest
from signoff.bot import quoting
from signoff.bot.locators import FormKind, FormLocator
from signoff.bot.split import size
from signoff.cards.forms import Form
from signoff.text.visible import clip

REASON = "reason"
REASON_ROOM = 1000
MAX_TITLE = 45
MAX_ANSWER = 1900
KEPT = "This is what you typed:"
KEPT_FILE = "What you typed is attached."


def edit_form(request: ApprovalRequest, form: Form, page: int) -> ui.Modal:
    modal = _modal("Edit ", request, FormLocator(FormKind.EDIT, request.id, page, request.call.digest))
    for field in form.fields:
        typed = ui.TextInput[Any](
            custom_id=field.key,
            style=discord.TextStyle.paragraph if field.long else discord.TextStyle.short,
            default=field.text or None,
            required=False,
            max_length=4000,
        )
        modal.add_item(ui.Label[Any](text=field.label, description=field.hint or None, component=typed))
    return modal


def reason_form(request: ApprovalRequest, page: int) -> ui.Modal:
    modal = _modal("Reject ", request, FormLocator(FormKind.REASON, request.id, page))
    typed = ui.TextInput[Any](
        custom_id=REASON, style=discord.TextStyle.paragraph, max_length=REASON_ROOM, required=True
    )
    modal.add_item(
        ui.Label[Any](text="Reason", description="The agent gets it, and the card shows it", component=typed)
    )
    return modal


def _modal(does: str, request: ApprovalRequest, locator: FormLocator) -> ui.Modal:
    title = does + clip(request.call.tool, (MAX_TITLE - len(does)) // 2)[0]
    modal = ui.Modal(title=title, custom_id=str(locator))
    # A finished form is not kept by the library: every submit takes the same way, before and after a restart.
    modal.stop()
    return modal


def typed_in(data: object) -> dict[str, str]:
    """The texts of a submitted form by the id of their field. What is not a text field is left out."""
    found: dict[str, str] = {}
    waiting: list[object] = [data]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += cast("list[object]", part)
        elif isinstance(part, Mapping):
            fields = cast("Mapping[str, object]", part)
            name, value = fields.get("custom_id"), fields.get("value")
            if fields.get("type") == 4 and isinstance(name, str) and isinstance(value, str):
                found[name] = value
            waiting += [fields.get("components"), fields.get("component")]
    return found


def given_back(text: str, typed: str) -> tuple[str, discord.File | None]:
    """An answer with what the person typed in it, or beside it, to the letter."""
    if not typed:
        return text, None
    block, changed = quoting.block(typed)
    whole = f"{text}\n{KEPT}\n{block}"
    if not changed and size(whole) <= MAX_ANSWER:
        return whole, None
    file = discord.File(io.BytesIO(typed.encode("utf-8", "replace")), filename="what-you-typed.txt")
    return f"{text}\n{KEPT_FILE}", file

"""Modals: the form that a bot sends, checked against Discord's limits.

This module does not know who opened a modal. `modal_values` has the values that a person submits.
"""

from discord_sandbox.components import walk
from discord_sandbox.controls import IN_LABEL, TEXT_INPUT, Form, Path, text_input
from discord_sandbox.model import Json
from discord_sandbox.reading import fields, items

ROW, LABEL = 1, 18


def check(data: Json) -> Json:
    """Return the modal as Discord would show it; raise Invalid Form Body if it is wrong."""
    form = Form()
    form.errors.length(("data", "title"), data.get("title"), 1, 45)
    custom_id = data.get("custom_id")
    if not isinstance(custom_id, str) or not 1 <= len(custom_id) <= 100:
        message = "Must be between 1 and 100 in length."
        form.errors.add(("data", "custom_id"), "BASE_TYPE_BAD_LENGTH", message)
    parts = items(data.get("components"))
    path: Path = ("data", "components")
    if not 1 <= len(parts) <= 5:
        form.errors.add(path, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    done = [_top(part, form, (*path, i)) for i, part in enumerate(parts)]
    form.errors.check()
    return {"custom_id": custom_id, "title": data["title"], "components": done}


def _top(part: Json, form: Form, path: Path) -> Json:
    match part.get("type"):
        case 1:
            done = form.begin(part, path)
            inner = items(part.get("components"))
            if len(inner) != 1 or inner[0].get("type") != TEXT_INPUT:
                message = "A row of a modal holds one text input"
                form.errors.add((*path, "components"), "BASE_TYPE_BAD_LENGTH", message)
                return part
            return done | {"components": [text_input(inner[0], form, (*path, "components", 0), labelled=True)]}
        case 18:
            done = form.begin(part, path)
            form.errors.length((*path, "label"), part.get("label"), 1, 45)
            if part.get("description") is not None:
                form.errors.length((*path, "description"), part["description"], 1, 100)
            inner_part = fields(part.get("component"))
            checker = IN_LABEL.get(inner_part.get("type", 0))
            if checker is None:
                form.errors.required((*path, "component"))
                return part
            if inner_part.get("disabled"):
                message = "A component in a modal cannot be disabled"
                form.errors.add((*path, "component", "disabled"), "BASE_TYPE_BAD_VALUE", message)
            inner_done = checker(inner_part, form, (*path, "component"))
            return done | {
                "label": part.get("label"),
                "description": part.get("description"),
                "component": inner_done,
            }
        case 10:
            form.errors.length((*path, "content"), part.get("content"), 1, 4000)
            return form.begin(part, path) | {"content": part.get("content")}
        case _:
            message = 'Value of field "type" must be one of (1, 10, 18).'
            form.errors.add((*path, "type"), "UNION_TYPE_CHOICES", message)
            return part


def inputs(modal: Json) -> dict[str, Json]:
    """Return the inputs of a modal: custom id -> input."""
    return {part["custom_id"]: part for part in walk(modal["components"]) if "custom_id" in part}

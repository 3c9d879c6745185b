"""A modal as a person submits it: each value is checked as Discord's client checks it.

`modals` has the bot's side, the form itself. This module does not know who submits the modal or who reads the values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discord_sandbox.components import TEXT
from discord_sandbox.controls import CHECKBOX, FILE_UPLOAD, RADIO_GROUP, SELECTS, STRING_SELECT, TEXT_INPUT
from discord_sandbox.modals import LABEL, ROW, inputs
from discord_sandbox.model import Attachment, Json
from discord_sandbox.reading import items

Keep = Callable[[str, str], Attachment]
"""Stores an uploaded file, given its name and its data in base64."""


class BadValue(Exception):
    """Discord's own form would not have let the person submit this value."""


@dataclass
class Submission:
    """The `components` of a submission, the objects that were picked (type of select, ids), and the uploaded files."""

    components: list[Json] = field(default_factory=list[Json])
    picked: list[tuple[int, list[str]]] = field(default_factory=list[tuple[int, list[str]]])
    files: list[Attachment] = field(default_factory=list[Attachment])


def fill(modal: Json, values: Mapping[str, Any], keep: Keep, *, forged: bool = False) -> Submission:
    """Return the submission of a modal. `values` has custom id -> value; a field that is not named keeps its default.

    Raise `BadValue` for a value that the form would not have accepted, unless the submission is forged.
    """
    unknown = set(values) - set(inputs(modal))
    if unknown:
        raise BadValue(f"the modal has no field {', '.join(sorted(unknown))}")
    filler = _Filler(values, keep, forged)
    filler.done.components = [filler.part(part) for part in modal["components"]]
    return filler.done


class _Filler:
    def __init__(self, values: Mapping[str, Any], keep: Keep, forged: bool) -> None:
        self.values = values
        self.keep = keep
        self.forged = forged
        self.done = Submission()

    def part(self, part: Json) -> Json:
        shell: Json = {"type": part["type"], "id": part["id"]}
        if part["type"] == ROW:
            return shell | {"components": [self._value(child) for child in part["components"]]}
        if part["type"] == LABEL:
            return shell | {"component": self._value(part["component"])}
        assert part["type"] == TEXT
        return shell

    def _value(self, part: Json) -> Json:
        shell: Json = {"type": part["type"], "id": part["id"], "custom_id": part["custom_id"]}
        given = self.values.get(part["custom_id"])
        kind = part["type"]
        if kind == TEXT_INPUT:
            return shell | {"value": self._text(part, given)}
        if kind == CHECKBOX:
            return shell | {"value": bool(part.get("default") if given is None else given)}
        if kind == FILE_UPLOAD:
            return shell | {"values": self._files(part, items(given))}
        chosen = self._choices(part, given)
        if kind == RADIO_GROUP:
            return shell | {"value": chosen[0] if chosen else None}
        return shell | {"values": chosen}

    def _text(self, part: Json, given: Any) -> str:
        text = str(part.get("value") or "") if given is None else str(given)
        least = max(part["min_length"], 1 if part["required"] else 0)
        if (text or part["required"]) and not least <= len(text) <= part["max_length"]:
            self._refuse(part, f"{len(text)} characters, must be {least} to {part['max_length']}")
        return text

    def _choices(self, part: Json, given: Any) -> list[str]:
        """Return the chosen values of a select, a radio group or a checkbox group."""
        kind = part["type"]
        if given is None:
            defaults = [option["value"] for option in items(part.get("options")) if option.get("default")]
            given = defaults or [entry["id"] for entry in items(part.get("default_values"))]
        chosen = [str(value) for value in ([given] if isinstance(given, str | int) else given)]
        self._check_count(part, len(chosen))
        if "options" in part:
            offered = {option["value"] for option in part["options"]}
            if strange := set(chosen) - offered:
                self._refuse(part, f"{', '.join(sorted(strange))} is not offered")
        if kind in SELECTS - {STRING_SELECT}:
            self.done.picked.append((kind, chosen))
        return chosen

    def _files(self, part: Json, given: list[Json]) -> list[str]:
        self._check_count(part, len(given))
        kept = [self.keep(str(file["filename"]), str(file["data"])) for file in given]
        self.done.files += kept
        return [str(attachment.id) for attachment in kept]

    def _check_count(self, part: Json, count: int) -> None:
        required = part.get("required", True)
        if not count and not required:
            return
        least = max(part.get("min_values", 1), 1 if required else 0)
        most = part.get("max_values", 1)
        if not count:
            self._refuse(part, "a choice is required")
        elif not least <= count <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            self._refuse(part, f"{count} chosen, must be {wanted}")

    def _refuse(self, part: Json, problem: str) -> None:
        if not self.forged:
            raise BadValue(f"{part['custom_id']}: {problem}")

"""The components that a person can press, choose from or fill in: buttons, selects, text inputs, and their limits.

Each check adds to the form's errors and returns the component with Discord's defaults filled in. `components` (for
messages) and `modals` decide where a component may be.
"""

from collections.abc import Callable

from discord_sandbox.apierrors import FormErrors
from discord_sandbox.model import Json
from discord_sandbox.reading import fields, items

Path = tuple[str | int, ...]

BUTTON, STRING_SELECT, TEXT_INPUT = 2, 3, 4
USER_SELECT, ROLE_SELECT, MENTIONABLE_SELECT, CHANNEL_SELECT = 5, 6, 7, 8
SELECTS = frozenset({STRING_SELECT, USER_SELECT, ROLE_SELECT, MENTIONABLE_SELECT, CHANNEL_SELECT})
FILE_UPLOAD, RADIO_GROUP, CHECKBOX_GROUP, CHECKBOX = 19, 21, 22, 23
LINK_STYLE, PREMIUM_STYLE = 5, 6


class Form:
    """One pass over a form: its errors, the custom ids seen so far, and the next free component id."""

    def __init__(self) -> None:
        self.errors = FormErrors()
        self._custom_ids: set[str] = set()
        self._used: set[int] = set()
        self.count = 0
        self.text = 0

    def begin(self, part: Json, path: Path) -> Json:
        """Count a component and give it an id if the sender left it out, as Discord does."""
        self.count += 1
        wanted = part.get("id") or 0
        if wanted and wanted in self._used:
            self.errors.add((*path, "id"), "COMPONENT_ID_DUPLICATED", "Component id cannot be duplicated")
        number = wanted or next(n for n in range(1, 10_000) if n not in self._used)
        self._used.add(number)
        return {"type": part.get("type"), "id": number}

    def custom_id(self, part: Json, path: Path) -> str:
        value = part.get("custom_id")
        where = (*path, "custom_id")
        if value is None:
            self.errors.required(where)
            return ""
        if not isinstance(value, str) or not 1 <= len(value) <= 100:
            self.errors.add(where, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
            return ""
        if value in self._custom_ids:
            self.errors.add(where, "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
        self._custom_ids.add(value)
        return value

    def number(self, part: Json, key: str, default: int, least: int, most: int, path: Path) -> int:
        value = part.get(key)
        if value is None:
            return default
        if not isinstance(value, int) or not least <= value <= most:
            message = f"int value should be between {least} and {most}."
            self.errors.add((*path, key), "NUMBER_TYPE_RANGE", message)
            return default
        return value


def button(part: Json, form: Form, path: Path) -> Json:
    done = form.begin(part, path)
    style = part.get("style")
    if style not in range(1, 7):
        form.errors.add((*path, "style"), "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
    done |= {"style": style}
    if part.get("label") is not None:
        form.errors.length((*path, "label"), part["label"], 0, 80)
        done["label"] = part["label"]
    if part.get("emoji"):
        done["emoji"] = _emoji(fields(part["emoji"]))
    if style == LINK_STYLE:
        form.errors.length((*path, "url"), part.get("url"), 1, 512)
        if part.get("custom_id") is not None:
            message = "A custom id and url cannot both be specified"
            form.errors.add((*path, "custom_id"), "COMPONENT_CUSTOM_ID_AND_URL_MUTUALLY_EXCLUSIVE", message)
        done["url"] = part.get("url")
    elif style == PREMIUM_STYLE:
        done["sku_id"] = part.get("sku_id")
    else:
        done["custom_id"] = form.custom_id(part, path)
        if part.get("url") is not None:
            form.errors.add((*path, "url"), "BASE_TYPE_BAD_VALUE", "A url is only for link buttons")
    if style != PREMIUM_STYLE and not part.get("label") and not part.get("emoji"):
        message = "A button must have a label or an emoji"
        form.errors.add((*path, "label"), "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED", message)
    if part.get("disabled"):
        done["disabled"] = True
    return done


def select(part: Json, form: Form, path: Path) -> Json:
    done = form.begin(part, path) | {"custom_id": form.custom_id(part, path)}
    most = form.number(part, "max_values", 1, 1, 25, path)
    done |= {"min_values": form.number(part, "min_values", 1, 0, 25, path), "max_values": most}
    if part.get("placeholder") is not None:
        form.errors.length((*path, "placeholder"), part["placeholder"], 0, 150)
        done["placeholder"] = part["placeholder"]
    for key in ("channel_types", "default_values", "required"):
        if part.get(key) is not None:
            done[key] = part[key]
    if part.get("disabled"):
        done["disabled"] = True
    if part["type"] == STRING_SELECT:
        done["options"] = options(part, form, path, least=1, most=25)
        if most > len(done["options"]):
            message = "The max_values must be less than or equal to the number of options"
            form.errors.add((*path, "max_values"), "BASE_TYPE_BAD_VALUE", message)
        _check_defaults(done, most, form, path)
    return done


def options(part: Json, form: Form, path: Path, *, least: int, most: int) -> list[Json]:
    given = items(part.get("options"))
    if not least <= len(given) <= most:
        form.errors.add((*path, "options"), "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
    seen: set[str] = set()
    for index, option in enumerate(given):
        where = (*path, "options", index)
        form.errors.length((*where, "label"), option.get("label"), 1, 100)
        form.errors.length((*where, "value"), option.get("value"), 1, 100)
        if option.get("description") is not None:
            form.errors.length((*where, "description"), option["description"], 0, 100)
        if option.get("value") in seen:
            message = "The specified option value is already used"
            form.errors.add((*where, "value"), "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", message)
        seen.add(str(option.get("value")))
    return [{key: value for key, value in option.items() if value is not None} for option in given]


def text_input(part: Json, form: Form, path: Path, *, labelled: bool) -> Json:
    """Check a text input. `labelled`: an input in an action row needs its own label; an input in a Label does not."""
    done = form.begin(part, path) | {"custom_id": form.custom_id(part, path)}
    if part.get("style") not in (1, 2):
        form.errors.add((*path, "style"), "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
    if labelled or part.get("label") is not None:
        form.errors.length((*path, "label"), part.get("label"), 1, 45)
    for key, most in (("value", 4000), ("placeholder", 100)):
        if part.get(key) is not None:
            form.errors.length((*path, key), part[key], 0, most)
            done[key] = part[key]
    least_length = form.number(part, "min_length", 0, 0, 4000, path)
    most_length = form.number(part, "max_length", 4000, 1, 4000, path)
    if least_length > most_length:
        form.errors.add((*path, "min_length"), "BASE_TYPE_BAD_VALUE", "min_length must not exceed max_length")
    required = part.get("required")
    return done | {
        "style": part.get("style"),
        "label": part.get("label"),
        "min_length": least_length,
        "max_length": most_length,
        "required": True if required is None else required,
    }


def _radio_group(part: Json, form: Form, path: Path) -> Json:
    done = form.begin(part, path) | {"custom_id": form.custom_id(part, path)}
    done["options"] = options(part, form, path, least=2, most=10)
    _check_defaults(done, 1, form, path)
    return done | _required(part)


def _checkbox_group(part: Json, form: Form, path: Path) -> Json:
    done = form.begin(part, path) | {"custom_id": form.custom_id(part, path)}
    offered = options(part, form, path, least=1, most=10)
    least, most = _bounds(part, form, path, most=max(len(offered), 1))
    done |= {"options": offered, "min_values": least, "max_values": most, **_required(part)}
    if least == 0 and done["required"]:
        message = "The min_values of a required component must be greater than 0"
        form.errors.add((*path, "min_values"), "BASE_TYPE_BAD_VALUE", message)
    if most > max(len(offered), 1):
        message = "The max_values must be less than or equal to the number of options"
        form.errors.add((*path, "max_values"), "BASE_TYPE_BAD_VALUE", message)
    _check_defaults(done, most, form, path)
    return done


def _checkbox(part: Json, form: Form, path: Path) -> Json:
    done = form.begin(part, path) | {"custom_id": form.custom_id(part, path)}
    return done | {"default": bool(part.get("default"))}


def _file_upload(part: Json, form: Form, path: Path) -> Json:
    done = form.begin(part, path) | {"custom_id": form.custom_id(part, path)}
    least, most = _bounds(part, form, path, most=1)
    return done | {"min_values": least, "max_values": most} | _required(part)


def _bounds(part: Json, form: Form, path: Path, *, most: int) -> tuple[int, int]:
    """Return `min_values` and `max_values` of a group or an upload. `most` is what Discord fills in for the second."""
    low = form.number(part, "min_values", 0 if part.get("required") is False else 1, 0, 10, path)
    high = form.number(part, "max_values", max(most, low), 1, 10, path)
    if low > high:
        form.errors.add((*path, "min_values"), "BASE_TYPE_BAD_VALUE", "min_values must not exceed max_values")
    return low, high


def _required(part: Json) -> Json:
    return {"required": part.get("required") is not False}


def _check_defaults(done: Json, most: int, form: Form, path: Path) -> None:
    if sum(bool(option.get("default")) for option in done["options"]) > most:
        message = f"Must have at most {most} default option{'s' if most > 1 else ''}"
        form.errors.add((*path, "options"), "SELECT_COMPONENT_TOO_MANY_DEFAULT_OPTIONS", message)


IN_LABEL: dict[int, Callable[[Json, Form, Path], Json]] = {
    TEXT_INPUT: lambda part, form, path: text_input(part, form, path, labelled=False),
    **dict.fromkeys(SELECTS, select),
    FILE_UPLOAD: _file_upload,
    RADIO_GROUP: _radio_group,
    CHECKBOX_GROUP: _checkbox_group,
    CHECKBOX: _checkbox,
}


def _emoji(emoji: Json) -> Json:
    return {"id": emoji.get("id"), "name": emoji.get("name"), "animated": bool(emoji.get("animated"))}

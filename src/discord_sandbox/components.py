"""The components of a message: classic rows and the V2 layout.

This module checks shapes and limits, and returns the components with ids and defaults filled in. It knows nothing about
messages, people or permissions.
"""

from collections.abc import Collection, Iterator
from typing import Any, cast

from discord_sandbox import controls
from discord_sandbox.controls import BUTTON, SELECTS, Form, Path
from discord_sandbox.model import Json
from discord_sandbox.reading import fields, items

ROW, SECTION, TEXT, THUMBNAIL, GALLERY, FILE, SEPARATOR, CONTAINER = 1, 9, 10, 11, 12, 13, 14, 17
V2_TOP = (ROW, SECTION, TEXT, GALLERY, FILE, SEPARATOR, CONTAINER)
V2_INSIDE = (ROW, SECTION, TEXT, GALLERY, FILE, SEPARATOR)
MAX_COMPONENTS = 40
MAX_TEXT = 4000


def check(components: list[Json], *, v2: bool, filenames: Collection[str]) -> list[Json]:
    """Return the components as Discord would store them; raise Invalid Form Body if they are wrong."""
    form = Form()
    layout = _Layout(form, filenames)
    top: Path = ("components",)
    if v2:
        done = [layout.part(part, (*top, i), V2_TOP) for i, part in enumerate(components)]
        if form.count > MAX_COMPONENTS:
            message = f"The total number of components cannot exceed {MAX_COMPONENTS}"
            form.errors.add(top, "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", message)
        if form.text > MAX_TEXT:
            message = f"The total displayable text size exceeds the maximum of {MAX_TEXT}"
            form.errors.add(top, "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", message)
    else:
        if len(components) > 5:
            form.errors.add(top, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
        done = [layout.part(part, (*top, i), (ROW,)) for i, part in enumerate(components)]
    form.errors.check()
    return done


def walk(components: list[Json]) -> Iterator[Json]:
    """Yield every component, outermost first."""
    for part in components:
        yield part
        yield from walk(items(part.get("components")))
        for key in ("accessory", "component"):
            if isinstance(inner := part.get(key), dict):
                yield from walk([cast(Json, inner)])


def texts(components: list[Json]) -> list[str]:
    return [str(part.get("content", "")) for part in walk(components) if part.get("type") == TEXT]


def interactive(components: list[Json], custom_id: str) -> Json | None:
    """Find the button or select with that custom id, if the message has it."""
    return next((part for part in walk(components) if part.get("custom_id") == custom_id), None)


def media_names(components: list[Json]) -> set[str]:
    """Return the names of the attachments that components show."""
    names: set[str] = set()
    for part in walk(components):
        for media in _media_of(part):
            url = str(media.get("url", ""))
            if url.startswith("attachment://"):
                names.add(url.removeprefix("attachment://"))
    return names


def _media_of(part: Json) -> Iterator[Json]:
    for key in ("file", "media"):
        if isinstance(media := part.get(key), dict):
            yield cast(Json, media)
    for item in items(part.get("items")):
        yield from _media_of(item)


class _Layout:
    def __init__(self, form: Form, filenames: Collection[str]) -> None:
        self.form = form
        self.filenames = filenames

    def part(self, part: Json, path: Path, allowed: tuple[int, ...]) -> Json:
        kind = part.get("type")
        if kind not in allowed:
            message = f'Value of field "type" must be one of {allowed}.'
            self.form.errors.add((*path, "type"), "UNION_TYPE_CHOICES", message)
            return part
        match kind:
            case 1:
                return self._row(part, path)
            case 9:
                return self._section(part, path)
            case 10:
                return self._text(part, path)
            case 12:
                return self._gallery(part, path)
            case 13:
                done = self.form.begin(part, path)
                done |= {"file": self._media(part.get("file"), (*path, "file"), own_only=True)}
                return done | {"spoiler": bool(part.get("spoiler"))}
            case 14:
                spacing = self.form.number(part, "spacing", 1, 1, 2, path)
                divider = part.get("divider")
                done = self.form.begin(part, path)
                return done | {"spacing": spacing, "divider": True if divider is None else bool(divider)}
            case _:
                return self._container(part, path)

    def _row(self, part: Json, path: Path) -> Json:
        done = self.form.begin(part, path)
        inner = items(part.get("components"))
        where = (*path, "components")
        if not 1 <= len(inner) <= 5:
            self.form.errors.add(where, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
        if len(inner) > 1 and any(child.get("type") in SELECTS for child in inner):
            message = "A select takes the whole row"
            self.form.errors.add(where, "COMPONENT_LAYOUT_WIDTH_EXCEEDED", message)
        done["components"] = [self._control(child, (*where, i)) for i, child in enumerate(inner)]
        return done

    def _control(self, part: Json, path: Path) -> Json:
        if part.get("type") == BUTTON:
            return controls.button(part, self.form, path)
        if part.get("type") in SELECTS:
            return controls.select(part, self.form, path)
        message = 'Value of field "type" must be one of (2, 3, 5, 6, 7, 8).'
        self.form.errors.add((*path, "type"), "UNION_TYPE_CHOICES", message)
        return part

    def _text(self, part: Json, path: Path) -> Json:
        done = self.form.begin(part, path)
        content = part.get("content")
        self.form.errors.length((*path, "content"), content, 1, MAX_TEXT)
        self.form.text += len(content) if isinstance(content, str) else 0
        return done | {"content": content}

    def _section(self, part: Json, path: Path) -> Json:
        done = self.form.begin(part, path)
        inner = items(part.get("components"))
        where = (*path, "components")
        if not 1 <= len(inner) <= 3:
            self.form.errors.add(where, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 3 in length.")
        done["components"] = [self.part(child, (*where, i), (TEXT,)) for i, child in enumerate(inner)]
        done["accessory"] = self._accessory(part.get("accessory"), (*path, "accessory"))
        return done

    def _accessory(self, given: Any, path: Path) -> Json:
        part = fields(given)
        if part.get("type") == BUTTON:
            return controls.button(part, self.form, path)
        if part.get("type") != THUMBNAIL:
            self.form.errors.required(path)
            return part
        done = self.form.begin(part, path)
        return done | self._item(part, path)

    def _gallery(self, part: Json, path: Path) -> Json:
        done = self.form.begin(part, path)
        inner = items(part.get("items"))
        where = (*path, "items")
        if not 1 <= len(inner) <= 10:
            self.form.errors.add(where, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 10 in length.")
        return done | {"items": [self._item(item, (*where, i)) for i, item in enumerate(inner)]}

    def _item(self, part: Json, path: Path) -> Json:
        if part.get("description") is not None:
            self.form.errors.length((*path, "description"), part["description"], 0, 1024)
        return {
            "media": self._media(part.get("media"), (*path, "media"), own_only=False),
            "description": part.get("description"),
            "spoiler": bool(part.get("spoiler")),
        }

    def _media(self, given: Any, path: Path, *, own_only: bool) -> Json:
        media = fields(given)
        url = str(media.get("url", ""))
        where = (*path, "url")
        if url.startswith("attachment://"):
            if url.removeprefix("attachment://") not in self.filenames:
                message = "The referenced attachment was not found in the message"
                self.form.errors.add(where, "UNFURLED_MEDIA_ITEM_REFERENCED_ATTACHMENT_NOT_FOUND", message)
        elif own_only or not url.startswith(("http://", "https://")):
            schemes = "('attachment',)" if own_only else "('http', 'https', 'attachment')"
            message = f'Scheme "{url.split(":")[0]}" is not supported. Scheme must be one of {schemes}.'
            self.form.errors.add(where, "URL_TYPE_INVALID_SCHEME", message)
        return {"url": url}

    def _container(self, part: Json, path: Path) -> Json:
        done = self.form.begin(part, path)
        inner = items(part.get("components"))
        where = (*path, "components")
        if not inner:
            self.form.errors.required(where)
        color = part.get("accent_color")
        if color is not None:
            color = self.form.number(part, "accent_color", 0, 0, 0xFFFFFF, path)
        done |= {"accent_color": color, "spoiler": bool(part.get("spoiler"))}
        done["components"] = [self.part(child, (*where, i), V2_INSIDE) for i, child in enumerate(inner)]
        return done

"""Inquiries: a call that needs an answer from a person. The form has simple fields, and every answer is checked.

`answer_forms` makes the form. All of its texts are untrusted. Pure: no I/O, and nothing of Discord or PydanticAI.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, cast

from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern

Json = Any
Mask = Callable[[Mapping[str, Json]], Mapping[str, Json]]
"""Masks the secrets of arguments, or of values with names."""
LONGEST_TEXT = 4000
"""Most characters of a typed value: as many as one field of a Discord form takes."""
MOST_BRACKETS = 100
"""Most opening brackets of a value that is typed as JSON, so that it is not nested too deep to be stored."""
YES, NO = "yes", "no"
NOT_SENT = "Nothing was sent."
"""The end of every message about an answer that does not fit."""


class BadAnswer(ValueError):
    """The answer does not fit the form. The message says why; it may repeat a label, which is untrusted."""


class FieldKind(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    YES_NO = "yes_no"
    CHOICE = "choice"
    CHOICES = "choices"
    """Several of the options."""
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Option:
    value: Json
    label: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class AnswerField:
    """One field of the form. All of its texts are untrusted."""

    name: str
    kind: FieldKind = FieldKind.TEXT
    label: str = ""
    hint: str = ""
    required: bool = True
    options: tuple[Option, ...] = ()
    default: Json = None
    least: float | None = None
    """The smallest number, the fewest characters or the fewest options."""
    most: float | None = None
    listed: bool = False
    """The chosen option becomes a list of one."""
    shape: str = ""
    """The format of a text, such as `email` or `date`, in the words of the schema."""

    @property
    def shown(self) -> str:
        return self.label or self.name

    def read(self, typed: Sequence[str]) -> Json:
        """Return the value that a person typed, or the options that they chose. None: left empty. Raises BadAnswer.

        An option is named by its number, from 0, with a `#` before it, or by its label.
        """
        texts = [text.strip() for text in typed if text.strip()]
        if not texts:
            return None
        match self.kind:
            case FieldKind.CHOICE | FieldKind.CHOICES:
                chosen = [self._option(text) for text in texts]
                return chosen if self.kind is FieldKind.CHOICES or self.listed else chosen[0]
            case FieldKind.YES_NO:
                return self._yes_or_no(texts[0])
            case FieldKind.NUMBER | FieldKind.INTEGER:
                return self._number(texts[0])
            case FieldKind.JSON:
                return self._parsed(texts[0], 'JSON, for example [1, 2] or "text"')
            case FieldKind.TEXT:
                return typed[0].replace("\r\n", "\n")

    def check(self, value: Json) -> None:
        """Raise BadAnswer if the value is not one for this field."""
        match self.kind:
            case FieldKind.TEXT:
                self._check_text(value)
            case FieldKind.NUMBER | FieldKind.INTEGER:
                self._check_number(value)
            case FieldKind.YES_NO:
                self._must(isinstance(value, bool), "must be yes or no")
            case FieldKind.CHOICE | FieldKind.CHOICES:
                self._check_options(value)
            case FieldKind.JSON:
                self._check_json(value)

    def written(self, value: Json) -> str:
        """Return a value in words, for people."""
        several = isinstance(value, list) and bool(self.options)
        values = cast("list[Json]", value) if several else [cast(Json, value)]
        labels = [next((one.label for one in self.options if same_value(one.value, each)), None) for each in values]
        return ", ".join(text_of(each) if label is None else label for each, label in zip(values, labels, strict=True))

    def masked(self, value: Json, mask: Mask, question: str = "") -> Json:
        """Return the value as people may see it, by its shape and by what the field is called.

        What people type is masked by the hint and the `question`, too: they may be all that says "password".
        """
        asked = () if self.options else (self.hint, question)
        for name in dict.fromkeys((self.name, self.label, *asked)):
            (seen,) = mask({name: value}).values()
            if seen != value:
                return seen
        return value

    def _option(self, text: str) -> Json:
        if re.fullmatch(r"#\d{1,3}", text) and int(text[1:]) < len(self.options):
            return self.options[int(text[1:])].value
        named = [one.value for one in self.options if text == one.label]
        named = named or [
            one.value for one in self.options if text.casefold() in (one.label.casefold(), text_of(one.value))
        ]
        self._must(bool(named), "must be one of the options")
        self._must(len(named) == 1, f"{len(named)} options have this name; type # and the number of one, from 0")
        return named[0]

    def _yes_or_no(self, text: str) -> bool:
        word = text.casefold()
        self._must(word in (YES, NO, "y", "n", "true", "false"), "must be yes or no")
        return word in (YES, "y", "true")

    def _number(self, text: str) -> Json:
        whole = self.kind is FieldKind.INTEGER
        value = self._parsed(text, "a whole number" if whole else "a number")
        if whole and isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    def _parsed(self, text: str, wanted: str) -> Json:
        try:
            return json.loads(text, parse_constant=float)
        except (ValueError, RecursionError) as error:
            raise BadAnswer(f"{self.shown}: must be {wanted}. {NOT_SENT}") from error

    def _check_text(self, value: Json) -> None:
        self._must(isinstance(value, str), "must be a text")
        self._must(len(value) <= LONGEST_TEXT, f"must have at most {LONGEST_TEXT} characters")
        self._must(
            len(value) >= (self.least or 0),
            f"must have at least {written_number(self.least)} characters" if self.least else "",
        )
        if self.most is not None:
            self._must(len(value) <= self.most, f"must have at most {written_number(self.most)} characters")
        if shape := SHAPES.get(self.shape):
            like = f" such as {shape.example}" if shape.example else ""
            self._must(bool(shape.pattern.fullmatch(value)), f"must be {shape.words}{like}")

    def _check_number(self, value: Json) -> None:
        whole = self.kind is FieldKind.INTEGER
        is_whole = isinstance(value, int)
        fits = is_whole if whole else is_whole or (isinstance(value, float) and math.isfinite(value))
        self._must(fits and not isinstance(value, bool), "must be a whole number" if whole else "must be a number")
        if self.least is not None:
            self._must(value >= self.least, f"must be at least {written_number(self.least)}")
        if self.most is not None:
            self._must(value <= self.most, f"must be at most {written_number(self.most)}")

    def _check_json(self, value: Json) -> None:
        try:
            text = json.dumps(value, allow_nan=False)
        except (ValueError, TypeError, RecursionError) as error:
            raise BadAnswer(f"{self.shown}: must be plain JSON. {NOT_SENT}") from error
        self._must(len(text) <= LONGEST_TEXT, f"must have at most {LONGEST_TEXT} characters")
        self._must(text.count("[") + text.count("{") <= MOST_BRACKETS, f"must have at most {MOST_BRACKETS} brackets")

    def _check_options(self, value: Json) -> None:
        several = self.kind is FieldKind.CHOICES or self.listed
        self._must(
            isinstance(value, list) is several, "must be one of the options" if not several else "must be a list"
        )
        chosen = cast("list[Json]", value) if several else [value]
        known = all(any(same_value(one.value, each) for one in self.options) for each in chosen)
        self._must(known and len({text_of(each) for each in chosen}) == len(chosen), "must be among the options")
        if several and self.least is not None:
            self._must(len(chosen) >= self.least, f"choose at least {written_number(self.least)}")
        if several and self.most is not None:
            self._must(len(chosen) <= self.most, f"choose at most {written_number(self.most)}")

    def _must(self, fits: bool, words: str) -> None:
        if not fits:
            raise BadAnswer(f"{self.shown}: {words}. {NOT_SENT}")


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a call asks people: a question and a form."""

    words: str
    """The question itself: untrusted."""
    fields: tuple[AnswerField, ...]
    server: str = ""
    """The MCP server that asks while its tool runs. Empty: the tool asks, and the answer becomes its result."""
    only: bool = False
    """The answer is the value of the only field, instead of an object."""
    tells_all: bool = False
    """Whether the question says everything that the call's arguments say, so that a card need not show them."""

    def check(self, answer: Mapping[str, Json]) -> dict[str, Json]:
        """Return the answer in the order of the fields, without fields that were left empty. Raises BadAnswer."""
        fields = {field.name: field for field in self.fields}
        if unknown := [name for name in answer if name not in fields]:
            raise BadAnswer(f"There is no field named {unknown[0][:100]}. {NOT_SENT}")
        for field in self.fields:
            value = answer.get(field.name)
            if value is not None:
                field.check(value)
            elif field.required:
                raise BadAnswer(f"{field.shown}: must not be empty. {NOT_SENT}")
        return {name: answer[name] for name in fields if answer.get(name) is not None}

    def masked(self, answer: Mapping[str, Json], mask: Mask) -> dict[str, Json]:
        """Return the answer as people may see it."""
        given = (field for field in self.fields if field.name in answer)
        return {field.name: field.masked(answer[field.name], mask, self.only_question) for field in given}

    @property
    def only_question(self) -> str:
        """The question, if the whole of it is about one field."""
        return self.words if len(self.fields) == 1 else ""

    def missing(self, answer: Mapping[str, Json]) -> list[AnswerField]:
        return [field for field in self.fields if field.required and answer.get(field.name) is None]

    def result(self, answer: Mapping[str, Json]) -> Json:
        """Return the tool's result, for an answer that was checked."""
        return answer.get(self.fields[0].name) if self.only else dict(answer)

    def dump(self) -> dict[str, Json]:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def load(cls, data: Mapping[str, Json]) -> Inquiry:
        own: dict[str, Json] = {**data, "fields": tuple(_field(field) for field in data["fields"])}
        return cls(**own)


def _field(data: Mapping[str, Json]) -> AnswerField:
    options = tuple(Option(**option) for option in data["options"])
    own: dict[str, Json] = {**data, "kind": FieldKind(data["kind"]), "options": options}
    return AnswerField(**own)


def written_number(number: float) -> str:
    """Return a limit as people write it: 1,000,000 and 0.5."""
    return f"{number:,.0f}" if abs(number) < 1e15 and float(number).is_integer() else f"{number:g}"


def same_value(one: Json, other: Json) -> bool:
    return type(one) is type(other) and one == other


def text_of(value: Json) -> str:
    if isinstance(value, bool):
        return YES if value else NO
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class TextShape:
    words: str
    pattern: re.Pattern[str]
    example: str = ""


SHAPES = {
    "email": TextShape("an email address", lazy_pattern(r"[^\s@]+@[^\s@]+\.[^\s@]+")),
    "uri": TextShape("a web address", lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:\S+"), "https://example.com"),
    "date": TextShape("a date", lazy_pattern(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"), "2026-01-31"),
    "date-time": TextShape(
        "a date and time",
        lazy_pattern(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?"),
        "2026-01-31T18:30:00Z",
    ),
}
"""Format of a text, in the words of a schema -> what it is."""

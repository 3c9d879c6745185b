"""The form of an inquiry at a prompt, as a generator without input or output: one line for each field.

All texts of the form are untrusted, so they stand behind a gutter, with hidden characters made visible. Options are
numbered from 1. The generator sends nothing: the desk or the calling program does.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from rich.text import Text

from signoff.approvals.inquiries import NOT_SENT, AnswerField, BadAnswer, FieldKind, Inquiry, Json
from signoff.approvals.model import JsonObject
from signoff.cards.inquiry_contents import describe
from signoff.cards.masking import mask_inquiry
from signoff.terminal.sanitize import Block
from signoff.terminal.steps import Ask, Show, Step
from signoff.text.secrets.masker import Masker
from signoff.text.visible import one_line, visible

OPTIONS = "Options:"
DEFAULT = "Default:"
_PROMPTS = {FieldKind.CHOICE: "number or name", FieldKind.CHOICES: "numbers or names, separated by commas"}
_YES_NO = "yes or no"


def fill_in(inquiry: Inquiry, masker: Masker | None = None) -> Generator[Step, str, JsonObject | None]:
    """Ask for each field until its value fits. Return the answer; None if the person went back.

    Enter takes the default or leaves an optional field empty. In any other field, it goes back.
    """
    shown = mask_inquiry(inquiry, masker) if masker else inquiry
    answer: dict[str, Json] = {}
    for number, (field, masked) in enumerate(zip(inquiry.fields, shown.fields, strict=True), start=1):
        of = f"Field {number} of {len(inquiry.fields)}: " if len(inquiry.fields) > 1 else ""
        yield Show(Text(f"{of}{describe(field)}", "bold"))
        # The hint has its own block, so that none of its lines passes for an option.
        yield Show(Block("\n".join(filter(None, [one_line(masked.shown), visible(masked.hint).text]))))
        if field.options:
            yield Show(Text(OPTIONS))
            yield Show(Block(_options(masked)))
        if masked.default != field.default or not _fits(field, field.default):
            field = replace(field, default=None)  # nobody sends what they cannot see
        if field.default is not None:
            yield Show(Text(DEFAULT))
            yield Show(Block(one_line(field.written(field.default))))
        value = yield from _value(field)
        if value is not None:
            answer[field.name] = value
        elif field.required:
            yield Show(Text(NOT_SENT))
            return None
    return answer


def _value(field: AnswerField) -> Generator[Step, str, Json]:
    """Ask until the typed value fits the field. Return None if the line was empty and there is no default."""
    what = _PROMPTS.get(field.kind, _YES_NO if field.kind is FieldKind.YES_NO else "value")
    enter = "to leave it empty" if not field.required else "to go back"
    enter = "for the default" if field.default is not None else enter
    while True:
        typed = yield Ask(f"{what}, or Enter {enter}> ")
        if not typed.strip():
            return field.default
        try:
            value = field.read(_named(field, typed) if field.options else [typed])
            field.check(value)
            return value
        except BadAnswer as error:
            yield Show(Block(one_line(str(error))))  # it repeats the label


def _named(field: AnswerField, typed: str) -> list[str]:
    """Return the options that a person named, as `AnswerField.read` takes them."""
    labels = {one.label.casefold() for one in field.options}
    whole = field.kind is FieldKind.CHOICE or typed.strip().casefold() in labels  # a label may have a comma in it
    return [_one_named(field, name.strip()) for name in ([typed] if whole else typed.split(",")) if name.strip()]


def _one_named(field: AnswerField, name: str) -> str:
    number = name.removeprefix("#")
    if number.isascii() and number.isdecimal() and (name != number or not _has_numbers(field)):
        if not 1 <= int(number[:6]) <= len(field.options):
            raise BadAnswer(f"There is no option {number[:6]}. {NOT_SENT}")
        return f"#{int(number) - 1}"
    matches = [n for n, one in enumerate(field.options) if name.casefold() == one.label.casefold()]
    if len(matches) > 1:
        raise BadAnswer(f"Several options have this name. Type the number of one, such as #1. {NOT_SENT}")
    return f"#{matches[0]}" if matches else name


def _has_numbers(field: AnswerField) -> bool:
    """Whether an option is itself a number. Then the number of an option needs a `#` before it."""
    return any(one.label.strip().isdecimal() for one in field.options)


def _options(field: AnswerField) -> str:
    mark = "#{} {}" if _has_numbers(field) else "{}. {}"
    texts = [f"{one.label} ({one.hint})" if one.hint else one.label for one in field.options]
    return "\n".join(mark.format(number, one_line(text)) for number, text in enumerate(texts, start=1))


def _fits(field: AnswerField, value: Json) -> bool:
    try:
        field.check(value)
    except BadAnswer:
        return False
    return True

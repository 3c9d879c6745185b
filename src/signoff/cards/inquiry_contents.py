"""What a call asks people, on a card: the question and its fields as values, warnings about them, and the answer.

All texts of an inquiry are untrusted. A field is one line if its texts are harmless; otherwise its label, its hint and
its options each get a block. This module knows inquiries, but neither batches nor any medium.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signoff.approvals.inquiries import SHAPES, AnswerField, FieldKind, Inquiry, Option, written_number
from signoff.approvals.model import ApprovalRequest, JsonObject
from signoff.cards.layout import Value, beginning, strings_in
from signoff.cards.model import Line, Quote, Shape
from signoff.cards.warnings import SENTENCE, CardWarning, reads_as_sentence, warnings_in
from signoff.text.secrets.names import DEFAULT, asks_for_secret, words_of
from signoff.text.visible import plain

QUESTION, OPTIONS, ANSWER = "Question", "Options", "Answer given"
"""Labels on a line, which marks a quotation."""
THE_QUESTION, THE_FIELD, THE_ANSWER = "The question", "The field", "The answer"
"""Labels of a block. An argument's name is one word or in quotation marks, so no argument can pass for one of these."""
MOST_OFFERED = 25
"""A form offers at most this many options. If a field has more, people type the one that they want."""
_NAME_BUDGET = 32
_LABEL = 45
"""Most characters of a label that is shown on a line. It is as many as a form shows."""
_SERVER_BUDGET = 64
_BETWEEN = " · "
"""Between options on one line. No harmless text contains it."""
_LEAST = 24
"""An answer is not begun with less space than this."""
_SECRETS = frozenset(words_of(name) for name in DEFAULT)
TEXT = "a text"
_KINDS = {
    FieldKind.TEXT: TEXT,
    FieldKind.NUMBER: "a number",
    FieldKind.INTEGER: "a whole number",
    FieldKind.YES_NO: "yes or no",
    FieldKind.CHOICE: "choose one",
    FieldKind.CHOICES: "choose any",
    FieldKind.JSON: "JSON",
}


def describe(field: AnswerField) -> str:
    """Say what goes into a field: trusted text without the field's own words."""
    kind = SHAPES[field.shape].words if field.shape in SHAPES else _KINDS[field.kind]
    if field.options:
        kind += f" of {len(field.options)}"
    return ", ".join(filter(None, [kind, _bounds(field), "" if field.required else "optional"]))


def _bounds(field: AnswerField) -> str:
    if field.listed:
        return ""
    least, most = ("" if bound is None else written_number(bound) for bound in (field.least, field.most))
    unit = " characters" if field.kind is FieldKind.TEXT else ""
    if least and most:
        return f"from {least} to {most}{unit}"
    return f"at least {least}{unit}" if least else f"at most {most}{unit}" if most else ""


def is_typed(field: AnswerField) -> bool:
    """Whether people type an option, by its label or its number, because there are too many to offer."""
    return len(field.options) > MOST_OFFERED


def asks_line(inquiry: Inquiry, *, is_open: bool) -> Line:
    """Say who asks and, as long as the question is open, who gets the answer."""
    if inquiry.server:
        server = f"The MCP server **{plain(inquiry.server, _SERVER_BUDGET)}**"
        return (
            f"{server} asks this while its call runs. Your answer goes to that server"
            if is_open
            else f"{server} asked this",
        )
    return ("The agent asks this and reads your answer",) if is_open else ()


def inquiry_values(inquiry: Inquiry) -> list[Value]:
    """Return the question and the fields in reading order."""
    values: list[Value] = []
    if inquiry.words:
        harmless = reads_as_sentence(inquiry.words)
        label, shape = (QUESTION, Shape.REMARK) if harmless else (THE_QUESTION, Shape.BLOCK)
        values.append(Value(label, inquiry.words, shape=shape))
    for number, field in enumerate(inquiry.fields, start=1):
        values += _field(field, field_title(inquiry, number))
    return values


def field_title(inquiry: Inquiry, number: int) -> str:
    """Return our own name for a field, from 1. It is used if the field's label is not harmless."""
    return f"Field {number}" if len(inquiry.fields) > 1 else THE_FIELD


def _field(field: AnswerField, title: str) -> Iterator[Value]:
    note, listed = describe(field), _listed(field.options) if not is_typed(field) else ""
    if not _is_label(field.shown) or (field.hint and not reads_as_sentence(field.hint)):
        yield Value(title, field.shown, remark=note)
        if field.hint:
            yield Value(f"{title}: hint", field.hint)
        if field.options:
            yield Value(f"{title}: options", _one_per_line(field))
        return
    if listed and not field.hint:
        yield Value(field.shown, listed, shape=Shape.REMARK, remark=note)
        return
    yield Value(field.shown, field.hint, shape=Shape.REMARK, remark=note)
    if listed:
        yield Value(OPTIONS, listed, shape=Shape.REMARK)
    elif field.options:
        yield Value(f"{title}: options", _one_per_line(field))


def _is_label(text: str) -> bool:
    """Whether the text may be bold at the beginning of a line."""
    return len(text) <= _LABEL and reads_as_sentence(text) and reads_as_sentence(f"{text}:")


def _listed(options: Sequence[Option]) -> str:
    """Return harmless options on one line; empty if they need a block."""
    if not options or not all(reads_as_sentence(text) for one in options for text in (one.label, one.hint or "x")):
        return ""
    line = _BETWEEN.join(f"{one.label} ({one.hint})" if one.hint else one.label for one in options)
    return line if len(line) <= SENTENCE else ""


def _one_per_line(field: AnswerField) -> str:
    """Return one option on each line. Only the first line of an option is not indented, so none can pass for two."""
    lines: list[str] = []
    for number, one in enumerate(field.options):
        mark = f"#{number} " if is_typed(field) else "• "
        lines.append(mark + one.label.replace("\n", "\n    "))
        if one.hint:
            lines.append("    " + one.hint.replace("\n", "\n    "))
    return "\n".join(lines)


def texts_in(inquiry: Inquiry) -> list[str]:
    """Return every untrusted text of an inquiry."""
    return [inquiry.words, *(text for field in inquiry.fields for text in _texts(field))]


def _texts(field: AnswerField) -> list[str]:
    options = [text for one in field.options for text in (one.label, one.hint, *strings_in(one.value))]
    return [field.name, field.label, field.hint, field.shape, *strings_in(field.default), *options]


def inquiry_warnings(inquiry: Inquiry) -> list[CardWarning]:
    """Return warnings about a field that asks for a secret, hidden characters, look-alike letters and so on."""
    warnings: list[CardWarning] = []
    fields = [text for one in inquiry.fields for text in (one.name, one.label, one.hint, one.shape)]
    if any(asks_for_secret(text, _SECRETS) for text in (inquiry.words, *fields)):
        reads = "the server gets it" if inquiry.server else "the model reads it"
        warnings.append(CardWarning("a secret", f"don't enter a password or key: the answer is stored, and {reads}"))
    warnings += warnings_in("question", [inquiry.words])
    for field in inquiry.fields:
        warnings += warnings_in(f"field {plain(field.shown, _NAME_BUDGET)}", _texts(field))
    return warnings


def answer_quotes(request: ApprovalRequest, budget: int) -> tuple[Quote, ...]:
    """Return the answer that was given, field by field, within a budget. The record holds the whole answer."""
    inquiry, answer = request.inquiry, request.settlement.answer if request.settlement else None
    if inquiry is None or answer is None or not inquiry.fields:
        return ()
    quotes: list[Quote] = []
    given = list(_given(inquiry, answer))
    for number, (label, text) in enumerate(given):
        if budget < _LEAST:
            more = len(given) - number
            quotes.append(Quote(THE_ANSWER, "", f"{more} more in the record", shape=Shape.INLINE))
            break
        shown, whole = beginning(Value(label, text, has_end=False), budget)
        budget -= len(shown) + len(label)
        note = "" if whole and text else "empty text" if not text else f"{len(text)} characters in all"
        shape = Shape.REMARK if whole and reads_as_sentence(text) else Shape.BLOCK
        label = THE_ANSWER if label == ANSWER and shape is Shape.BLOCK else label
        quotes.append(Quote(label, shown, note, shape=shape))
    return tuple(quotes) or (Quote(THE_ANSWER, "", "everything was left empty", shape=Shape.INLINE),)


def _given(inquiry: Inquiry, answer: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield a label and the answer in words, for each field that was filled in."""
    for number, field in enumerate(inquiry.fields, start=1):
        if answer.get(field.name) is None:
            continue
        name = field.shown if _is_label(field.shown) else field_title(inquiry, number).lower()
        name = f'"{name}"' if " " in field.shown and name == field.shown else name
        yield ANSWER if len(inquiry.fields) == 1 else f"Answer to {name}", field.written(answer[field.name])

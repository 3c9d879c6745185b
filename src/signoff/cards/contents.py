"""The contents of a card's calls before the budget is divided: their values in order, their warnings, their files.

A settled card has the same contents as the open one, only folded harder. Calls that are too long to review and
arguments that are not JSON are refused. This module knows neither how much of a call will be shown nor the parts
around the calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from signoff.approvals.model import PAGE, ApprovalRequest, Batch, JsonObject
from signoff.cards.actions import PREVIEW, TOOLS_WORDS, Offers
from signoff.cards.budget import Sizes
from signoff.cards.edited_values import ADDED, REMOVED, changed_values, note_on_edit, removed_lines
from signoff.cards.files import request_file
from signoff.cards.folding import fold
from signoff.cards.inquiry_contents import inquiry_values, inquiry_warnings
from signoff.cards.layout import COLUMNS, SHORT, Value, argument, argument_label, argument_text, strings_in
from signoff.cards.masking import warnings_about_masks
from signoff.cards.model import CardFile, Shape
from signoff.cards.warnings import (
    DESTRUCTIVE,
    CardWarning,
    are_odd,
    are_plain,
    argument_place,
    has_our_words,
    reads_as_sentence,
    warnings_in,
)
from signoff.dataclass import dataclass
from signoff.errors import CardFailed
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import plain

AS_DIFF = " (as a diff)"
"""Label ending for an argument that is shown only as a diff. A name is one word or in quotation marks."""
MOST = 500_000
"""The most characters in all calls of a card together. More than this is refused: nobody could review it."""

INLINE = 80
"""Most characters of a value on one line."""
_WORD = lazy_pattern(r"[\w.$-]+")
_NOT_INLINE = lazy_pattern(r"[`\n\t\r]|  |^ | $")
_HEADER = lazy_pattern(r"^--- [^\n]*\n\+\+\+ [^\n]*\n(?:@@ -0,0 [^\n]*\n|(?=@@ -))", re.MULTILINE)
"""The lines of a diff that name its file, which an argument and the line above them name already.

For a new file, also the line that says that the diff begins with its first line.
"""


@dataclass(frozen=True)
class CallContents:
    """The contents of one call, which do not change when the call is settled."""

    batch: Batch
    request: ApprovalRequest
    values: tuple[Value, ...]
    masked: bool = False

    @cached_property
    def warnings(self) -> tuple[CardWarning, ...]:
        args, inquiry = shown_args(self.request), self.request.inquiry
        warnings = [DESTRUCTIVE] if self.request.description.marks.destructive else []
        if self._is_plain:
            return tuple(warnings)
        warnings += warnings_about_masks(self.request) if self.masked else []
        warnings += inquiry_warnings(inquiry) if inquiry else []
        warnings += warnings_in("tool name", [self.request.call.tool, *self.request.path])
        for name in sorted(args):
            warnings += warnings_in("argument name", [name])
            warnings += warnings_in(argument_place(name), strings_in(args[name]))
        warnings += warnings_in("tool's words", [self.request.summary])
        warnings += warnings_in(
            "tool's description", [self.request.description.title, self.request.description.sentence]
        )
        return (*warnings, *warnings_in("tool's preview", [self.request.shown_preview]))

    @property
    def _is_plain(self) -> bool:
        """Whether one look at all texts of the call tells that there is nothing to warn of, as for most calls."""
        request, description = self.request, self.request.description
        if request.edit or request.inquiry:
            return False
        own = request.summary, request.shown_preview, description.title, description.sentence
        return are_plain(request.call.tool, *request.path, *strings_in(request.call.args), *own)

    @cached_property
    def file(self) -> CardFile:
        return request_file(self.batch, self.request, self.warnings, masked=self.masked)


@dataclass(frozen=True)
class Page:
    """One page of a card before the budget is divided."""

    calls: Sequence[CallContents]
    values: Sequence[tuple[Value, ...]]
    """The values of each call, folded."""
    number: int
    pages: int
    can_attach: bool
    offers: Offers
    sizes: Sizes
    columns: int = COLUMNS
    """Characters in a line, for folding."""

    def of(self, questions: Sequence[ApprovalRequest]) -> Sequence[ApprovalRequest]:
        """Return those of all questions of the batch that are on this page."""
        return questions[self.number * PAGE : (self.number + 1) * PAGE]

    @property
    def first(self) -> int:
        """The number of the page's first call among all calls of the card, from 1."""
        return self.number * PAGE + 1

    @property
    def is_whole(self) -> bool:
        """Whether no value is folded."""
        return self.values == [one.values for one in self.calls]

    def folded(self, *, settled: bool) -> Page:
        """Return the page with its values folded as for an open or a settled card."""
        return replace(self, values=_folded(self.calls, settled, self.can_attach, self.columns))

    def tightened(self) -> Page:
        """Return the page with the smallest sizes."""
        return replace(self, sizes=replace(self.sizes, tight=True))


def read_page(
    batch: Batch,
    contents: Sequence[CallContents],
    number: int,
    can_attach: bool,
    offers: Offers,
    columns: int = COLUMNS,
) -> Page:
    """Take the calls of one page from the contents of all calls of the batch, open or settled."""
    pages = batch.pages
    number = min(max(number, 0), pages - 1)
    calls = contents[number * PAGE : (number + 1) * PAGE]
    values = _folded(calls, batch.settled, can_attach, columns)
    return Page(calls, values, number, pages, can_attach, offers, Sizes(len(calls)), columns)


def _folded(calls: Sequence[CallContents], settled: bool, can_attach: bool, columns: int) -> list[tuple[Value, ...]]:
    return fold([one.values for one in calls], settled=settled, can_attach=can_attach, columns=columns)


def read_calls(batch: Batch, *, masked: bool = False) -> list[CallContents]:
    """Read the questions of a batch. Held calls are left out: nobody has to review them, so they take no space."""
    questions = batch.questions
    if not questions:
        raise CardFailed("There is no call on this card.")
    calls = [_read_call(batch, request, masked) for request in questions]
    texts = sum([len(value.text) for contents in calls for value in contents.values])
    names = sum([len(name) for request in questions for name in request.call.args])
    if texts + names + len(batch.model_text) > MOST:
        raise CardFailed(f"The calls are too long for anybody to review: over {MOST} characters.")
    return calls


def _read_call(batch: Batch, request: ApprovalRequest, masked: bool) -> CallContents:
    try:
        values = _arguments(request)
    except (TypeError, ValueError, RecursionError) as error:
        tool = plain(request.shown_tool, 64)
        raise CardFailed(f"The arguments of {tool} cannot be shown: they are not plain JSON.") from error
    if request.inquiry:
        values = [*inquiry_values(request.inquiry), *values]
    if words := request.summary:
        shape = Shape.SENTENCE if reads_as_sentence(words) else Shape.BLOCK
        values = [Value(TOOLS_WORDS, words, shape=shape), *values]
    return CallContents(batch, request, (*values, *_preview(request)), masked)


def shown_args(request: ApprovalRequest) -> JsonObject:
    """Return the arguments that the card shows: none if the question says everything that they say."""
    return {} if request.inquiry and request.inquiry.tells_all else request.call.args


def _preview(request: ApprovalRequest) -> list[Value]:
    """Return the tool's preview, which takes the place of an argument if it is the diff of that argument."""
    text = request.shown_preview
    if not text:
        return []
    name = request.diffed
    if request.shown_as_effect:
        # Each of several files keeps its header. A header could only be imitated after the first one.
        text = _HEADER.sub("", text, count=1) if len(request.call.operands) == 1 else text
        return [Value(f"{' and '.join(request.shown_as_effect)}{AS_DIFF}", text, diff=True)]
    if not name:
        shape = Shape.SENTENCE if reads_as_sentence(text) else Shape.BLOCK
        return [Value(PREVIEW, text, shape=shape, diff=_is_diff(text))]
    label, cut = argument_label(name)
    before = request.edit.original.get(name) if request.edit else None
    edited = isinstance(before, str) and before != request.call.args[name]
    remark = note_on_edit(before, request.call.args[name]) if isinstance(before, str) and edited else ""
    return [Value(label + AS_DIFF, _HEADER.sub("", text, count=1), label_cut=cut, remark=remark, diff=True)]


def _is_diff(text: str) -> bool:
    return text.startswith(("--- ", "@@ ")) or "\n@@ " in text


def _arguments(request: ApprovalRequest) -> list[Value]:
    """Return the arguments in reading order: short ones first, so that a long one cannot push them off the card.

    Short and long ones are each in the order of the tool's schema, then by name, so the order in the store does not
    matter. Those with their default value come after the other short ones. The original value of an edited argument
    comes right before its new value; an argument that the edit did not change appears once. One that is shown as a
    diff appears only there, but for the lines that an edit took out.
    """
    now = shown_args(request)
    before = request.edit.original if request.edit else now
    as_diff = (*request.shown_as_effect, *([request.diffed] if request.diffed else [])) if request.preview else ()
    groups: list[list[Value]] = []
    for name in request.description.ordered({*now, *before}):
        is_diffed = name in as_diff
        if name in now and name in before and _same(now[name], before[name]):
            groups.append([] if is_diffed else [_unchanged(request, name)])
        elif name not in now:
            groups.append([_short(argument(name, before[name]), REMOVED)])
        elif name not in before:
            groups.append([] if is_diffed else [_short(argument(name, now[name]), ADDED)])
        elif is_diffed:
            groups.append([_short(*value) for value in removed_lines(name, before[name], now[name])])
        else:
            groups.append([_short(*value) for value in changed_values(name, before[name], now[name])])
    groups = sorted(filter(None, groups), key=lambda group: max(map(_rank, group)))
    return [value for group in groups for value in group]


def _unchanged(request: ApprovalRequest, name: str) -> Value:
    given, defaults = request.call.args[name], request.description.defaults
    (label, cut), (text, kind) = argument_label(name), argument_text(given)
    shape = Shape.BLOCK
    if _fits_on_a_line(label, cut, text):
        shape = Shape.DEFAULT if name in defaults and _same(defaults[name], given) else Shape.INLINE
    return Value(label, text, kind, cut, shape)


def _short(value: Value, ending: str) -> Value:
    """Return the value on one line if possible, with this ending of its label."""
    is_short = not value.diff and _fits_on_a_line(value.label, value.label_cut, value.text)
    return replace(value, label=value.label + ending, shape=Shape.INLINE if is_short else value.shape)


def _rank(value: Value) -> int:
    if value.shape is not Shape.BLOCK:
        return 0 if value.shape is Shape.INLINE else 1
    return 3 if "\n" in value.text or len(value.text) > SHORT else 2


def _same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: 1 is not true. Raises an error if they are not JSON."""
    if isinstance(one, str) and isinstance(other, str) and one == other:
        return True
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _fits_on_a_line(label: str, label_cut: bool, text: str) -> bool:
    """Whether an argument needs no block.

    A value on one line is shown as code, so nothing in it takes effect, and it cannot end its own quotation. Its name
    is bold, as an outcome is, so a name with the card's own words gets a block, where it is shown as code.
    """
    if label_cut or len(text) > INLINE or not _WORD.fullmatch(label):
        return False
    return not (has_our_words(label) or _NOT_INLINE.search(text) or are_odd(label, text))

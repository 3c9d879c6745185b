"""What is known of a card's calls before room is divided: their values in order, their findings, their files.

Settling a call changes none of it, so a settled card shows what the open one showed. Refuses what nobody could review
and what is not JSON. Knows nothing of how much of it will be shown, nor of what stands around the calls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from signoff.approvals.model import ApprovalRequest, Batch
from signoff.cards.actions import PREVIEW, TOOLS_WORDS, Offers
from signoff.cards.budget import Sizes
from signoff.cards.files import request_file
from signoff.cards.layout import SHORT, Value, argument, strings_in
from signoff.cards.masking import masks_of
from signoff.cards.model import CardFile
from signoff.cards.warnings import Finding, argument_place, findings_in
from signoff.errors import CardFailed
from signoff.text.visible import plain

ORIGINAL, EDITED, REMOVED, ADDED = " (original, does not run)", " (edited)", " (original, removed)", " (added)"
"""An argument's name is one word or in quotation marks, so none can end like this."""

MOST = 500_000
"""More characters than this, in all calls together, are not put to people: nobody could review them."""


@dataclass(frozen=True)
class Draft:
    """What is known of one call before room is divided. Settling the call changes none of it."""

    batch: Batch
    request: ApprovalRequest
    values: tuple[Value, ...]
    masked: bool = False

    @cached_property
    def found(self) -> tuple[Finding, ...]:
        args = self.request.call.args
        found = masks_of(self.request) if self.masked else []
        found += findings_in("tool name", [self.request.call.tool])
        for name in sorted(args):
            found += findings_in("argument name", [name])
            found += findings_in(argument_place(name), strings_in(args[name]))
        found += findings_in("tool's words", [self.request.summary])
        return (*found, *findings_in("tool's preview", [self.request.preview]))

    @cached_property
    def file(self) -> CardFile:
        return request_file(self.batch, self.request, self.found, masked=self.masked)


@dataclass(frozen=True)
class Page:
    """One page of a card before room is divided."""

    drafts: Sequence[Draft]
    number: int
    can_attach: bool
    offers: Offers
    sizes: Sizes


def draft_page(batch: Batch, number: int, can_attach: bool, offers: Offers) -> Page:
    number = min(max(number, 0), batch.pages - 1)
    here = {r.id for r in batch.page(number)}
    masked = offers.masker is not None
    drafts = [replace(draft, masked=masked) for draft in draft_calls(batch) if draft.request.id in here]
    return Page(drafts, number, can_attach, offers, Sizes(len(drafts)))


def draft_calls(batch: Batch) -> list[Draft]:
    """Held calls are not among them: nobody has to review those, so they take no space."""
    if not batch.questions:
        raise CardFailed("There is no call on this card.")
    drafts = [_draft_call(batch, request) for request in batch.questions]
    texts = sum(len(value.text) for draft in drafts for value in draft.values)
    names = sum(len(name) for request in batch.questions for name in request.call.args)
    if texts + names + len(batch.model_text) > MOST:
        raise CardFailed(f"The calls are too long to be put to anyone: over {MOST} characters.")
    return drafts


def _draft_call(batch: Batch, request: ApprovalRequest) -> Draft:
    try:
        values = _arguments(request)
    except (TypeError, ValueError, RecursionError) as error:
        tool = plain(request.call.tool, 64)
        raise CardFailed(f"The arguments of {tool} cannot be shown: they are not plain JSON.") from error
    words = [Value(TOOLS_WORDS, request.summary)] if request.summary else []
    preview = [Value(PREVIEW, request.preview)] if request.preview else []
    return Draft(batch, request, (*words, *values, *preview))


def _arguments(request: ApprovalRequest) -> list[Value]:
    """Short ones first, so that a long one cannot push them away; then by name, whatever order the store keeps.

    What a person edited stands beside what it was before; what is the same stands once.
    """
    now = request.call.args
    before = request.edit.original if request.edit else now
    groups: list[list[Value]] = []
    for name in sorted({*now, *before}):
        same = name in now and name in before and _written(now[name]) == _written(before[name])
        if same:
            groups.append([argument(name, now[name])])
            continue
        old = [_labelled(argument(name, before[name]), ORIGINAL if name in now else REMOVED)] if name in before else []
        new = [_labelled(argument(name, now[name]), EDITED if name in before else ADDED)] if name in now else []
        groups.append([*old, *new])
    groups.sort(key=lambda group: any("\n" in value.text or len(value.text) > SHORT for value in group))
    return [value for group in groups for value in group]


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _labelled(value: Value, ending: str) -> Value:
    return replace(value, label=value.label + ending)

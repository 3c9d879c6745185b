"""Mask every untrusted text of a batch once, before anything is quoted, cut or attached.

The masked batch is for display only. The original batch is the one that runs and that decisions are bound to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from signoff.approvals.inquiries import AnswerField, Inquiry, Option
from signoff.approvals.model import ApprovalRequest, Batch, JsonObject, Settlement
from signoff.cards.inquiry_contents import texts_in
from signoff.cards.layout import strings_in
from signoff.cards.masked_diffs import mask_diff, mask_hunks
from signoff.cards.warnings import CardWarning, argument_place
from signoff.text.patterns import lazy_pattern
from signoff.text.secrets.masker import Masker, count_masks

_IMITATED = lazy_pattern(r"(?i)\\u\{2039\}\s{0,8}masked")
"""The escaped beginning that the masker writes for text that imitates a mask."""
_MASKED = ("call", "metadata", "preview", "diff_of", "description", "settlement", "edit", "inquiry", "drafts")
"""The fields of a request that a card shows masked, or not at all."""
_masked_fields = attrgetter(*_MASKED)


def mask_batch(batch: Batch, masker: Masker) -> Batch:
    """Mask a batch. Raises ValueError if masking would make two arguments indistinguishable.

    Return the batch itself if there is nothing to mask and nothing to leave out.
    """
    requests = tuple(_bare(r) if r.held else mask_request(r, masker) for r in batch.requests)
    model_text = masker.mask_untrusted(batch.model_text)
    if (requests, model_text) == (batch.requests, batch.model_text):
        return batch
    return replace(batch, requests=requests, model_text=model_text)


def _bare(request: ApprovalRequest) -> ApprovalRequest:
    """Remove the arguments of a held call: the card shows only its tool's name."""
    return replace(request, call=replace(request.call, args={}), metadata={}, preview="")


def warnings_about_masks(request: ApprovalRequest) -> list[CardWarning]:
    """Return warnings about the masks in a request that `mask_batch` returned."""
    args = request.call.args
    before: JsonObject = request.edit.original if request.edit else {}
    asked = texts_in(request.inquiry) if request.inquiry else []
    texts = [*strings_in([args, before]), request.summary, request.shown_preview, *asked]
    count = count_masks(texts)
    warnings: list[CardWarning] = []
    if count:
        values, are = ("value", "is") if count == 1 else ("values", "are")
        warnings.append(CardWarning("masks", f"{count} {values} {are} masked: length and a keyed digest are shown"))
    if not _imitated(texts):
        return warnings
    places = {argument_place(name): [name, *strings_in(args[name])] for name in sorted(args)}
    places |= {"tool's words": [request.summary], "tool's preview": [request.shown_preview]}
    places["arguments before the edit"] = list(strings_in(before))
    places["question"] = asked
    for where, texts in places.items():
        if _imitated(texts):
            warnings.append(CardWarning("imitated masks", f"{where}: imitates a mask, but is plain text"))
    return warnings


def note_on_masks(model_text: str) -> str:
    """Return the part of the note on the model's text that says it is masked; empty if it is not."""
    return "masked in part" if count_masks([model_text]) else ""


def _imitated(texts: Iterable[str]) -> bool:
    return any("{2039}" in text and _IMITATED.search(text) for text in texts)


def mask_request(request: ApprovalRequest, masker: Masker) -> ApprovalRequest:
    """Mask a request. If anything in it is masked, its digests become keyed digests.

    Otherwise the digests stay as the record has them, so that people can compare the two. Return the request itself if
    there is nothing to mask and nothing to leave out.
    """
    call, settlement, edit, description = request.call, request.settlement, request.edit, request.description
    words, effect = request.summary, request.shown_preview
    summary, preview = masker.mask_untrusted(words), _mask_preview(request, effect, masker) if effect else ""
    args = masker.mask_args(call.args)
    edit = replace(edit, original=masker.mask_args(edit.original)) if edit else None
    if (args, edit, summary, preview) != (call.args, request.edit, words, effect):
        call = replace(call, args=args, digest=masker.mask_digest(call.digest))
        edit = replace(edit, original_digest=masker.mask_digest(edit.original_digest)) if edit else None
    said = masker.mask_untrusted(description.sentence), masker.mask_untrusted(description.title)
    if said != (description.sentence, description.title):
        description = replace(description, sentence=said[0], title=said[1])
    shown: tuple[Any, ...] = (
        call,
        {"summary": summary} if summary else {},
        preview,
        request.diff_of and (request.diff_of if request.shown_as_effect else request.diffed),
        description,
        _mask_settlement(settlement, request.inquiry, masker) if settlement else None,
        edit,
        mask_inquiry(request.inquiry, masker) if request.inquiry else None,
        {},
    )
    # Most requests have no secret, and looking takes less time than a copy of all fields.
    return request if _masked_fields(request) == shown else replace(request, **dict(zip(_MASKED, shown, strict=True)))


def mask_inquiry(inquiry: Inquiry, masker: Masker) -> Inquiry:
    return replace(
        inquiry,
        words=masker.mask_untrusted(inquiry.words),
        fields=tuple(_mask_field(field, inquiry.only_question, masker) for field in inquiry.fields),
    )


def _mask_field(field: AnswerField, question: str, masker: Masker) -> AnswerField:
    options = (
        Option(
            field.masked(one.value, masker.mask_args), masker.mask_untrusted(one.label), masker.mask_untrusted(one.hint)
        )
        for one in field.options
    )
    return replace(
        field,
        name=masker.mask_untrusted(field.name),
        label=masker.mask_untrusted(field.label),
        hint=masker.mask_untrusted(field.hint),
        options=tuple(options),
        default=field.masked(field.default, masker.mask_args, question),
        shape=masker.mask_untrusted(field.shape),
    )


def _mask_settlement(end: Settlement, inquiry: Inquiry | None, masker: Masker) -> Settlement:
    """Mask what people wrote. A chosen option gets the same mask as the option itself, so that its label is found."""
    answer = end.answer
    if answer is not None and inquiry is not None:
        seen = inquiry.masked(answer, masker.mask_args)
        answer = {masker.mask_untrusted(name): value for name, value in seen.items()}
    return replace(end, note=masker.mask_text(end.note), answer=answer) if end.note or answer else end


def _mask_preview(request: ApprovalRequest, preview: str, masker: Masker) -> str:
    if request.shown_as_effect:
        return mask_hunks(preview, masker.mask_untrusted)
    if not request.diffed:
        return masker.mask_untrusted(preview)
    return mask_diff(preview, str(request.call.args[request.diffed]), masker.mask_untrusted)

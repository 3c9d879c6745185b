"""A batch as people may see it: every untrusted text in it masked, once, before anything is quoted, cut or attached.

The result is for showing only. What runs, and what a decision is bound to, is the batch that it was made from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from signoff.approvals.model import ApprovalRequest, Batch, JsonObject
from signoff.cards.layout import strings_in
from signoff.cards.warnings import CardWarning, argument_place
from signoff.text.secrets.masker import Masker, count_masks

_IMITATED = re.compile(r"(?i)\\u\{2039\}\s{0,8}masked")
"""How the masker writes the beginning of what only looks like a mask."""


def mask_batch(batch: Batch, masker: Masker) -> Batch:
    """Raises ValueError if arguments could not be told apart once masked."""
    requests = tuple(_bare(r) if r.held else mask_request(r, masker) for r in batch.requests)
    return replace(batch, requests=requests, model_text=masker.mask_foreign(batch.model_text))


def _bare(request: ApprovalRequest) -> ApprovalRequest:
    """A held call without its arguments: the card shows only its tool's name."""
    return replace(request, call=replace(request.call, args={}), metadata={}, preview="")


def warnings_about_masks(request: ApprovalRequest) -> list[CardWarning]:
    """Warnings about the masks in a request that `mask_batch` made."""
    args = request.call.args
    before: JsonObject = request.edit.original if request.edit else {}
    count = count_masks([*strings_in([args, before]), request.summary, request.shown_preview])
    warnings: list[CardWarning] = []
    if count:
        values, are = ("value", "is") if count == 1 else ("values", "are")
        warnings.append(CardWarning("masks", f"{count} {values} {are} masked: length and a keyed digest are shown"))
    places = {argument_place(name): [name, *strings_in(args[name])] for name in sorted(args)}
    places |= {"tool's words": [request.summary], "tool's preview": [request.shown_preview]}
    places["arguments before the edit"] = list(strings_in(before))
    for where, texts in places.items():
        if _imitated(texts):
            warnings.append(CardWarning("imitated masks", f"{where}: imitates a mask, but is plain text"))
    return warnings


def note_on_masks(model_text: str) -> str:
    """For the note beside the model's text."""
    return "masked in part" if count_masks([model_text]) else ""


def _imitated(texts: Iterable[str]) -> bool:
    return any(_IMITATED.search(text) for text in texts)


def mask_request(request: ApprovalRequest, masker: Masker) -> ApprovalRequest:
    """Where anything of it is masked, its digests are keyed; else they stay as the record has them, to be compared."""
    call, settlement, edit = request.call, request.settlement, request.edit
    summary, preview = masker.mask_foreign(request.summary), masker.mask_foreign(request.shown_preview)
    call = replace(call, args=masker.mask_args(call.args))
    edit = replace(edit, original=masker.mask_args(edit.original)) if edit else None
    if (call, edit, summary, preview) != (request.call, request.edit, request.summary, request.shown_preview):
        call = replace(call, digest=masker.mask_digest(call.digest))
        edit = replace(edit, original_digest=masker.mask_digest(edit.original_digest)) if edit else None
    return replace(
        request,
        call=call,
        metadata={"summary": summary} if summary else {},
        preview=preview,
        settlement=replace(settlement, note=masker.mask_text(settlement.note)) if settlement else None,
        edit=edit,
    )

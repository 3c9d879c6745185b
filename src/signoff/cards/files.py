"""The file that holds a whole request, with everything that the card could not show.

The same request always gives the same bytes, open or settled. Untrusted text is either in a JSON string of plain ASCII
or behind a line number, so it cannot pass for a line of ours. This module knows requests, but no medium.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from signoff.approvals.inquiries import Inquiry
from signoff.approvals.model import ApprovalRequest, Batch
from signoff.cards.inquiry_contents import is_typed
from signoff.cards.layout import SHORT, strings_in
from signoff.cards.model import CardFile
from signoff.cards.warnings import CardWarning
from signoff.text.secrets.masker import count_masks
from signoff.text.visible import visible

ARGUMENTS = "Arguments, exactly as they will run (JSON; all but plain ASCII is written as \\uXXXX):"
"""Our last line in the file. The rest of the file is one JSON object."""
MASKED_ARGUMENTS = "Arguments as they will run, but for masks (JSON; all but plain ASCII is written as \\uXXXX):"
"""Takes the place of ARGUMENTS if secrets are masked."""
INQUIRY_ARGUMENTS = "Arguments of the call, which asks for an answer (JSON; all but plain ASCII is written as \\uXXXX):"
"""Takes the place of both if people are asked for an answer."""


def request_file(
    batch: Batch, request: ApprovalRequest, warnings: Sequence[CardWarning], *, masked: bool = False
) -> CardFile:
    """Build the file of a request. `masked`: the request comes from `masking.mask_batch`."""
    call = request.call
    lines = [
        "Signoff: one complete request",
        f"request: {_ascii(request.id)} of {_ascii(batch.id)}",
        f"tool: {_ascii(call.tool)}",
        *([f"made inside a tool, by agent: {_ascii(' > '.join(request.path))}"] if request.path else []),
        *([f"tool's description: {_ascii(said)}"] if (said := request.description.sentence) else []),
        f"digest: {_ascii(call.digest)}",
        f"tool schema: {_ascii(call.schema)}",
        f"why it asks: {_ascii(request.why)}",
    ]
    if request.inquiry:
        lines += _inquiry(request.inquiry)
    if request.summary:
        lines.append(f"tool's words: {_ascii(request.summary)}")
    if batch.model_text:
        lines.append(f"model's words: {_ascii(batch.model_text)}")
    if request.edit:
        lines.append(f"edited by: {_ascii(request.edit.by.name)} ({_ascii(request.edit.by.id)})")
        lines.append(f"arguments before the edit, which do not run: {_ascii(dict(request.edit.original))}")
    lines += [f"warning: {one.text}" for one in warnings]
    if request.shown_preview:
        count = request.shown_preview.count("\n") + 1
        lines += ["", f"Preview, made by the tool, to read, {count} lines:", *_numbered(request.shown_preview)]
    if request.inquiry and ("\n" in (words := request.inquiry.words) or len(words) > SHORT):
        lines += ["", f"Question, to read, {words.count(chr(10)) + 1} lines:", *_numbered(words)]
    for name in sorted(call.args):
        value = call.args[name]
        if isinstance(value, str) and ("\n" in value or len(value) > SHORT):
            lines += ["", f"Argument {_ascii(name)}, to read, {value.count(chr(10)) + 1} lines:", *_numbered(value)]
    heading = MASKED_ARGUMENTS if masked and count_masks(strings_in(call.args)) else ARGUMENTS
    heading = INQUIRY_ARGUMENTS if request.inquiry else heading
    lines += ["", heading, _ascii(dict(call.args), indent=2), ""]
    data = "\n".join(lines).encode("utf-8")
    return CardFile(file_name(batch, request), data, hashlib.sha256(data).hexdigest())


def _inquiry(inquiry: Inquiry) -> list[str]:
    """Return the lines about the question and its form. Each field is one JSON object."""
    server = [f"asked by the MCP server: {_ascii(inquiry.server)}"] if inquiry.server else []
    lines = [*server, f"question: {_ascii(inquiry.words)}"]
    for number, field in enumerate(inquiry.fields, start=1):
        lines.append(f"field {number}: {_ascii(asdict(field))}")
        if is_typed(field):
            lines += [f"field {number}, option #{n}: {_ascii(one.label)}" for n, one in enumerate(field.options)]
    return lines


def file_name(batch: Batch, request: ApprovalRequest) -> str:
    """Return `request-<short id>.txt`, with a number in the rare case that two requests of a card share a short id."""
    short = short_id(request.id)
    twins = [r.id for r in batch.requests if short_id(r.id) == short]
    number = f"-{twins.index(request.id) + 1}" if len(twins) > 1 else ""
    return f"request-{short}{number}.txt"


def short_id(identifier: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", identifier[:8])


def _numbered(text: str) -> list[str]:
    return [f"{number:6} | {line}" for number, line in enumerate(visible(text).text.split("\n"), start=1)]


def _ascii(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, indent=indent)

"""What exactly would be remembered, in words and with the arguments, before anybody says so."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from signoff.approvals.model import ApprovalRequest, Batch
from signoff.cards.actions import Offers
from signoff.cards.wording import remember_lines
from signoff.terminal.render import write
from signoff.terminal.sanitize import Block
from signoff.text.visible import one_line


def covered_lines(batch: Batch, request: ApprovalRequest, offers: Offers, now: float) -> list[RenderableType]:
    lines = [write(line, now) for line in remember_lines(batch, request, offers.grants, now)]
    return [*lines, *covered_call(request, offers)]


def covered_call(request: ApprovalRequest, offers: Offers) -> Sequence[RenderableType]:
    """The tool and the arguments, masked as they are on the card."""
    try:
        text = offers.quoted(request)
    except (ValueError, TypeError, RecursionError):
        text = "(the arguments on the card)"
    return [Text(one_line(request.call.tool), "bold"), Block(text)]

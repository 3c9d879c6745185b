"""Private panels, which one person sees: more options for a call, held calls, and what exactly would be remembered.

Their buttons are of the same class as a card's, so they work after a restart, and the desk checks each press.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from discord import ui

from signoff.approvals.model import ApprovalRequest, Batch
from signoff.bot import quoting
from signoff.bot.card_view import MAX_TEXT, ApprovalView, rows
from signoff.bot.split import size
from signoff.cards.actions import TOOL_BUDGET, Offers, further_actions, held_actions, look_actions, remember_actions
from signoff.cards.build import build_held_call
from signoff.cards.model import Action, Line
from signoff.cards.wording import remember_lines
from signoff.errors import CardFailed
from signoff.text.visible import clip

log = logging.getLogger(__name__)

TOO_LONG: Line = ("A decision can't be remembered: the arguments are too long to show here. Nothing was decided.",)

MOST_HELD = 25
"""Buttons in one panel: five rows of five."""
NOT_SHOWN = "The arguments cannot be shown here. The call needs no approval; you can reject it."
HELD_BUDGET = 3000
"""Characters of quoted text in the panel of one held call, before markup."""


class Panel(ui.LayoutView):
    """Some lines, and buttons below them."""

    def __init__(self, texts: Sequence[str], actions: Sequence[Action] = ()) -> None:
        super().__init__(timeout=None)
        for text in texts:
            self.add_item(ui.TextDisplay[Any](text))
        for row in rows(actions):
            self.add_item(row)


AnyPanel = Panel | ApprovalView


def said(line: Line, actions: Sequence[Action] = ()) -> Panel:
    """Build a panel with one line, which replaces a panel that is done."""
    return Panel([quoting.line(line)], actions)


def more(batch: Batch, request: ApprovalRequest, offers: Offers, page: int) -> Panel:
    lines = [f"### {quoting.code(clip(request.call.tool, TOOL_BUDGET)[0])}", "More options for this call."]
    if why := offers.why_no_edit(request):
        lines.append(f"-# This call can't be edited: {quoting.trusted(why)}.")
    if not offers.may_remember(request):
        lines.append(
            "-# A decision can't be remembered: the operator or this kind of call does not allow it, or it is too long."
        )
    return Panel(["\n".join(lines)], further_actions(batch, request, offers, page))


def held_calls(batch: Batch, page: int) -> Panel:
    """Build a panel with a button for each held call of the card that is still open."""
    lines = ["### Calls that need no approval", "Choose one to see its arguments or to reject it."]
    actions = look_actions(batch, page)
    if len(actions) > MOST_HELD:
        lines.append(f"-# Only the first {MOST_HELD} of {len(actions)} calls are listed here.")
    return Panel(["\n".join(lines)], actions[:MOST_HELD])


def held_call(batch: Batch, request: ApprovalRequest, offers: Offers, page: int, now: float) -> AnyPanel:
    """Build a panel with the arguments of one held call and a button that rejects it."""
    try:
        for budget in (HELD_BUDGET, HELD_BUDGET // 2, HELD_BUDGET // 4, 0):
            card = build_held_call(batch, request, now=now, budget=budget, page=page, offers=offers)
            view = ApprovalView(card)
            if not view.overflow():
                return view
    except CardFailed as error:
        log.info("the held call %s is not shown: %s", request.id, error)
    tool = quoting.code(clip(request.call.tool, TOOL_BUDGET)[0])
    return Panel([f"### {tool}\n{NOT_SHOWN}"], held_actions(batch, request, page))


def remember(batch: Batch, request: ApprovalRequest, offers: Offers, page: int, now: float) -> Panel:
    text, note = quoting.block(offers.quoted(request))
    lines = [f"### Remember: {quoting.code(clip(request.call.tool, TOOL_BUDGET)[0])}"]
    lines += [quoting.line(line) for line in remember_lines(batch, request, offers.grants, now)]
    texts = ["\n".join(lines), text + (f"\n-# {quoting.trusted(note)}" if note else "")]
    if sum(map(size, texts)) > MAX_TEXT:
        return said(TOO_LONG)
    return Panel(texts, remember_actions(batch, request, offers, page))

"""Private panels, which one person sees: more options for a call, held calls, and what exactly would be remembered.

Their buttons are of the same class as a card's, so they work after a restart, and the desk checks each press.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from discord import ui

from signoff.approvals.answering import inquiry_of
from signoff.approvals.model import ApprovalRequest, Batch, Choice, JsonObject
from signoff.bot import quoting
from signoff.bot.buttons import rows, write_terms
from signoff.bot.card_view import MAX_TEXT, ApprovalView, measure
from signoff.bot.split import size
from signoff.cards.actions import PREVIEW, TOOL_BUDGET, TOOLS_WORDS, Offers, further_actions, held_actions, look_actions
from signoff.cards.build import fit_held_call
from signoff.cards.coverage_wording import Plan, plan_lines, rule_text
from signoff.cards.layout import show
from signoff.cards.masking import mask_request
from signoff.cards.model import Action, Line, Style, Verb
from signoff.errors import CardFailed
from signoff.text.visible import clip

log = logging.getLogger(__name__)

TOO_LONG: Line = ("A decision can't be remembered: the arguments are too long to show here. Nothing was decided.",)

MOST_CALLS = 25
"""Calls in one panel: five rows of five buttons."""
NOT_SHOWN = "The arguments cannot be shown here. The call needs no approval; you can reject it."
HELD_MARGIN = 200
"""Characters that the panel of a held call keeps for its own title and line."""


class Panel(ui.LayoutView):
    """Some lines, and buttons below them."""

    def __init__(self, texts: Sequence[str], actions: Sequence[Action] = ()) -> None:
        super().__init__(timeout=None)
        for text in texts:
            self.add_item(ui.TextDisplay[Any](text))
        for row in rows(actions):
            self.add_item(row)

    def extended(self, text: str, actions: Sequence[Action]) -> Panel:
        """Return this panel with one more text, and buttons below it."""
        self.add_item(ui.TextDisplay[Any](text))
        for row in rows(actions):
            self.add_item(row)
        return self


AnyPanel = Panel | ApprovalView


def said(line: Line, actions: Sequence[Action] = ()) -> Panel:
    """Build a panel with one line, which replaces a panel that is done."""
    return Panel([quoting.line(line)], actions)


def choose(batch: Batch, requests: Sequence[ApprovalRequest], offers: Offers, page: int) -> Panel:
    """Build the panel behind the card's own "More…": the options of the only question, and other calls to choose from.

    `requests`: the calls that this person may decide.
    """
    questions = [r for r in requests if not r.held]
    only = questions[0] if len(questions) == 1 else None
    panel = more(batch, only, offers, page) if only else Panel([])
    others = [r for r in requests if r is not only]
    if not others:
        return panel
    lines = ["### More options for one call", "Choose a call."]
    if all(r.held for r in others):
        lines = ["### Calls that need no approval", "Choose one to see its arguments or to reject it."]
    actions = look_actions(batch, others, page)
    if len(actions) > MOST_CALLS:
        lines.append(f"-# Only the first {MOST_CALLS} of {len(actions)} calls are listed here.")
    return panel.extended("\n".join(lines), actions[:MOST_CALLS])


def more(batch: Batch, request: ApprovalRequest, offers: Offers, page: int) -> Panel:
    lines = [f"### {quoting.code(clip(request.shown_tool, TOOL_BUDGET)[0])}", "More options for this call."]
    lines += [f"-# {quoting.trusted(obstacle)}" for obstacle in offers.obstacles(request)]
    return Panel(["\n".join(lines)], further_actions(batch, request, offers, page))


def kept_part(request: ApprovalRequest, part: int, parts: int, answer: JsonObject, page: int) -> Panel:
    """Build the panel after a part of an answer: how much is filled in, and the next part. Nothing was sent yet."""
    inquiry = inquiry_of(request)
    filled = sum(answer.get(field.name) is not None for field in inquiry.fields)
    missing = len(inquiry.missing(answer))
    lines = [f"### Answer {quoting.code(clip(request.shown_tool, TOOL_BUDGET)[0])}"]
    lines.append(f"Part {part + 1} of {parts} is kept. **Nothing was sent yet.**")
    needed = f" {missing} required field{'s are' if missing > 1 else ' is'} still empty." if missing else ""
    lines.append(f"{filled} of {len(inquiry.fields)} fields are filled in.{needed}")
    actions: list[Action] = []
    if part + 1 < parts:
        actions.append(Action(Verb.FILL, request.id, "Next part…", Style.PLAIN, 0, page, terms=str(part + 1)))
    if part:
        actions.append(Action(Verb.FILL, request.id, "First part…", Style.PLAIN, 0, page))
    if not missing:
        actions.append(Action(Verb.SEND, request.id, "Send", Style.GOOD, 0, page))
    actions.append(Action(Verb.DECLINE, request.id, "Decline", Style.BAD, 0, page))
    return Panel(["\n".join(lines)], actions)


def held_call(batch: Batch, request: ApprovalRequest, offers: Offers, page: int, now: float) -> AnyPanel:
    """Build a panel with the arguments of one held call and a button that rejects it."""
    try:
        limit = MAX_TEXT - HELD_MARGIN
        card = fit_held_call(batch, request, now=now, limit=limit, size=measure, page=page, offers=offers)
        view = ApprovalView(card)
        if not view.overflow():
            return view
    except CardFailed as error:
        log.info("the held call %s is not shown: %s", request.id, error)
    tool = quoting.code(clip(request.shown_tool, TOOL_BUDGET)[0])
    return Panel([f"### {tool}\n{NOT_SHOWN}"], held_actions(batch, request, page))


def confirm(batch: Batch, request: ApprovalRequest, plan: Plan, offers: Offers, page: int, now: float) -> Panel:
    """Build the panel that says, in words and as a rule, what would be remembered. Nothing is saved before "Save"."""
    shown = mask_request(request, offers.masker) if offers.masker else request
    covered = plan.coverage.covered(shown.call.args)
    args = {name: covered[name] for name in request.description.ordered(covered)}
    rule, note = quoting.block(rule_text(shown.call.tool, args, plan.choice), "toml")
    lines = [f"### Remember: {quoting.code(clip(request.shown_tool, TOOL_BUDGET)[0])}"]
    lines += [quoting.line(line) for line in plan_lines(batch, request, plan, offers.grants, now)]
    texts = ["\n".join(lines), "\n".join(["As a rule, it would read:", rule, *([f"-# {note}"] if note else [])])]
    said_by_tool = {TOOLS_WORDS: shown.summary, PREVIEW: shown.shown_preview} if plan.named is None else {}
    for label, text in said_by_tool.items():
        if text:
            block, note = quoting.block(show(text))
            texts.append("\n".join([f"**{label}**", block, *([f"-# {note}"] if note else [])]))
    if sum(map(size, texts)) > MAX_TEXT:
        return said(TOO_LONG)
    return Panel(texts, confirm_actions(batch, request, plan, page))


def confirm_actions(batch: Batch, request: ApprovalRequest, plan: Plan, page: int) -> list[Action]:
    accepts = plan.choice is Choice.ACCEPT
    label, style = ("Accept and save", Style.GOOD) if accepts else ("Reject and save", Style.BAD)
    terms = write_terms(plan, request.call.args)
    return [
        Action(Verb.SAVE, request.id, label, style, batch.revision, page, terms=terms),
        Action(Verb.CLOSE, request.id, "Cancel", Style.PLAIN, batch.revision, page),
    ]

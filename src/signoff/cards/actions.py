"""Choose the buttons of a card and its private panels.

No button offers something that cannot be done, and none approves a call that was not shown whole. Pure functions. This
module does not know who may press a button: the desk checks that at the click.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import field

from signoff.approvals.grants import GrantTerms, may_be_remembered
from signoff.approvals.model import ApprovalRequest, Batch, Remember, RequestKind, RequestState
from signoff.cards.forms import form_of
from signoff.cards.layout import show
from signoff.cards.masking import mask_request
from signoff.cards.model import Action, Style, Verb
from signoff.dataclass import dataclass
from signoff.text.secrets.masker import Masker
from signoff.text.visible import plain

ROW = 5
"""Buttons in one row. More do not fit on a phone."""
TOOL_BUDGET = 64
QUOTED = 2400
"""Decisions about longer arguments cannot be remembered, because the Remember panel could not quote them."""
TOOLS_WORDS = "Tool's words"
PREVIEW = "Tool's preview"
HIDDEN = "parts of the arguments are masked"
TOO_LONG = "the arguments are longer than the 4,000 characters that one field takes"
NOT_HERE = "arguments cannot be edited here"
MAY_HAVE_RUN = "the call may have run already"
ASKS_PEOPLE = "the call needs an answer, not an approval"
INSIDE_A_TOOL = "an agent inside a tool made it"
NOT_ASKED = "the call needs no approval"
FIXED_AMOUNT = "its amount comes from the operator's budget"
NOT_PERMITTED = "the operator does not permit it"
DEPENDS_ON_STATE = "the call depends on something that may change, such as a file"
TOO_LONG_TO_REMEMBER = "the call is too long to be shown with what would be remembered"

_NO_CALL = {RequestKind.MAY_HAVE_RUN: MAY_HAVE_RUN, RequestKind.ANSWER: ASKS_PEOPLE}
"""Kind of a request -> why it can be neither edited nor remembered."""
_MAY_HAVE_RUN = (
    (Verb.RAN, "It ran", Style.PLAIN),
    (Verb.RERUN, "Run it again", Style.BAD),
    (Verb.SKIP, "Skip", Style.PLAIN),
)
_ANSWER = (Verb.FILL, "Answer…", Style.GOOD)
_CONFIRM = (Verb.ANSWER, "Confirm", Style.GOOD)
_DECLINE = (Verb.DECLINE, "Decline", Style.BAD)
_DECLINE_WITH_REASON = "Decline with a reason…"
_FURTHER = ((Verb.REASON, "Reject with a reason…"), (Verb.EDIT, "Edit…"), (Verb.REMEMBER, "Remember…"))
_REMEMBERED = (
    (Verb.ACCEPT_HERE, "Accept + remember here", Style.GOOD),
    (Verb.ACCEPT_ALWAYS, "Accept + always", Style.GOOD),
    (Verb.REJECT_HERE, "Reject + remember here", Style.BAD),
    (Verb.REJECT_ALWAYS, "Reject + always", Style.BAD),
)


@dataclass(frozen=True, slots=True)
class Offers:
    """The actions beyond accept and reject. By default there are none."""

    edit: bool = False
    grants: GrantTerms = field(default_factory=lambda: GrantTerms(Remember.NONE))
    """How far decisions may be remembered, as set by the operator."""
    masker: Masker | None = None
    """Masks secrets on the card. A call with masked arguments cannot be edited, because people see only the masks."""

    def why_no_edit(self, request: ApprovalRequest) -> str:
        """Return why this call cannot be edited; empty if it can."""
        if request.kind is not RequestKind.CALL:
            return _NO_CALL[request.kind]
        if request.held:
            return NOT_ASKED
        if request.path:
            return INSIDE_A_TOOL
        if request.call.is_overage:
            return FIXED_AMOUNT
        if not self.edit:
            return NOT_HERE
        if self.masker is not None and self.masker.hides(request.call.args):
            return HIDDEN
        return "" if form_of(request) is not None else TOO_LONG

    def may_remember(self, request: ApprovalRequest) -> bool:
        return not self.why_no_remember(request)

    def why_no_remember(self, request: ApprovalRequest) -> str:
        """Return why a decision about this call cannot be remembered; empty if it can.

        The panel must be able to quote the whole call: it has its own accept button, no matter what the card showed.
        """
        if self.grants.widest is Remember.NONE:
            return NOT_PERMITTED
        if not may_be_remembered(request):
            asks = NOT_ASKED if request.held else DEPENDS_ON_STATE
            return _NO_CALL.get(request.kind, asks)
        is_long = len(request.shown_preview) > QUOTED or len(request.shown_tool) > TOOL_BUDGET
        return TOO_LONG_TO_REMEMBER if is_long or len(self.quoted(request)) > QUOTED else ""

    def obstacles(self, request: ApprovalRequest) -> list[str]:
        """Say what cannot be done with this call, with one reason for each, the one that helps most.

        If there is a reason in the call itself, the operator's settings are not mentioned. Nobody expects to edit or to
        remember a question, so nothing is said about it.
        """
        if request.kind is RequestKind.ANSWER:
            return []
        edit, remember = self.why_no_edit(request), self.why_no_remember(request)
        if edit and edit == remember:
            return [f"This call can't be edited, and a decision can't be remembered: {edit}."]
        if edit and remember == NOT_PERMITTED:
            remember = ""
        said = {"This call can't be edited": edit, "A decision can't be remembered": remember}
        return [f"{what}: {why}." for what, why in said.items() if why]

    def quoted(self, request: ApprovalRequest) -> str:
        """Return one text with the masked arguments and the tool's own text about them."""
        if self.masker is not None:
            request = mask_request(request, self.masker)
        args = show(json.dumps(dict(request.call.args), sort_keys=True, ensure_ascii=False, indent=2))
        said = {TOOLS_WORDS: request.summary, PREVIEW: request.shown_preview}
        return "\n".join([args, *(f"{name}: {show(text)}" for name, text in said.items() if text)])


def card_actions(batch: Batch, page: int, shown: Collection[str]) -> tuple[list[Action], dict[str, list[Action]]]:
    """Return the card's own buttons, and a dict of request id -> that call's buttons.

    `shown`: ids of the requests that are shown whole, on the card or in an attached file.
    """
    pending = [r for r in batch.page(page) if r.state is RequestState.PENDING]
    more = _more(batch, page, pending)
    if len(batch.questions) == 1:
        return [*(a for r in pending for a in _alone(batch, r, shown)), *more], {}
    own = {r.id: _own(batch, r, r.id, page, shown) for r in pending}
    actions = [*_for_all(batch, page, pending, shown), *more]
    return [*actions, *turning(batch, page, beside=len(actions))], own


def further_actions(batch: Batch, request: ApprovalRequest, offers: Offers, page: int) -> list[Action]:
    """Return the buttons for one call beyond accept and reject."""
    if request.held:
        return held_actions(batch, request, page)
    if request.kind is RequestKind.ANSWER:
        return [Action(Verb.REASON, request.id, _DECLINE_WITH_REASON, Style.PLAIN, batch.revision, page)]
    if request.kind is not RequestKind.CALL:
        return []
    possible = {Verb.REASON: True, Verb.EDIT: not offers.why_no_edit(request)}
    possible[Verb.REMEMBER] = offers.may_remember(request)
    return [
        Action(verb, request.id, label, Style.PLAIN, batch.revision, page) for verb, label in _FURTHER if possible[verb]
    ]


def optional_calls(batch: Batch, page: int, offers: Offers) -> list[ApprovalRequest]:
    """Return the calls that the card's "More…" leads to: questions with further buttons on this page, held calls."""
    questions = [r for r in batch.page(page) if r.state is RequestState.PENDING]
    return [*(r for r in questions if further_actions(batch, r, offers, page)), *batch.open_held]


def remember_actions(batch: Batch, request: ApprovalRequest, offers: Offers, page: int) -> list[Action]:
    if not offers.may_remember(request):
        return []
    return [
        Action(verb, request.id, label, style, batch.revision, page)
        for verb, label, style in _REMEMBERED
        if verb.remember.reach <= offers.grants.widest.reach
    ]


def turning(batch: Batch, page: int, beside: int = 0) -> list[Action]:
    """Return the buttons that turn pages. They stay after everything is settled. `beside`: buttons in the same row."""
    if batch.pages == 1:
        return []
    here = f"Page {page + 1} of {batch.pages}"
    turns = [(page - 1, "◀", False), (page, here, True), (page + 1, "▶", False)]
    possible = [turn for turn in turns if 0 <= turn[0] < batch.pages]
    if beside + len(possible) > ROW:
        # The page number goes: the card says which calls it shows.
        possible.remove(turns[1])
    return [
        Action(Verb.PAGE, batch.id, label, Style.PLAIN, batch.revision, to, disabled)
        for to, label, disabled in possible
    ]


def held_actions(batch: Batch, request: ApprovalRequest, page: int) -> list[Action]:
    """Return the Reject button of a held call. People never accept a held call, so there is no other button."""
    if request.state is not RequestState.PENDING:
        return []
    return [Action(Verb.REJECT, request.id, "Reject", Style.BAD, batch.revision, page)]


def look_actions(batch: Batch, requests: Sequence[ApprovalRequest], page: int) -> list[Action]:
    """Return one numbered button for each of these calls. It leads to the call's own panel.

    The numbers are those on the card; held calls have the numbers after them.
    """
    order = [*(batch.questions if len(batch.questions) > 1 else ()), *batch.held]
    return [
        Action(Verb.MORE, r.id, f"{number}. {plain(r.shown_tool, TOOL_BUDGET)}", Style.PLAIN, batch.revision, page)
        for number, r in enumerate(order, start=1)
        if r in requests
    ]


def _more(batch: Batch, page: int, pending: Sequence[ApprovalRequest]) -> list[Action]:
    """Return the button that leads to everything beyond accept and reject, and to the held calls.

    There is always a reason to give, unless a call may have run. So the card need not find out which calls can be
    edited or remembered, which takes longer than everything else on a small card.
    """
    if not batch.open_held and all(r.kind is RequestKind.MAY_HAVE_RUN for r in pending):
        return []
    return [Action(Verb.MORE, batch.id, "More…", Style.PLAIN, batch.revision, page)]


def _alone(batch: Batch, request: ApprovalRequest, shown: Collection[str]) -> list[Action]:
    target = batch.id if request.kind is RequestKind.CALL else request.id
    return _own(batch, request, target, 0, shown)


def _own(batch: Batch, request: ApprovalRequest, target: str, page: int, shown: Collection[str]) -> list[Action]:
    """Return the buttons that decide one call."""
    match request.kind:
        case RequestKind.CALL:
            buttons = ((Verb.ACCEPT, "Accept", Style.GOOD), (Verb.REJECT, "Reject", Style.BAD))
        case RequestKind.MAY_HAVE_RUN:
            buttons = _MAY_HAVE_RUN
        case RequestKind.ANSWER:
            buttons = (_ANSWER if request.inquiry and request.inquiry.fields else _CONFIRM, _DECLINE)
    actions = [Action(verb, target, label, style, batch.revision, page) for verb, label, style in buttons]
    return _shown_only(actions, request.id in shown)


def _for_all(batch: Batch, page: int, pending: Sequence[ApprovalRequest], shown: Collection[str]) -> list[Action]:
    """Return the buttons for all open calls. Accept covers only this page: nobody may accept calls they do not see."""
    here = [r for r in pending if r.kind is RequestKind.CALL]
    everywhere = [r for r in batch.open_questions if r.kind is RequestKind.CALL]
    actions: list[Action] = []
    if len(here) > 1 and all(r.id in shown for r in here):
        label = "Accept all" if batch.pages == 1 else f"Accept these {len(here)}"
        actions.append(Action(Verb.ACCEPT, batch.id, label, Style.GOOD, batch.revision, page))
    if len(everywhere) > 1:
        actions.append(Action(Verb.REJECT, batch.id, "Reject all", Style.BAD, batch.revision, page))
    return actions


def _shown_only(actions: Sequence[Action], shown: bool) -> list[Action]:
    """Drop the buttons that would run or answer a call that is not shown whole."""
    hidden = (Verb.ACCEPT, Verb.RERUN, Verb.FILL, Verb.ANSWER)
    return [a for a in actions if shown or a.verb not in hidden]

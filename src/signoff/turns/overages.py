"""Overages: a budget is used up, and people are asked on a card whether the run may go on with a stated amount more.

An overage is a request like any other, of a tool that no agent has: the same desk, approvers, timeout and record. The
accepted amount is absolute ("up to 75,000"), so two cards for one limit never add up. Pure functions and rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from signoff.approvals.digest import bind
from signoff.approvals.model import (
    OVERAGE,
    SPEND_MORE,
    ApprovalRequest,
    Batch,
    CallKey,
    JsonObject,
    Place,
    RequestState,
    ToolCall,
)
from signoff.turns.budgets import Budget, Budgets, Standing, Unit, accounts_of
from signoff.turns.model import CallRecord, CallState
from signoff.turns.ports import TurnTx

KEPT = "Completed calls are kept."
NOT_RUN = f"Calls that were accepted on the same card were not run. {KEPT}"
AMOUNTS = ("used", "limit", "up_to")


def overage_call(budgets: Budgets, standing: Standing, place: Place, position: int) -> ToolCall:
    """Return the call that people accept or reject. Its operand says that no decision about it can be remembered."""
    up_to = standing.used + budgets.more(standing)
    args = {
        "budget": standing.account.budget.value,
        "unit": standing.unit.value,
        **({"day": standing.day} if standing.day else {}),
        **{
            name: _exact(n, standing.unit)
            for name, n in zip(AMOUNTS, (standing.used, standing.limit, up_to), strict=True)
        },
    }
    key = CallKey(place.conversation, position, f"overage-{secrets.token_hex(8)}")
    return bind(ToolCall(key, SPEND_MORE, args, OVERAGE, operands={"used": str(args["used"])}), place)


def question(args: JsonObject, place: Place) -> str:
    """Return the sentence on the card: what is used, and how much more is asked for."""
    unit = Unit(args["unit"])
    return f"{reached(args, place)} Go on with {amount(args['up_to'] - args['used'], unit)} more?"


def reached(args: JsonObject, place: Place) -> str:
    who = {Budget.THREAD: "This thread", Budget.PERSON: "The asker", Budget.SERVER: "This server"}[
        Budget(args["budget"])
    ]
    if place.is_direct:
        who = "This conversation" if args["budget"] == Budget.THREAD else "The asker"
    used, limit = (shown(args[name], Unit(args["unit"])) for name in ("used", "limit"))
    kind = " tokens" if args["unit"] == Unit.TOKENS else ""
    return f"{who} has used {used} of {limit}{kind}{' today' if args.get('day') else ''}."


def settle(tx: TurnTx, batch: Batch, now: float) -> str:
    """Raise the limits that people accepted. Return why the turn must end; empty if it goes on."""
    overages = [request for request in batch.requests if request.call.is_overage]
    for request in overages:
        if request.state is RequestState.APPROVED:
            _raise(tx, batch, request, now)
    refused = [request for request in overages if request.state is not RequestState.APPROVED]
    others = any(one.state is RequestState.APPROVED and not one.call.is_overage for one in batch.requests)
    return _refusal(refused, batch.place, NOT_RUN if others else KEPT) if refused else ""


def denied(args: JsonObject, place: Place, reason: str) -> str:
    """Return the end of a turn whose overage a rule denies, without a card."""
    return f"I stopped: {reached(args, place)} A rule does not allow more ({reason}). {KEPT} {_remedy(args)}"


def amount(number: float, unit: Unit) -> str:
    return f"{shown(number, unit)}{' tokens' if unit is Unit.TOKENS else ''}"


def shown(number: float, unit: Unit) -> str:
    if unit is Unit.TOKENS:
        return f"{number:,.0f}"
    return f"${number:,.2f}" if number >= 0.1 or number == 0 else f"${number:.4f}"


def _raise(tx: TurnTx, batch: Batch, request: ApprovalRequest, now: float) -> None:
    args, unit = request.call.args, Unit(request.call.args["unit"])
    account = next(one for one in accounts_of(batch.place, batch.asker.id) if one.budget == args["budget"])
    tx.raise_limit(account, unit, args.get("day", ""), args["up_to"], request.id, now)
    line = f"The limit is {amount(args['up_to'], unit)} now"
    # The journal's entry lets the card say how the call ended.
    key, digest = request.call.key, request.call.digest
    tx.put_call(
        CallRecord(key, SPEND_MORE, digest, CallState.DONE, line.encode(), request.id, now, line), batch.turn, now
    )


def _refusal(refused: Sequence[ApprovalRequest], place: Place, kept: str) -> str:
    first = refused[0]
    end, args = first.settlement, first.call.args
    if first.state is RequestState.EXPIRED:
        why = "Nobody allowed more in time."
    elif end and end.by:
        why = f"{end.by.name} rejected more."
    elif first.state is RequestState.CANCELLED:
        why = f"The question for more was cancelled ({end.note if end else ''})."
    else:
        why = f"More was rejected ({end.note if end else ''})."
    return f"I stopped: {reached(args, place)} {why} {kept} {_remedy(args)}"


def _remedy(args: JsonObject) -> str:
    return "The limit starts anew tomorrow." if args.get("day") else "Start a new thread, or mention me to ask again."


def _exact(number: float, unit: Unit) -> float | int:
    return round(number) if unit is Unit.TOKENS else round(number, 6)

"""Our buttons, and the ids of buttons and forms. An id only locates a request or a batch; it gives nobody any right.

A button's id is `signoff:VERB:TARGET:REVISION:PAGE`: the choice, the request or batch, and the
revision and page that the card showed. The verb `save` is followed by what is to be remembered, as
`:CHOICE.SPAN.ARGUMENTS`, and `fill` may be followed by the part of the form, as `:PART`. An id that does not match
exactly is not ours. A form's id names the request, and for some forms the digest of its arguments or the part of the
form, so that a process can handle a form that an earlier process opened.

A press is read from its id and from the message that Discord sends along with it. So buttons work after a restart, and
no view is kept for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import Any

import discord
from discord import ui

from signoff.approvals.model import Choice
from signoff.cards.coverage_wording import NAMES, Plan, Span
from signoff.cards.model import Action, Style, Verb
from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern

MAX_ID = 100
MAX_LABEL = 80
DIGEST = 32
"""Characters of a digest in a form's id."""

EXACTLY = "exact"
_TARGET = "(?P<target>[0-9a-z]{8,40})"
_NUMBER = "0|[1-9][0-9]{0,4}"
_TERMS = rf"(?:accept|reject)\.(?:{'|'.join(Span)})\.(?:{EXACTLY}|[0-9a-f]{{1,3}})"
CUSTOM_ID = lazy_pattern(
    # Only `save` has terms, which contain full stops, and only `fill` may have a part. All other ids have four parts.
    r"signoff:(?=save:[^.]*\.|fill:[^.]*\Z|(?!save:|fill:)\w*:\w*:\w*:\w*\Z)"
    rf"(?P<verb>{'|'.join(Verb)}):{_TARGET}:(?P<revision>{_NUMBER}):(?P<page>0|[1-9][0-9]?)"
    rf"(?::(?P<terms>{_TERMS}|[1-9]))?\Z",
)
FORM_ID = lazy_pattern(
    # The form for an answer has a part in place of a digest.
    r"signoff-form:(?=answer:\w*:\w*:[0-9]\Z|(?!answer:))"
    rf"(?P<kind>edit|reason|decline|remember|answer):{_TARGET}:(?P<page>0|[1-9][0-9]?):(?P<rest>[0-9a-f]{{0,{DIGEST}}})\Z"
)


@dataclass(frozen=True, slots=True)
class Locator:
    verb: Verb
    target: str
    revision: int
    page: int
    terms: str = ""

    @property
    def part(self) -> int:
        """The part of the form that the verb `fill` opens, from 0."""
        return int(self.terms or 0)


class FormKind(StrEnum):
    EDIT = "edit"
    REASON = "reason"
    """Rejects the call with a reason."""
    DECLINE = "decline"
    """Declines to answer, with a reason."""
    REMEMBER = "remember"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class FormLocator:
    kind: FormKind
    target: str
    page: int
    digest: str = ""
    part: int = 0
    """The part of the form for an answer, from 0."""

    def __str__(self) -> str:
        rest = self.part if self.kind is FormKind.ANSWER else self.digest[:DIGEST]
        return f"signoff-form:{self.kind}:{self.target}:{self.page}:{rest}"


def custom_id(action: Action) -> str:
    terms = f":{action.terms}" if action.terms else ""
    return f"signoff:{action.verb}:{action.target}:{action.revision}:{action.page}{terms}"


def write_terms(plan: Plan, args: Collection[str]) -> str:
    """Write a plan into an id. The named arguments are a number with one bit for each name, in alphabetical order."""
    bits = sum(1 << bit for bit, name in enumerate(sorted(args)) if name in (plan.named or ()))
    return f"{plan.choice}.{plan.span}.{EXACTLY if plan.named is None else f'{bits:x}'}"


def read_terms(terms: str, args: Collection[str]) -> Plan | None:
    """Read a plan for a call with these arguments, in the tool's own order; None if it does not fit the call."""
    choice, span, named = terms.split(".")
    if named == EXACTLY:
        return Plan(Choice(choice), Span(span))
    bits, names = int(named, 16), sorted(args)
    if len(names) > NAMES or bits >> len(names):
        return None
    named = tuple(name for name in args if bits >> names.index(name) & 1)
    return Plan.naming(Choice(choice), Span(span), named, args)


def parse(custom_id: object) -> Locator | None:
    """Read a button's id; None if it is not exactly one of ours."""
    match = CUSTOM_ID.fullmatch(custom_id) if isinstance(custom_id, str) and len(custom_id) <= MAX_ID else None
    if match is None:
        return None
    numbers = int(match["revision"]), int(match["page"])
    return Locator(Verb(match["verb"]), match["target"], *numbers, match["terms"] or "")


def parse_form(custom_id: object) -> FormLocator | None:
    match = FORM_ID.fullmatch(custom_id) if isinstance(custom_id, str) and len(custom_id) <= MAX_ID else None
    if match is None:
        return None
    kind, target, page, rest = FormKind(match["kind"]), match["target"], int(match["page"]), match["rest"]
    if kind is FormKind.ANSWER:
        return FormLocator(kind, target, page, part=int(rest))
    return FormLocator(kind, target, page, rest)


_STYLES = {
    Style.GOOD: discord.ButtonStyle.success,
    Style.BAD: discord.ButtonStyle.danger,
    Style.PLAIN: discord.ButtonStyle.secondary,
}


class OwnButton(ui.Button[Any]):
    """A button whose presses are read with `pressed_id`, so discord.py neither keeps nor dispatches it."""

    def is_dispatchable(self) -> bool:
        return False


class ApprovalButton(OwnButton):
    """One button of a card or a panel."""

    def __init__(self, action: Action) -> None:
        super().__init__(
            label=action.label[:MAX_LABEL],
            style=_STYLES[action.style],
            custom_id=custom_id(action),
            disabled=action.disabled,
        )


def pressed_id(interaction: discord.Interaction[Any]) -> str | None:
    """Return the id of the button that was pressed; None if none was, or if it is not on its message.

    Such a button is old or forged.
    """
    message = interaction.message
    if message is None or interaction.type is not discord.InteractionType.component:
        return None
    pressed = (interaction.data or {}).get("custom_id")
    components: list[Any] = [*message.components]
    while components:
        component = components.pop()
        if isinstance(component, discord.Button) and pressed and component.custom_id == pressed:
            return component.custom_id
        components += getattr(component, "children", ())
    return None


def rows(actions: Sequence[Action]) -> Iterator[ui.ActionRow[Any]]:
    for start in range(0, len(actions), 5):
        yield ui.ActionRow[Any](*map(ApprovalButton, actions[start : start + 5]))

"""What a remembered decision covers, in words and as a rule: before it is saved, and in the list of grants.

The rule is for reading. A grant is not a rule: it also ends, and a deny rule wins over it. Every line is trusted text
in which people and times are data; the rule is text that a front end must quote. This module knows no medium.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from enum import StrEnum

from signoff.approvals.coverage import Coverage
from signoff.approvals.digest import canonical
from signoff.approvals.grants import DAY, GrantTerms, depends_on_asker, lifetime
from signoff.approvals.model import ApprovalRequest, Batch, Choice, GrantNote, JsonObject, Remember, Settlement
from signoff.cards.approver_names import person
from signoff.cards.layout import show
from signoff.cards.model import Line, Moment
from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import clip, plain

NAMES = 10
"""The most arguments that a form can offer to choose from."""
_NAME_BUDGET = 40
_GLOB = lazy_pattern(r"[*?\[]")
_BARE = lazy_pattern(r"[A-Za-z0-9_-]+")


class Span(StrEnum):
    """How long a decision is remembered, and where."""

    HERE = "here"
    HOUR = "hour"
    DAY = "day"
    ALWAYS = "always"

    @property
    def seconds(self) -> float | None:
        return {Span.HOUR: 3600.0, Span.DAY: DAY}.get(self)

    @property
    def remember(self) -> Remember:
        return Remember.SESSION if self is Span.HERE else Remember.ALWAYS


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision that a person wants to have remembered."""

    choice: Choice
    span: Span
    named: tuple[str, ...] | None = None
    """The arguments that must be the same; None: exactly this call."""

    @property
    def coverage(self) -> Coverage:
        return Coverage(self.named, self.span.seconds)

    @classmethod
    def naming(cls, choice: Choice, span: Span, named: tuple[str, ...], args: Collection[str]) -> Plan:
        """Return the plan for a call with these arguments. If no argument is free, it is exactly this call."""
        return cls(choice, span, None if set(named) >= set(args) else named)


def spans(terms: GrantTerms, *, may_widen: bool, alone: bool) -> list[Span]:
    """Return the spans that a person may choose. `may_widen`: they manage the server. `alone`: one accept suffices."""
    if terms.widest is not Remember.ALWAYS or not may_widen:
        return [Span.HERE]
    return [Span.HERE, Span.HOUR, Span.DAY, Span.ALWAYS] if alone else [Span.HERE, Span.ALWAYS]


def plan_lines(batch: Batch, request: ApprovalRequest, plan: Plan, terms: GrantTerms, now: float) -> list[Line]:
    """Say what would be remembered, before it is saved. The caller quotes the tool and the rule."""
    asked: Line = (", if ", person(batch.asker), " asks") if depends_on_asker(request) else ()
    said = plan.named is None and (request.summary or request.shown_preview)
    same = " and what the tool says about them" if said else ""
    if plan.named is not None:
        same = ", and whatever the tool's preview and warnings say"
    done = "accepted" if plan.choice is Choice.ACCEPT else "rejected"
    where = "In this conversation" if plan.span is Span.HERE else "In every conversation of this server"
    if batch.place.is_direct:
        where = "In this direct conversation"
    covered = covered_words(plan.named, request.description.ordered(request.call.args))
    return [
        (f"Later calls of this tool are {done} without asking {covered}{same}", *asked),
        (f"{where}, at most {terms.uses} times; it ends ", Moment(now + lifetime(plan.coverage, terms))),
        ("A call with other approvers asks again, and a rule that denies still holds",),
    ]


def covered_words(named: Sequence[str] | None, args: Collection[str] = ()) -> str:
    """Say which calls are covered: "if ...". `args`: all arguments, in the tool's own order."""
    if named is None:
        return "if they have exactly these arguments"
    free = [name for name in args if name not in named]
    rest = f" ({', '.join(plain(name, _NAME_BUDGET) for name in free)})" if free else ""
    if not named:
        return f"whatever their arguments are{rest}"
    names = ", ".join(plain(name, _NAME_BUDGET) for name in named)
    return f"if they have the same {names}; all other arguments{rest} are free"


def grant_line(request: ApprovalRequest, end: Settlement, note: GrantNote, budget: int) -> Line:
    """Say on a settled card that the decision is remembered, or that a remembered one settled the call.

    `budget`: characters for what is covered. 0: there is space for the shortest line only.
    """
    ends: Line = (", until ", Moment(note.until), f" · grant {plain(note.grant, _NAME_BUDGET)}")
    if end.by is None:
        return ("By a remembered decision of ", person(note.by), *ends)
    if not budget:
        return ("Remembered", *ends)
    done = "accepted" if end.choice is Choice.ACCEPT else "rejected"
    covered, _ = clip(covered_words(note.named, request.description.ordered(request.call.args)), budget)
    where = "in this conversation" if note.here else "in this server"
    return ("Remembered by ", person(note.by), f": later calls are {done} {covered}, {where}", *ends)


def rule_text(tool: str, args: JsonObject, choice: Choice) -> str:
    """Write what is covered as a rule of signoff.toml, with hidden characters made visible."""
    lines = ["[[rules]]", f"tool = {_text(tool)}"]
    if args:
        entries = [f"{name if _BARE.fullmatch(name) else _text(name)} = {_pattern(args[name])}" for name in args]
        lines.append(f"when = {{ {', '.join(entries)} }}")
    lines.append(f'verdict = "{"allow" if choice is Choice.ACCEPT else "deny"}"')
    return show("\n".join(lines))


def _pattern(value: object) -> str:
    """Write a value as the pattern that matches only this value."""
    text = value if isinstance(value, str) else canonical(value)
    return _text(_GLOB.sub(lambda match: f"[{match[0]}]", text))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

"""What asks: rules, then the tool's own declaration, on validated and defaulted arguments.

Among the rules that match, deny wins over ask and ask over allow. Only when none matches does the declaration count.
Rules are pure data; a declared predicate may be async, and whatever it raises means that nothing is approved.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, cast

from signoff.approvals.digest import canonical
from signoff.approvals.model import Actor, JsonObject, Place, Ruling, ToolCall, Verdict

Patterns = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Said:
    """One earlier utterance of the conversation, for predicates."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a predicate may look at beside the arguments."""

    place: Place
    asker: Actor
    conversation: Sequence[Said] = ()


Predicate = Callable[[JsonObject, Context], bool | Awaitable[bool]]
Declaration = Verdict | Predicate | None
"""What a tool says of itself: always ask, never ask, a predicate that is true where it must ask, or nothing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of policy. Patterns are globs on an argument's text; a missing argument matches no pattern."""

    tool: str
    verdict: Verdict
    when: Patterns = field(default_factory=dict[str, tuple[str, ...]])
    unless: Patterns = field(default_factory=dict[str, tuple[str, ...]])
    approvers: tuple[str, ...] | None = None
    timeout: float | None = None
    reason: str = ""

    def names(self, tool: str) -> bool:
        return fnmatchcase(tool, self.tool)

    def covers(self, call: ToolCall) -> bool:
        # A list counts as matched for a loosening pattern only if each of its items matches, for a tightening one
        # if any does: otherwise one harmless item would carry a dangerous one past the rule.
        loosens = self.verdict is Verdict.ALLOW
        return (
            self.names(call.tool)
            and all(_matches(call.args, name, globs, every=loosens) for name, globs in self.when.items())
            and not (
                self.unless and all(_matches(call.args, name, globs, every=True) for name, globs in self.unless.items())
            )
        )

    def ruling(self) -> Ruling:
        reason = self.reason or f"a rule for {self.tool} says {self.verdict}"
        return Ruling(self.verdict, reason, self.approvers, self.timeout)


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's rules and what to do with tools that declare nothing."""

    rules: tuple[Rule, ...] = ()
    undeclared: Verdict = Verdict.ALLOW

    def ruling_by_rule(self, call: ToolCall) -> Ruling | None:
        matching = [rule for rule in self.rules if rule.covers(call)]
        for verdict in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW):
            for rule in matching:
                if rule.verdict is verdict:
                    return rule.ruling()
        return None

    async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling:
        """The ruling on one call. Exceptions of a predicate pass to the caller, who must not run the call."""
        if ruling := self.ruling_by_rule(call):
            return ruling
        if declaration is None:
            return Ruling(self.undeclared, "the tool declares nothing and no rule matches")
        if isinstance(declaration, Verdict):
            words = "always" if declaration is Verdict.ASK else "never"
            return Ruling(declaration, f"the tool is declared to {words} ask")
        answer = declaration(call.args, context)
        if inspect.isawaitable(answer):
            answer = await answer
        # Anything but a plain False asks: a predicate that forgets its return value must not open the door.
        if answer is False:
            return Ruling(Verdict.ALLOW, "the tool's own condition does not ask for these arguments")
        return Ruling(Verdict.ASK, "the tool's own condition asks for these arguments")


def _matches(args: JsonObject, name: str, globs: tuple[str, ...], *, every: bool) -> bool:
    if name not in args:
        return False
    value = args[name]
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    hits = [any(fnmatchcase(text, glob) for text in _texts(item) for glob in globs) for item in items]
    return bool(hits) and (all(hits) if every else any(hits))


def _texts(value: Any) -> list[str]:
    """How a value may be written. A default of 100 and a given 100.0 are the same number, so both spellings count."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
        return [f"{value:.0f}", f"{value:.1f}", canonical(value)]
    return [canonical(value)]

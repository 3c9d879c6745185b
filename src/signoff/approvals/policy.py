"""Decides whether a call asks, by rules or else by the tool's declaration. Arguments are validated, defaults filled in.

Within a layer, deny wins over ask, and ask over allow. All matching ask rules are combined: the highest quorum and the
nearest deadline apply, and an approver must be named by every rule that names approvers. The declaration counts only
if no rule matches. Server rules can tighten the operator rules, and loosen only those marked relaxable. Rules are pure
data. A declared predicate may be async; if it raises, nothing is approved.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any, cast

from signoff.approvals.approvers import both
from signoff.approvals.containment import answered
from signoff.approvals.digest import canonical
from signoff.approvals.escalation import combined_escalation
from signoff.approvals.large_values import off_loop_if_large
from signoff.approvals.model import Actor, Escalation, JsonObject, Place, Ruling, ToolCall, Verdict
from signoff.approvals.notify import combined_notify
from signoff.approvals.tool_description import MARKS, UNMARKED, Marks
from signoff.dataclass import dataclass

if TYPE_CHECKING:
    from signoff.approvals.shell_words import ShellLine

Patterns = Mapping[str, tuple[str, ...]]
TOOLS_KNOWN = 1000
STRICTNESS = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """One earlier call of the conversation, for predicates."""

    tool: str
    args: JsonObject
    """The arguments as the model sent them; empty if they were not a JSON object."""
    result: str
    """The beginning of the text that the model got, which may also be a refusal or an error."""
    succeeded: bool = True
    """Whether the tool ran and returned a result."""


@dataclass(frozen=True, slots=True)
class Said:
    """One earlier message of the conversation, for predicates."""

    role: str
    text: str
    call: EarlierCall | None = None
    """The call, if the role is `tool`."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context that a predicate gets beside the arguments."""

    place: Place
    asker: Actor
    conversation: Sequence[Said] = ()
    marks: Marks = UNMARKED
    """What the tool is marked as."""
    shell: tuple[str, ...] = ()
    """The arguments that the tool declares to be shell commands. Rules compare their words: see `shell_words.py`."""

    @property
    def calls(self) -> Sequence[EarlierCall]:
        """The earlier calls of the conversation that have a result, oldest first."""
        return tuple(said.call for said in self.conversation if said.call)


Asks = bool | str | tuple[bool, str]
"""Whether a call must ask, and why. A text alone asks."""
Predicate = Callable[[JsonObject, Context], Asks | Awaitable[Asks]]
Declaration = Verdict | Ruling | Predicate | None
"""A tool's own declaration: a verdict, a ruling with its own reason, a predicate that says whether the call must ask,
or None."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of policy. Patterns are globs on an argument's text; a missing argument matches no pattern.

    A mark that is not None must be the tool's. If the tool does not say, an ask or deny rule takes that for False, and
    an allow rule does not match.
    """

    tool: str | tuple[str, ...]
    """A glob for the tool's name, or several."""
    verdict: Verdict
    when: Patterns = field(default_factory=dict[str, tuple[str, ...]])
    unless: Patterns = field(default_factory=dict[str, tuple[str, ...]])
    approvers: tuple[str, ...] | None = None
    timeout: float | None = None
    reason: str = ""
    quorum: int = 1
    four_eyes: bool = False
    reminder: float | None = None
    ping: bool = False
    message: str = ""
    relaxable: bool = False
    notify: str | None = None
    escalate: Escalation | None = None
    read_only: bool | None = None
    acts: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    answerers: tuple[str, ...] | None = None

    @property
    def globs(self) -> tuple[str, ...]:
        return (self.tool,) if isinstance(self.tool, str) else self.tool

    @property
    def marks(self) -> dict[str, bool]:
        """Name of each mark that the rule asks for -> its value."""
        wanted = {name: getattr(self, name) for name in MARKS}
        return {name: value for name, value in wanted.items() if value is not None}

    @property
    def subject(self) -> str:
        """The tools that the rule is about, in words."""
        marked = " and ".join(f"{name} = {'true' if value else 'false'}" for name, value in self.marks.items())
        tools = " or ".join(self.globs)
        return f"{tools} with {marked}" if marked else tools

    def names(self, tool: str) -> bool:
        return self.tool == tool or _pattern(self.globs)(tool) is not None

    def concerns(self, tool: str, marks: Marks) -> bool:
        """Whether the rule is about this tool. Its patterns may still not match a call."""
        return self.names(tool) and all(
            self._wants(getattr(marks, name), wanted) for name, wanted in self.marks.items()
        )

    def _wants(self, has: bool | None, wanted: bool) -> bool:
        # "Not marked destructive" must not be enough to run without a question.
        return has is wanted if self.verdict is Verdict.ALLOW else bool(has) is wanted

    def ruling(self) -> Ruling:
        return Ruling(
            self.verdict,
            self.reason or f"a rule for {self.subject} says {self.verdict}",
            self.approvers,
            self.timeout,
            self.quorum,
            self.four_eyes,
            self.reminder,
            self.ping,
            self.message,
            self.relaxable,
            notify=None if self.notify is None else (self.notify,),
            escalate=self.escalate,
            answerers=self.answerers,
        )


@dataclass(frozen=True)
class Policy:
    """The operator rules, and the verdict on tools that declare nothing."""

    rules: tuple[Rule, ...] = ()
    undeclared: Verdict = Verdict.ALLOW
    approvers: tuple[str, ...] | None = None
    """The operator's default approvers; None: not configured, so a server rule may choose them."""
    timeout: float | None = None
    escalate: Escalation | None = None
    undeclared_by_others: Verdict | None = None
    """The verdict on tools that declare nothing and are not the operator's own; None: `undeclared`."""
    shell: Patterns = field(default_factory=dict[str, tuple[str, ...]])
    """Glob for a tool's name -> its arguments that are shell commands, for tools that do not declare them."""

    async def decide(
        self, call: ToolCall, declaration: Declaration, context: Context, server: Layer | None = None
    ) -> Ruling:
        """Return the ruling on one call. If a predicate raises, so does this, and the caller must not run the call."""
        marks = context.marks
        shell = (
            *context.shell,
            *(name for glob in self.shell if _pattern((glob,))(call.tool) for name in self.shell[glob]),
        )
        operator = await self._layer.ruling_off_loop(call, marks, shell)
        operator = operator or await self._declared(call, declaration, context)
        operator = self._with_terms(operator) if operator.verdict is Verdict.ASK else operator
        own = await server.ruling_off_loop(call, marks, shell) if server else None
        return layered(operator, own) if own else operator

    def _with_terms(self, ruling: Ruling) -> Ruling:
        approvers = self.approvers if ruling.approvers is None else ruling.approvers
        timeout = self.timeout if ruling.timeout is None else ruling.timeout
        return replace(ruling, approvers=approvers, timeout=timeout, escalate=ruling.escalate or self.escalate)

    @cached_property
    def _layer(self) -> Layer:
        return Layer(self.rules)

    async def _declared(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling:
        if declaration is None:
            return self.undeclared_ruling(context.marks)
        if isinstance(declaration, Ruling):
            return declaration
        if isinstance(declaration, Verdict):
            words = "always" if declaration is Verdict.ASK else "never"
            return Ruling(declaration, f"the tool is declared to {words} ask")
        asks, words = _read_answer(await answered(declaration, call.args, context))
        if not asks:
            return Ruling(Verdict.ALLOW, "the tool's own condition does not ask for these arguments")
        return Ruling(Verdict.ASK, "the tool's own condition asks for these arguments", words=words)

    def undeclared_ruling(self, marks: Marks) -> Ruling:
        """Return the ruling on a tool that declares nothing about approval and that no rule matches."""
        others = self.undeclared if self.undeclared_by_others is None else self.undeclared_by_others
        verdict = self.undeclared if marks.own else others
        if verdict is Verdict.ASK and marks.read_only:
            return Ruling(Verdict.ALLOW, "the tool is marked read-only and no rule matches")
        return Ruling(verdict, "the tool declares nothing and no rule matches")


@dataclass(frozen=True)
class Layer:
    """The rules of one authority, indexed by tool, so that a thousand rules stay fast."""

    rules: tuple[Rule, ...]

    async def ruling_off_loop(self, call: ToolCall, marks: Marks, shell: Sequence[str] = ()) -> Ruling | None:
        """Do the same as `ruling`, in a thread if the arguments are large."""
        if not self._for_tool(call.tool, marks):
            return None
        return await off_loop_if_large(call.args, lambda: self.ruling(call, marks, shell))

    def ruling(self, call: ToolCall, marks: Marks, shell: Sequence[str] = ()) -> Ruling | None:
        """Return the combined ruling; None if no rule matches. `shell`: the arguments that are shell commands."""
        args = {name: _shell_line(value) if name in shell else _texts(value) for name, value in call.args.items()}
        matching = [ruling for ruling, covers in self._for_tool(call.tool, marks) if covers(args)]
        if not matching:
            return None
        strictest = max((ruling.verdict for ruling in matching), key=STRICTNESS.__getitem__)
        alike = [ruling for ruling in matching if ruling.verdict is strictest]
        return together(alike) if strictest is Verdict.ASK else alike[0]

    def _for_tool(self, tool: str, marks: Marks) -> list[tuple[Ruling, Covers]]:
        known = self._by_tool.get((tool, marks))
        if known is None:
            known = [(rule.ruling(), _covers(rule)) for rule in self.rules if rule.concerns(tool, marks)]
            if len(self._by_tool) < TOOLS_KNOWN:  # a model may invent any number of tool names
                self._by_tool[tool, marks] = known
        return known

    @cached_property
    def _by_tool(self) -> dict[tuple[str, Marks], list[tuple[Ruling, Covers]]]:
        """(Tool name, its marks) -> the rules about it."""
        return {}


def _read_answer(answer: object) -> tuple[bool, str]:
    """Return whether a predicate asks, and its words.

    Anything but False, alone or with a text, asks: a predicate that forgets its return value must not allow the call.
    """
    match answer:
        case (bool(asks), str(words)):
            return asks, words
        case str(words):
            return True, words
        case _:
            return answer is not False, ""


def layered(operator: Ruling, own: Ruling) -> Ruling:
    """Combine the operator's ruling with the server's: the stricter wins.

    A looser server ruling wins only if the operator's ruling is relaxable.
    """
    difference = STRICTNESS[own.verdict] - STRICTNESS[operator.verdict]
    if difference > 0 or (difference < 0 and operator.relaxable and operator.verdict is Verdict.ASK):
        return replace(own, by_server=True)
    if difference or own.verdict is not Verdict.ASK:
        return operator
    return replace(together([operator, own]), by_server=True)


def together(rulings: Sequence[Ruling]) -> Ruling:
    """Combine rulings that all ask into one that is at least as strict as each."""
    if len(rulings) == 1:
        return rulings[0]
    timeouts = [ruling.timeout for ruling in rulings if ruling.timeout is not None]
    reminders = [ruling.reminder for ruling in rulings if ruling.reminder is not None]
    named = dict.fromkeys(ruling.approvers for ruling in rulings)
    return Ruling(
        Verdict.ASK,
        "; ".join(dict.fromkeys(ruling.reason for ruling in rulings)),
        approvers=reduce(both, named),
        timeout=min(timeouts, default=None),
        quorum=max(ruling.quorum for ruling in rulings),
        four_eyes=any(ruling.four_eyes for ruling in rulings),
        reminder=max(reminders, default=None),
        ping=any(ruling.ping for ruling in rulings),
        message="\n".join(dict.fromkeys(ruling.message for ruling in rulings if ruling.message)),
        relaxable=all(ruling.relaxable for ruling in rulings),
        words="\n".join(dict.fromkeys(ruling.words for ruling in rulings if ruling.words)),
        notify=combined_notify(ruling.notify for ruling in rulings),
        escalate=combined_escalation(rulings),
        answerers=reduce(both, dict.fromkeys(ruling.answerers for ruling in rulings)),
    )


Spelled = list[list[str]]
"""For each item of a value, the ways in which it may be written."""
Texts = Mapping[str, "tuple[Spelled, Spelled] | ShellLine"]
"""Argument name -> (items of which all must match, items of which one is enough). The second has the whole list too.

An argument that is a shell command -> its words.
"""
Covers = Callable[[Texts], bool]
Enough = Callable[[list[bool]], bool]
Match = Callable[[str], re.Match[str] | None]


def _covers(rule: Rule) -> Covers:
    """Compile the rule's patterns into one function. A missing argument matches no pattern."""
    # A loosening pattern matches a list only if every item matches, a tightening one if any item does.
    # Otherwise one harmless item would carry a dangerous one past the rule.
    wanted, excepted = (all, any) if rule.verdict is Verdict.ALLOW else (any, all)
    when = [(name, _pattern(globs), globs) for name, globs in rule.when.items()]
    unless = [(name, _pattern(globs), globs) for name, globs in rule.unless.items()]

    def matches(patterns: Sequence[tuple[str, Match, tuple[str, ...]]], enough: Enough, args: Texts) -> bool:
        which = enough is any
        for name, match, globs in patterns:
            texts = args.get(name)
            if texts is None:
                return False
            if not isinstance(texts, tuple):
                if not (texts.caught_by(globs) if which else texts.allowed_by(globs)):
                    return False
                continue
            items = texts[which]
            if len(items) == 1 and len(items[0]) == 1:  # the usual case
                if match(items[0][0]) is None:
                    return False
            elif not items or not enough([any(map(match, spellings)) for spellings in items]):
                return False
        return True

    def covers(args: Texts) -> bool:
        return matches(when, wanted, args) and not matches(unless, excepted, args)

    return covers if unless else partial(matches, when, wanted)


@lru_cache(maxsize=65536)
def _pattern(globs: tuple[str, ...]) -> Match:
    return re.compile("|".join(map(fnmatch.translate, globs))).match


def _shell_line(value: Any) -> ShellLine:
    from signoff.approvals.shell_words import read_value  # only few tools take shell commands

    return read_value(value)


def _texts(value: Any) -> tuple[Spelled, Spelled]:
    if not isinstance(value, list):
        alone = [_spellings(value)]
        return alone, alone
    items = [_spellings(item) for item in cast(list[Any], value)]
    return items, [*items, _spellings(cast(object, value))]


def _spellings(value: Any) -> list[str]:
    """Return the ways to write a value. A default of 100 and a given 100.0 are one number, so both spellings count."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
        whole = int(value)  # exact: formatting it as a float would round an id of 19 digits
        return [f"{whole}", f"{whole}.0", canonical(value)]
    escaped = canonical(value)
    if "\\u" not in escaped:
        return [escaped]
    return [escaped, json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))]

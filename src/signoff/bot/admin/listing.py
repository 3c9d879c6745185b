"""The wording of the commands: rules, tools, rulings, grants and open cards, as Discord markdown.

Text that somebody else chose, from a tool's name to a pattern, is quoted as code. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from signoff.approvals.approvers import ASKER, MANAGE_SERVER, parts
from signoff.approvals.digest import canonical
from signoff.approvals.grants import Grant
from signoff.approvals.model import DIRECT, Actor, Batch, Choice, Escalation, JsonObject, Pause, Ruling, Verdict
from signoff.approvals.notify import CHANNEL, DM, NONE, PING
from signoff.approvals.policy import Rule
from signoff.approvals.server_rules import ServerRule
from signoff.bot import quoting
from signoff.bot.admin import record_wording
from signoff.bot.admin.responses import inert
from signoff.cards import wording
from signoff.cards.coverage_wording import covered_words, rule_text
from signoff.cards.model import Moment, RoleRef
from signoff.cards.model import Person as PersonRef
from signoff.turns.administration import ToolFacts

Mask = Callable[[JsonObject], JsonObject]
"""Arguments -> arguments as people may see them."""

QUOTED = 1000
"""Characters of the longest pattern that a server rule can have."""
UNREADABLE = "(not readable)"
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_VERDICTS = {Verdict.ASK: "asks", Verdict.DENY: "is refused", Verdict.ALLOW: "runs without asking"}
_WAYS = {NONE: "nobody is notified", PING: "approvers are pinged", DM: "approvers get a direct message"}
_MODES = {"auto_approve": "approved", "auto_deny": "rejected"}


def quoted(text: str, space: int = QUOTED) -> str:
    return record_wording.quoted(text, space)


def span(seconds: float) -> str:
    """`10 minutes`, in the largest unit that leaves nothing over."""
    size, unit = next(((s, u) for s, u in _UNITS if seconds >= s and seconds % s == 0), (1, "second"))
    count = seconds / size
    return f"{count:g} {unit}{'' if count == 1 else 's'}"


def who(actor: Actor) -> str:
    return quoting.line((wording.person(actor),))


def when(at: float) -> str:
    return quoting.line((Moment(at),))


def deciders(approvers: tuple[str, ...] | None) -> str:
    if approvers is None:
        return "the default approvers that the operator has set"
    possible = [parts(spec) for spec in approvers if sum(part.startswith("user:") for part in parts(spec)) < 2]
    if approvers and not possible:
        return "nobody: no person is named by all of the rules"
    return " or ".join(" and ".join(map(_decider, named)) for named in possible) or "nobody"


def rule_line(rule: Rule) -> str:
    """One rule on one line."""
    line = f"**{rule.verdict}** {' or '.join(map(quoted, rule.globs))}"
    marks = [quoted(name) if wanted else f"not {quoted(name)}" for name, wanted in rule.marks.items()]
    line += f" if marked {' and '.join(marks)}" if marks else ""
    for word, patterns in (("when", rule.when), ("unless", rule.unless)):
        entries = [f"{quoted(name)} is {' or '.join(map(quoted, globs))}" for name, globs in patterns.items()]
        if entries:
            line += f" {word} {' and '.join(entries)}"
    terms = [f"approvers: {deciders(rule.approvers)}"] if rule.approvers is not None else []
    terms += _terms(rule.quorum, rule.four_eyes, rule.timeout, rule.reminder, rule.ping)
    terms += told([rule.notify] if rule.notify else [], rule.escalate)
    terms += [f"says {quoted(text)}" for text in (rule.message, rule.reason) if text]
    terms += ["relaxable"] if rule.relaxable else []
    return ", ".join([line, *terms])


def effect(rule: Rule) -> str:
    match rule.verdict:
        case Verdict.ASK:
            return (
                f"Starting with the next call, every matching call waits for a decision by {deciders(rule.approvers)}."
            )
        case Verdict.DENY:
            return "Starting with the next call, every matching call is refused, and the model is told so."
        case Verdict.ALLOW:
            return (
                "Starting with the next call, matching calls run without asking, where an operator rule is relaxable."
            )


def server_rule_line(one: ServerRule) -> str:
    return f"{quoted(one.id)} by {who(one.by)} {when(one.at)}: {rule_line(one.rule)}"


def policy_text(
    operator_rules: Sequence[Rule], own: Sequence[ServerRule], tools: Sequence[ToolFacts], pause: Pause | None
) -> str:
    lines = [f"**Paused** by {who(pause.by)} {when(pause.at)}: nothing starts here.", ""] if pause else []
    lines += ["**Operator rules**: this server can add rules, and can relax only the ones marked relaxable."]
    lines += [f"- {rule_line(rule)}" for rule in operator_rules] or ["None. Each tool's own declaration applies."]
    lines += ["", "**Server rules**"]
    lines += [f"- {server_rule_line(one)}" for one in own] or ["None. Add one with /signoff protect."]
    lines += ["", "**Tools**, according to the operator rules and their own declarations"]
    lines += [f"- {_tool_line(tool)}" for tool in tools] or ["None."]
    return "\n".join(lines)


def ruling_text(tool: str, ruling: Ruling, pause: Pause | None, mode: str = "interactive", remembered: int = 0) -> str:
    """Say what would happen to a call. `remembered`: how many decisions about this tool are remembered here."""
    lines = [f"{quoted(tool)} with these arguments **{_VERDICTS[ruling.verdict]}**.", f"Why: {inert(ruling.reason)}"]
    if ruling.verdict is Verdict.ASK:
        people = "1 person must accept" if ruling.quorum == 1 else f"{ruling.quorum} people must accept"
        time = "the default that the operator has set" if ruling.timeout is None else span(ruling.timeout)
        lines += [f"Approvers: {deciders(ruling.approvers)}", f"Needed: {people}", f"Time to decide: {time}"]
        more = _terms(1, ruling.four_eyes, None, ruling.reminder, ruling.ping)
        more += told(ruling.notify or (), ruling.escalate)
        lines += [f"Also: {', '.join(more)}"] if more else []
        lines += [f"Its card says: {quoted(ruling.message)}"] if ruling.message else []
        lines += [f"The tool says: {quoted(ruling.words)}"] if ruling.words else []
        if mode in _MODES:
            lines.append(
                f"But nobody is asked: the operator's mode is {mode}, so the call is {_MODES[mode]} automatically."
            )
        elif remembered:
            lines.append(
                "Decisions about this tool are remembered. If one of them is about exactly this call, it decides."
            )
    elif ruling.verdict is Verdict.ALLOW:
        lines.append("The tool's own code may still ask when it runs.")
    if pause:
        lines.append("This server is paused, so nothing starts at the moment.")
    return "\n".join([*lines, "This was only a test: nothing was run, asked or recorded."])


def masked(args: str, mask: Mask) -> str:
    """Stored arguments as people may see them, on one line."""
    try:
        return canonical(mask(json.loads(args)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return UNREADABLE


def grants_text(grants: Sequence[Grant], mask: Mask) -> str:
    if not grants:
        return "No decision is remembered here."
    lines = [f"**{len(grants)} remembered decision{'s' if len(grants) > 1 else ''}**"]
    for one in grants:
        block, note = quoting.block(grant_rule(one, mask), "toml")
        covered = f"Calls of this tool, {inert(covered_words(one.named))}."
        lines += ["", f"{quoted(one.id)}: {grant_line(one)}", covered, block, *([f"-# {note}"] if note else [])]
    return "\n".join(lines)


def grant_rule(one: Grant, mask: Mask) -> str:
    """Return what a grant covers in the syntax of a rule, as the panel showed it before it was saved."""
    try:
        return rule_text(one.tool, mask(json.loads(one.args)), one.choice)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return UNREADABLE


def grant_line(one: Grant) -> str:
    verb = "accepts" if one.choice is Choice.ACCEPT else "rejects"
    scope = _channel(one.conversation) if one.conversation else "every conversation of this server"
    if one.server == DIRECT:
        scope = "this direct conversation"
    return (
        f"{verb} {quoted(one.tool)} in {scope}, by {who(one.by)}, expires {when(one.expires)}, "
        f"{one.uses_left} use{'' if one.uses_left == 1 else 's'} left"
    )


def pending_text(batches: Sequence[Batch], notes: dict[str, str]) -> str:
    """List the open cards. `notes`: batch id -> how posting its card again went."""
    if not batches:
        return "No card is open in this server."
    lines = [f"**{len(batches)} open card{'s' if len(batches) > 1 else ''}**, earliest deadline first"]
    for batch in batches:
        tools = ", ".join(quoted(tool, 64) for tool in dict.fromkeys(r.shown_tool for r in batch.open_questions))
        place = batch.place
        link = f"https://discord.com/channels/{place.server}/{place.channel}/{batch.card_message}"
        where = (
            link
            if batch.card_message and batch.card_message.isdecimal()
            else f"in {_channel(place.channel)}, not posted yet"
        )
        note = f" ({notes[batch.id]})" if batch.id in notes else ""
        lines.append(f"- {where} {tools} for {who(batch.asker)}, ends {when(batch.deadline)}{note}")
    return "\n".join(lines)


def _terms(quorum: int, four_eyes: bool, timeout: float | None, reminder: float | None, ping: bool) -> list[str]:
    terms = [f"{quorum} people must accept"] if quorum > 1 else []
    terms += ["the asker may not decide"] if four_eyes else []
    terms += [f"within {span(timeout)}"] if timeout is not None else []
    if reminder is not None:
        terms.append(f"reminder {span(reminder)} before the deadline{' with a ping' if ping else ''}")
    return terms


def told(ways: Sequence[str], escalate: Escalation | None) -> list[str]:
    """Say how approvers are told, and to whom a card is escalated."""
    said = [_WAYS.get(way) or f"the card is shown in {_channel(way.removeprefix(CHANNEL))} too" for way in ways]
    if escalate is not None:
        said.append(f"escalated after {span(escalate.after)} to {deciders(escalate.to)}")
    return [line for line in said if line]


def _tool_line(tool: ToolFacts) -> str:
    arguments = f" ({', '.join(quoted(name, 64) for name in tool.arguments)})" if tool.arguments else ""
    return f"{quoted(tool.name)}{arguments}: {inert(tool.verdict)}"


def _decider(part: str) -> str:
    if part == MANAGE_SERVER:
        return "members with Manage Server"
    if part == ASKER:
        return "the asker"
    kind, _, identifier = part.partition(":")
    if kind == "role":
        return quoting.line((RoleRef(identifier),))
    return quoting.line((PersonRef(identifier, identifier),)) if kind == "user" else quoted(part)


def _channel(identifier: str) -> str:
    return f"<#{identifier}>" if identifier.isdecimal() and identifier.isascii() else quoted(identifier)

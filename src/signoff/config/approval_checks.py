"""Finds settings of `[approvals]` and of ask rules that contradict each other, or that have no effect.

Pure: knows signoff.toml alone. Roles count as enough people here, because only Discord knows their members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signoff.approvals.approvers import ASKER, effective, parts
from signoff.approvals.model import DIRECT, Place, Verdict
from signoff.config.findings import Finding, error, warning
from signoff.config.schema import Config, EscalateConfig, RuleConfig
from signoff.dataclass import dataclass

_DIRECT = Place(DIRECT, "", "")


def check_approvals(config: Config) -> list[Finding]:
    return [
        *_mode(config),
        *_undecidable(config),
        *_in_direct_messages(config),
        *_reminders(config),
        *_escalations(config),
        *_without_effect(config),
        *_unused_beside_import(config),
    ]


@dataclass(frozen=True, slots=True)
class Crowd:
    """The people that a specification can name, as far as signoff.toml tells."""

    people: frozenset[str]
    """Single people: `asker` and `user:ID`."""
    open_ended: bool
    """Whether it names a role or everybody with Manage Server, so any number of people."""

    @classmethod
    def of(cls, approvers: Sequence[str], *, four_eyes: bool) -> Crowd:
        people: set[str] = set()
        open_ended = False
        for spec in approvers:
            single = {part for part in parts(spec) if part == ASKER or part.startswith("user:")}
            if four_eyes and ASKER in single:
                continue
            named = single - {ASKER} or single
            open_ended |= not named
            people |= named if len(named) == 1 else set()
        return cls(frozenset(people), open_ended)

    def has(self, quorum: int) -> bool:
        return self.open_ended or len(self.people) >= quorum


def why_undecidable(approvers: Sequence[str], quorum: int, *, four_eyes: bool) -> tuple[str, str] | None:
    """Return the contradiction and its remedy, or None if enough people can decide."""
    crowd = Crowd.of(approvers, four_eyes=four_eyes)
    if crowd.has(quorum):
        return None
    if not crowd.people and four_eyes and all(ASKER in parts(spec) for spec in approvers):
        return "only the asker may decide, and four_eyes forbids it", "name another approver, or remove four_eyes"
    if not crowd.people:
        return f"nobody is {' or '.join(approvers).replace('&', ' and ')}", "name an approver that all of them share"
    count = "one person" if len(crowd.people) == 1 else f"{len(crowd.people)} people"
    named = ", ".join(sorted(crowd.people))
    return (
        f"quorum is {quorum}, and only {count} may decide ({named})",
        f"name more approvers, or write quorum = {len(crowd.people)}",
    )


def consequence(config: Config) -> str:
    """Say what happens to a call that nobody can decide."""
    if config.approvals.on_no_approver == "approve":
        return 'so on_no_approver = "approve" lets such calls run without a person'
    return "so such calls can never be approved"


def rule_name(number: int) -> str:
    return f"[[rules]] number {number + 1}"


def _mode(config: Config) -> Iterator[Finding]:
    asking = config.approvals
    remedy = 'write mode = "interactive" to ask people'
    if asking.mode == "auto_approve":
        problem = 'mode is "auto_approve": every call that asks is APPROVED WITHOUT A PERSON, only deny rules hold'
        yield warning(config.where("approvals", "mode"), problem, remedy)
    if asking.mode == "auto_deny":
        problem = 'mode is "auto_deny": every call that asks is REJECTED WITHOUT A PERSON'
        yield warning(config.where("approvals", "mode"), problem, remedy)
    if asking.on_no_approver == "approve":
        yield warning(
            config.where("approvals", "on_no_approver"),
            'on_no_approver is "approve": a call runs without a person if all its approvers are missing',
            'write on_no_approver = "reject"',
        )


def _asking(config: Config) -> Iterator[tuple[int, RuleConfig]]:
    return ((number, rule) for number, rule in enumerate(config.rules) if rule.verdict is Verdict.ASK)


def _undecidable(config: Config) -> Iterator[Finding]:
    asking = config.approvals
    everybody = _eventually(asking.approvers, asking.escalate)
    if why := why_undecidable(everybody, asking.quorum, four_eyes=asking.four_eyes):
        yield error(config.where("approvals", "approvers"), f"[approvals]: {why[0]}, {consequence(config)}", why[1])
    for number, rule in _asking(config):
        if rule.approvers is None and rule.quorum <= asking.quorum and rule.four_eyes <= asking.four_eyes:
            continue  # it adds nothing to [approvals]
        why = why_undecidable(
            _eventually(rule.approvers or asking.approvers, rule.escalate or asking.escalate),
            max(rule.quorum, asking.quorum),
            four_eyes=rule.four_eyes or asking.four_eyes,
        )
        if why:
            key = "approvers" if rule.approvers else "quorum" if "quorum" in rule.model_fields_set else "four_eyes"
            problem = f"{rule_name(number)}: {why[0]}, {consequence(config)}"
            yield error(config.where("rules", number, key), problem, why[1])


def _eventually(approvers: Sequence[str], escalate: EscalateConfig | None) -> tuple[str, ...]:
    """Return everybody who may decide, now or after an escalation."""
    return (*approvers, *(escalate.to if escalate else ()))


def _in_direct_messages(config: Config) -> Iterator[Finding]:
    asking = config.approvals
    there = [one for one in effective(asking.approvers, _DIRECT) if not one.startswith("role:")]
    if not config.access.dm_users or why_undecidable(asking.approvers, asking.quorum, four_eyes=asking.four_eyes):
        return
    if not Crowd.of(there, four_eyes=asking.four_eyes).has(asking.quorum):
        yield warning(
            config.where("access", "dm_users"),
            "in direct messages only the asker is there, and [approvals] needs other people, so no call can be "
            "approved there",
            'add "asker" to approvers and remove quorum and four_eyes, or leave dm_users empty',
        )


def _reminders(config: Config) -> Iterator[Finding]:
    asking = config.approvals
    if asking.reminder is not None and asking.reminder >= asking.timeout:
        yield _late(config, ("approvals", "reminder"), "[approvals]", asking.reminder, asking.timeout)
    if asking.ping and asking.reminder is None and all(rule.reminder is None for rule in config.rules):
        yield _silent_ping(config, ("approvals", "ping"), "[approvals]")
    for number, rule in _asking(config):
        reminder = asking.reminder if rule.reminder is None else rule.reminder
        timeout = rule.timeout or asking.timeout
        own = "reminder" if rule.reminder is not None else "timeout"
        if reminder is not None and reminder >= timeout and (rule.reminder is not None or rule.timeout is not None):
            yield _late(config, ("rules", number, own), rule_name(number), reminder, timeout)
        if rule.ping and reminder is None:
            yield _silent_ping(config, ("rules", number, "ping"), rule_name(number))


def _escalations(config: Config) -> Iterator[Finding]:
    """Find escalations that change nothing, and rules whose cards close before them.

    If a rule has both the escalation and the timeout, it is refused when the file is read.
    """
    asking = config.approvals
    if asking.escalate and set(asking.escalate.to) <= set(asking.approvers):
        yield _useless_escalation(config, ("approvals", "escalate"), "[approvals]")
    for number, rule in _asking(config):
        if rule.escalate and set(rule.escalate.to) <= set(rule.approvers or asking.approvers):
            yield _useless_escalation(config, ("rules", number, "escalate"), rule_name(number))
        escalate, timeout = rule.escalate or asking.escalate, rule.timeout or asking.timeout
        if escalate is None or escalate.after < timeout or (rule.escalate is None and rule.timeout is None):
            continue
        yield error(
            config.where("rules", number, "escalate" if rule.escalate else "timeout"),
            f"{rule_name(number)}: a card is open for {_spoken(timeout)} only, so it is never escalated after "
            f"{_spoken(escalate.after)}",
            f"write an escalate.after below {_spoken(timeout)}, or a longer timeout",
        )


def _useless_escalation(config: Config, path: tuple[str | int, ...], what: str) -> Finding:
    problem = f"{what}: escalate.to names only people who may decide anyway, so it changes nothing"
    return warning(config.where(*path), problem, "name somebody else, or remove escalate")


def _late(config: Config, path: tuple[str | int, ...], what: str, reminder: float, timeout: float) -> Finding:
    return error(
        config.where(*path),
        f"{what}: the reminder comes {_spoken(reminder)} before the deadline, but a card is open for "
        f"{_spoken(timeout)} only, so it is never posted",
        f"write a reminder below {_spoken(timeout)}, or a longer timeout",
    )


def _silent_ping(config: Config, path: tuple[str | int, ...], what: str) -> Finding:
    problem = f"{what}: ping is true, but there is no reminder, so nobody is pinged"
    return warning(config.where(*path), problem, 'write reminder = "1m", or remove ping')


def _without_effect(config: Config) -> Iterator[Finding]:
    asking = config.approvals
    if asking.remember == "none" and (unused := sorted({"grant_lifetime", "grant_uses"} & asking.model_fields_set)):
        yield warning(
            config.where("approvals", unused[0]),
            f'{" and ".join(unused)} have no effect, because remember is "none"',
            'write remember = "session" or "always", or remove them',
        )
    for number, rule in _asking(config):
        if "quorum" in rule.model_fields_set and rule.quorum < asking.quorum:
            yield warning(
                config.where("rules", number, "quorum"),
                f"{rule_name(number)}: quorum = {rule.quorum} has no effect, because [approvals] requires "
                f"{asking.quorum} on every card",
                "lower the quorum of [approvals], or remove this one",
            )
        if "four_eyes" in rule.model_fields_set and not rule.four_eyes and asking.four_eyes:
            yield warning(
                config.where("rules", number, "four_eyes"),
                f"{rule_name(number)}: four_eyes = false has no effect, because [approvals] requires four eyes on "
                "every card",
                "write four_eyes = true in rules instead of [approvals], or remove this one",
            )


def _unused_beside_import(config: Config) -> Iterator[Finding]:
    if not config.agent.import_:
        return
    used = {("agent", key) for key in ("import_", "deps", "settings", "model")}
    given = {("agent", key) for key in config.agent.model_fields_set}
    given |= {("tools", key) for key in config.tools.model_fields_set & {"enable", "workspace"}}
    for table, key in sorted(given - used):
        problem = f"[{table}] {key} has no effect, because [agent] import brings its own instructions and tools"
        yield warning(config.where(table, key), problem, "remove it, or remove import")


def _spoken(seconds: float) -> str:
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"

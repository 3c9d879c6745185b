"""Finds rules that can never match a call, or that can never change what happens.

Pure: gets the tools as data. A tool whose arguments are not known takes any argument, and a rule may always match tools
that are not known yet, such as those of an MCP server that does not answer.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from signoff.approvals.approvers import both
from signoff.approvals.digest import canonical
from signoff.approvals.model import SPEND_MORE, Verdict
from signoff.approvals.policy import STRICTNESS
from signoff.approvals.tool_description import UNMARKED, Marks
from signoff.config.approval_checks import consequence, rule_name, why_undecidable
from signoff.config.findings import Finding, Severity, error, nearest, warning
from signoff.config.schema import BUILTIN_TOOLS, WORKSPACE_TOOLS, Config, RuleConfig
from signoff.dataclass import dataclass

Schema = Mapping[str, Any]
_OVERAGE: Mapping[str, Schema] = {
    "budget": {"enum": ["thread", "person", "server"]},
    "unit": {"enum": ["tokens", "dollars"]},
    "day": {"type": "string"},
    **{name: {"type": "number"} for name in ("used", "limit", "up_to")},
}
"""Argument of a request for an overage -> its JSON schema."""


@dataclass(frozen=True, slots=True)
class KnownTool:
    name: str
    arguments: Mapping[str, Schema] | None
    """Argument name -> its JSON schema. None: the tool takes any argument."""
    marks: Marks = UNMARKED


@dataclass(frozen=True, slots=True)
class KnownTools:
    tools: tuple[KnownTool, ...]
    others: tuple[str, ...] = ()
    """What the names of further tools begin with, of which nothing else is known. Empty text: any name."""

    def matched(self, rule: RuleConfig) -> list[KnownTool]:
        applied = rule.as_rule()
        return [one for one in self.tools if applied.concerns(one.name, one.marks)]

    def named(self, glob: str) -> list[KnownTool]:
        return [one for one in self.tools if one.name == glob or fnmatch.fnmatchcase(one.name, glob)]

    def may_match_others(self, rule: RuleConfig) -> bool:
        return any(map(self.may_name_others, rule.tool))

    def may_name_others(self, glob: str) -> bool:
        fixed = re.split(r"[*?\[]", glob)[0]
        return any(start.startswith(fixed) or fixed.startswith(start) for start in self.others)


def check_rules(config: Config, known: KnownTools) -> list[Finding]:
    findings: list[Finding] = []
    if config.budgets.has_limits:
        known = replace(known, tools=(*known.tools, KnownTool(SPEND_MORE, _OVERAGE)))
    for number, rule in enumerate(config.rules):
        unmatched = [one for glob in rule.tool for one in _unmatched(config, number, rule, glob, known)]
        findings += (
            unmatched
            or _unmarked(config, number, rule, known)
            or [
                *_never_matching(config, number, rule, known),
                *_overruled(config, number, rule, known),
                *_sweeping(config, number, rule),
                *_allowing_overages(config, number, rule),
            ]
        )
    return [*findings, *_nobody_in_common(config, known)]


# Tools and arguments that do not exist


def _unmatched(config: Config, number: int, rule: RuleConfig, glob: str, known: KnownTools) -> list[Finding]:
    """Find out whether this name, one of the rule's, is no tool's."""
    near = nearest(glob, [tool.name for tool in known.tools])
    unsure = known.may_name_others(glob)
    if known.named(glob) or (unsure and not near) or "tool" not in rule.model_fields_set:
        return []
    place, name = config.where("rules", number, "tool"), f'{rule_name(number)}: no tool is called "{glob}"'
    if glob in (*BUILTIN_TOOLS, *WORKSPACE_TOOLS):
        return [warning(place, f"{name}, because [tools] enable leaves it out", "enable it, or remove the rule")]
    listed = ", ".join(tool.name for tool in known.tools) or "there are no tools"
    alone = len(rule.tool) == 1
    write = f'write tool = "{near}"' if alone else f'write "{near}" in its place'
    remedy = write if near else f"write the name of a tool ({listed}), or remove the {'rule' if alone else 'name'}"
    useless = "allows" if rule.verdict is Verdict.ALLOW else "protects"
    severity = Severity.WARNING if unsure or rule.verdict is Verdict.ALLOW else Severity.ERROR
    return [Finding(severity, f"{name}, so this {'rule' if alone else 'name'} {useless} nothing", remedy, place)]


def _unmarked(config: Config, number: int, rule: RuleConfig, known: KnownTools) -> list[Finding]:
    """Note a rule about marks that no tool has today. It may be there for tools that are added later."""
    if not rule.names_a_mark or known.matched(rule) or known.may_match_others(rule):
        return []
    problem = f"{rule_name(number)}: no tool fits {rule.as_rule().subject} at present, so this rule changes nothing"
    return [
        Finding(Severity.NOTE, problem, "mark the tools that you mean, or name them", config.where("rules", number))
    ]


def _never_matching(config: Config, number: int, rule: RuleConfig, known: KnownTools) -> Iterator[Finding]:
    tools = known.matched(rule)
    if known.may_match_others(rule) or any(tool.arguments is None for tool in tools):
        return
    arguments = [tool.arguments for tool in tools if tool.arguments is not None]
    outcome = {"when": "so this rule never matches", "unless": "so this exception never applies"}
    for key, patterns in (("when", rule.when), ("unless", rule.unless)):
        severity = Severity.ERROR if key == "when" and rule.verdict is not Verdict.ALLOW else Severity.WARNING
        for name, globs in patterns.items():
            place = config.where("rules", number, key, name)
            schemas = [of_tool[name] for of_tool in arguments if name in of_tool]
            if not schemas:
                names = sorted({one for of_tool in arguments for one in of_tool})
                near = nearest(name, names)
                remedy = (
                    f"write {near}" if near else f"write one of its arguments ({', '.join(names) or 'it has none'})"
                )
                problem = f'{rule_name(number)}: {" or ".join(rule.tool)} has no argument "{name}", {outcome[key]}'
                yield Finding(severity, problem, remedy, place)
            elif not any(_may_match(globs, schema) for schema in schemas):
                patterns_shown = ", ".join(f'"{glob}"' for glob in globs)
                problem = f"{rule_name(number)}: {name} is never {patterns_shown}, {outcome[key]}"
                yield Finding(severity, problem, f"write {_takes(schemas[0])}", place)


def _values(schema: Schema) -> list[str] | None:
    """Return the texts that a value can have, if the schema lists them; None if it does not."""
    if "enum" in schema or "const" in schema:
        values: list[Any] = schema.get("enum", [schema.get("const")])
        return [value if isinstance(value, str) else canonical(value) for value in values]
    return ["true", "false"] if schema.get("type") == "boolean" else None


def _may_match(globs: Sequence[str], schema: Schema) -> bool:
    if values := _values(schema):
        return any(fnmatch.fnmatchcase(value, glob) for value in values for glob in globs)
    if schema.get("type") in ("integer", "number"):
        # Digits, sign, point and exponent: a glob needs one of these or a wildcard to match a number.
        return any(re.fullmatch(r"[-+.0-9eE*?]*(?:\[.*\])?[-+.0-9eE*?]*", glob) for glob in globs)
    return True


def _takes(schema: Schema) -> str:
    if values := _values(schema):
        return " or ".join(f'"{value}"' for value in values[:12])
    return "a number in quotes"


# Rules that other rules make useless


def _covers(wider: RuleConfig, rule: RuleConfig, known: KnownTools) -> bool:
    """Whether `wider` certainly matches every call that `rule` matches."""
    names = {tool.name for tool in known.matched(rule)}
    same_tools = (wider.tool in (("*",), rule.tool) and not wider.names_a_mark) or (
        not known.may_match_others(rule) and names <= {tool.name for tool in known.matched(wider)}
    )
    narrower = all(name in rule.when and {*rule.when[name]} <= {*globs} for name, globs in wider.when.items())
    return same_tools and narrower and (not wider.unless or wider.unless == rule.unless)


def _overruled(config: Config, number: int, rule: RuleConfig, known: KnownTools) -> Iterator[Finding]:
    place = config.where("rules", number)
    for other, wider in enumerate(config.rules):
        if other < number and wider == rule:
            problem = f"{rule_name(number)} repeats the rule of {config.where('rules', other)}"
            yield warning(place, problem, "remove one of them")
            return
        if STRICTNESS[wider.verdict] > STRICTNESS[rule.verdict] and _covers(wider, rule, known):
            yield warning(
                place,
                f"{rule_name(number)} never has an effect: the {wider.verdict} rule of {config.where('rules', other)} "
                f"matches the same calls, and {wider.verdict} wins over {rule.verdict}",
                "remove one of them, or narrow the stricter rule with when or unless",
            )
            return


def _sweeping(config: Config, number: int, rule: RuleConfig) -> Iterator[Finding]:
    if (
        all(glob.strip("*") for glob in rule.tool)
        or rule.names_a_mark
        or rule.when
        or rule.unless
        or rule.verdict is Verdict.ASK
    ):
        return
    if rule.verdict is Verdict.DENY:
        problem = f"{rule_name(number)} denies every call of every tool, so the agent can do nothing"
    else:
        problem = (
            f"{rule_name(number)} allows every call that no other rule matches, even of tools that ask by themselves"
        )
    yield warning(config.where("rules", number), problem, "name the tools that you mean, or add when or unless")


def _allowing_overages(config: Config, number: int, rule: RuleConfig) -> Iterator[Finding]:
    if rule.tool == (SPEND_MORE,) and rule.verdict is Verdict.ALLOW:
        problem = f"{rule_name(number)} never has an effect: people are asked about every overage of a budget"
        yield warning(config.where("rules", number), problem, "raise the limit in [budgets], or remove the rule")


def _contradiction(config: Config, *rules: RuleConfig) -> tuple[str, str] | None:
    """Return why nobody can decide a call to which all these ask rules apply, with the remedy; None if somebody can."""
    asking = config.approvals
    return why_undecidable(
        reduce(both, (rule.approvers for rule in rules)) or asking.approvers,
        max(asking.quorum, *(rule.quorum for rule in rules)),
        four_eyes=asking.four_eyes or any(rule.four_eyes for rule in rules),
    )


def _nobody_in_common(config: Config, known: KnownTools) -> Iterator[Finding]:
    """Find pairs of ask rules that apply to the same call and together leave nobody who may decide."""
    asking = [(number, rule) for number, rule in enumerate(config.rules) if rule.verdict is Verdict.ASK]
    if config.approvals.escalate:
        return  # further people may decide later
    fine = [(number, rule) for number, rule in asking if not rule.escalate and not _contradiction(config, rule)]
    for index, (number, rule) in enumerate(fine):
        for other, earlier in fine[:index]:
            # Two rules with different conditions or exceptions may never meet in one call.
            meet = (not earlier.when or not rule.when or earlier.when == rule.when) and earlier.unless == rule.unless
            shared = {tool.name for tool in known.matched(rule)} & {tool.name for tool in known.matched(earlier)}
            if meet and shared and (why := _contradiction(config, earlier, rule)):
                yield error(
                    config.where("rules", number),
                    f"{rule_name(number)} and the rule of {config.where('rules', other)} both apply to "
                    f"{', '.join(sorted(shared))}: {why[0]}, {consequence(config)}",
                    why[1],
                )

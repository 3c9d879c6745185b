"""Finds tools whose marks contradict each other, and says which tools the rules about marks concern.

Pure: gets the tools as data. Knows nothing of how a tool is marked.
"""

from __future__ import annotations

from signoff.approvals.tool_description import MARKS
from signoff.config.approval_checks import rule_name
from signoff.config.findings import Finding, warning
from signoff.config.rule_checks import KnownTools
from signoff.config.schema import Config

LISTED = 12
"""Most tools that a line names."""


def check_marks(config: Config, known: KnownTools) -> list[Finding]:
    return [
        warning(
            config.where("tools"),
            f"{tool.name} is marked {tool.marks.contradiction}, which cannot both be true; it counts as not read-only",
            "remove one of the two marks",
        )
        for tool in known.tools
        if tool.marks.contradiction
    ]


def marked_tools(config: Config, known: KnownTools) -> list[str]:
    """Return how many tools have each mark, and the tools of each rule about marks; nothing without such a rule."""
    rules = [(number, rule) for number, rule in enumerate(config.rules) if rule.names_a_mark]
    if not rules:
        return []
    counts = {name: sum(getattr(tool.marks, name) is True for tool in known.tools) for name in MARKS}
    unmarked = sum(not any(getattr(tool.marks, name) for name in MARKS) for tool in known.tools)
    numbers = [f"{count} {name}" for name, count in counts.items() if count]
    lines = [f"Tools by their marks: {', '.join([*numbers, f'{unmarked} without any'])}."]
    for number, rule in rules:
        names = [tool.name for tool in known.matched(rule)]
        listed = ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "")
        tools = f"{len(names)} tool{'' if len(names) == 1 else 's'}{f': {listed}' if names else ''}"
        lines.append(f"{rule_name(number)} ({rule.verdict} {rule.as_rule().subject}) concerns {tools}.")
    return lines

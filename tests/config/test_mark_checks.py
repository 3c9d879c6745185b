"""`signoff check` on marks: contradictions, rules about marks and the tools that they concern."""

from __future__ import annotations

import pytest

from signoff.approvals.tool_description import Marks
from signoff.config.findings import Severity
from signoff.config.mark_checks import check_marks, marked_tools
from signoff.config.rule_checks import KnownTool, KnownTools, check_rules
from signoff.config.schema import Config, RuleConfig, parse_config
from signoff.errors import ConfigError

KNOWN = KnownTools(
    (
        KnownTool("look", {}, Marks.read({"read_only": True})),
        KnownTool("post", {}, Marks.read({"acts": True})),
        KnownTool("wipe", {}, Marks.read({"destructive": True})),
        KnownTool("plain", {}),
    )
)


def config(*rules: str) -> Config:
    return parse_config("".join(f"[[rules]]\n{rule}\n" for rule in rules))


def test_a_rule_about_marks_is_explained_and_its_tools_are_counted() -> None:
    rules = config('acts = true\nverdict = "ask"', 'tool = "l*"\nread_only = false\nverdict = "deny"')
    assert marked_tools(rules, KNOWN) == [
        "Tools by their marks: 1 read_only, 2 acts, 1 destructive, 1 without any.",
        "[[rules]] number 1 (ask * with acts = true) concerns 2 tools: post, wipe.",
        "[[rules]] number 2 (deny l* with read_only = false) concerns 0 tools.",
    ]


def test_without_a_rule_about_marks_nothing_is_said() -> None:
    assert not marked_tools(config('tool = "look"\nverdict = "ask"'), KNOWN)


def test_a_contradiction_is_a_warning() -> None:
    torn = KnownTools((KnownTool("torn", {}, Marks.read({"read_only": True, "destructive": True})),))
    (finding,) = check_marks(config(), torn)
    assert finding.severity is Severity.WARNING
    assert "torn is marked read_only and destructive" in str(finding)
    assert not check_marks(config(), KNOWN)


def test_a_rule_about_a_mark_that_no_tool_has_is_a_note() -> None:
    (finding,) = check_rules(config('tool = "plain"\ndestructive = true\nverdict = "deny"'), KNOWN)
    assert finding.severity is Severity.NOTE
    assert "no tool fits plain with destructive = true at present" in str(finding)
    assert not check_rules(config('idempotent = true\nverdict = "ask"'), KnownTools(KNOWN.tools, ("docs_",)))


def test_each_name_of_a_list_is_checked() -> None:
    (finding,) = check_rules(config('tool = ["look", "wippe"]\nverdict = "deny"'), KNOWN)
    assert finding.severity is Severity.ERROR
    assert 'no tool is called "wippe", so this name protects nothing; write "wipe" in its place' in str(finding)
    assert not check_rules(config('tool = ["look", "w*"]\nverdict = "deny"'), KNOWN)


def test_a_rule_about_a_mark_does_not_hide_a_rule_about_all_tools() -> None:
    rules = config('read_only = false\nverdict = "deny"', 'tool = "look"\nverdict = "allow"')
    assert not check_rules(rules, KNOWN)
    hidden = config('read_only = false\nverdict = "deny"', 'tool = "wipe"\nverdict = "allow"')
    assert "never has an effect" in str(check_rules(hidden, KNOWN)[0])


def test_a_rule_needs_a_tool_or_a_mark() -> None:
    assert config('acts = true\nverdict = "ask"').rules == (RuleConfig(acts=True, verdict="ask"),)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match='number 1 has no tool; write tool = "NAME"'):
        config('verdict = "ask"')
    with pytest.raises(ConfigError, match="acts"):
        config('acts = "yes"\ntool = "a"\nverdict = "ask"')

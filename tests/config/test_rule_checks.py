"""Checks of rules that must stay quiet: a false alarm would end a deployment with exit code 1."""

from __future__ import annotations

import pytest

from signoff.config.approval_checks import check_approvals
from signoff.config.findings import Finding, nearest
from signoff.config.rule_checks import KnownTool, KnownTools, check_rules
from signoff.config.schema import parse_config

TEXT = {"type": "string"}
WRITE = KnownTool("write_file", {"path": TEXT, "mode": {"enum": ["new", "append"]}, "force": {"type": "boolean"}})
SCALE = KnownTool("scale", {"n": {"type": "integer"}, "ratio": {"type": "number"}})
ANY = KnownTool("call_anything", None)
KNOWN = KnownTools((WRITE, SCALE, ANY))


def found(*rules: str, known: KnownTools = KNOWN, before: str = "") -> list[Finding]:
    config = parse_config(before + "".join(f"[[rules]]\n{rule}\n" for rule in rules))
    return [*check_approvals(config), *check_rules(config, known)]


@pytest.mark.parametrize(
    "rules",
    [
        ['tool = "write_*"\nverdict = "ask"\nwhen = { path = "*.env" }'],
        ['tool = "*"\nverdict = "ask"\nwhen = { path = "*.env" }'],  # some tools have the argument
        ['tool = "*"\nverdict = "ask"'],
        ['tool = "call_anything"\nverdict = "deny"\nwhen = { whatever = "x" }'],
        ['tool = "write_file"\nverdict = "ask"\nwhen = { mode = ["app*"], force = "true" }'],
        ['tool = "scale"\nverdict = "ask"\nwhen = { n = ["1[0-9]", "2?", "-3"], ratio = "0.*" }'],
        # The allow rule is wider than the ask rule, so it has an effect.
        ['tool = "write_file"\nverdict = "allow"', 'tool = "write_file"\nverdict = "ask"\nwhen = { path = "*.env" }'],
        # The ask rule has an exception, in which the allow rule has its effect.
        [
            'tool = "write_file"\nverdict = "ask"\nunless = { path = "notes/*" }',
            'tool = "write_file"\nverdict = "allow"\nwhen = { path = "notes/*" }',
        ],
        # These two never meet in one call.
        [
            'tool = "write_file"\nverdict = "ask"\nunless = { path = "tmp/*" }\napprovers = ["user:1"]',
            'tool = "write_file"\nverdict = "ask"\nwhen = { path = "tmp/*" }\napprovers = ["user:2"]',
        ],
        # Somebody may have both roles.
        [
            'tool = "write_file"\nverdict = "ask"\napprovers = ["role:1"]',
            'tool = "write_file"\nverdict = "ask"\napprovers = ["role:2"]',
        ],
        ['tool = "write_file"\nverdict = "ask"\napprovers = ["asker", "user:1"]\nquorum = 2'],
        ['tool = "write_file"\nverdict = "ask"\napprovers = ["asker", "role:1"]\nquorum = 2\nfour_eyes = true'],
        # A second person may decide after the escalation.
        [
            'tool = "write_file"\nverdict = "ask"\napprovers = ["user:1"]\nquorum = 2\n'
            'escalate = { after = "1m", to = ["user:2"] }'
        ],
        ['tool = "write_file"\nverdict = "ask"\ntimeout = "10m"\nreminder = "9m"\nping = true'],
    ],
)
def test_a_set_up_that_can_work_gives_no_finding(rules: list[str]) -> None:
    assert found(*rules) == []


def test_a_rule_may_be_about_tools_that_are_not_known_yet() -> None:
    known = KnownTools((WRITE,), ("docs_",))
    assert found('tool = "docs_search"\nverdict = "deny"\nwhen = { q = "x" }', known=known) == []
    assert found('tool = "docs*"\nverdict = "deny"', known=known) == []
    (finding,) = found('tool = "dogs_search"\nverdict = "deny"', known=known)
    assert finding.place == "signoff.toml:2"


def test_a_contradiction_says_what_really_happens_to_such_calls() -> None:
    lines = found(before='[approvals]\napprovers = ["asker"]\nfour_eyes = true\non_no_approver = "approve"\n')
    assert any("lets such calls run without a person" in str(line) for line in lines)


def test_a_finding_is_one_line_that_does_nothing_to_a_terminal() -> None:
    (finding,) = found('tool = "write\\u001b[2J\\n_fil"\nverdict = "deny"')
    assert "\x1b" not in finding.line
    assert "\n" not in finding.line


def test_the_nearest_name_ignores_case() -> None:
    assert nearest("WRITE_FILE", ["write_file", "read_file"]) == "write_file"
    assert nearest("zebra", ["write_file"]) is None

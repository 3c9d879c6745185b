"""What a tool is marked as, rules about marks and lists of tools, and conditions that give their reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.model import Verdict
from signoff.approvals.policy import Context, EarlierCall, Policy, Rule, Said
from signoff.approvals.server_rules import described
from signoff.approvals.tool_description import UNMARKED, Marks
from signoff.store.codec import dump_rule, load_rule
from tests.conftest import MAX, PLACE, make_call

CONTEXT = Context(PLACE, MAX)
ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
READS, ACTS = Marks.read({"read_only": True}), Marks.read({"acts": True})
DESTROYS, SPARES = Marks.read({"destructive": True}), Marks.read({"destructive": False})


async def verdict(policy: Policy, marks: Marks, declared: Any = None, tool: str = "write_file") -> Verdict:
    return (await policy.decide(make_call(tool, {}), declared, replace(CONTEXT, marks=marks))).verdict


def test_marks_follow_from_each_other() -> None:
    assert (READS.acts, READS.destructive) == (False, False)
    assert (DESTROYS.acts, DESTROYS.read_only) == (True, False)
    assert Marks.read({"read_only": False}).acts
    assert Marks.read({}) == UNMARKED


@pytest.mark.parametrize("danger", ["destructive", "acts"])
def test_a_contradiction_counts_as_the_more_dangerous(danger: str) -> None:
    marks = Marks.read({"read_only": True, danger: True})
    assert (marks.read_only, marks.acts) == (False, True)
    assert marks.contradiction == f"read_only and {danger}"


def test_a_value_that_is_no_flag_makes_nothing_harmless() -> None:
    assert Marks.read({"read_only": "yes", "idempotent": 1}) == UNMARKED
    assert Marks.read({"destructive": "yes"}).destructive


@pytest.mark.parametrize(
    ("wanted", "matched"),
    [
        ({"acts": True}, {"acts", "destroys"}),
        ({"destructive": True}, {"destroys"}),
        ({"read_only": True}, {"reads"}),
        ({"read_only": False}, {"acts", "destroys", "spares", "unmarked"}),
        ({"acts": True, "destructive": False}, {"acts"}),
    ],
)
async def test_a_rule_that_asks_or_denies_takes_an_unmarked_tool_for_one_without_the_mark(
    wanted: dict[str, Any], matched: set[str]
) -> None:
    policy = Policy((Rule("*", DENY, **wanted),))
    kinds = {"reads": READS, "acts": ACTS, "destroys": DESTROYS, "spares": SPARES, "unmarked": UNMARKED}
    assert {name for name, marks in kinds.items() if await verdict(policy, marks) is DENY} == matched


async def test_a_rule_that_allows_needs_the_mark_itself() -> None:
    policy = Policy((Rule("*", ALLOW, destructive=False),), undeclared=ASK)
    assert await verdict(policy, SPARES) is ALLOW
    assert await verdict(policy, UNMARKED) is ASK
    assert await verdict(policy, DESTROYS) is ASK


async def test_a_rule_may_name_several_tools_and_a_mark() -> None:
    policy = Policy((Rule(("write_*", "edit"), DENY, acts=True),))
    assert await verdict(policy, ACTS, tool="edit") is DENY
    assert await verdict(policy, ACTS, tool="post") is ALLOW
    assert await verdict(policy, UNMARKED, tool="edit") is ALLOW
    reason = (await policy.decide(make_call("edit", {}), None, replace(CONTEXT, marks=ACTS))).reason
    assert reason == "a rule for write_* or edit with acts = true says deny"


@pytest.mark.parametrize(
    "rule",
    [Rule("delete_*", ASK, when={"path": ("a", "b")}), Rule(("a", "b*"), DENY, destructive=True, read_only=False)],
)
def test_a_stored_rule_comes_back_as_it_was(rule: Rule) -> None:
    assert load_rule(dump_rule(rule)) == rule


def test_a_rule_that_an_older_version_stored_is_read() -> None:
    rule = load_rule('{"tool":"delete_*","verdict":"ask","when":{},"unless":{},"reason":"","quorum":2}')
    assert rule == Rule("delete_*", ASK, quorum=2)
    assert described(rule) == "ask delete_*, 2 people"


@pytest.mark.parametrize("own", [True, False])
async def test_undeclared_tools_ask_unless_they_are_marked_read_only(own: bool) -> None:
    policy = Policy(undeclared=ASK)
    assert await verdict(policy, replace(READS, own=own)) is ALLOW
    assert await verdict(policy, replace(UNMARKED, own=own)) is ASK
    assert await verdict(policy, replace(READS, own=own), ASK) is ASK  # its own declaration counts first


async def test_tools_of_others_may_ask_where_the_operators_own_do_not() -> None:
    policy = Policy(undeclared_by_others=ASK)
    assert await verdict(policy, UNMARKED) is ASK
    assert await verdict(policy, READS) is ALLOW
    assert await verdict(policy, replace(ACTS, own=True)) is ALLOW


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        ("costs money", ASK, "costs money"),
        ((True, "costs money"), ASK, "costs money"),
        ((False, "it is free"), ALLOW, ""),
        ("", ASK, ""),
        ((False, 5), ASK, ""),
        ((), ASK, ""),
    ],
)
async def test_a_condition_may_return_its_reason(answer: Any, expected: Verdict, words: str) -> None:
    ruling = await Policy().decide(make_call("pay", {}), lambda args, context: answer, CONTEXT)
    assert (ruling.verdict, ruling.words) == (expected, words)


def test_the_context_lists_the_earlier_calls() -> None:
    call = EarlierCall("read", {"path": "a"}, "text")
    heard = (Said("user", "go"), Said("tool", "text", call), Said("assistant", "done"))
    assert replace(CONTEXT, conversation=heard).calls == (call,)

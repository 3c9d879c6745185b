"""What asks: rules before declarations, deny over ask over allow, on defaulted arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.model import Verdict
from signoff.approvals.policy import Context, Policy, Rule
from tests.conftest import MAX, PLACE, make_call

CONTEXT = Context(PLACE, MAX)
ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


async def verdict(policy: Policy, args: dict[str, Any], declared: Any = None, tool: str = "write_file") -> Verdict:
    return (await policy.decide(make_call(tool, args), declared, CONTEXT)).verdict


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (None, ALLOW),
        (ASK, ASK),
        (ALLOW, ALLOW),
        (lambda args, context: args["path"] == "a", ASK),
        (lambda args, context: args["path"] == "b", ALLOW),
        (lambda args, context: None, ASK),
    ],
)
async def test_without_rules_the_declaration_counts(declared: Any, expected: Verdict) -> None:
    assert await verdict(Policy(), {"path": "a"}, declared) is expected


async def test_an_async_predicate_is_awaited_and_sees_the_conversation() -> None:
    seen: list[Context] = []

    async def predicate(args: Any, context: Context) -> bool:
        seen.append(context)
        return False

    assert await verdict(Policy(), {}, predicate) is ALLOW
    assert seen == [CONTEXT]


async def test_a_failing_predicate_is_not_an_approval() -> None:
    def predicate(args: Any, context: Context) -> bool:
        raise KeyError("path")

    with pytest.raises(KeyError):
        await verdict(Policy(), {}, predicate)


async def test_undeclared_tools_can_be_made_to_ask() -> None:
    assert await verdict(Policy(undeclared=ASK), {}) is ASK
    assert await verdict(Policy(undeclared=ASK), {}, ALLOW) is ALLOW


async def test_a_rule_counts_before_the_declaration() -> None:
    assert await verdict(Policy((Rule("write_*", ALLOW),)), {}, ASK) is ALLOW
    assert await verdict(Policy((Rule("read_*", ALLOW),)), {}, ASK) is ASK


@pytest.mark.parametrize(
    ("rule", "args", "expected"),
    [
        (Rule("*", ASK, when={"path": ("*.env",)}), {"path": "a/.env"}, ASK),
        (Rule("*", ASK, when={"path": ("*.env",)}), {"path": "a/env"}, ALLOW),
        (Rule("*", ASK, when={"path": ("*.env",)}), {}, ALLOW),
        (Rule("*", ASK, when={"path": ("*.env",)}), {"path": ["ok", "x.env"]}, ASK),
        (Rule("*", ASK, when={"mode": ("null",)}), {"mode": None}, ASK),
        (Rule("*", ASK, when={"force": ("true",)}), {"force": True}, ASK),
        (Rule("*", ASK, when={"n": ("100",)}), {"n": 100}, ASK),
        (Rule("*", ASK, when={"n": ("100",)}), {"n": 100.0}, ASK),
        (Rule("*", ASK, when={"n": ("100.0",)}), {"n": 100.0}, ASK),
        (Rule("*", ASK, when={"n": ("0.0",)}), {"n": 0}, ASK),
        (Rule("*", ASK, when={"n": ("100",)}), {"n": 100.5}, ALLOW),
        (Rule("*", ASK, when={"n": ("1",)}), {"n": True}, ALLOW),
        (Rule("*", ASK, when={"a": ("x",), "b": ("y",)}), {"a": "x", "b": "n"}, ALLOW),
        (Rule("*", ASK, unless={"path": ("/tmp/*",)}), {"path": "/tmp/a"}, ALLOW),
        (Rule("*", ASK, unless={"path": ("/tmp/*",)}), {"path": ["/tmp/a", "/etc/b"]}, ASK),
        (Rule("*", ASK, unless={"path": ("/tmp/*",)}), {}, ASK),
        (Rule("*", ASK, when={"text": ("*rm*",)}), {"text": "a\nb\nrm -rf"}, ASK),
    ],
)
async def test_patterns(rule: Rule, args: dict[str, Any], expected: Verdict) -> None:
    assert await verdict(Policy((rule,)), args) is expected


async def test_a_loosening_pattern_needs_every_item_of_a_list() -> None:
    policy = Policy((Rule("*", ALLOW, when={"path": ("/tmp/*",)}),), undeclared=ASK)
    assert await verdict(policy, {"path": ["/tmp/a", "/tmp/b"]}) is ALLOW
    assert await verdict(policy, {"path": ["/tmp/a", "/etc/b"]}) is ASK
    assert await verdict(policy, {"path": []}) is ASK


LOOSENESS = {DENY: 0, ASK: 1, ALLOW: 2}
rules = st.builds(
    Rule,
    st.sampled_from(["*", "write_*", "read_*", "write_file"]),
    st.sampled_from(list(Verdict)),
    when=st.dictionaries(st.sampled_from(["path", "n"]), st.tuples(st.sampled_from(["*", "a*", "1"])), max_size=2),
    unless=st.dictionaries(st.sampled_from(["path", "n"]), st.tuples(st.sampled_from(["*", "b*", "2"])), max_size=1),
)
arguments = st.dictionaries(st.sampled_from(["path", "n"]), st.sampled_from(["a", "b", 1, 2, None, ["a", "b"]]))


@given(st.lists(rules, max_size=5), rules.filter(lambda r: r.verdict is not ALLOW), arguments, st.integers(0, 5))
async def test_an_added_ask_or_deny_never_loosens_what_rules_decide(
    before: list[Rule], added: Rule, args: dict[str, Any], at: int
) -> None:
    tightened = [*before[:at], added, *before[at:]]
    old = Policy(tuple(before)).ruling_by_rule(make_call("write_file", args))
    new = Policy(tuple(tightened)).ruling_by_rule(make_call("write_file", args))
    if old is not None:
        assert new is not None
        assert LOOSENESS[new.verdict] <= LOOSENESS[old.verdict]

"""Which calls ask: rules before declarations, deny over ask over allow, on arguments with defaults filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.approvers import may_decide
from signoff.approvals.model import Actor, Ruling, Verdict
from signoff.approvals.policy import Context, Layer, Policy, Rule
from tests.conftest import MAX, PLACE, make_batch, make_call, make_request

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
        (Rule("*", ASK, unless={"id": ("123456789012345680",)}), {"id": 123456789012345678}, ASK),
        (Rule("*", ASK, unless={"id": ("123456789012345678",)}), {"id": 123456789012345678}, ALLOW),
        (Rule("*", ASK, when={"n": ("1" + "0" * 400,)}), {"n": 10**400}, ASK),
        (Rule("*", ASK, when={"n": ("0",)}), {"n": -0.0}, ASK),
        (Rule("*", ASK, when={"n": ("inf*",)}), {"n": 1.5}, ALLOW),
        (Rule("*", ASK, when={"to": ("*münchen*",)}), {"to": {"city": "münchen"}}, ASK),
        (Rule("*", ASK, when={"to": ("*m\\u00fcnchen*",)}), {"to": {"city": "münchen"}}, ASK),
        (Rule("*", ASK, when={"to": ('*"a","b"*',)}), {"to": ["a", "b"]}, ASK),
        (Rule("*", ASK, when={"to": ("*",)}), {"to": []}, ASK),
        (Rule("*", ASK, unless={"to": ("a",)}), {"to": ["a", "a"]}, ALLOW),
        (Rule("*", ASK, unless={"to": ("*",)}), {"to": []}, ASK),
    ],
)
async def test_patterns(rule: Rule, args: dict[str, Any], expected: Verdict) -> None:
    assert await verdict(Policy((rule,)), args) is expected


async def test_a_loosening_pattern_needs_every_item_of_a_list() -> None:
    policy = Policy((Rule("*", ALLOW, when={"path": ("/tmp/*",)}),), undeclared=ASK)
    assert await verdict(policy, {"path": ["/tmp/a", "/tmp/b"]}) is ALLOW
    assert await verdict(policy, {"path": ["/tmp/a", "/etc/b"]}) is ASK
    assert await verdict(policy, {"path": []}) is ASK


STRICT = {DENY: 2, ASK: 1, ALLOW: 0}
globs = st.sampled_from(["*", "a*", "1", "[ab]"])
approvers = st.none() | st.sampled_from([("asker",), ("role:1",), ("role:1", "user:2"), ("manage_server",)])
asking = {
    "approvers": approvers,
    "timeout": st.none() | st.sampled_from([1.0, 60.0, 600.0]),
    "quorum": st.integers(1, 3),
    "four_eyes": st.booleans(),
    "reminder": st.none() | st.sampled_from([0.5, 30.0]),
    "ping": st.booleans(),
}
matching = {
    "tool": st.sampled_from(["*", "write_*", "read_*", "write_file"]),
    "when": st.dictionaries(st.sampled_from(["path", "n"]), st.tuples(globs), max_size=2),
    "unless": st.dictionaries(st.sampled_from(["path", "n"]), st.tuples(globs), max_size=1),
}
asks = st.builds(Rule, verdict=st.just(ASK), **matching, **asking)
tightening = asks | st.builds(Rule, verdict=st.just(DENY), **matching)
rules = tightening | st.builds(Rule, verdict=st.just(ALLOW), **matching)
relaxables = asks.map(lambda rule: replace(rule, relaxable=True))
arguments = st.dictionaries(st.sampled_from(["path", "n"]), st.sampled_from(["a", "b", 1, 2, None, ["a", "b"]]))
declarations = st.sampled_from([None, ASK, ALLOW, lambda args, context: "path" in args])
people = [
    replace(MAX, roles=frozenset(roles), manages_server=manages, id=user)
    for roles in ((), ("1",))
    for manages in (False, True)
    for user in ("2", MAX.id)
]


def may_accept(ruling: Ruling, person: Actor) -> bool:
    request = make_request(approvers=ruling.approvers or ("manage_server",), four_eyes=ruling.four_eyes)
    return may_decide(person, request, make_batch(request))


def assert_not_looser(new: Ruling, old: Ruling) -> None:
    """Compare the verdicts and, if both ask, every term that the old ruling sets."""
    assert STRICT[new.verdict] >= STRICT[old.verdict]
    if not new.verdict is old.verdict is ASK:
        return
    assert new.quorum >= old.quorum
    assert new.four_eyes >= old.four_eyes
    assert old.timeout is None or (new.timeout is not None and new.timeout <= old.timeout)
    if old.approvers is not None:
        assert all(may_accept(old, person) for person in people if may_accept(new, person))


@given(st.lists(rules, max_size=5), tightening, st.lists(rules, max_size=3), arguments, st.integers(0, 5), declarations)
async def test_an_added_ask_or_deny_never_loosens(
    before: list[Rule], added: Rule, server: list[Rule], args: dict[str, Any], at: int, declared: Any
) -> None:
    call = make_call("write_file", args)
    operators, servers = [*before[:at], added, *before[at:]], [*server[:at], added, *server[at:]]
    old = await Policy(tuple(before)).decide(call, declared, CONTEXT, Layer(tuple(server)))
    assert_not_looser(await Policy(tuple(operators)).decide(call, declared, CONTEXT, Layer(tuple(server))), old)
    assert_not_looser(await Policy(tuple(before)).decide(call, declared, CONTEXT, Layer(tuple(servers))), old)


@given(st.lists(rules, max_size=5), st.lists(rules, max_size=5), arguments, declarations)
async def test_server_rules_never_loosen_operator_rules(
    operator: list[Rule], server: list[Rule], args: dict[str, Any], declared: Any
) -> None:
    call = make_call("write_file", args)
    alone = await Policy(tuple(operator)).decide(call, declared, CONTEXT)
    assert_not_looser(await Policy(tuple(operator)).decide(call, declared, CONTEXT, Layer(tuple(server))), alone)


@given(st.lists(rules | relaxables, max_size=4), st.lists(rules, max_size=4), arguments, declarations)
async def test_only_what_is_marked_relaxable_gets_looser_and_never_a_deny(
    operator: list[Rule], server: list[Rule], args: dict[str, Any], declared: Any
) -> None:
    call = make_call("write_file", args)
    alone = await Policy(tuple(operator)).decide(call, declared, CONTEXT)
    both = await Policy(tuple(operator)).decide(call, declared, CONTEXT, Layer(tuple(server)))
    if STRICT[both.verdict] < STRICT[alone.verdict]:
        assert alone.verdict is ASK
        assert alone.relaxable


async def test_it_is_known_where_a_servers_own_rule_asks() -> None:
    """A request that nobody can decide is never approved because of such a rule."""
    own = Layer((Rule("*", ASK, approvers=("user:2",)),))
    for operator in (Policy(), Policy((Rule("*", ASK, approvers=("user:1",)),))):
        call = make_call("write_file", {})
        assert (await operator.decide(call, None, CONTEXT, own)).by_server
        assert not (await operator.decide(call, None, CONTEXT)).by_server
        assert not (await operator.decide(call, None, CONTEXT, Layer((Rule("read_file", ASK),)))).by_server


async def test_a_server_loosens_what_the_operator_marked() -> None:
    operator = Policy((Rule("write_file", ASK, relaxable=True),))
    own = [Rule("write_file", ALLOW, when={"path": ("notes/*",)})]
    for path, expected in (("notes/a", ALLOW), ("etc/a", ASK)):
        assert (
            await operator.decide(make_call("write_file", {"path": path}), None, CONTEXT, Layer(tuple(own)))
        ).verdict is expected
    strict = Policy((Rule("write_file", ASK),))
    assert (
        await strict.decide(make_call("write_file", {"path": "notes/a"}), None, CONTEXT, Layer(tuple(own)))
    ).verdict is ASK


async def test_ask_rules_that_match_together_count_together() -> None:
    policy = Policy(
        (
            Rule("write_*", ASK, approvers=("role:1",), timeout=600, quorum=2, reason="writes", message="one"),
            Rule("*", ASK, approvers=("manage_server",), timeout=60, four_eyes=True, reminder=5, message="two"),
        )
    )
    ruling = await policy.decide(make_call("write_file", {}), None, CONTEXT)
    assert ruling.approvers == ("role:1&manage_server",)
    assert (ruling.timeout, ruling.quorum, ruling.four_eyes, ruling.reminder) == (60, 2, True, 5)
    assert ruling.reason == "writes; a rule for * says ask"
    assert ruling.message == "one\ntwo"

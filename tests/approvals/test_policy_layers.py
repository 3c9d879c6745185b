"""Two layers that both ask, term by term. The property tests meet these cases only by chance."""

from __future__ import annotations

import pytest

from signoff.approvals.approvers import both
from signoff.approvals.model import Ruling, Verdict
from signoff.approvals.policy import Context, Layer, Policy, Rule, layered, together
from tests.conftest import MAX, PLACE, make_call

ASK, DENY, ALLOW = Verdict.ASK, Verdict.DENY, Verdict.ALLOW
CALL = make_call("write_file", {"path": ["/tmp/a", "/etc/passwd"]})


async def test_a_servers_ask_rule_tightens_an_operators_ask_rule() -> None:
    operator = Policy((Rule("*", ASK, approvers=("manage_server",), timeout=600.0),))
    own = [Rule("write_file", ASK, approvers=("role:1",), timeout=60.0, quorum=2, four_eyes=True, reason="ours")]
    ruling = await operator.decide(CALL, None, Context(PLACE, MAX), Layer(tuple(own)))
    assert ruling.approvers == ("manage_server&role:1",)
    assert (ruling.timeout, ruling.quorum, ruling.four_eyes) == (60.0, 2, True)
    assert ruling.reason == "a rule for * says ask; ours"


@pytest.mark.parametrize("turned", [False, True], ids=["strict first", "strict last"])
def test_two_asks_together_are_as_strict_as_the_stricter_of_each(turned: bool) -> None:
    strict = Ruling(ASK, "a", quorum=3, four_eyes=True, ping=True, relaxable=False)
    loose = Ruling(ASK, "b", quorum=1, relaxable=True)
    both = together([loose, strict]) if turned else together([strict, loose])
    assert (both.quorum, both.four_eyes, both.ping, both.relaxable) == (3, True, True, False)


def test_a_deny_is_never_relaxed() -> None:
    operator = Ruling(DENY, "never", relaxable=True)
    assert layered(operator, Ruling(ALLOW, "ours")) == operator
    assert layered(operator, Ruling(ASK, "ours")) == operator


async def test_an_exception_to_an_allow_rule_holds_if_one_item_of_a_list_matches_it() -> None:
    policy = Policy((Rule("*", ALLOW, unless={"path": ("/etc/*",)}),), undeclared=ASK)
    assert (await policy.decide(CALL, None, Context(PLACE, MAX))).verdict is ASK


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (("manage_server", "role:1"), ("role:1",), ("role:1",)),
        (("role:1", "role:2"), ("role:2", "role:1"), ("role:1", "role:2")),
        (("role:1&role:2",), ("role:2&role:1", "user:3"), ("role:2&role:1",)),
        (("role:1",), ("role:2",), ("role:1&role:2",)),
    ],
)
def test_nobody_is_named_twice_by_two_rules(
    one: tuple[str, ...], other: tuple[str, ...], found: tuple[str, ...]
) -> None:
    """Otherwise a card would say "people with Manage Server and @Approvers or @Approvers"."""
    named = both(one, other)
    assert named is not None
    assert len(named) == len(found)
    assert {frozenset(spec.split("&")) for spec in named} == {frozenset(spec.split("&")) for spec in found}

"""Rules of one layer that disagree, in every order. The property tests meet these cases only by chance."""

from __future__ import annotations

from itertools import permutations

import pytest

from signoff.approvals.model import Verdict
from signoff.approvals.policy import Context, Layer, Policy, Rule
from tests.conftest import MAX, PLACE, make_call

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
CALL = make_call("write_file", {"path": "a"})


@pytest.mark.parametrize(
    "verdicts", [*permutations((ALLOW, ASK)), *permutations((ASK, DENY)), *permutations((ALLOW, ASK, DENY))], ids=str
)
@pytest.mark.parametrize("by_server", [False, True], ids=["operator", "server"])
async def test_of_rules_that_disagree_the_strictest_counts(verdicts: tuple[Verdict, ...], by_server: bool) -> None:
    rules = tuple(Rule("write_*", verdict) for verdict in verdicts)
    operator, server = (Policy(), Layer(rules)) if by_server else (Policy(rules), None)
    expected = DENY if DENY in verdicts else ASK
    assert (await operator.decide(CALL, None, Context(PLACE, MAX), server)).verdict is expected

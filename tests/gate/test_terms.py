"""What the operator's file says about asking reaches the card: quorum, four eyes, who, how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, RunContext, Tool
from pydantic_ai.models.test import TestModel

from signoff.agent.setup import build_policy, build_terms
from signoff.approvals.approvers import may_decide
from signoff.approvals.model import Ruling, Terms, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.config.schema import parse_config
from signoff.gate.dry_run import DryRun
from signoff.gate.pending_call import Preview
from tests.conftest import ADA, MAX, PLACE, make_batch, make_request
from tests.rigs.gate_bench import Bench, accept, batch_of, protected
from tests.rigs.scripted import calls

STRICT = Rule("danger", Verdict.ASK, approvers=("role:5",), timeout=60.0, quorum=2, four_eyes=True, message="Slowly.")


async def test_what_a_rule_says_is_on_the_request(bench: Bench) -> None:
    step = await bench.start([calls(("danger", {})), "done"], [protected(bench.box)], policy=Policy((STRICT,)))
    batch = batch_of(step)
    (request,) = batch.requests
    assert (request.approvers, request.quorum, request.four_eyes) == (("role:5",), 2, True)
    assert (request.message, batch.deadline - batch.opened) == ("Slowly.", 60.0)


def test_the_operators_quorum_and_four_eyes_are_the_least_for_every_card() -> None:
    terms = Terms(quorum=2, four_eyes=True, ping=True)
    loose, strict = Ruling(Verdict.ASK, "why"), Ruling(Verdict.ASK, "why", quorum=3)
    assert (terms.fill(loose).quorum, terms.fill(loose).four_eyes, terms.fill(loose).ping) == (2, True, True)
    assert terms.fill(strict).quorum == 3
    assert Terms().fill(replace(loose, four_eyes=True)).four_eyes


def test_terms_fill_in_only_what_no_rule_says() -> None:
    terms = Terms(approvers=("role:1",), timeout=60.0, reminder=5.0)
    filled = terms.fill(Ruling(Verdict.ASK, "why"))
    assert (filled.approvers, filled.timeout, filled.reminder) == (("role:1",), 60.0, 5.0)
    said = Ruling(Verdict.ASK, "why", approvers=(), timeout=10.0, reminder=1.0)
    assert terms.fill(said) == said  # an empty list names nobody, and stays so


def test_the_files_terms_are_the_desks_terms() -> None:
    config = parse_config(
        '[approvals]\napprovers = ["role:1"]\ntimeout = "60s"\nquorum = 2\nfour_eyes = true\n'
        'reminder = "5s"\nping = true'
    )
    assert build_terms(config) == Terms(("role:1",), 60.0, 2, True, 5.0, True)


@pytest.mark.parametrize("relaxable", [True, False])
def test_the_files_rules_are_the_policys_rules(relaxable: bool) -> None:
    config = parse_config(
        '[[rules]]\ntool = "danger"\nverdict = "ask"\nwhen = {path = "a*"}\nunless = {path = "ab*"}\n'
        'approvers = ["role:1"]\ntimeout = "60s"\nreason = "r"\nquorum = 2\nfour_eyes = true\nreminder = "5s"\n'
        f'ping = true\nmessage = "m"\nrelaxable = {str(relaxable).lower()}'
    )
    ask, when, unless = Verdict.ASK, {"path": ("a*",)}, {"path": ("ab*",)}
    expected = Rule("danger", ask, when, unless, ("role:1",), 60.0, "r", 2, True, 5.0, True, "m", relaxable)
    assert build_policy(config).rules == (expected,)


async def test_the_same_tool_with_other_parameters_is_another_tool() -> None:
    """Row 16: a grant for the tool as it was does not cover the tool as it is."""

    async def schema(function: Any) -> str:
        agent = Agent(TestModel(), tools=[Tool(function, name="send", requires_approval=True)])
        return (await DryRun(agent, Policy(), PLACE, MAX).call("send", {"to": "a"})).call.schema

    def before(to: str) -> str:
        return to

    def after(to: str, copy_to: str = "everybody") -> str:
        return to + copy_to

    assert await schema(before) == await schema(before)
    assert await schema(before) != await schema(after)


async def test_a_tool_that_asks_because_something_changed_shows_how_it_is_now(bench: Bench) -> None:
    """Row 10: the card of the second question has the preview and the operands of its own moment."""
    state = ["before"]

    def put(ctx: RunContext[Any], value: str) -> str:
        if ctx.tool_call_metadata.operands != {"shelf": "changed inside"}:
            state[0] = "changed inside"
            raise ApprovalRequired
        return f"put {value}"

    def preview(ctx: RunContext[Any], value: str) -> Preview:
        return Preview(f"- {state[0]}\n+ {value}", {"shelf": state[0]})

    tool = Tool(put, requires_approval=True, metadata={"preview": preview})
    step = await bench.start([calls(("put", {"value": "x"})), "done"], [tool])
    again = await accept(bench, step)
    (request,) = batch_of(again).requests
    assert request.preview == "- changed inside\n+ x"
    assert request.call.operands == {"shelf": "changed inside"}
    await accept(bench, again)
    assert bench.script.results["call_0"] == "put x"


def test_somebody_of_another_server_may_not_decide_whatever_they_are_there() -> None:
    request = make_request(approvers=("manage_server", f"user:{ADA.id}"))
    assert may_decide(ADA, request, make_batch(request))
    assert not may_decide(replace(ADA, server="900000000000000002"), request, make_batch(request))

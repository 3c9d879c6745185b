"""Plays the same calls through the bot's gate and through the library's; a person accepts each call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent

from signoff import ApprovalDecision, ApprovalMemory, ApprovalRequest, Policy, run_with_approval
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Choice, Remember
from signoff.turns.model import Waiting
from tests.conftest import ADA, PLACE
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import Script, calls

KINDS = ("bot", "library")


@dataclass
class Played:
    """`shown`: the requests that people saw. `told`: call id -> what the model was told."""

    shown: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    told: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def args(self) -> list[dict[str, Any]]:
        return [dict(request.call.args) for request in self.shown]


async def play_both(
    kind: str, bench: Bench, tools: list[Any], *responses: Any, remember: bool = False, policy: Policy | None = None
) -> Played:
    """Run the responses to the end. Every question is accepted, and remembered if `remember` is set."""
    script = [*responses, "done"]
    if kind == "library":
        return await _library(tools, script, remember, policy or Policy())
    return await _bot(bench, tools, script, remember, policy or Policy())


def one(tool: str, args: Any) -> Any:
    return calls((tool, args))


async def _bot(bench: Bench, tools: list[Any], script: list[Any], remember: bool, policy: Policy) -> Played:
    played = Played()
    bench.desk = Desk(bench.store, bench.clock, grants=GrantTerms(Remember.SESSION))
    step = await bench.start(script, tools, policy=policy)
    while isinstance(step, Waiting):
        batch = await bench.store.run(lambda tx, id=step.batch.id: tx.batch(id))
        assert batch
        if not batch.settled:
            played.shown += [request for request in batch.requests if not request.held]
            scope = Remember.SESSION if remember else Remember.NONE
            await bench.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, remember=scope))
        step = await bench.advance()
    played.told = bench.script.results
    return played


async def _library(tools: list[Any], script: list[Any], remember: bool, policy: Policy) -> Played:
    played = Played()

    class Yes:
        def choose(self, request: ApprovalRequest) -> ApprovalDecision:
            played.shown.append(request)
            return ApprovalDecision(True, remember="session" if remember else "none")

    model = Script(list(script))
    await run_with_approval(Agent(model.model(), tools=tools), "go", ui=Yes(), memory=ApprovalMemory(), policy=policy)
    played.told = model.results
    return played

"""Budgets: what is used is counted per thread, person, server and day, and people may allow more on a card."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic_ai import Agent, Tool

from signoff.agent.runner import AgentRunner
from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import NotAllowed, Refused
from signoff.approvals.model import Batch, Choice, Place, RequestState, Terms, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.approvals.todays_rules import TodaysRules
from signoff.store import Store
from signoff.turns.budgets import Budget, Budgets, Unit, accounts_of
from signoff.turns.driver import Driver
from signoff.turns.model import Finished, ModelUse, Turn, TurnState
from tests.conftest import ADA, MAX, PLACE, SERVER, HandClock, make_turn
from tests.rigs.driver_office import Office, in_thread
from tests.rigs.scripted import Answer, Box, Script, calls

TOKENS = (Budget.THREAD, Unit.TOKENS)


@dataclass
class Bureau(Office):
    """An office whose runner is the real one, with a scripted model."""

    script: Script = field(default_factory=lambda: Script(["done"]))
    box: Box = field(default_factory=Box)
    budgets: Budgets = field(default_factory=lambda: Budgets({TOKENS: 100}))
    policy: Policy = field(default_factory=Policy)
    terms: Terms = field(default_factory=Terms)
    tools: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self.desk = Desk(self.store, self.clock, self.modes)
        agent = Agent(self.script.model(), tools=[self.box.tool("look"), *self.tools])
        options: dict[str, Any] = {"policy": self.policy, "terms": self.terms, "budgets": self.budgets}
        self.agent_runner = AgentRunner(agent, self.store, self.clock, **options)
        self.desk.todays = TodaysRules(self.agent_runner, self.terms, self.clock.now())
        self.driver = Driver(self.store, self.desk, self.agent_runner, self.front, self.clock, self.limits)

    async def spend(self, turn: Turn, tokens: int, cost: float | None = None) -> None:
        use = ModelUse("some-model", tokens, 0, cost, self.clock.now())
        await self.store.run(lambda tx: tx.add_use(turn, use))

    async def card(self, turn: Turn) -> Batch:
        """Wait until the turn's card is posted, and return its batch."""
        await self.until_state(turn, TurnState.WAITING)
        current = await self.store.run(lambda tx: tx.turn(turn.id))
        assert current
        assert current.batch
        found: list[Batch] = []

        async def has_card() -> bool:
            batch = await self.store.run(lambda tx: tx.batch(current.batch or ""))
            found[:] = [batch] if batch else []
            return bool(batch and batch.card_message)

        await self.until_true(has_card)
        return found[0]

    async def press(self, batch: Batch, choice: Choice, who: Any = ADA) -> None:
        await self.desk.decide(Click(batch.id, choice, who, batch.place.channel, batch.card_message))

    async def reply(self, turn: Turn) -> str:
        await self.until(lambda: any(turn.id == replied for replied, _ in self.front.replies))
        return next(text for replied, text in self.front.replies if replied == turn.id)

    def next_process(self) -> Bureau:
        parts: dict[str, Any] = {"script": self.script, "box": self.box, "budgets": self.budgets, "terms": self.terms}
        parts["tools"] = self.tools
        self.clock.at += 1
        return Bureau(self.store, self.clock, policy=self.policy, **parts)


@pytest.fixture
async def bureaus() -> AsyncIterator[list[Bureau]]:
    opened: list[Bureau] = []
    yield opened
    for one in opened:
        await one.driver.stop(0)


@pytest.fixture
def open_bureau(store: Store, clock: HandClock, bureaus: list[Bureau]) -> Any:
    def build(*answers: Answer, **options: Any) -> Bureau:
        bureaus.append(Bureau(store, clock, script=Script(list(answers) or ["done"]), **options))
        return bureaus[-1]

    return build


async def test_a_used_up_thread_asks_before_the_model_and_goes_on_after_an_accept(open_bureau: Any) -> None:
    bureau, turn = open_bureau("the answer"), make_turn()
    await bureau.spend(turn, 104)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    (request,) = batch.requests
    assert request.call.tool == "spend_more"
    assert request.why == "This thread has used 104 of 100 tokens. Go on with 50 tokens more?"
    assert request.call.args == {"budget": "thread", "unit": "tokens", "used": 104, "limit": 100, "up_to": 154}
    assert bureau.script.asked == [], "the model is not asked before people have decided"
    await bureau.press(batch, Choice.ACCEPT)
    assert await bureau.reply(turn) == "the answer "
    (request,) = (await bureau.batch(batch)).requests
    assert request.run
    assert request.run.line == "The limit is 154 tokens now"


async def test_a_run_that_uses_up_the_budget_asks_between_two_model_requests(open_bureau: Any) -> None:
    """A loop exceeds its budget by one request at most, and the call that ran is not run again."""
    bureau = open_bureau(calls(("look", {"value": "a"})), "the answer", budgets=Budgets({TOKENS: 1}))
    turn = make_turn()
    await bureau.take(turn)
    batch = await bureau.card(turn)
    assert len(bureau.script.asked) == 1
    assert bureau.box.ran == [("look", "a", None)]
    assert batch.requests[0].call.args["used"] >= 1


async def test_what_ran_before_the_card_is_kept_after_the_accept(open_bureau: Any) -> None:
    bureau = open_bureau(calls(("look", {"value": "a"})), "the answer", budgets=Budgets({TOKENS: 30}, overage=100))
    turn = make_turn()
    await bureau.take(turn)
    await bureau.press(await bureau.card(turn), Choice.ACCEPT)
    assert await bureau.reply(turn) == "the answer "
    assert bureau.box.ran == [("look", "a", None)]
    assert bureau.script.results == {"call_0": "look did a"}


@pytest.mark.parametrize(
    ("choice", "said"), [(Choice.REJECT, "Ada rejected more."), (None, "Nobody allowed more in time.")]
)
async def test_without_an_accept_the_turn_ends_with_a_sentence(open_bureau: Any, choice: Any, said: str) -> None:
    bureau, turn = open_bureau(), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    if choice:
        await bureau.press(batch, choice)
    else:
        bureau.clock.at = batch.deadline + 1
        await bureau.desk.expire_due()
    assert await bureau.reply(turn) == (
        f"I stopped: This thread has used 100 of 100 tokens. {said} Completed calls are kept. "
        "Start a new thread, or mention me to ask again."
    )
    assert await bureau.state(turn) is TurnState.STOPPED
    assert bureau.script.asked == []


async def test_the_conversation_goes_on_after_a_rejected_overage(open_bureau: Any) -> None:
    bureau = open_bureau(calls(("look", {"value": "a"})), "later", budgets=Budgets({TOKENS: 30}, overage=100))
    first, second = make_turn(), make_turn("and now")
    await bureau.take(first)
    await bureau.press(await bureau.card(first), Choice.REJECT)
    await bureau.reply(first)
    await bureau.take(second)
    await bureau.press(await bureau.card(second), Choice.ACCEPT)
    assert await bureau.reply(second) == "later "
    assert "look did a" in str(bureau.script.asked[-1]), "the model still knows the result"
    assert bureau.box.ran == [("look", "a", None)]


async def test_an_open_overage_survives_the_process(open_bureau: Any, bureaus: list[Bureau]) -> None:
    bureau, turn = open_bureau("the answer"), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    await bureau.driver.stop(0)
    later = bureau.next_process()
    bureaus.append(later)
    await later.driver.recover()
    await later.press(batch, Choice.ACCEPT)
    assert await later.reply(turn) == "the answer "


async def test_a_crash_between_the_accept_and_the_next_step_raises_the_limit_once(
    open_bureau: Any, bureaus: list[Bureau]
) -> None:
    bureau, turn = open_bureau("the answer"), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    await bureau.driver.stop(0)
    await bureau.press(batch, Choice.ACCEPT)  # the decision is stored, and nobody goes on
    later = bureau.next_process()
    bureaus.append(later)
    await later.driver.recover()
    assert await later.reply(turn) == "the answer "
    account = accounts_of(PLACE, MAX.id)[0]
    assert await later.store.run(lambda tx: tx.raised_to(account, Unit.TOKENS, "")) == 150


async def test_two_threads_of_one_person_get_a_card_each_and_the_limit_is_raised_once(open_bureau: Any) -> None:
    bureau = open_bureau("done", budgets=Budgets({(Budget.PERSON, Unit.TOKENS): 1000}))
    one, two = in_thread(1), in_thread(2)
    await bureau.spend(one, 600)
    await bureau.spend(two, 400)
    await bureau.take(one)
    await bureau.take(two)
    first, second = await bureau.card(one), await bureau.card(two)
    assert first.id != second.id
    assert first.requests[0].why.startswith("The asker has used 1,000 of 1,000 tokens today.")
    await bureau.press(first, Choice.ACCEPT)
    await bureau.press(second, Choice.ACCEPT)
    await bureau.reply(one)
    await bureau.reply(two)
    now = bureau.clock.now()
    (standing,) = await bureau.store.run(lambda tx: bureau.budgets.standings(tx, one.place, MAX.id, now))
    assert standing.limit == 1500  # and the two replies together use less than what was added


async def test_with_four_eyes_the_asker_cannot_allow_their_own_overage(open_bureau: Any) -> None:
    bureau = open_bureau("done", terms=Terms(four_eyes=True))
    turn = make_turn(asker=ADA)
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    with pytest.raises(NotAllowed):
        await bureau.press(batch, Choice.ACCEPT, ADA)


async def test_a_rule_names_the_approvers_of_an_overage_and_another_denies_it(open_bureau: Any) -> None:
    rule = Rule("spend_more", Verdict.ASK, {"budget": ("thread",)}, approvers=(f"user:{MAX.id}",), quorum=1)
    bureau, turn = open_bureau("done", policy=Policy((rule,))), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    assert batch.requests[0].approvers == (f"user:{MAX.id}",)
    with pytest.raises(NotAllowed):
        await bureau.press(batch, Choice.ACCEPT, ADA)
    await bureau.press(batch, Choice.REJECT, MAX)


async def test_a_deny_rule_ends_the_turn_without_a_card(open_bureau: Any) -> None:
    bureau = open_bureau(policy=Policy((Rule("spend_more", Verdict.DENY, reason="no money"),)))
    turn = make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    assert "A rule does not allow more (no money)." in await bureau.reply(turn)
    assert bureau.script.asked == []


@pytest.mark.parametrize("policy", [Policy(), Policy((Rule("*", Verdict.ALLOW),))])
async def test_neither_auto_approve_nor_a_rule_for_every_tool_spends_more(open_bureau: Any, policy: Policy) -> None:
    bureau, turn = open_bureau("done", policy=policy, modes=Modes("auto_approve", "approve")), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    assert batch.requests[0].state is RequestState.PENDING
    assert batch.requests[0].why.startswith("This thread has used 100 of 100 tokens.")


async def test_nobody_who_may_decide_means_no_overage(open_bureau: Any) -> None:
    rule = Rule("spend_more", Verdict.ASK, approvers=("asker",), four_eyes=True)
    bureau, turn = open_bureau("done", policy=Policy((rule,)), modes=Modes("interactive", "approve")), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    assert "More was rejected (nobody may decide this request)." in await bureau.reply(turn)


async def test_auto_deny_rejects_an_overage(open_bureau: Any) -> None:
    bureau, turn = open_bureau("done", modes=Modes("auto_deny")), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    assert "More was rejected (mode auto_deny)." in await bureau.reply(turn)


async def test_an_overage_cannot_be_edited(open_bureau: Any) -> None:
    bureau, turn = open_bureau("done"), make_turn()
    await bureau.spend(turn, 100)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    (request,) = batch.requests
    with pytest.raises(Refused, match="cannot be edited"):
        await bureau.agent_runner.revise(batch, request, {**request.call.args, "up_to": 10**9})


async def test_several_limits_are_on_one_card_and_all_must_be_accepted(open_bureau: Any) -> None:
    limits = {TOKENS: 100, (Budget.SERVER, Unit.DOLLARS): 2.0}
    bureau, turn = open_bureau("done", budgets=Budgets(limits)), make_turn()
    await bureau.spend(turn, 100, 2.5)
    await bureau.take(turn)
    batch = await bureau.card(turn)
    assert [request.why for request in batch.requests] == [
        "This thread has used 100 of 100 tokens. Go on with 50 tokens more?",
        "This server has used $2.50 of $2.00 today. Go on with $1.00 more?",
    ]
    click = Click(batch.requests[0].id, Choice.ACCEPT, ADA, PLACE.channel, batch.card_message)
    await bureau.desk.decide(click)
    await bureau.desk.decide(Click(batch.requests[1].id, Choice.REJECT, ADA, PLACE.channel, batch.card_message))
    assert "This server has used $2.50 of $2.00 today." in await bureau.reply(turn)


async def test_a_day_begins_at_midnight_of_the_time_zone(open_bureau: Any) -> None:
    berlin = Budgets({(Budget.PERSON, Unit.TOKENS): 100}, zone=ZoneInfo("Europe/Berlin"))
    bureau, turn = open_bureau("done", budgets=berlin), make_turn()
    bureau.clock.at = datetime(2026, 7, 1, 21, 59, tzinfo=ZoneInfo("UTC")).timestamp()  # 23:59 in Berlin
    await bureau.spend(turn, 100)
    assert await bureau.store.run(lambda tx: berlin.reached(tx, PLACE, MAX.id, bureau.clock.now()))
    assert berlin.next_day(bureau.clock.now()) == bureau.clock.at + 60
    bureau.clock.at += 60
    assert not await bureau.store.run(lambda tx: berlin.reached(tx, PLACE, MAX.id, bureau.clock.now()))


async def test_usage_of_another_server_person_or_thread_does_not_count(open_bureau: Any) -> None:
    bureau = open_bureau("done")
    await bureau.spend(make_turn(asker=ADA, place=Place("other", "c", "c")), 1000)
    await bureau.spend(in_thread(7, asker=ADA), 10)
    await bureau.spend(make_turn(), 5)
    thread, person, server = accounts_of(PLACE, MAX.id)
    used = await bureau.store.run(lambda tx: [tx.used(account).tokens for account in (thread, person, server)])
    assert used == [5, 5, 15]
    assert (thread.server, server.subject) == (SERVER, SERVER)


async def test_every_model_response_is_noted_before_its_calls_run(store: Store, clock: HandClock) -> None:
    seen: list[int] = []
    turn = make_turn()

    async def look() -> str:
        seen.append((await store.run(lambda tx: tx.used(accounts_of(PLACE, MAX.id)[0]))).requests)
        return "seen"

    script = Script([calls(("look", {})), "done"])
    runner = AgentRunner(Agent(script.model(), tools=[look]), store, clock)
    await store.run(lambda tx: tx.insert_turn(turn))
    await store.run(lambda tx: tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING))
    end = await runner.advance(turn)
    assert isinstance(end, Finished)
    used = await store.run(lambda tx: tx.used(accounts_of(PLACE, MAX.id)[0]))
    # The driver stores the last one together with the end of the turn.
    assert (seen, used.requests, len(end.uses)) == ([1], 1, 1)
    assert used.tokens > 0


class Team:
    """Two tools that each run an agent, which looks twice."""

    def __init__(self) -> None:
        self.box = Box()
        self.scripts: dict[str, Script] = {}

    def tools(self) -> list[Any]:
        return [self._tool("one"), self._tool("two", in_thread=True)]

    def _tool(self, name: str, *, in_thread: bool = False) -> Any:
        looks: list[Answer] = [calls(("look", {"value": f"{name} {number}"})) for number in (1, 2)]
        script = self.scripts[name] = Script([*looks, f"{name} is done"])
        agent = Agent(script.model(), name=name, tools=[self.box.tool("look")])

        async def work(topic: str) -> str:
            return (await agent.run(topic)).output

        def work_in_thread(topic: str) -> str:
            return agent.run_sync(topic).output

        tool = work_in_thread if in_thread else work
        tool.__name__ = name
        return tool


BOTH = calls(("one", {"topic": "a"}), ("two", {"topic": "b"}))


async def team_waits(open_bureau: Any, team: Team) -> tuple[Bureau, Turn, Batch]:
    """Start a turn whose two agents inside tools reach the budget at the same time."""
    bureau = open_bureau(BOTH, "the answer", budgets=Budgets({TOKENS: 60}, overage=100), tools=team.tools())
    turn = make_turn()
    await bureau.take(turn)
    batch = await bureau.card(turn)
    assert [request.shown_tool for request in batch.requests] == ["spend_more"], "one limit is asked about once"
    assert {len(script.asked) for script in team.scripts.values()} <= {0, 1}, "by one request each at most"
    assert len(bureau.script.asked) == 1
    return bureau, turn, batch


async def test_agents_inside_tools_stop_at_a_budget_and_go_on_after_the_accept(
    open_bureau: Any, bureaus: list[Bureau]
) -> None:
    """Also in another process. No model request and no call is repeated."""
    team = Team()
    bureau, turn, batch = await team_waits(open_bureau, team)
    await bureau.driver.stop(0)
    later = bureau.next_process()
    bureaus.append(later)
    await later.driver.recover()
    await later.press(batch, Choice.ACCEPT)
    assert await later.reply(turn) == "the answer "
    assert sorted(ran[1] for ran in team.box.ran) == ["one 1", "one 2", "two 1", "two 2"]
    assert [len(script.asked) for script in team.scripts.values()] == [3, 3]
    assert later.script.results == {"call_0": "one is done", "call_1": "two is done"}


async def test_a_rejected_overage_of_agents_inside_tools_ends_the_turn(open_bureau: Any) -> None:
    team = Team()
    bureau, turn, batch = await team_waits(open_bureau, team)
    asked = [len(script.asked) for script in team.scripts.values()]
    await bureau.press(batch, Choice.REJECT)
    assert "Ada rejected more." in await bureau.reply(turn)
    assert await bureau.state(turn) is TurnState.STOPPED
    assert [len(script.asked) for script in team.scripts.values()] == asked


async def test_a_call_that_was_accepted_beside_a_rejected_overage_is_said_not_to_have_run(open_bureau: Any) -> None:
    box, first, second = Box(), Script([calls(("danger", {})), "end"]), Script(["end"])
    guarded = Tool(box.tool("danger"), requires_approval=True)
    careful, eager = Agent(first.model(), tools=[guarded]), Agent(second.model())

    async def one(topic: str) -> str:
        return (await careful.run(topic)).output

    async def two(topic: str) -> str:
        await bureau.until_true(used_up)
        return (await eager.run(topic)).output

    async def used_up() -> bool:
        used = await bureau.store.run(lambda tx: tx.used(accounts_of(PLACE, MAX.id)[0]))
        return used.tokens >= 60

    bureau = open_bureau(BOTH, "the answer", budgets=Budgets({TOKENS: 60}), tools=[one, two])
    turn = make_turn()
    await bureau.take(turn)
    batch = await bureau.card(turn)
    for request in batch.requests:
        choice = Choice.REJECT if request.call.is_overage else Choice.ACCEPT
        await bureau.desk.decide(Click(request.id, choice, ADA, batch.place.channel, batch.card_message))
    assert "Calls that were accepted on the same card were not run." in await bureau.reply(turn)
    assert box.ran == []


async def test_a_denied_overage_ends_the_tools_whose_agents_reach_the_budget_and_then_the_turn(
    open_bureau: Any,
) -> None:
    team, policy = Team(), Policy((Rule("spend_more", Verdict.DENY),))
    bureau = open_bureau(BOTH, "the answer", budgets=Budgets({TOKENS: 60}), tools=team.tools(), policy=policy)
    turn = make_turn()
    await bureau.take(turn)
    assert "A rule does not allow more" in await bureau.reply(turn)
    assert bureau.front.cards == []
    assert {len(script.asked) for script in team.scripts.values()} <= {0, 1}

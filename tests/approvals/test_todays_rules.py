"""Attack 39: authority is judged by today's configuration and today's membership."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from signoff.approvals.answer_forms import inquire
from signoff.approvals.answering import Answering
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import NotAllowed, Refused
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import (
    DIRECT,
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    Escalation,
    JsonObject,
    Place,
    Remember,
    RequestKind,
    RequestState,
    Ruling,
    Terms,
    Verdict,
)
from signoff.approvals.ports import Revised
from signoff.approvals.todays_rules import TodaysRules
from signoff.store import Store
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, GRACE, HandDirectory, HandReviser

ASKS_ADMINS = Ruling(Verdict.ASK, "a rule", approvers=("manage_server",))


class Judging(HandReviser):
    """Counts how often it judges; may refuse."""

    judged = 0
    refusal = ""
    meanwhile: Callable[[], None] | None = None

    async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
        self.judged += 1
        if self.meanwhile:
            self.meanwhile()
        if self.refusal:
            raise Refused(self.refusal)
        return await super().revise(batch, request, args)


@pytest.fixture
def rules() -> Judging:
    return Judging(ASKS_ADMINS)


@pytest.fixture
def restarted(store: Store, clock: HandClock, rules: Judging, directory: HandDirectory) -> Desk:
    """A desk that was started after the batches of these tests were opened."""
    return Desk(store, clock, directory=directory, todays=TodaysRules(rules, Terms(), clock.now() + 1))


def click(batch: Batch, by: Actor, choice: Choice = Choice.ACCEPT) -> Click:
    return Click(batch.id, choice, by, batch.place.channel)


async def test_a_person_that_todays_rules_do_not_name_cannot_decide_an_older_card(restarted: Desk) -> None:
    batch = make_batch(make_request(approvers=(*BY_ROLE, "manage_server")))
    await opened(restarted, batch)
    for choice in (Choice.ACCEPT, Choice.REJECT):
        with pytest.raises(NotAllowed):
            await restarted.decide(click(batch, OLGA, choice))
    outcome = await restarted.decide(click(batch, ADA))
    assert outcome.batch.requests[0].state is RequestState.APPROVED


async def test_a_person_that_only_todays_rules_name_cannot_decide_an_older_card(restarted: Desk) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE))
    await opened(restarted, batch)
    with pytest.raises(NotAllowed):
        await restarted.decide(click(batch, ADA))
    both = replace(OLGA, manages_server=True)
    assert (await restarted.decide(click(batch, both))).batch.requests[0].state is RequestState.APPROVED


async def test_a_person_who_is_no_longer_named_to_answer_cannot_answer_an_older_card(
    store: Store, clock: HandClock, rules: Judging, directory: HandDirectory
) -> None:
    rules.ruling = Ruling(Verdict.ALLOW, "it needs no approval")
    terms = Terms(answerers=("manage_server",))
    desk = Desk(store, clock, directory=directory, todays=TodaysRules(rules, terms, clock.now() + 1))
    inquiry = inquire("Which one?", {"type": "string"})
    batch = make_batch(make_request(kind=RequestKind.ANSWER, inquiry=inquiry, approvers=("asker", "manage_server")))
    await opened(desk, batch)
    answering, target = Answering(desk), batch.requests[0].id
    with pytest.raises(NotAllowed):
        await answering.answer(target, {"value": "this"}, MAX, batch.place.channel, None)
    outcome = await answering.answer(target, {"value": "that"}, ADA, batch.place.channel, None)
    assert outcome.batch.requests[0].state is RequestState.APPROVED


async def test_todays_quorum_and_four_eyes_hold_for_an_older_card(restarted: Desk, rules: Judging) -> None:
    rules.ruling = Ruling(Verdict.ASK, "a rule", approvers=("manage_server", "asker"), quorum=2, four_eyes=True)
    batch = make_batch(make_request(approvers=("manage_server", "asker")))
    await opened(restarted, batch)
    with pytest.raises(NotAllowed, match="four eyes"):
        await restarted.decide(click(batch, MAX))
    outcome = await restarted.decide(click(batch, ADA))
    assert outcome.batch.requests[0].state is RequestState.PENDING
    assert outcome.batch.requests[0].quorum == 2


@pytest.mark.parametrize(
    ("ruling", "refusal", "said", "judged"),
    [
        (Ruling(Verdict.DENY, "never again"), "", "never again", 1),
        (ASKS_ADMINS, "The tool does not take this.", "does not take this", 2),
    ],
)
async def test_a_call_that_today_does_not_allow_can_only_be_rejected(
    restarted: Desk, rules: Judging, ruling: Ruling, refusal: str, said: str, judged: int
) -> None:
    rules.ruling, rules.refusal = ruling, refusal
    batch = make_batch(make_request(approvers=("manage_server",)))
    await opened(restarted, batch)
    with pytest.raises(Refused, match=said):
        await restarted.decide(click(batch, ADA))
    outcome = await restarted.decide(click(batch, ADA, Choice.REJECT))
    assert outcome.batch.requests[0].state is RequestState.REJECTED
    assert rules.judged == judged


async def test_a_check_that_fails_once_is_tried_again_at_the_next_click(restarted: Desk, rules: Judging) -> None:
    rules.refusal = "This could not be tried: ConnectError"
    batch = make_batch(make_request(approvers=("manage_server",)))
    await opened(restarted, batch)
    with pytest.raises(Refused, match="could not be checked"):
        await restarted.decide(click(batch, ADA))
    rules.refusal = ""
    assert (await restarted.decide(click(batch, ADA))).batch.requests[0].state is RequestState.APPROVED


async def test_a_person_who_may_not_decide_makes_nobody_judge_the_call(restarted: Desk, rules: Judging) -> None:
    batch = make_batch(make_request(approvers=("manage_server",)))
    await opened(restarted, batch)
    with pytest.raises(NotAllowed):
        await restarted.decide(click(batch, OLGA))
    assert rules.judged == 0


async def test_a_ruling_from_before_a_rule_was_changed_is_not_used(restarted: Desk, rules: Judging) -> None:
    assert restarted.todays is not None
    batch = make_batch(make_request(approvers=BY_ROLE))
    await opened(restarted, batch)
    (request,) = batch.requests
    rules.ruling = Ruling(Verdict.ASK, "a rule", approvers=BY_ROLE)
    rules.meanwhile = lambda: restarted.server_rules_changed(PLACE.server)
    await restarted.todays.judge(batch, request)
    rules.meanwhile, rules.ruling = None, ASKS_ADMINS
    with pytest.raises(NotAllowed):
        await restarted.decide(click(batch, OLGA))
    assert rules.judged == 2


async def test_todays_rules_escalate_an_older_card_no_earlier_than_they_say(restarted: Desk, rules: Judging) -> None:
    escalation = Escalation(200.0, BY_ROLE)
    rules.ruling = Ruling(Verdict.ASK, "a rule", approvers=("manage_server",), escalate=escalation)
    batch = make_batch(make_request(approvers=("manage_server",), escalate_to=BY_ROLE))
    await opened(restarted, batch)
    assert batch.requests[0].escalated
    with pytest.raises(NotAllowed):
        await restarted.decide(click(batch, OLGA))


async def test_a_card_of_this_process_is_not_judged_again(
    store: Store, clock: HandClock, rules: Judging, directory: HandDirectory
) -> None:
    desk = Desk(store, clock, directory=directory, todays=TodaysRules(rules, Terms(), clock.now() - 10))
    batch = make_batch(make_request(approvers=BY_ROLE))
    await opened(desk, batch)
    await desk.decide(click(batch, OLGA))
    assert rules.judged == 0


async def test_a_server_rule_that_was_made_meanwhile_holds_for_an_open_card(
    store: Store, clock: HandClock, rules: Judging, directory: HandDirectory
) -> None:
    desk = Desk(store, clock, directory=directory, todays=TodaysRules(rules, Terms(), clock.now() - 10))
    batch = make_batch(make_request(approvers=BY_ROLE))
    await opened(desk, batch)
    clock.at += 1
    desk.server_rules_changed(PLACE.server)
    with pytest.raises(NotAllowed):
        await desk.decide(click(batch, OLGA))
    assert rules.judged == 1


async def test_a_card_that_was_opened_just_after_a_rule_was_changed_is_judged_again(
    store: Store, clock: HandClock, rules: Judging, directory: HandDirectory
) -> None:
    """Its calls may have been judged before: their previews take time."""
    desk = Desk(store, clock, directory=directory, todays=TodaysRules(rules, Terms(), clock.now() - 10))
    desk.server_rules_changed(PLACE.server)
    batch = make_batch(make_request(approvers=BY_ROLE), now=clock.now() + 1)
    await opened(desk, batch)
    clock.at += 2
    with pytest.raises(NotAllowed):
        await desk.decide(click(batch, OLGA))


async def test_a_person_who_is_no_longer_listed_for_direct_messages_decides_nothing(
    store: Store, clock: HandClock
) -> None:
    place = Place(DIRECT, "700000000000000009", "700000000000000009")
    asker = replace(MAX, server=DIRECT)
    batch = make_batch(make_request(make_call(place=place), approvers=("asker",)), place=place, asker=asker)
    await opened(Desk(store, clock), batch)
    with pytest.raises(NotAllowed, match="does not list you"):
        await Desk(store, clock, direct_users=frozenset()).decide(click(batch, asker))
    outcome = await Desk(store, clock, direct_users=frozenset({asker.id})).decide(click(batch, asker))
    assert outcome.batch.requests[0].state is RequestState.APPROVED


# Grants


async def asked_again(desk: Desk, giver: Actor, scope: Remember, choice: Choice) -> RequestState:
    """Have the person's choice remembered, apply `change`, and ask about the same call again."""
    batch = make_batch(make_request(make_call("delete_file", {"path": "a"}), approvers=(*BY_ROLE, "manage_server")))
    await opened(desk, batch)
    await desk.decide(Click(batch.id, choice, giver, PLACE.channel, remember=scope))
    return await state_of_the_same_call(desk)


async def state_of_the_same_call(desk: Desk) -> RequestState:
    batch = make_batch(make_request(make_call("delete_file", {"path": "a"}), approvers=(*BY_ROLE, "manage_server")))
    await opened(desk, batch)
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    return stored.requests[0].state


@pytest.mark.parametrize(
    ("giver", "now", "scope"),
    [
        (ADA, None, Remember.ALWAYS),
        (ADA, replace(ADA, manages_server=False), Remember.ALWAYS),
        (ADA, replace(ADA, manages_server=False, roles=OLGA.roles), Remember.ALWAYS),
        (GRACE, replace(GRACE, roles=frozenset()), Remember.SESSION),
        (GRACE, None, Remember.SESSION),
    ],
)
@pytest.mark.parametrize("choice", [Choice.ACCEPT, Choice.REJECT])
async def test_a_grant_does_not_outlive_the_rights_of_its_giver(
    store: Store, clock: HandClock, giver: Actor, now: Actor | None, scope: Remember, choice: Choice
) -> None:
    directory = HandDirectory()
    desk = Desk(store, clock, grants=GrantTerms(Remember.ALWAYS), directory=directory)
    assert await asked_again(desk, giver, scope, choice) is choice.state
    before = directory.people[giver.id]
    directory.people[giver.id] = now
    assert await state_of_the_same_call(desk) is RequestState.PENDING
    directory.people[giver.id] = before
    assert await state_of_the_same_call(desk) is choice.state


async def test_a_grant_is_not_used_if_its_giver_cannot_be_looked_up(store: Store, clock: HandClock) -> None:
    directory = HandDirectory()
    desk = Desk(store, clock, grants=GrantTerms(Remember.ALWAYS), directory=directory)
    assert await asked_again(desk, ADA, Remember.ALWAYS, Choice.ACCEPT) is RequestState.APPROVED
    directory.fails = True
    assert await state_of_the_same_call(desk) is RequestState.PENDING

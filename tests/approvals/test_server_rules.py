"""Server rules: people who manage the server make them; they are stored, recorded, and in force for the next call."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from signoff.approvals import server_rules as rules_module
from signoff.approvals.errors import Refused
from signoff.approvals.model import Verdict
from signoff.approvals.policy import Context, Policy, Rule
from signoff.approvals.server_rules import Rulebook
from signoff.errors import StoreError
from signoff.store import Store
from tests.conftest import ADA, MAX, PLACE, HandClock, make_call

ENV = Rule(
    "write_file",
    Verdict.ASK,
    when={"path": ("*.env", "*.key")},
    unless={"path": ("public/*",)},
    approvers=("role:5",),
    timeout=600.0,
    quorum=2,
    four_eyes=True,
    reminder=60.0,
    ping=True,
    message="Think of the keys.",
)
CALL = make_call("write_file", {"path": "a.env", "content": "x"})
CONTEXT = Context(PLACE, MAX)


@pytest.fixture
def book(store: Store, clock: HandClock) -> Rulebook:
    return Rulebook(Policy(), store, clock)


async def test_a_rule_holds_from_the_next_call_on_and_after_a_restart(
    book: Rulebook, store: Store, clock: HandClock
) -> None:
    assert (await book.decide(CALL, None, CONTEXT)).verdict is Verdict.ALLOW
    made = await book.protect(ENV, ADA)
    for judge in (book, Rulebook(Policy(), store, clock)):
        ruling = await judge.decide(CALL, None, CONTEXT)
        assert (ruling.verdict, ruling.quorum, ruling.four_eyes) == (Verdict.ASK, 2, True)
        assert (ruling.approvers, ruling.timeout, ruling.message) == (("role:5",), 600.0, "Think of the keys.")
        assert (ruling.reminder, ruling.ping) == (60.0, True)
        assert made.id in ruling.reason
        assert [rule.rule for rule in await judge.of(PLACE.server)] == [ENV]
    await book.unprotect(made.id, ADA)
    assert (await book.decide(CALL, None, CONTEXT)).verdict is Verdict.ALLOW
    assert list(await Rulebook(Policy(), store, clock).of(PLACE.server)) == []


async def test_a_rule_is_its_servers_own(book: Rulebook) -> None:
    made = await book.protect(ENV, ADA)
    elsewhere = Context(replace(PLACE, server="900000000000000002"), MAX)
    assert (await book.decide(CALL, None, elsewhere)).verdict is Verdict.ALLOW
    with pytest.raises(Refused):
        await book.unprotect(made.id, replace(ADA, server="900000000000000002"))
    assert (await book.decide(CALL, None, CONTEXT)).verdict is Verdict.ASK


@pytest.mark.parametrize("actor", [MAX, replace(ADA, is_bot=True)], ids=["member", "bot"])
async def test_only_those_who_manage_the_server_make_and_remove_rules(book: Rulebook, actor) -> None:  # type: ignore[no-untyped-def]
    made = await book.protect(ENV, ADA)
    with pytest.raises(Refused):
        await book.protect(ENV, actor)
    with pytest.raises(Refused):
        await book.unprotect(made.id, actor)
    assert len(await book.of(PLACE.server)) == 1


async def test_changes_are_on_record(book: Rulebook, store: Store) -> None:
    made = await book.protect(ENV, ADA)
    await book.unprotect(made.id, ADA)
    rows = await store.run(lambda tx: tx.audit_page(PLACE.server))
    assert [(row.kind, row.actor, row.subject) for row in rows] == [
        ("rule_removed", ADA.id, made.id),
        ("rule_added", ADA.id, made.id),
    ]
    assert "*.env" in rows[1].data


async def test_too_many_rules_are_refused(book: Rulebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "MOST", 2)
    for _ in range(2):
        await book.protect(ENV, ADA)
    with pytest.raises(Refused):
        await book.protect(ENV, ADA)


async def test_rules_that_cannot_be_read_decide_nothing(book: Rulebook, store: Store) -> None:
    """Row 29: a call is not approved if the store fails while deciding."""
    await store.close()
    with pytest.raises(StoreError):
        await book.decide(CALL, None, CONTEXT)


async def test_a_rule_whose_command_was_cancelled_on_its_way_is_in_force(book: Rulebook, store: Store) -> None:
    await book.of(PLACE.server)
    making = asyncio.ensure_future(book.protect(ENV, ADA))
    await asyncio.sleep(0)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    await store.run(lambda tx: None)  # so that everything queued before is done
    await asyncio.sleep(0.05)
    assert [rule.rule for rule in await book.of(PLACE.server)] == [ENV]


async def test_a_servers_rule_does_not_widen_what_the_operator_wrote(store: Store, clock: HandClock) -> None:
    book = Rulebook(Policy(approvers=("role:1",), timeout=60.0), store, clock)
    await book.protect(Rule("write_file", Verdict.ASK, approvers=("asker",), timeout=86400.0), ADA)
    ruling = await book.decide(CALL, Verdict.ASK, CONTEXT)
    assert (ruling.approvers, ruling.timeout) == (("role:1&asker",), 60.0)


async def test_where_the_operator_wrote_nothing_a_server_says_who_decides(book: Rulebook) -> None:
    await book.protect(Rule("write_file", Verdict.ASK, approvers=("role:5",), timeout=600.0), ADA)
    ruling = await book.decide(CALL, Verdict.ASK, CONTEXT)
    assert (ruling.approvers, ruling.timeout) == (("role:5",), 600.0)

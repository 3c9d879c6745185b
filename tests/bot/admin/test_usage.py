"""`/signoff usage`: people see their own usage, admins the server's."""

from __future__ import annotations

from pathlib import Path

import pytest

from signoff.bot.admin.usage_command import usage_text
from signoff.store import Store
from signoff.turns.budgets import Budget, Budgets, Unit
from signoff.turns.model import ModelUse
from signoff.turns.usage import UsageBook
from tests.conftest import ADA, MAX, PLACE, HandClock, make_turn
from tests.rigs.driver_office import in_thread

LIMITS = {(Budget.THREAD, Unit.TOKENS): 1000.0, (Budget.PERSON, Unit.DOLLARS): 2.0}


@pytest.fixture
async def book(store: Store, clock: HandClock) -> UsageBook:
    clock.at = 1_000_000.0
    uses = ((make_turn(), 400, 0.5), (make_turn(), 200, None), (in_thread(3, asker=ADA), 3000, 0.01))
    for turn, tokens, cost in uses:
        use = ModelUse("m", tokens, 0, cost, clock.now())
        await store.run(lambda tx, turn=turn, use=use: tx.add_use(turn, use))
    return UsageBook(store, clock, Budgets(LIMITS))


async def test_a_member_sees_their_own_usage_the_limits_and_what_is_left(book: UsageBook) -> None:
    assert usage_text(await book.report(MAX, PLACE)) == (
        "**This thread**: 600 of 1,000 tokens (400 left), $0.50\n"
        "**You today**: 600 tokens, $0.50 of $2.00 ($1.50 left)\n"
        "\n"
        "The cost of some model responses is not known, so only their tokens count.\n"
        "\n"
        "It is 1970-01-12. The next day begins <t:1036800:R>."
    )


async def test_an_admin_sees_the_server_by_person_and_by_thread(book: UsageBook) -> None:
    text = usage_text(await book.report(ADA, PLACE))
    assert "**This server today**: 3,600 tokens, $0.51" in text
    assert f"- <@{ADA.id}>: 3,000 tokens, $0.0100, 1 request to the model\n- <@{MAX.id}>: 600 tokens, $0.50" in text
    assert "**By thread today**\n- <#710000000000000003>: 3,000 tokens" in text


async def test_yesterday_counts_for_the_thread_only(book: UsageBook, clock: HandClock) -> None:
    clock.at += 86400
    text = usage_text(await book.report(MAX, PLACE))
    assert "**This thread**: 600 of 1,000 tokens" in text
    assert "**You today**: 0 tokens, $0.00 of $2.00 ($2.00 left)" in text


async def test_what_was_used_is_still_known_after_the_process_died(tmp_path: Path, clock: HandClock) -> None:
    url = f"sqlite:///{tmp_path}/signoff.db"
    async with await Store.open(url) as store:
        await store.run(lambda tx: tx.add_use(make_turn(), ModelUse("m", 70, 7, None, clock.now())))
    async with await Store.open(url) as store:
        assert "**You today**: 77 tokens" in usage_text(await UsageBook(store, clock).report(MAX, PLACE))

"""Mention, card, click, reply: over real sockets, with the bot in its own process."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.rigs import shop_tools
from tests.rigs.live_bot import FreshRig, Rig, patient, rig

SHOP = shop_tools.__file__

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    command = json.dumps([sys.executable, str(SHOP), "shop.txt"])
    async with rig(tmp_path_factory.mktemp("flow"), f"[mcp.shop]\ncommand = {command}\n", kind=FreshRig) as running:
        yield running


async def test_accept_runs_the_tool_once_and_the_reply_comes(live: Rig) -> None:
    asked = await live.ask('call record {"value": "accepted"}')
    card = await live.card(asked.id)
    assert "Tool Approval Required" in card.text
    assert "record" in card.text
    assert "accepted" in card.text
    assert [b.label for b in card.buttons][:2] == ["Accept", "Reject"]
    assert "record accepted" not in live.trace
    answer = await live.people["Ada"].click(card, "Accept")
    assert not answer.failed
    await live.sees(asked.id, "recorded accepted")
    decided = await live.people["Ada"].see(card)
    assert decided is not None
    assert f"APPROVED by {live.people['Ada'].mention}" in decided.text
    assert "accepted" in decided.text
    assert decided.buttons == []
    assert live.trace.count("record accepted") == 1


async def test_a_tool_of_an_mcp_server_asks_like_any_other_and_runs_once(live: Rig) -> None:
    asked = await live.ask('call shop_refund {"order": "A-1"}')
    card = await live.card(asked.id)
    assert "shop_refund" in card.text
    done = live.folder / "shop.txt"
    assert "refund" not in done.read_text()
    await live.people["Ada"].click(card, "Accept")
    await live.sees(asked.id, "refunded 5 for A-1")
    assert done.read_text().count("refund") == 1


async def test_reject_runs_nothing_and_the_model_knows(live: Rig) -> None:
    asked = await live.ask('call record {"value": "rejected"}')
    card = await live.card(asked.id)
    await live.people["Ada"].click(card, "Reject")
    await live.sees(asked.id, "rejected", "Ada")
    decided = await live.people["Ada"].see(card)
    assert decided is not None
    assert f"REJECTED by {live.people['Ada'].mention}" in decided.text
    assert decided.buttons == []
    assert "record rejected" not in live.trace


async def test_metadata_of_a_dynamic_request_is_on_the_card(live: Rig) -> None:
    asked = await live.ask('call guarded {"path": "prod.env"}')
    card = await live.card(asked.id)
    assert "protected file" in card.text
    assert "prod.env" in card.text
    await live.people["Ada"].click(card, "Accept")
    await live.sees(asked.id, "changed prod.env")
    assert live.trace.count("guarded prod.env") == 1


async def test_three_rounds_in_one_turn(live: Rig) -> None:
    rounds = " then ".join(f'call record {{"value": "round{n}"}}' for n in (1, 2, 3))
    asked = await live.ask(rounds)
    last = 0
    for n in (1, 2, 3):
        card = await live.card(asked.id, after=last)
        assert f"round{n}" in card.text
        await live.people["Ada"].click(card, "Accept")
        last = card.id
    await live.sees(asked.id, "recorded round3")
    assert [line for line in live.trace if "round" in line] == ["record round1", "record round2", "record round3"]


async def test_a_batch_with_one_protected_call_waits_whole(live: Rig) -> None:
    asked = await live.ask('call free {"value": "wh1"}; call record {"value": "wh2"}; call free {"value": "wh3"}')
    card = await live.card(asked.id)
    assert "With these, needing no approval: free, free" in card.text
    assert [b.label for b in card.buttons if b.label.startswith(("Accept", "Reject"))][:2] == ["Accept", "Reject"]
    assert "wh2" in card.text
    assert "wh1" not in card.text
    assert not [line for line in live.trace if line.endswith(("wh1", "wh2", "wh3"))]
    await live.people["Ada"].click(card, "Accept")
    await live.sees(asked.id, "recorded wh2")
    assert sorted(line for line in live.trace if line.endswith(("wh1", "wh2", "wh3"))) == [
        "free wh1",
        "free wh3",
        "record wh2",
    ]


@pytest.mark.parametrize("form", ["as json", "as dict"])
async def test_arguments_as_a_json_string_and_as_a_dict(live: Rig, form: str) -> None:
    value = form.replace(" ", "-")
    asked = await live.ask(f'call record {{"value": "{value}"}} {form}')
    card = await live.card(asked.id)
    assert value in card.text
    await live.people["Ada"].click(card, "Accept")
    await live.sees(asked.id, f"recorded {value}")
    assert live.trace.count(f"record {value}") == 1


async def test_a_thread_continues_and_a_mention_while_waiting_is_queued(live: Rig) -> None:
    asked = await live.ask('call record {"value": "first"}')
    card = await live.card(asked.id)
    await live.ask('call free {"value": "second"}', where=str(asked.id))
    await live.sees(asked.id, "Queued")
    assert "free second" not in live.trace
    await live.people["Ada"].click(card, "Accept")
    await live.sees(asked.id, "recorded first")
    await live.sees(asked.id, "free second")
    assert live.trace[-2:] == ["record first", "free second"]


async def test_nothing_runs_before_the_thread_is_open(live: Rig) -> None:
    await live.sandbox.fault("POST", "/messages/[0-9]+/threads", delay=1.0)
    asked = await live.ask('call free {"value": "late"}')
    await asyncio.sleep(0.5)
    assert "free late" not in live.trace
    await live.sees(asked.id, "free late")
    assert live.trace.count("free late") == 1


async def test_the_wrong_person_is_refused_privately(live: Rig) -> None:
    asked = await live.ask('call record {"value": "guarded"}')
    card = await live.card(asked.id)
    answer = await live.people["Max"].click(card, "Accept")
    assert "Manage Server" in answer.text
    assert answer.reply is not None
    assert answer.reply.ephemeral
    assert not any("may not decide" in m.text for m in await live.people["Ada"].messages(asked.id))
    await live.people["Ada"].click(card, "Reject")
    await live.sees(asked.id, "rejected")


async def test_a_deleted_card_is_cancelled_and_said_to_be(live: Rig) -> None:
    asked = await live.ask('call record {"value": "lost"}')
    card = await live.card(asked.id)
    await live.people["Ada"].delete(card)
    await live.sees(asked.id, "ancelled")
    assert "record lost" not in live.trace


async def test_two_hundred_clicks_have_one_outcome(live: Rig) -> None:
    asked = await live.ask('call record {"value": "crowd"}')
    card = await live.card(asked.id)
    grace = patient(await live.sandbox.add_person("Grace"))
    await live.sandbox.join(grace)
    await live.sandbox.grant(grace, "Admins")
    people = [live.people["Ada"], grace]
    answers = await asyncio.gather(
        *(people[n % 2].click(card, "Accept" if n % 4 < 2 else "Reject", forged=True) for n in range(200))
    )
    assert [a for a in answers if a.failed] == []
    winners = [a for a in answers if a.updated is not None]
    private = [a for a in answers if a.reply is not None and a.reply.ephemeral]
    assert (len(winners), len(private)) == (1, 199)
    decided = await live.closed(card)
    approved = "APPROVED by" in decided.text
    word = "APPROVED by" if approved else "REJECTED by"
    assert all(word in a.text for a in private)
    await live.sees(asked.id, "recorded crowd" if approved else "rejected")
    assert live.trace.count("record crowd") == int(approved)


async def test_twenty_thousand_characters_are_all_reachable(live: Rig) -> None:
    asked = await live.ask("please run the test approval tool with a long parameter of 20000 characters")
    card = await live.card(asked.id)
    assert len(card.text) <= 4000
    (file,) = card.files
    data = await live.sandbox.fetch(file["url"])
    assert "-03332" in data.decode()
    assert "20000 characters" in card.text
    assert re.search(r"… \d+ more characters", card.text)
    digest = re.search(r"sha256 ([0-9a-f]{8,64})", card.text)
    assert digest is not None
    assert hashlib.sha256(data).hexdigest().startswith(digest[1])
    assert "Accept" in [b.label for b in card.buttons]
    await live.people["Ada"].click(card, "Accept")
    await live.sees(asked.id, "executed successfully")
    decided = await live.people["Ada"].see(card)
    assert decided is not None
    assert decided.files

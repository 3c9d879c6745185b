"""The example of an existing agent, run by the real bot: dependencies, a card, a kill, and a structured reply."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.rigs.live_bot import ROOT, Rig, rig
from tests.rigs.openai_server import Call, OpenAIServer, Say, openai_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

EXAMPLE = ROOT / "examples" / "imported_agent"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Rig, OpenAIServer]]:
    folder = tmp_path_factory.mktemp("imported")
    async with openai_server() as provider, rig(folder, start=False) as live:
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        live.environment |= {
            "SIGNOFF_MODEL": "openai-chat:some-model",
            "OPENAI_BASE_URL": provider.url,
            "OPENAI_API_KEY": "test-key-of-nobody",
        }
        await live.start()
        yield live, provider


def orders(live: Rig) -> dict[str, dict[str, object]]:
    return json.loads((live.folder / "orders.json").read_text())


async def test_a_refund_is_asked_for_survives_a_kill_and_is_reported(stage: tuple[Rig, OpenAIServer]) -> None:
    live, provider = stage
    case = Call.of("final_result", order="A1", refunded=40, message="The *lamp* is refunded.")
    asks = Call("refund", '{"order": "A1", "amount": 40}', "call_1")
    provider.play(Say(calls=(Call.of("find_order", order="A1"),)), Say("I refund it.", (case, asks)))
    asked = await live.ask("refund order A1")
    card = await live.card(asked.id)
    assert "refund" in card.text
    assert "refunded" not in orders(live)["A1"]
    await live.kill()
    await live.start()
    assert not (await live.people["Ada"].click(card, "Accept")).failed
    reply = await live.sees(asked.id, "order:", "refunded:", "message:")
    assert r"- **refunded:** 40" in reply.text
    assert r"- **message:** The \*lamp\* is refunded." in reply.text
    assert orders(live)["A1"] == {"item": "lamp", "price": 40, "refunded": 40, "by": "Max"}
    await live.ended(asked)
    provider.play(Say("You are welcome."))
    await live.ask("thank you", where=str(asked.id))
    await live.sees(asked.id, "You are welcome.")
    assert provider.refused == [], "the stored conversation has a result for each call"


async def test_a_denied_refund_and_a_wrong_output_are_corrected(stage: tuple[Rig, OpenAIServer]) -> None:
    live, provider = stage
    wrong = Call.of("final_result", order="B2", refunded=90, message="Done.")
    right = Call("final_result", '{"order": "B2", "refunded": 0, "message": "No refund."}', "call_2")
    provider.play(Say(calls=(Call.of("refund", order="B2", amount=90),)), Say(calls=(wrong,)), Say(calls=(right,)))
    asked = await live.ask("refund order B2")
    reply = await live.sees(asked.id, "No refund.")
    assert "- **refunded:** 0" in reply.text
    assert "refunded" not in orders(live)["B2"]

"""A long reply is shown while the model writes it, within Discord's limits, and a model that fails is asked again."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from signoff.turns.progress import EVERY
from tests.rigs.live_bot import Rig, rig
from tests.rigs.openai_server import Call, OpenAIServer, Say, openai_server, refusal

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

WORDS = 20_000
AT_ONCE = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 20
"""How many words the model sends at once. `make soak` sends each on its own, which takes many seconds of processor."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider() -> AsyncIterator[OpenAIServer]:
    async with openai_server() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory, provider: OpenAIServer) -> AsyncIterator[Rig]:
    async with rig(tmp_path_factory.mktemp("long"), start=False) as running:
        running.environment |= {
            "SIGNOFF_MODEL": "openai-chat:first, openai-chat:second",
            "OPENAI_BASE_URL": provider.url,
            "OPENAI_API_KEY": "test-key-of-nobody",
        }
        await running.start()
        yield running


async def test_a_reply_of_twenty_thousand_words_arrives_whole_and_within_the_limits(
    live: Rig, provider: OpenAIServer
) -> None:
    words = " ".join(f"w{number}" for number in range(WORDS))
    provider.play(Say(words, seconds=4.0, at_once=AT_ONCE))
    await live.sandbox.rate_limits()
    begin = time.monotonic()
    before = await live.sandbox.head()
    asked = await live.ask("tell me everything")
    begun = await live.sees(asked.id, "w0 w1", "Writing: ")
    reply = await live.sees(asked.id, "My reply is too long for messages")
    seconds = time.monotonic() - begin
    await live.sandbox.rate_limits(enabled=False)
    assert reply.id == begun.id, "the message that showed its beginning becomes the reply"
    (file,) = reply.files
    assert (await live.sandbox.fetch(file["url"])).decode() == words
    calls = await live.sandbox.rest_calls(after=before)
    edits = [call for call in calls if call["method"] == "PATCH" and f"/messages/{reply.id}" in call["path"]]
    assert 2 <= len(edits) <= seconds / EVERY + 1, "at most one in 1.5 seconds, and the reply itself"
    assert [call for call in calls if call["status"] == 429] == []


async def test_a_provider_that_is_overloaded_for_a_moment_is_asked_again(live: Rig, provider: OpenAIServer) -> None:
    failed = refusal(503, "overloaded")
    # The client itself asks each model three times.
    provider.play(Say(calls=(Call.of("record", value="before the failure"),)), *[failed] * 6, Say("Here it is."))
    asked = await live.ask("record something")
    card = await live.card(asked.id)
    await live.people["Ada"].click(card, "Accept")
    await live.sees(asked.id, "Here it is.")
    assert live.trace.count("record before the failure") == 1
    assert {request["model"] for request in provider.requests} == {"first", "second"}

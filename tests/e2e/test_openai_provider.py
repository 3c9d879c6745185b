"""The real provider client, streaming, against a server that speaks OpenAI's chat protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise

import aiohttp
import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, Rig, rig
from tests.rigs.openai_server import (
    Answer,
    Call,
    OpenAIServer,
    Say,
    Trouble,
    chunk_of,
    openai_server,
    refusal,
    sse,
    texts_in,
    tool_results,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "some-model"
REQUESTS_PER_TURN = 6


@dataclass
class Stage:
    """The bot, the people and the provider."""

    rig: Rig
    provider: OpenAIServer

    async def ask(self, text: str, *answers: Answer) -> SeenMessage:
        self.provider.play(*answers)
        return await self.rig.ask(text)

    async def decide(self, asked: SeenMessage, button: str) -> SeenMessage:
        card = await self.rig.card(asked.id)
        assert not (await self.rig.people["Ada"].click(card, button)).failed
        return card

    async def said(self, thread: int) -> list[str]:
        """Return the bot's messages in a thread, without cards, oldest first."""
        messages = await self.rig.people["Ada"].messages(thread)
        return [m.content for m in messages if m.author == "Signoff" and m.content]

    async def goes_on(self, asked: SeenMessage) -> None:
        """Check that a later mention in the thread gets a reply, and that the provider accepts the history."""
        self.provider.play(Say("Here I am again."))
        refused = len(self.provider.refused)
        await self.rig.ask("are you there?", where=str(asked.id))
        await self.rig.sees(asked.id, "Here I am again.")
        assert self.provider.refused[refused:] == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    limits = f"[limits]\nmodel_requests_per_turn = {REQUESTS_PER_TURN}\nmodel_retries = 0\n"
    async with openai_server() as provider, rig(tmp_path_factory.mktemp("openai"), limits, start=False) as running:
        running.environment |= {
            "SIGNOFF_MODEL": f"openai-chat:{MODEL}",
            "OPENAI_BASE_URL": provider.url,
            "OPENAI_API_KEY": "test-key-of-nobody",
        }
        await running.start()
        yield Stage(running, provider)
        assert "test-key-of-nobody" not in running.output


async def test_mention_call_card_accept_tool_answer(stage: Stage) -> None:
    call = Call.of("record", value="streamed in pieces, über alles")
    asked = await stage.ask("please record", Say("I will record it now.", (call,)), Say("It is done, as you wished."))
    card = await stage.rig.card(asked.id)
    assert "streamed in pieces, über alles" in card.text
    words = card.text.partition("Model's words")[2]
    assert "I will record it now." in words
    assert "record streamed in pieces, über alles" not in stage.rig.trace
    await stage.rig.people["Ada"].click(card, "Accept")
    await stage.rig.sees(asked.id, "It is done, as you wished.")
    assert stage.rig.trace.count("record streamed in pieces, über alles") == 1

    first, second = stage.provider.requests
    assert (first["model"], first["stream"]) == (MODEL, True)
    assert {"record", "free", "guarded", "test_discord_approval"} <= {t["function"]["name"] for t in first["tools"]}
    assert first["messages"][-1]["content"] == "please record"
    assert tool_results(second) == {"call_0": "recorded streamed in pieces, über alles"}
    assert stage.provider.keys == {"Bearer test-key-of-nobody"}
    assert stage.provider.refused == []


async def test_the_model_is_told_of_a_rejection(stage: Stage) -> None:
    asked = await stage.ask("record it", Say(calls=(Call.of("record", value="no thanks"),)), Say("Then I leave it."))
    await stage.decide(asked, "Reject")
    await stage.rig.sees(asked.id, "Then I leave it.")
    assert "record no thanks" not in stage.rig.trace
    assert tool_results(stage.provider.requests[-1])["call_0"].startswith("Rejected by user Ada")


async def test_a_provider_that_reuses_call_ids_gets_each_call_decided_and_run(stage: Stage) -> None:
    rounds = [Say(calls=(Call.of("record", value=f"reused {n}"),)) for n in (1, 2, 3)]
    asked = await stage.ask("three times", *rounds, Say("All three are done."))
    last = 0
    for n in (1, 2, 3):
        card = await stage.rig.card(asked.id, after=last)
        assert f"reused {n}" in card.text
        await stage.rig.people["Ada"].click(card, "Accept")
        last = card.id
    await stage.rig.sees(asked.id, "All three are done.")
    assert [line for line in stage.rig.trace if "reused" in line] == [f"record reused {n}" for n in (1, 2, 3)]
    assert tool_results(stage.provider.requests[-1]) == {"call_0": "recorded reused 3"}


@pytest.mark.parametrize("restarted", [False, True])
async def test_each_request_begins_byte_for_byte_with_the_one_before(stage: Stage, restarted: bool) -> None:
    """Each decided card leads to one request. It repeats the earlier ones exactly, so a provider's cache hits."""
    odd = '{ "value":"odd \\u00fcber  spaces ' + str(restarted) + '" }'
    rounds = (
        Say("First über this.", (Call("record", odd, "call_a"),)),
        Say("Then both.", (Call("record", '{"value": "no"}', "call_b"), Call("free", '{"value": "1"}', "call_c"))),
        Say("All is decided."),
        Say("And the next mention."),
    )
    asked = await stage.ask("please record, mit ümlaut", *rounds)
    last = 0
    for number, button in enumerate(["Accept", "Reject"], 1):
        card = await stage.rig.card(asked.id, after=last)
        assert len(stage.provider.sent) == number
        if restarted:
            await stage.rig.kill()
            await stage.rig.start()
        await stage.rig.people["Ada"].click(card, button)
        last = card.id
    await stage.rig.sees(asked.id, "All is decided.")
    assert len(stage.provider.sent) == 3
    await stage.rig.ended(asked)
    await stage.rig.ask("and now?", where=str(asked.id))
    await stage.rig.sees(asked.id, "And the next mention.")
    sent = [texts_in(text) for text in stage.provider.sent]
    assert len(sent) == 4
    messages = [text.pop("messages") for text in sent]
    for before, after in pairwise(messages):
        assert after.startswith(before.removesuffix("]") + ",")
    assert "tools" in sent[0]
    assert sent == [sent[0]] * 4, "the tools and the settings stay the same"
    assert stage.provider.refused == []


async def test_three_parallel_calls_are_one_card_and_three_results(stage: Stage) -> None:
    calls = (
        Call("record", '{"value": "side by side"}', "call_a"),
        Call("free", '{"value": "in parallel"}', "call_b"),
        Call("guarded", '{"path": "notes.txt"}', "call_c"),
    )
    asked = await stage.ask("all three", Say(calls=calls), Say("Three done."))
    card = await stage.rig.card(asked.id)
    assert "side by side" in card.text
    assert "needing no approval: free, guarded" in card.text
    assert "free in parallel" not in stage.rig.trace
    await stage.rig.people["Ada"].click(card, "Accept")
    await stage.rig.sees(asked.id, "Three done.")
    done = {"record side by side", "free in parallel", "guarded notes.txt"}
    assert {line: stage.rig.trace.count(line) for line in done} == dict.fromkeys(done, 1)
    assert tool_results(stage.provider.requests[-1]) == {
        "call_a": "recorded side by side",
        "call_b": "free in parallel",
        "call_c": "changed notes.txt",
    }


HALF_A_CALL = chunk_of(
    MODEL,
    {
        "role": "assistant",
        "tool_calls": [
            {"index": 0, "id": "call_0", "type": "function", "function": {"name": "free", "arguments": '{"value": "ha'}}
        ],
    },
)
EVENTS = "text/event-stream"

ECHOED = "sk-echoed-by-the-provider"
PAGE = f"<html>\n<body>\n<p>{'Bad gateway. ' * 400}</p>\n</body>\n</html>"

TROUBLES: dict[str, tuple[Answer, str]] = {
    "http 500": (refusal(500, "The server had an error"), "500"),
    "http 401": (refusal(401, f"Incorrect API key provided: {ECHOED}"), "operator"),
    "http 403": (refusal(403, f"Project of {ECHOED} has no access"), "operator"),
    "http 429": (refusal(429, f"Rate limit reached in organization {ECHOED}"), "429"),
    "a web page in place of an API": (Trouble(502, PAGE, "text/html"), "502"),
    "an error inside the stream": (Trouble(200, sse({"error": {"message": "overloaded"}}), EVENTS), ""),
    "a chunk that is not JSON": (Trouble(200, sse("{oh no"), EVENTS), ""),
    "a chunk of another shape": (Trouble(200, sse({"id": 7, "choices": "none"}), EVENTS), ""),
    "a stream without a chunk": (Trouble(200, sse("[DONE]"), EVENTS), ""),
    "a stream cut inside a call": (Trouble(200, sse(HALF_A_CALL), EVENTS, cut=True), ""),
    "a stream that ends inside a call": (Trouble(200, sse(HALF_A_CALL, "[DONE]"), EVENTS), ""),
}


@pytest.mark.parametrize("name", TROUBLES)
async def test_a_failing_provider_is_one_line_and_the_bot_goes_on(stage: Stage, name: str) -> None:
    trouble, words = TROUBLES[name]
    asked = await stage.ask(f"anything, with {name}", trouble)
    reply = (await stage.rig.sees(asked.id, "Nothing")).content
    # Everybody in the channel reads this. It must not contain the provider's body, which may hold a key, or a
    # traceback.
    assert ECHOED not in reply
    assert not [word for word in ("Traceback", "status_code", "body:", "<html>", "https://") if word in reply], reply
    assert reply.count("\n") == 0
    assert len(reply) < 400
    assert words in reply
    assert "sk again" in reply or "operator" in reply
    assert not [line for line in stage.rig.trace if line.startswith("free ha")]
    assert await stage.said(asked.id) == [reply]
    await stage.goes_on(asked)
    assert stage.rig.bot is not None
    assert stage.rig.bot.returncode is None


async def test_a_provider_that_is_not_there_is_one_line_and_the_bot_goes_on(stage: Stage) -> None:
    await stage.provider.close()
    try:
        asked = await stage.ask("anyone?", Say("not reached"))
        reply = await stage.rig.sees(asked.id, "The model could not answer")
    finally:
        await stage.provider.open()
    assert reply.content.count("\n") == 0
    assert stage.provider.requests == []
    await stage.goes_on(asked)


async def test_a_failure_after_an_accepted_call_keeps_what_was_done(stage: Stage) -> None:
    call = Call.of("record", value="kept")
    asked = await stage.ask("record, then fail", Say(calls=(call,)), refusal(401, "the key was revoked"))
    await stage.decide(asked, "Accept")
    await stage.rig.sees(asked.id, "The model could not answer")
    assert stage.rig.trace.count("record kept") == 1
    await stage.goes_on(asked)
    assert stage.rig.trace.count("record kept") == 1
    told = [m for m in stage.provider.requests[-1]["messages"] if m["role"] == "tool"]
    assert "recorded kept" in json.dumps(told)


async def test_a_model_that_loops_is_stopped_with_a_clear_line(stage: Stage) -> None:
    asked = await stage.ask("go round in circles", Say(calls=(Call.of("free", value="circle"),)))
    reply = await stage.rig.sees(asked.id, "I stopped")
    assert f"{REQUESTS_PER_TURN} requests" in reply.content
    assert "Everything done so far is kept" in reply.content
    assert len(stage.provider.requests) == REQUESTS_PER_TURN
    assert stage.rig.trace.count("free circle") <= REQUESTS_PER_TURN
    await stage.goes_on(asked)


WRONG_CALLS: dict[str, Call] = {
    "a tool that is not there": Call("wipe_disk", '{"value": "wrong"}'),
    "arguments that are not JSON": Call("free", '{"value": "wrong'),
    "arguments of the wrong type": Call("free", '{"value": {"wrong": 1}}'),
    "a list in place of an object": Call("free", '["wrong"]'),
    "a missing argument": Call("free", "{}"),
    "an argument too many for a protected tool": Call("record", '{"value": {"wrong": 2}, "approved": true}'),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
async def test_a_call_that_makes_no_sense_is_sent_back_and_nothing_runs(stage: Stage, name: str) -> None:
    before = list(stage.rig.trace)
    asked = await stage.ask(name, Say(calls=(WRONG_CALLS[name],)), Say("I was mistaken."))
    await stage.rig.sees(asked.id, "I was mistaken.")
    assert stage.rig.trace == before
    (told,) = tool_results(stage.provider.requests[-1]).values()
    assert told
    assert not [m for m in await stage.rig.people["Ada"].messages(asked.id) if m.buttons]
    assert stage.provider.refused == []
    await stage.goes_on(asked)


async def test_a_model_that_insists_on_nonsense_ends_with_one_line(stage: Stage) -> None:
    asked = await stage.ask("insist", Say(calls=(WRONG_CALLS["a tool that is not there"],)))
    reply = await stage.rig.sees(asked.id, "Nothing further was run")
    assert reply.content.count("\n") == 0
    assert "https://" not in reply.content
    assert len(stage.provider.requests) < REQUESTS_PER_TURN
    await stage.goes_on(asked)


async def test_duplicate_ids_in_one_response_are_refused_and_nothing_runs(stage: Stage) -> None:
    calls = (Call("free", '{"value": "twin one"}', "same"), Call("record", '{"value": "twin two"}', "same"))
    asked = await stage.ask("twins", Say(calls=calls), Say("Refused, I see."))
    await stage.rig.people["Ada"].wait_for_message(
        asked.id, lambda m: m.author == "Signoff" and m.content, timeout=PATIENCE
    )
    assert not [line for line in stage.rig.trace if "twin" in line]
    assert not [m for m in await stage.rig.people["Ada"].messages(asked.id) if m.buttons]
    await stage.goes_on(asked)


async def test_the_server_answers_whole_where_no_stream_is_asked_for_and_refuses_a_broken_history() -> None:
    call = Call.of("free", value="whole")
    question = {"role": "user", "content": "hello"}
    opened = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0", "type": "function"}]}
    async with openai_server() as provider, aiohttp.ClientSession() as session:
        provider.play(Say("Words.", (call,)))
        path = f"{provider.url}/chat/completions"
        async with session.post(path, json={"model": MODEL, "messages": [question]}) as response:
            (choice,) = (await response.json())["choices"]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"]["content"] == "Words."
        assert choice["message"]["tool_calls"][0]["function"]["arguments"] == call.arguments
        async with session.post(path, json={"model": MODEL, "messages": [question, opened, question]}) as response:
            assert response.status == 400

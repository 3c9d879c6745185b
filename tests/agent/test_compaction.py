"""A long conversation goes on with a summary of its older part, and nothing else about it changes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from signoff.agent import compaction
from signoff.agent.compaction import ABOVE, BELOW, INSTRUCTIONS
from signoff.agent.runner import AgentRunner, Limits
from signoff.agent.tools.todo import todo_tool
from signoff.approvals.model import Choice
from signoff.errors import TurnFailed
from signoff.gate.transcript import said
from signoff.store import Store
from signoff.turns.model import Finished, Step, Summary, TurnState, Waiting
from tests.conftest import HandClock, make_turn
from tests.rigs.gate_bench import Bench, protected
from tests.rigs.scripted import Script, calls

SMALL = Limits(history_tokens=2000)
LONG = "word " * 600
"""About 750 tokens."""


class Talk:
    """Several turns of one conversation, each with a bench of its own."""

    def __init__(self, bench: Bench, summary: str | Exception = "They spoke about the harbour.") -> None:
        self.bench, self.summary = bench, summary
        self.asked: list[list[str]] = []
        """What the model was asked in each request of a run, as text."""
        self.summarised: list[str] = []
        """The transcripts that it was asked to summarise."""
        self.most = 10**9
        """The most characters that this model takes."""
        self.script = Script(["unused"])

    def model(self) -> FunctionModel:
        def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            assert info.instructions == INSTRUCTIONS
            self.summarised.append(_texts(messages)[0])
            if isinstance(self.summary, Exception):
                raise self.summary
            return ModelResponse(parts=[TextPart(self.summary)])

        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
            self.asked.append(_texts(messages))
            if sum(map(len, self.asked[-1])) > self.most:
                raise ModelContextWindowExceededError("m", "too long")
            async for piece in self.script.stream(messages, info):
                yield piece

        return FunctionModel(respond, stream_function=stream)

    async def says(self, text: str, *answers: str | ModelResponse, limits: Limits = SMALL) -> Step:
        """Run one more turn to its first step."""
        self.script = Script(list(answers) or ["answer"])
        bench = self.bench
        bench.turn = make_turn(text=text)
        agent = Agent(self.model(), tools=[protected(bench.box), todo_tool()])
        bench.runner = AgentRunner(agent, bench.store, bench.clock, limits=limits)
        await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
        await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
        return await self.ended(await bench.advance())

    async def ended(self, step: Step) -> Step:
        """Store the end of a turn, as the driver does."""
        if isinstance(step, Finished):
            turn, store = self.bench.turn, self.bench.store
            await store.run(lambda tx: tx.save_history(turn.place.conversation, step.history))
            await store.run(lambda tx: tx.move(turn.id, TurnState.RUNNING, TurnState.DONE))
        return step


def _texts(messages: list[ModelMessage]) -> list[str]:
    return [one.text for one in said(messages)]


@pytest.fixture
def talk(bench: Bench) -> Talk:
    return Talk(bench)


async def test_the_older_turns_become_a_summary_and_the_newest_stay(talk: Talk) -> None:
    await talk.says(f"first {LONG}")
    await talk.says(f"second {LONG}")
    assert talk.summarised == []
    await talk.says("third")
    assert talk.asked[-1] == [f"{ABOVE}\nThey spoke about the harbour.", BELOW, "third"]
    assert "user: first" in talk.summarised[0]
    assert "assistant: answer" in talk.summarised[0]


async def test_the_list_of_steps_outlives_two_summaries(talk: Talk) -> None:
    await talk.says(f"first {LONG}", calls(("todo", {"items": [{"text": "paint the boat"}]})), "answer")
    for text in (LONG, LONG, LONG, LONG):
        await talk.says(text)
    assert len(talk.summarised) > 1
    await talk.says("what is left?", calls(("todo", {})), "answer")
    assert talk.asked[-1][-1] == "[ ] paint the boat"
    await talk.says("done", calls(("todo", {"items": []})), calls(("todo", {})), "answer")
    assert talk.asked[-1][-1] == "The list is empty."


async def test_the_beginning_stays_the_same_until_it_is_too_long_again(talk: Talk) -> None:
    for text in (f"first {LONG}", f"second {LONG}", "third", "fourth"):
        await talk.says(text)
    assert talk.asked[-1][: len(talk.asked[-2])] == talk.asked[-2]
    assert len(talk.summarised) == 1
    await talk.says(LONG)
    await talk.says(LONG)
    await talk.says("last")
    assert len(talk.summarised) == 2
    assert "They spoke about the harbour." in talk.summarised[1], "the first summary is summarised as well"
    assert "first word" not in talk.summarised[1]


async def test_a_call_with_the_id_of_an_old_one_asks_and_runs_all_the_same(talk: Talk) -> None:
    bench = talk.bench
    call = calls(("danger", {"value": "once"}))
    for text in (f"first {LONG}", f"second {LONG}", "third"):
        step = await talk.says(text, call, "done")
        assert isinstance(step, Waiting), "each is a new call, even though the conversation is shorter than before"
        await talk.ended(await bench.decide(step, Choice.ACCEPT))
    assert bench.box.ran == [("danger", "once", None)] * 3
    assert len(talk.summarised) == 1


async def test_the_present_turn_is_never_summarised(talk: Talk) -> None:
    await talk.says(LONG * 3)
    assert talk.summarised == []
    await talk.says(f"second {LONG * 3}", limits=SMALL)
    assert talk.asked[-1][-1].startswith("second")


async def test_if_the_summary_fails_the_run_goes_on_with_everything(talk: Talk) -> None:
    talk.summary = ValueError("no")
    for text in (f"first {LONG}", f"second {LONG}", "third"):
        step = await talk.says(text)
    assert isinstance(step, Finished)
    assert talk.asked[-1][0].startswith("first")


async def test_a_model_that_takes_less_than_we_thought_gets_a_summary_too(talk: Talk) -> None:
    limits = Limits()
    await talk.says(f"first {LONG}", limits=limits)
    await talk.says("second", limits=limits)
    talk.most = 1000
    step = await talk.says("third", limits=limits)
    assert isinstance(step, Finished)
    assert talk.asked[-1] == [f"{ABOVE}\nThey spoke about the harbour.", BELOW, "third"]


async def test_a_turn_that_is_too_long_by_itself_ends_with_a_clear_line(talk: Talk) -> None:
    talk.most = 1000
    with pytest.raises(TurnFailed, match="This conversation is too long for the model"):
        await talk.says(LONG)


async def test_a_long_result_is_cut_before_it_is_summarised() -> None:
    message = ModelRequest(parts=[UserPromptPart("a" * 5000 + "END")])
    cut = compaction._transcript([message])  # pyright: ignore[reportPrivateUsage]
    assert cut == f"user: {'a' * 2000}\n[1003 characters left out]\n{'a' * 1997}END"


async def test_a_summary_is_stored_and_replaced(store: Store, clock: HandClock) -> None:
    assert await store.run(lambda tx: tx.summary("c")) is None
    for summary in (Summary(3, "short"), Summary(9, "longer")):
        await store.run(lambda tx, summary=summary: tx.save_summary("c", summary))
        assert await store.run(lambda tx: tx.summary("c")) == summary

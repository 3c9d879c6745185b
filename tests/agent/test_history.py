"""Agents that shorten the history of their conversation: our copy stays whole, and decisions still count."""

from __future__ import annotations

from pydantic_ai import Tool
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, UserPromptPart

from signoff.approvals.model import Choice
from signoff.turns.model import Finished, Step, TurnState
from tests.conftest import PLACE, make_turn
from tests.rigs.gate_bench import Bench, protected
from tests.rigs.scripted import calls


async def end(bench: Bench, step: Step) -> None:
    assert isinstance(step, Finished)
    await bench.store.run(lambda tx: tx.save_history(PLACE.conversation, step.history))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.RUNNING, TurnState.DONE))


async def next_turn(bench: Bench, text: str) -> Step:
    bench.turn = make_turn(text)
    await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
    await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
    return await bench.advance()


async def prompts(bench: Bench) -> list[str]:
    entries = await bench.store.run(lambda tx: tx.history(PLACE.conversation))
    assert [entry.position for entry in entries] == list(range(len(entries)))
    messages = [message for entry in entries for message in ModelMessagesTypeAdapter.validate_json(entry.body)]
    return [str(part.content) for m in messages for part in m.parts if isinstance(part, UserPromptPart)]


def newest(messages: list[ModelMessage]) -> list[ModelMessage]:
    return messages[-2:]


def since_the_prompt(messages: list[ModelMessage]) -> list[ModelMessage]:
    at = max(i for i, m in enumerate(messages) if any(isinstance(part, UserPromptPart) for part in m.parts))
    return messages[at:]


async def test_an_accepted_call_of_an_agent_that_forgets_runs_once(bench: Bench) -> None:
    answers = ["hi", "hi again", calls(("danger", {"value": "x"})), "done"]
    step = await bench.start(answers, [protected(bench.box)], capabilities=[ProcessHistory(newest)])
    await end(bench, step)
    await end(bench, await next_turn(bench, "two"))
    step = await bench.decide(await next_turn(bench, "three"), Choice.ACCEPT)
    assert bench.box.ran == [("danger", "x", None)]
    assert len(bench.script.asked) == 4
    await end(bench, step)
    assert await prompts(bench) == ["hello", "two", "three"]


async def test_a_new_call_is_not_answered_with_the_result_of_an_old_one(bench: Bench) -> None:
    answers = [calls(("look", {"value": "x"})), "one", calls(("look", {"value": "y"})), "two"]
    tools = [Tool(bench.box.tool("look"))]
    await end(bench, await bench.start(answers, tools, capabilities=[ProcessHistory(since_the_prompt)]))
    await end(bench, await next_turn(bench, "again, with y"))
    assert bench.box.ran == [("look", "x", None), ("look", "y", None)]
    assert await prompts(bench) == ["hello", "again, with y"]

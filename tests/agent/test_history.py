"""Agents that shorten the history of their conversation: our copy stays whole, and decisions still count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import Tool
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)

from signoff.approvals.model import Choice
from signoff.turns.model import Finished, Step, TurnState
from tests.conftest import PLACE, make_turn
from tests.rigs.gate_bench import Bench, batch_of, protected
from tests.rigs.scripted import Answer, calls


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


@dataclass
class Rewriter(AbstractCapability[Any]):
    """A capability of an agent that changes what the model said."""

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: ModelResponse) -> ModelResponse:
        return replace(response, parts=[self._changed(part) for part in response.parts])

    def _changed(self, part: Any) -> Any:
        if isinstance(part, ToolCallPart):
            return replace(part, args={"value": "changed"})
        return replace(part, content="changed") if isinstance(part, TextPart) else part


async def test_a_response_that_a_capability_changed_is_stored_as_the_run_uses_it(bench: Bench) -> None:
    answers: list[Answer] = [calls(("danger", {"value": "x"})), "done"]
    step = await bench.start(answers, [protected(bench.box)], capabilities=[Rewriter()])
    assert batch_of(step).requests[0].call.args["value"] == "changed"
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert [value for _, value, _ in bench.box.ran] == ["changed"]
    await end(bench, step)
    entries = await bench.store.run(lambda tx: tx.history(PLACE.conversation))
    assert step.text == "changed"
    assert b"done" not in entries[-1].body


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

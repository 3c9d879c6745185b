"""The ways to run a PydanticAI agent other than `run`, each up to its output."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent


async def by_stream(agent: Agent[Any, Any]) -> Any:
    async with agent.run_stream("go") as result:
        return await result.get_output()


async def by_events(agent: Agent[Any, Any]) -> Any:
    async with agent.run_stream_events("go") as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                return event.result.output
    raise AssertionError("the run ended without a result")


async def by_iter(agent: Agent[Any, Any]) -> Any:
    async with agent.iter("go") as run:
        async for _ in run:
            pass
    assert run.result
    return run.result.output

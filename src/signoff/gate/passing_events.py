"""A capability that lets the events of a run pass without looking at them."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

from pydantic_ai import AgentStreamEvent, RunContext
from pydantic_ai.capabilities import AbstractCapability


class PassesEvents(AbstractCapability[Any]):
    """The base of our capabilities. By default, each event would pass a generator for each of them."""

    @property
    def has_wrap_run_event_stream(self) -> bool:
        return False  # so that a run without a handler of its events is not streamed because of us

    def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterable[AgentStreamEvent]:
        return stream

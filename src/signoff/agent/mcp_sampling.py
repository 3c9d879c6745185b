"""Lets an MCP server use the bot's model while one of its tools runs, a bounded number of times per run.

The server's request does not say which call caused it. All runs share the connection, so a request counts for each run
that has a call at this server at that moment. Only servers with `sampling = true` get here.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from signoff.agent.demo.model import demo_model
from signoff.dataclass import dataclass

log = logging.getLogger(__name__)

REQUESTS = 10
"""How many model requests a server may make during one run."""
RUNS = 100
"""How many runs are counted. The oldest are forgotten."""


class SamplingRefused(Exception):
    """The server may not use the model now. The server is told this text."""


@dataclass
class Permit:
    """A run with a call at the server."""

    run: str
    model: Model


class Sampling(WrapperModel):
    """The model as a server gets it: that of the run whose call is running."""

    def __init__(self, server: str) -> None:
        super().__init__(demo_model())  # never used: `request` asks the run's own model
        self.server = server
        self.running: list[Permit] = []
        self.used: dict[str, int] = {}
        """Run id -> how many requests the server made during it."""

    @contextmanager
    def permitted(self, ctx: RunContext[Any]) -> Generator[None]:
        """Let the server use the run's model while its call is running."""
        permit = Permit(ctx.run_id or "", cast("Model[Any]", ctx.model))
        self.running.append(permit)
        try:
            yield
        finally:
            self.running.remove(permit)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        model = self._take()
        log.info("the MCP server %s uses the model", self.server)
        return await model.request(messages, model_settings, model_request_parameters)

    def _take(self) -> Model:
        if not self.running:
            raise SamplingRefused("Sampling is refused: no call of this server is running.")
        runs = {permit.run for permit in self.running}
        if any(self.used.get(run, 0) >= REQUESTS for run in runs):
            log.warning("the MCP server %s has used the model %s times in one run; no more", self.server, REQUESTS)
            raise SamplingRefused(f"Sampling is refused: at most {REQUESTS} requests in one run.")
        for run in runs:
            self.used[run] = self.used.pop(run, 0) + 1
        for oldest in list(self.used)[:-RUNS]:
            del self.used[oldest]
        return self.running[-1].model

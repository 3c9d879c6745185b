"""Runs that wait in an `ApprovalStore`, for tests of the library."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, Tool
from pydantic_ai.messages import ModelResponse

from signoff import ApprovalStore, Pending, Signoff
from tests.rigs.scripted import Answer, Box, Script, calls

ASKING = calls(("danger", {"value": "x"}))
OUTPUT: Any = [str, DeferredToolRequests]


@dataclass
class Desk:
    """A store, and agents that share nothing but its file, as the programs that start and resume a run do."""

    path: Path
    box: Box = field(default_factory=Box)
    now: float = 1000.0
    tools: list[Any] = field(default_factory=list[Any])
    events: list[Any] = field(default_factory=list[Any])
    scripts: list[Script] = field(default_factory=list[Script])

    def __post_init__(self) -> None:
        self.tools = [Tool(self.box.tool("danger"), requires_approval=True), self.box.tool("safe")]

    @property
    def store(self) -> ApprovalStore:
        return ApprovalStore(self.path, clock=lambda: self.now)

    def agent(self, *answers: Answer, output_type: Any = OUTPUT, **options: Any) -> Agent[Any, Any]:
        self.scripts.append(Script(list(answers)))
        signoff = Signoff(store=self.store, on_event=self.events.append, **options)
        model = self.scripts[-1].model()
        return Agent(model, tools=self.tools, output_type=output_type, capabilities=[signoff], deps_type=str)

    @property
    def told(self) -> dict[str, str]:
        return self.scripts[-1].results

    async def ask(self, response: ModelResponse = ASKING, **options: Any) -> Pending:
        output = (await self.agent(response, "never reached", **options).run("go", deps="ada")).output
        assert isinstance(output, Pending)
        return output

    def sql(self, statement: str, *values: Any) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            return db.execute(statement, values).fetchall()

    @property
    def ran(self) -> list[str]:
        return sorted(tool for tool, *_ in self.box.ran)

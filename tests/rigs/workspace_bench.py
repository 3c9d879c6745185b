"""The workspace tools as the gate would call them, over real folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage

from signoff.agent.tools.commands import CommandTools
from signoff.agent.tools.editing import EditTools
from signoff.agent.tools.isolation import Isolation, choose_isolation
from signoff.agent.tools.looking import LookingTools
from signoff.agent.tools.todo import todo_tool
from signoff.config.schema import ToolsConfig
from signoff.gate.pending_call import Preview, preview_of
from tests.rigs.files import FileRig, context


def sandboxed(**settings: Any) -> Isolation:
    return choose_isolation(ToolsConfig(**settings), [], "the test")


@dataclass(frozen=True)
class WorkspaceRig(FileRig):
    """Calls tools by name. `call` runs as if a rule allowed it, `accepted` as if a card was accepted."""

    isolation: Isolation = field(default_factory=Isolation)
    longest: float = 30.0
    checker: tuple[str, ...] = ()

    @property
    def by_name(self) -> dict[str, Tool[Any]]:
        commands = CommandTools(self.root, self.isolation, self.longest, self.checker)
        looking, editing = LookingTools(self.root).tools(), EditTools(self.root).tools()
        return {one.name: one for one in [*looking, *editing, todo_tool(), commands.running(), commands.checking()]}

    async def call(self, name: str, messages: list[ModelMessage] | None = None, /, **args: Any) -> str:
        ctx = context(self.info())
        ctx.messages = messages or []
        return await self._run(name, ctx, args)

    async def agreed(self, name: str, seen: Mapping[str, str], /, **args: Any) -> str:
        return await self._run(name, context(self.info(seen), approved=True), args)

    async def preview(self, name: str, /, **args: Any) -> Preview:
        tool = self.by_name[name]
        checked = tool.function_schema.validator.validate_python(args)
        return await preview_of(tool.tool_def, context(self.info()), checked)

    async def _run(self, name: str, ctx: Any, args: dict[str, Any]) -> str:
        schema = self.by_name[name].function_schema
        return await schema.call(schema.validator.validate_python(args), ctx)

"""The file tools as the gate would call them, over real folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from signoff.agent.tools.files import FileTools
from signoff.approvals.model import DIRECT, Actor, Place
from signoff.gate.pending_call import CallInfo, Preview, preview_of

SERVER = "100200300400500600"


def context(info: object = None, *, approved: bool = False) -> RunContext[Any]:
    return RunContext(
        deps=None, model=TestModel(), usage=RunUsage(), tool_call_metadata=info, tool_call_approved=approved
    )


@dataclass(frozen=True)
class FileRig:
    """One person in one server. `allowed` writes as if a rule allowed it, `accepted` as if a card was accepted."""

    root: Path
    server: str = SERVER
    asker: str = "7"

    @property
    def tools(self) -> FileTools:
        return FileTools(self.root)

    @property
    def home(self) -> Path:
        return self.root / (f"dm-{self.asker}" if self.server == DIRECT else self.server)

    def info(self, operands: Mapping[str, str] | None = None) -> CallInfo:
        return CallInfo(
            Place(self.server, "1", "conversation"), Actor(self.asker, "Ada", self.server), dict(operands or {})
        )

    def read(self, path: str) -> str:
        return self.tools.read_file(context(self.info()), path)

    def allowed(self, path: str, content: str) -> str:
        return self.tools.write_file(context(self.info()), path, content)

    async def show(self, path: str, content: str) -> Preview:
        return await preview_of(self.tools.writing().tool_def, context(self.info()), {"path": path, "content": content})

    def accepted(self, path: str, content: str, seen: Mapping[str, str]) -> str:
        return self.tools.write_file(context(self.info(seen), approved=True), path, content)

    def put(self, path: str, data: bytes | str) -> Path:
        """Create a file that exists before the test."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file


def tree(folder: Path) -> dict[str, object]:
    """Return path -> (mode, contents or the link's target) for everything in a folder."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        what = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "other"
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, what)
    return found

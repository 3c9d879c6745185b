"""Tools that clean up in the server's workspace: one deletes a file for good, one rotates a log and loses nothing.

Both always ask for approval, and the card says what would be lost. If the file changes between the card and the call,
nothing is done and the tool asks again. They are not enabled by default. The model reads the docstrings of the tools.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from pathlib import Path

from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.files import FileTools, ask_again, in_words
from signoff.agent.tools.workspace import ABSENT, MB, Changed, Present
from signoff.dataclass import dataclass
from signoff.gate.pending_call import Preview, call_info

ROTATE_AT_MOST = 20 * MB
MOST_ARCHIVES = 1_000


@dataclass(frozen=True, slots=True)
class HousekeepingTools:
    root: Path
    """The folder that contains one folder per server."""

    def deleting(self) -> Tool[object]:
        return Tool(
            self.delete_file, requires_approval=True, metadata={"preview": self.preview_delete, "destructive": True}
        )

    def rotating(self) -> Tool[object]:
        return Tool(self.rotate_log, requires_approval=True, metadata={"preview": self.preview_rotate, "acts": True})

    def delete_file(self, ctx: RunContext[object], path: str) -> str:
        """Delete a file of this server's workspace for good. A person must accept it first.

        Args:
            path: The file's path inside the workspace, for example logs/app.log.
        """
        workspace = FileTools(self.root).workspace(ctx)
        seen = _seen(ctx, path)
        try:
            with in_words(path):
                before = workspace.delete(path, seen)
        except Changed:
            raise ask_again(path, "deleted") from None
        return f"Deleted {path}: {before.size} bytes are free again, and its content is lost."

    def rotate_log(self, ctx: RunContext[object], path: str) -> str:
        """Compress a log into a numbered archive beside it, and start the log empty. A person must accept it first.

        Args:
            path: The log's path inside the workspace, for example logs/app.log.
        """
        workspace = FileTools(self.root).workspace(ctx)
        seen = _seen(ctx, path)
        try:
            with in_words(path):
                present = workspace.look(path, ROTATE_AT_MOST)
                data = _content(path, present)
                if seen is not None and present.digest != seen:
                    raise Changed
                archive = _free_name(path, lambda name: workspace.look(name, 0).digest == ABSENT)
                packed = gzip.compress(data, mtime=0)
                # The archive first: if the process dies in between, nothing is lost.
                workspace.write(archive, packed, ABSENT)
                workspace.write(path, b"", present.digest)
        except Changed:
            raise ask_again(path, "rotated") from None
        freed = present.size - len(packed)
        return (
            f"Rotated {path}: all {present.size} bytes are in {archive} ({len(packed)} bytes), {freed} are free again."
        )

    async def preview_delete(self, ctx: RunContext[object], path: str) -> Preview:
        """Return what would be lost, and the digest of the file. Raises ToolFailed if there is no such file."""
        present = await asyncio.to_thread(self._look, ctx, path)
        return Preview(f"Deletes {path} ({present.size} bytes) for good. It cannot be undone.", {path: present.digest})

    async def preview_rotate(self, ctx: RunContext[object], path: str) -> Preview:
        """Return what would happen, and the digest of the file. Raises ToolFailed if the log cannot be rotated."""
        present = await asyncio.to_thread(self._look, ctx, path)
        packed = len(gzip.compress(_content(path, present), mtime=0))
        words = (
            f"Compresses {path} from {present.size} to {packed} bytes, beside it, and starts it empty. Nothing is lost."
        )
        return Preview(words, {path: present.digest})

    def _look(self, ctx: RunContext[object], path: str) -> Present:
        with in_words(path):
            present = FileTools(self.root).workspace(ctx).look(path, ROTATE_AT_MOST)
        if present.digest == ABSENT:
            raise ToolFailed(f'There is no file "{path}" in this workspace.')
        return present


def _seen(ctx: RunContext[object], path: str) -> str | None:
    """Return the digest of the file as it was on the card; None if no card was needed."""
    info = call_info(ctx)
    seen = info.operands.get(path) if info else None
    if seen is None and ctx.tool_call_approved:
        raise ask_again(path, "changed")  # accepted, but the digest of the file at that time is not known
    return seen


def _content(path: str, present: Present) -> bytes:
    if present.digest == ABSENT:
        raise ToolFailed(f'There is no file "{path}" in this workspace.')
    if present.data is None:
        raise ToolFailed(f'"{path}" is larger than {ROTATE_AT_MOST // MB} MB and cannot be rotated here.')
    if not present.data:
        raise ToolFailed(f'"{path}" is empty: there is nothing to rotate.')
    return present.data


def _free_name(path: str, is_free: Callable[[str], bool]) -> str:
    for number in range(1, MOST_ARCHIVES + 1):
        if is_free(name := f"{path}.{number}.gz"):
            return name
    raise ToolFailed(f'"{path}" has {MOST_ARCHIVES} archives already.')

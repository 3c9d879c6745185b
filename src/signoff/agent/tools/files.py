"""The tools that read and write files in the server's workspace.

Reading never asks for approval. Writing always does, with a diff on the card. If the file changes between the card and
the write, nothing is written and the tool asks again. The model reads the docstrings of the tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic_ai import ApprovalRequired, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.diffs import LARGEST, as_text, describe_change, is_diff
from signoff.agent.tools.handles import NotTaken
from signoff.agent.tools.paths import BadPath
from signoff.agent.tools.workspace import ABSENT, KB, MB, Changed, Workspace, digest_of, folder_name
from signoff.dataclass import dataclass
from signoff.gate.pending_call import Preview, call_info, own_preview

READ_AT_MOST = 256 * KB
WRITE_AT_MOST = 1 * MB


@dataclass(frozen=True, slots=True)
class FileTools:
    root: Path
    """The folder that contains one folder per server."""

    def reading(self) -> Tool[object]:
        return Tool(self.read_file, metadata={"approval": "never_require", "read_only": True})

    def writing(self) -> Tool[object]:
        return Tool(self.write_file, requires_approval=True, metadata={"preview": self.preview_write, "acts": True})

    def read_file(self, ctx: RunContext[object], path: str) -> str:
        """Read a text file of this server's workspace.

        Args:
            path: The file's path inside the workspace, for example notes/today.txt.
        """
        with in_words(path):
            data, size = self.workspace(ctx).read(path, READ_AT_MOST)
        text = as_text(data, is_cut=size > len(data))
        if text is None:
            raise ToolFailed(f'"{path}" is not UTF-8 text ({size} bytes), so it cannot be read here.')
        lines = text.count("\n") + (not text.endswith("\n") and bool(text))
        if size == len(data):
            return f"{path}: {_count(lines)}, {size} bytes.\n{text}"
        shown = len(text.encode())
        return f"{path}: only the first {shown} of {size} bytes ({_count(lines)}); {size - shown} are missing.\n{text}"

    def write_file(self, ctx: RunContext[object], path: str, content: str) -> str:
        """Write a whole text file in this server's workspace. A person must accept it first.

        Args:
            path: The file's path inside the workspace, for example notes/today.txt. Folders are made as needed.
            content: The whole new content.
        """
        data = encoded(content)
        workspace, info = self.workspace(ctx), call_info(ctx)
        seen = info.operands.get(path) if info else None
        if seen is None and ctx.tool_call_approved:
            raise ask_again(path)  # accepted, but the digest of the file at that time is not known
        try:
            with in_words(path):
                before = workspace.write(path, data, seen)
        except Changed:
            raise ask_again(path) from None
        if before.digest == digest_of(data):
            return f"Nothing to do: {path} has exactly this content already ({len(data)} bytes)."
        was = "a new file" if before.digest == ABSENT else f"before it was {before.size} bytes"
        return f"Wrote {path}: {len(data)} bytes; {was}."

    @own_preview
    async def preview_write(self, ctx: RunContext[object], path: str, content: str) -> Preview:
        """Return the diff and the digest of the present file. Raises ToolFailed if the write would be refused."""
        return await asyncio.to_thread(self._preview, ctx, path, encoded(content))

    def _preview(self, ctx: RunContext[object], path: str, data: bytes) -> Preview:
        with in_words(path):
            present = self.workspace(ctx).look(path, LARGEST)
        change = describe_change(path, present, data)
        # Without a diff, for example of a file that is too large to compare, the card must show the content itself.
        return Preview(change, {path: present.digest}, diff_of="content" if is_diff(change) else "")

    def workspace(self, ctx: RunContext[object]) -> Workspace:
        info = call_info(ctx)
        if info is None:
            raise ToolFailed("Refused: nobody says which server this call is for, so there is no workspace for it.")
        try:
            return Workspace(self.root, folder_name(info.place, info.asker))
        except NotTaken as refusal:
            raise ToolFailed(str(refusal)) from None


@contextmanager
def in_words(path: str) -> Generator[None]:
    """Turn every refusal and failure into a result that the model can act on."""
    try:
        yield
    except BadPath as refusal:
        raise ToolFailed(f"Refused: {refusal}.") from None
    except NotTaken as refusal:
        raise ToolFailed(str(refusal)) from None
    except OSError as error:
        raise ToolFailed(f'"{path}" could not be used: {error.strerror or type(error).__name__}.') from error


def ask_again(path: str, deed: str = "written") -> ApprovalRequired:
    summary = f"{path} has changed since it was approved: nothing was {deed}, look at the change again"
    return ApprovalRequired(metadata={"summary": summary, "path": path})


def encoded(content: str) -> bytes:
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise ToolFailed("Not written: the content has a lone surrogate, which is no text.") from None
    if len(data) > WRITE_AT_MOST:
        raise ToolFailed(f"Not written: the content is {len(data)} bytes, and {WRITE_AT_MOST} are allowed.")
    return data


def _count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"

"""The tools that change files of the server's workspace: write, edit, multi_edit and apply_patch.

Each always asks for approval, and the card shows the diff of every file. The digests of the files are operands of the
call: if a file changes between the card and the call, nothing is written and the tool asks again. A call changes all
its files or none. The model reads the docstrings of the tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.diffs import as_text, describe_change, describe_removal, is_diff
from signoff.agent.tools.files import FileTools, ask_again, encoded, in_words
from signoff.agent.tools.patches import FilePatch, parse_patch, patched
from signoff.agent.tools.replacements import NotApplicable, Replacement, replaced
from signoff.agent.tools.several_files import Change, write_several
from signoff.agent.tools.workspace import ABSENT, Changed, Workspace
from signoff.dataclass import dataclass
from signoff.gate.pending_call import Preview, call_info, own_preview

EDIT_AT_MOST = 1024 * 1024
Plan = Callable[[Workspace], Sequence[Change]]


class TextEdit(BaseModel):
    """One replacement in a file."""

    model_config = ConfigDict(extra="forbid")

    old_text: str = Field(description="The text to replace, exactly as it is in the file. It must occur once.")
    new_text: str = Field(description="The text that takes its place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence.")


@dataclass(frozen=True, slots=True)
class EditTools:
    root: Path
    """The folder that contains one folder per server."""

    def tools(self) -> list[Tool[object]]:
        files = FileTools(self.root)
        return [
            _asking(files.write_file, files.preview_write, "write"),
            _asking(self.edit, self.preview_edit, "edit"),
            _asking(self.multi_edit, self.preview_multi_edit, "multi_edit"),
            _asking(self.apply_patch, self.preview_patch, "apply_patch"),
        ]

    def edit(self, ctx: RunContext[object], path: str, old_text: str, new_text: str, replace_all: bool = False) -> str:
        """Replace one piece of a text file of this server's workspace. A person must accept it first.

        Args:
            path: The file's path inside the workspace, for example src/server.py.
            old_text: The text to replace, exactly as it is in the file. It must occur once.
            new_text: The text that takes its place.
            replace_all: Replace every occurrence.
        """
        return self._make(ctx, _replacing(path, [Replacement(old_text, new_text, replace_all)]))

    def multi_edit(self, ctx: RunContext[object], path: str, edits: list[TextEdit]) -> str:
        """Make several replacements in one text file of this server's workspace, in order. All are made, or none.

        Args:
            path: The file's path inside the workspace, for example src/server.py.
            edits: The replacements. Each is made in the result of those before it.
        """
        return self._make(ctx, _replacing(path, _replacements(edits)))

    def apply_patch(self, ctx: RunContext[object], path: list[str], patch: str) -> str:
        """Apply a unified diff to files of this server's workspace. All files are changed, or none.

        Args:
            path: The path of every file that the patch changes, in the order of the patch.
            patch: A unified diff with --- and +++ lines, as git makes them. /dev/null creates or deletes a file.
        """
        return self._make(ctx, _patching(path, patch))

    @own_preview
    async def preview_edit(
        self, ctx: RunContext[object], path: str, old_text: str, new_text: str, replace_all: bool = False
    ) -> Preview:
        plan = _replacing(path, [Replacement(old_text, new_text, replace_all)])
        return await self._show(ctx, plan, "old_text,new_text,")

    @own_preview
    async def preview_multi_edit(self, ctx: RunContext[object], path: str, edits: list[TextEdit]) -> Preview:
        return await self._show(ctx, _replacing(path, _replacements(edits)), "edits,")

    @own_preview
    async def preview_patch(self, ctx: RunContext[object], path: list[str], patch: str) -> Preview:
        return await self._show(ctx, _patching(path, patch), "patch,")

    def _make(self, ctx: RunContext[object], plan: Plan) -> str:
        info = call_info(ctx)
        seen: Mapping[str, str] = info.operands if info else {}
        with _in_words():
            changes = plan(workspace := FileTools(self.root).workspace(ctx))
            for change in changes:
                if ctx.tool_call_approved and seen.get(change.path) != change.before.digest:
                    raise ask_again(change.path)
            try:
                write_several(workspace, changes)
            except Changed:
                raise ask_again(", ".join(change.path for change in changes)) from None
        return "\n".join(_outcome(change) for change in changes)

    async def _show(self, ctx: RunContext[object], plan: Plan, instead_of: str) -> Preview:
        def look() -> Preview:
            with _in_words():
                changes = plan(FileTools(self.root).workspace(ctx))
            texts = [_description(change) for change in changes]
            # Without a diff, for example of a file that is too large to compare, the card must show the arguments.
            is_whole = all(map(is_diff, texts))
            operands = {change.path: change.before.digest for change in changes}
            return Preview("\n".join(texts), operands, diff_of=instead_of if is_whole else "")

        return await asyncio.to_thread(look)


def _asking(tool: Callable[..., str], preview: Callable[..., object], name: str) -> Tool[object]:
    return Tool(tool, name=name, requires_approval=True, metadata={"preview": preview, "acts": True})


def _replacements(edits: Sequence[TextEdit]) -> list[Replacement]:
    if not edits:
        raise ToolFailed("Not written: there is no edit in the list.")
    return [Replacement(one.old_text, one.new_text, one.replace_all) for one in edits]


def _replacing(path: str, replacements: Sequence[Replacement]) -> Plan:
    def plan(workspace: Workspace) -> list[Change]:
        with in_words(path):
            before = workspace.look(path, EDIT_AT_MOST)
        if before.digest == ABSENT:
            raise ToolFailed(f'There is no file "{path}" in this workspace.')
        text = _text(path, before.data)
        return [Change(path, before, encoded(replaced(path, text, replacements)))]

    return plan


def _patching(paths: Sequence[str], patch: str) -> Plan:
    """Plan a patch. The paths are an argument of their own, so that rules about `path` see them."""

    def plan(workspace: Workspace) -> list[Change]:
        files = parse_patch(patch)
        if list(paths) != (changed := [file.path for file in files]):
            raise NotApplicable(f"path must list the files of the patch in its order: {', '.join(changed)}")
        return [_patched(workspace, file) for file in files]

    return plan


def _patched(workspace: Workspace, file: FilePatch) -> Change:
    with in_words(file.path):
        before = workspace.look(file.path, EDIT_AT_MOST)
    if file.creates and before.digest != ABSENT:
        raise NotApplicable(f'the patch creates "{file.path}", which exists already')
    if not file.creates and before.digest == ABSENT:
        raise NotApplicable(f'there is no file "{file.path}" in this workspace')
    after = patched(file, _text(file.path, before.data))
    if file.deletes and after:
        raise NotApplicable(f'the patch deletes "{file.path}", but does not remove all its lines')
    return Change(file.path, before, None if file.deletes else encoded(after))


def _text(path: str, data: bytes | None) -> str:
    if data is None:
        raise ToolFailed(f'"{path}" is larger than {EDIT_AT_MOST} bytes, so it cannot be edited here.')
    text = as_text(data)
    if text is None:
        raise ToolFailed(f'"{path}" is not UTF-8 text, so it cannot be edited here.')
    return text


def _description(change: Change) -> str:
    if change.after is None:
        return describe_removal(change.path, change.before)
    return describe_change(change.path, change.before, change.after)


def _outcome(change: Change) -> str:
    if change.after is None:
        return f"Deleted {change.path}."
    verb = "Created" if change.before.digest == ABSENT else "Changed"
    return f"{verb} {change.path}: {change.before.size} bytes before, {len(change.after)} now."


@contextmanager
def _in_words() -> Generator[None]:
    try:
        with in_words("the workspace"):
            yield
    except NotApplicable as refusal:
        raise ToolFailed(f"Nothing was changed: {refusal}.") from None

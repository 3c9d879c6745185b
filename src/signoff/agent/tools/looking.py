"""The tools that look at the server's workspace and change nothing: read, list_dir, glob and grep. They never ask.

The model reads the docstrings of the tools.
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.diffs import as_text
from signoff.agent.tools.files import READ_AT_MOST, FileTools, in_words
from signoff.agent.tools.processes import Output, run_process
from signoff.agent.tools.walking import Entry, entries_of
from signoff.agent.tools.workspace import KB, MB, QUOTA, Workspace
from signoff.dataclass import dataclass

MOST_ENTRIES_SHOWN = 500
MOST_MATCHES = 200
LARGEST_SEARCHED = 1 * MB
SEARCH_SECONDS = 10.0
LONGEST_PATTERN = 500
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SEARCH = Path(__file__).with_name("search_process.py")


@dataclass(frozen=True, slots=True)
class LookingTools:
    root: Path
    """The folder that contains one folder per server."""

    def tools(self) -> list[Tool[object]]:
        functions: list[Callable[..., Any]] = [self.read, self.list_dir, self.glob, self.grep]
        return [Tool(function, metadata={"approval": "never_require", "read_only": True}) for function in functions]

    def read(
        self,
        ctx: RunContext[object],
        path: str,
        first_line: Annotated[int, Field(ge=1)] = 1,
        lines: Annotated[int, Field(ge=1, le=5000)] = 1000,
    ) -> str:
        """Read a text file of this server's workspace, or a part of it.

        Args:
            path: The file's path inside the workspace, for example src/server.py.
            first_line: The number of the first line to read.
            lines: How many lines to read at most.
        """
        with in_words(path):
            data, size = self._workspace(ctx).read(path, 20 * MB)
        text = as_text(data, is_cut=size > len(data))
        if text is None:
            raise ToolFailed(f'"{path}" is not UTF-8 text ({size} bytes), so it cannot be read here.')
        every = _LINE.findall(text)
        part = "".join(every[first_line - 1 : first_line - 1 + lines])
        if every and first_line > len(every):
            raise ToolFailed(f'"{path}" has {len(every)} lines, so there is no line {first_line}.')
        shown = part.encode()[:READ_AT_MOST].decode(errors="ignore")
        last = first_line - 1 + len(_LINE.findall(shown))
        whole = shown == text and size == len(data)
        which = f"{len(every)} lines" if whole else f"lines {first_line} to {last} of {len(every)}"
        return f"{path}: {which}, {size} bytes in all.\n{shown}"

    def list_dir(self, ctx: RunContext[object], path: str = "") -> str:
        """List one folder of this server's workspace.

        Args:
            path: The folder's path inside the workspace; empty for the workspace itself.
        """
        with in_words(path or "the workspace"):
            entries = list(entries_of(self._workspace(ctx), path, deep=False))
            if not entries and path and not self._is_folder(ctx, path):
                raise ToolFailed(f'There is no folder "{path}" in this workspace.')
        return _listed(entries, f"{path or 'The workspace'} is empty.")

    def glob(self, ctx: RunContext[object], pattern: str) -> str:
        """Find files of this server's workspace by their path.

        Args:
            pattern: For example *.py for the files of the workspace itself, or **/*.py for those of all folders.
        """
        matches = _glob(pattern)
        with in_words("the workspace"):
            entries = [one for one in entries_of(self._workspace(ctx)) if one.kind == "file" and matches(one.path)]
        return _listed(entries, f"No file matches {pattern}.")

    async def grep(self, ctx: RunContext[object], pattern: str, files: str = "**", ignore_case: bool = False) -> str:
        """Search the text files of this server's workspace line by line.

        Args:
            pattern: A regular expression, as Python has them.
            files: Which files to search, for example src/**/*.py.
            ignore_case: Whether upper and lower case are the same.
        """
        if len(pattern) > LONGEST_PATTERN:
            raise ToolFailed(f"The pattern is longer than {LONGEST_PATTERN} characters.")
        try:
            with warnings.catch_warnings(action="ignore"):  # for example about [[:alpha:]]
                re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolFailed(f"This is not a regular expression: {error}.") from None
        texts = await asyncio.to_thread(self._texts, self._workspace(ctx), _glob(files))
        asked = {"pattern": pattern, "ignore_case": ignore_case, "most": MOST_MATCHES, "texts": texts}
        output = Output(shown=256 * KB, kept=8 * MB)  # more than all matches can have, with every character escaped
        ended = await run_process(
            [sys.executable, "-I", "-S", "-W", "ignore", str(_SEARCH)],  # a warning is not a match
            output,
            folder=Path("/"),
            environment={"LANG": "C.UTF-8"},
            seconds=SEARCH_SECONDS,
            given=json.dumps(asked).encode(),
        )
        if ended.stopped:
            raise ToolFailed(f"The search was stopped: {ended.stopped}. Write a simpler pattern.")
        if ended.code:
            raise ToolFailed(f"The search failed: {output.text()[-300:]}")
        found: list[str] = [json.loads(line) for line in output.whole.decode().splitlines()]
        if not found:
            return f"No line of {len(texts)} files matches {pattern}."
        if found[-1] == "more":
            found[-1] = f"There are more than {MOST_MATCHES} matches; the rest is left out."
        return "\n".join(found)

    def _texts(self, workspace: Workspace, matches: Callable[[str], bool]) -> list[tuple[str, str]]:
        texts: list[tuple[str, str]] = []
        total = 0
        with in_words("the workspace"):
            for entry in entries_of(workspace):
                if entry.kind != "file" or entry.size > LARGEST_SEARCHED or not matches(entry.path):
                    continue
                try:
                    with in_words(entry.path):
                        data, _ = workspace.read(entry.path, LARGEST_SEARCHED)
                except ToolFailed:
                    continue  # for example a hard link, or a name that no file tool takes
                total += len(data)
                if total > QUOTA:  # a command may have left more than a workspace should have
                    raise ToolFailed(f"The files have more than {QUOTA // MB} MB together. Name fewer with files.")
                if (text := as_text(data)) is not None:
                    texts.append((entry.path, text))
        return texts

    def _is_folder(self, ctx: RunContext[object], path: str) -> bool:
        return any(one.path == path and one.kind == "folder" for one in entries_of(self._workspace(ctx)))

    def _workspace(self, ctx: RunContext[object]) -> Workspace:
        return FileTools(self.root).workspace(ctx)


def _listed(entries: list[Entry], nothing: str) -> str:
    if not entries:
        return nothing
    words = {"folder": "/", "link": " (a link, which is not followed)", "other": " (not an ordinary file)"}
    lines = [
        f"{_shown(one.path)} ({one.size} bytes)" if one.kind == "file" else f"{_shown(one.path)}{words[one.kind]}"
        for one in entries[:MOST_ENTRIES_SHOWN]
    ]
    more = len(entries) - MOST_ENTRIES_SHOWN
    return "\n".join([*lines, *([f"{more} more are left out."] if more > 0 else [])])


def _shown(path: str) -> str:
    """Return a path with escapes for line breaks and for bytes that are no text. Commands can make any name."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in path)


def _glob(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a path matches: * stays within one name, ** crosses folders."""
    if len(pattern) > LONGEST_PATTERN or pattern.count("*") > 20 or pattern.count("**") > 3:
        raise ToolFailed("The pattern is too long, or has too many wildcards.")
    parts = pattern.removeprefix("./").split("/")

    def match(wanted: list[str], names: list[str]) -> bool:
        if not wanted:
            return not names
        if wanted[0] == "**":
            rest = wanted[1:]
            return not rest or any(match(rest, names[index:]) for index in range(len(names) + 1))
        return bool(names) and fnmatch.fnmatchcase(names[0], wanted[0]) and match(wanted[1:], names[1:])

    return lambda path: match(parts, path.split("/"))

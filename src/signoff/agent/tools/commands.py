"""The tools that run commands in the server's workspace: bash, which always asks, and diagnostics, which only reads.

`isolation` says how a command runs, and the card of bash says it too. Files of the workspace that a command names are
operands of the call: if one changes between the card and the call, the tool asks again. The model reads the docstrings.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools.files import FileTools, in_words
from signoff.agent.tools.handles import NotTaken
from signoff.agent.tools.isolation import Isolation
from signoff.agent.tools.paths import BadPath, split_path
from signoff.agent.tools.processes import Ended, Output, Watch, run_process
from signoff.agent.tools.walking import Usage, usage
from signoff.agent.tools.workspace import ABSENT, KB, MB, MOST_ENTRIES, QUOTA, Workspace
from signoff.approvals.shell_words import read_line
from signoff.dataclass import dataclass
from signoff.gate.pending_call import Preview

SHOWN = 12 * KB
"""How much of each end of the output the model reads."""
LOGGED = 2 * MB
"""How much of a long output is kept in the workspace."""
LONGEST_COMMAND = 20_000
MOST_OPERANDS = 200
MARGIN = 5.0
"""Seconds between the longest time of a command and the time at which its call is given up."""
LOGS = "bash-output"
_SHELL = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
_NOTHING = Usage(0, 0)
_BETWEEN = re.compile(r"[\s<>|;&()'\"=]+")
_LIMITED = 'ulimit -c 0; ulimit -f "$1"; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class CommandTools:
    root: Path
    """The folder that contains one folder per server."""
    isolation: Isolation
    longest: float = 120.0
    """Seconds after which the call of any tool is given up."""
    checker: tuple[str, ...] = ()
    """The command of diagnostics; empty: the tool is not offered."""

    def running(self) -> Tool[object]:
        metadata = {"preview": self.preview_bash, "shell": "command", "acts": True}
        tool: Tool[object] = Tool(self.bash, requires_approval=True, metadata=metadata)
        # A decision is bound to the tool's schema. So one that was made for the sandbox does not hold without it.
        tool.function_schema.json_schema["properties"]["command"]["description"] += f" It runs {self.isolation.words}."
        return tool

    def checking(self) -> Tool[object]:
        # A checker may run code of the workspace, such as a plugin that a settings file names. Only the sandbox makes
        # that harmless.
        if not self.isolation.bubblewrap:
            return Tool(self.diagnostics, requires_approval=True, metadata={"acts": True})
        return Tool(self.diagnostics, metadata={"approval": "never_require", "read_only": True})

    async def bash(
        self, ctx: RunContext[object], command: str, seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    ) -> str:
        """Run a shell command in this server's workspace. A person must accept it first.

        Args:
            command: The command line, for example python3 -m unittest.
            seconds: How long it may take.
        """
        _check(command)
        workspace = FileTools(self.root).workspace(ctx)
        home = await asyncio.to_thread(_folder_of, workspace)
        # In a workspace that is too full already, a command may go on as long as it adds nothing: it may be deleting.
        before = await asyncio.to_thread(_used, workspace)

        async def watch() -> str:
            return await asyncio.to_thread(_too_full, workspace, before)

        output = Output(SHOWN, LOGGED)
        words = ["/bin/sh", "-c", _LIMITED, "sh", str(QUOTA // 512), _SHELL, "-c", command]
        limit = min(float(seconds), max(1.0, self.longest - MARGIN))
        ended = await self._run(words, home, output, limit, watch)
        await asyncio.to_thread(_open_again, home)
        full = await asyncio.to_thread(_too_full, workspace, _NOTHING)
        notes = [f"Whole output: {log}." for log in await asyncio.to_thread(_keep_log, workspace, output)]
        notes += [f"The workspace is too full: {full}. Writing is refused until something is deleted."] if full else []
        text = "\n".join([f"{_outcome(ended)}, {self.isolation.words}.", *notes, output.text()]).rstrip()
        if ended.stopped:
            raise ToolFailed(text)
        return text

    async def diagnostics(self, ctx: RunContext[object], path: str = "") -> str:
        """Check the files of this server's workspace with the checker that the operator chose. It changes nothing.

        Args:
            path: A file or folder inside the workspace; empty for everything.
        """
        workspace = FileTools(self.root).workspace(ctx)
        home = await asyncio.to_thread(_folder_of, workspace)
        with in_words(path):
            names = split_path(path) if path else ()
        if names and not await asyncio.to_thread(os.path.lexists, home.joinpath(*names)):
            raise ToolFailed(f'There is no file or folder "{path}" in this workspace.')
        output = Output(SHOWN, LOGGED)
        words = [*self.checker, *(["./" + "/".join(names)] if names else [])]
        checking = replace(self, isolation=replace(self.isolation, network=False))
        ended = await checking._run(words, home, output, max(1.0, self.longest - MARGIN), writable=False)
        text = f"{_outcome(ended)}.\n{output.text()}".rstrip()
        if ended.stopped:
            raise ToolFailed(text)
        return text

    async def preview_bash(self, ctx: RunContext[object], command: str, seconds: int = 60) -> Preview:
        """Return how the command would run, and the digests of the files that it names."""
        _check(command)
        workspace = FileTools(self.root).workspace(ctx)
        operands = await asyncio.to_thread(_named_files, workspace, command)
        return Preview(f"Runs {self.isolation.words}.", operands)

    async def _run(
        self,
        words: Sequence[str],
        home: Path,
        output: Output,
        seconds: float,
        watch: Watch | None = None,
        *,
        writable: bool = True,
    ) -> Ended:
        command = self.isolation.command(words, home, writable=writable)
        environment = self.isolation.environment(home)
        try:
            return await run_process(
                command,
                output,
                folder=home,
                environment=environment,
                seconds=seconds,
                watch=watch,
            )
        except OSError as error:
            raise ToolFailed(f"Not run: {words[0]} could not be started ({error.strerror}).") from error


def _check(command: str) -> None:
    if not command.strip():
        raise ToolFailed("Not run: the command is empty.")
    if len(command) > LONGEST_COMMAND:
        raise ToolFailed(f"Not run: the command is longer than {LONGEST_COMMAND} characters. Write a script first.")
    if "\0" in command:
        raise ToolFailed("Not run: the command has a NUL character.")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise ToolFailed("Not run: the command has a lone surrogate, which is no text.") from None


def _folder_of(workspace: Workspace) -> Path:
    """Return the folder of the workspace, which is created if necessary and is not a link."""
    with in_words("the workspace"):
        workspace.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _open_again(workspace.root / workspace.name)
        with workspace.opened(make=True):
            return (workspace.root / workspace.name).resolve()


def _open_again(home: Path) -> None:
    """Give the bot its rights to the folder back, which a command may have taken away: then no tool could use it."""
    with suppress(FileNotFoundError):
        status = home.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            home.chmod(stat.S_IMODE(status.st_mode) | stat.S_IRWXU)


def _named_files(workspace: Workspace, command: str) -> dict[str, str]:
    """Return path -> digest of the workspace's files that the words of a command name."""
    read = [word for one in read_line(command).commands for word in one if word]
    # Also the targets of redirections, values of options, and everything in a line that cannot be read.
    pieces = _BETWEEN.split(command)
    words = dict.fromkeys(word.removeprefix("./") for word in (*read, *pieces) if word)
    operands: dict[str, str] = {}
    for word in words:
        with suppress(BadPath, NotTaken, OSError):
            present = workspace.look(word, 0)
            if present.digest != ABSENT and len(operands) < MOST_OPERANDS:
                operands[word] = present.digest
    return operands


def _used(workspace: Workspace) -> Usage:
    try:
        return usage(workspace)
    except OSError:
        return _NOTHING


def _too_full(workspace: Workspace, before: Usage) -> str:
    """Return why the workspace is too full, empty if it is not, or if it was as full before."""
    try:
        used = usage(workspace)
    except OSError as error:
        return f"its size cannot be measured ({error.strerror})"
    if used.bytes > max(QUOTA, before.bytes):
        return f"it holds {used.bytes // MB} MB, and {QUOTA // MB} are allowed"
    if used.entries > max(MOST_ENTRIES, before.entries):
        return f"it holds {used.entries} files and folders, and {MOST_ENTRIES} are allowed"
    return ""


def _keep_log(workspace: Workspace, output: Output) -> list[str]:
    """Write a long output into the workspace, and return the name of its file."""
    if not output.is_cut:
        return []
    with suppress(NotTaken, OSError, BadPath):
        for number in range(1, 100):
            name = f"{LOGS}/{number}.txt"
            if workspace.look(name, 0).digest == ABSENT:
                workspace.write(name, bytes(output.whole), ABSENT)
                left_out = output.size - len(output.whole)
                return [f"{name}, without its last {left_out} bytes" if left_out > 0 else name]
    return []


def _outcome(ended: Ended) -> str:
    if ended.stopped:
        return f"Stopped, because {ended.stopped}"
    return f"Exit code {ended.code}" if ended.code >= 0 else f"Ended by signal {-ended.code}"

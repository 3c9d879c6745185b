"""A simulated machine for the demo's incident: a tool that looks at its disk, which is full whenever somebody looks.

The log that fills it is a real file in the server's workspace. If an earlier incident deleted or emptied the log, this
tool writes it again, so that each incident begins anew. A log with content is left alone: an open card may be about it.
Only the sandbox loads this tool, as a plugin.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pydantic_ai import RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.demo.full_log import LOG, MACHINE, full_log
from signoff.agent.tools.files import FileTools, in_words
from signoff.agent.tools.workspace import Changed
from signoff.dataclass import dataclass


def machine_tools(root: Path) -> list[Tool[object]]:
    """Return the tools of a plugin. `root` is the folder of the file tools."""
    return [Tool(Machine(root).check_disk, metadata={"approval": "never_require", "read_only": True})]


@dataclass(frozen=True, slots=True)
class Machine:
    root: Path

    def check_disk(self, ctx: RunContext[object], host: str) -> str:
        """Show how full the disk of a machine is, and which file fills it.

        Args:
            host: The machine's name, for example web-1.
        """
        if host != MACHINE:
            raise ToolFailed(f'There is no machine "{host}" here, only {MACHINE}, which is simulated.')
        workspace = FileTools(self.root).workspace(ctx)
        with in_words(LOG):
            log = workspace.look(LOG, 0)
            if not log.size:
                with suppress(Changed):  # somebody else wrote a log at the same moment
                    workspace.write(LOG, full_log(), log.digest)
                log = workspace.look(LOG, 0)
        return (
            f"{MACHINE} (simulated): the disk is full, 0 bytes are free. The largest file is {LOG}, {log.size} bytes."
        )

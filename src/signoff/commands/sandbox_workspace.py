"""The files that the sandbox's demo works with: a log that has filled the disk, and the plugin with its machine."""

from __future__ import annotations

from pathlib import Path

from signoff.agent.demo.full_log import LOG, full_log

PLUGIN = "machine.py"
_PLUGIN = '''\
"""Written by the sandbox: the simulated machine of its incident."""

from pathlib import Path

from signoff.agent.demo.machine import machine_tools

tools = machine_tools(Path(__file__).with_name("{workspace}"))
'''


def seed_workspace(workspace: Path, server: int) -> None:
    """Write the log into the server's folder if there is none, or if it was cleaned up in an earlier run."""
    log = workspace / str(server) / LOG
    if log.exists() and log.stat().st_size:
        return
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.write_bytes(full_log())
    log.chmod(0o600)


def write_plugin(folder: Path, workspace: str) -> None:
    """Write the plugin beside the sandbox's rules. `workspace` is the name of the folder of the file tools there."""
    (folder / PLUGIN).write_text(_PLUGIN.format(workspace=workspace), encoding="utf-8")

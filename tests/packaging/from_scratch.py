"""Clones this repository and types what a newcomer types, beginning with `make run`. `make soak` runs it.

It installs every package, so it takes a minute or more and needs a package index. Usage: `python from_scratch.py`
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALLING = 540
COMMANDS = (
    ".venv/bin/signoff version",
    ".venv/bin/signoff init mine",
    "cd mine && ../.venv/bin/signoff check",
    "python3 main.py version",
    "python3 main.py chat",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "signoff"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        start(clone)
        for command in COMMANDS:
            done = subprocess.run(
                command, shell=True, cwd=clone, env=newcomer(), stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=120,
            )  # fmt: skip
            if done.returncode:
                sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
            print(f"{command}: {done.stdout.strip().splitlines()[-1]}")


def newcomer() -> dict[str, str]:
    """Return the environment without this Python's programs and without settings of Signoff."""
    folders = [one for one in os.environ["PATH"].split(":") if not (Path(one) / "signoff").exists()]
    ours = ("SIGNOFF_", "DISCORD_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"PATH": ":".join(folders)}


def start(clone: Path) -> None:
    """Type `make run`, wait for its address, and stop it with Ctrl-C."""
    began, log = time.monotonic(), clone.parent / "run.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["make", "run"], cwd=clone, env=newcomer(), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        while "Open http://" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() - began > INSTALLING:
                sys.exit(f"make run printed no address:\n{log.read_text()}")
            time.sleep(0.2)
        print(f"make run: an address after {time.monotonic() - began:.0f} s")
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()

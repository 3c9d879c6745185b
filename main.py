"""`python3 main.py`: Discord if a token is set, else the sandbox. Uses `.venv` once `make run` has made it."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

VENV = Path(__file__).resolve().parent / ".venv"
PYTHON = VENV / "Scripts" / "python.exe" if os.name == "nt" else VENV / "bin" / "python"
NEEDED = ("signoff", "discord", "pydantic_ai", "typer")


def main() -> None:
    if not all(map(find_spec, NEEDED)):  # this Python is not the one of .venv
        if not PYTHON.exists() or Path(sys.executable) == PYTHON:
            raise SystemExit("signoff: not set up yet; run `make run` once, then try again")
        command = [str(PYTHON), *sys.argv]
        if os.name == "nt":  # there, exec would return to the prompt before the program has ended
            raise SystemExit(subprocess.call(command))
        os.execv(PYTHON, command)
    from signoff.cli import main as run

    run()


if __name__ == "__main__":
    main()

"""`python3 main.py`: Discord if a token is set, else the sandbox. Uses `.venv` once `make run` has made it."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

PYTHON = Path(__file__).resolve().parent / ".venv" / "bin" / "python"


def main() -> None:
    if find_spec("signoff") is None:  # this Python is not the one of .venv
        if not PYTHON.exists():
            raise SystemExit("signoff: not set up yet; run `make run` once, then try again")
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    from signoff.cli import main as run

    run()


if __name__ == "__main__":
    main()

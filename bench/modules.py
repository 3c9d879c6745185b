"""Prints the milliseconds in which Signoff's own modules load, when everything that they import is loaded already.

`python -m bench.modules FILE`. The file names the modules of a bot in the order in which it has loaded them: `make
bench` starts one and writes that file.
"""

from __future__ import annotations

import gc
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path


def main(names: list[str]) -> None:
    for name in names:
        if name.split(".")[0] != "signoff":
            with suppress(Exception):  # some are no modules by themselves
                import_module(name)
    gc.disable()  # as the bot does while it loads
    began = time.perf_counter()
    for name in names:
        if name.split(".")[0] == "signoff":
            import_module(name)
    print((time.perf_counter() - began) * 1000)


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_text(encoding="utf-8").split())

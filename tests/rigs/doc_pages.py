"""The pages that users read, and the examples on them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    file.relative_to(ROOT).as_posix() for file in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if file.is_file()
)
REFERENCE = [name for name in PAGES if name.startswith("docs/") and "/decisions/" not in name]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def examples(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL)


WITH_PYTHON = [name for name in PAGES if examples(name, "python")]


def program(page: str) -> str:
    """Return all Python examples of a page, in order: they build on each other."""
    return "\n".join(examples(page, "python"))

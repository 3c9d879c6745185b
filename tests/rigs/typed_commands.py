"""The commands that README.md and docs/*.md tell people to type, and a copy of the repository to type them in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.rigs.doc_pages import REFERENCE, ROOT, read

PAGES = ["README.md", *REFERENCE]
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`((?:make|\.venv/bin/[^\s`]+|python3 main\.py)(?: [^`]+)?)`")
_BEGINS = re.compile(r"^ *(?:\$ )?(?:make|pip|python3?|git|signoff|\.venv/\S+) ", re.MULTILINE)

OWN = ("data", "backups")
"""Folders that the commands themselves write to."""


def commands() -> dict[str, str]:
    """Return command -> the first page that has it, in the order of the pages."""
    typed: dict[str, str] = {}
    for page in PAGES:
        text = read(page)
        for language, block in _FENCE.findall(text):
            for command in _of_block(language, block):
                typed.setdefault(command, page)
        for command in _INLINE.findall(_FENCE.sub("", text)):
            typed.setdefault(" ".join(command.split()), page)
    return typed


def unmarked_blocks() -> list[str]:
    """Return blocks that hold commands but are not marked as sh or console, so that nobody would run them."""
    blocks = [(page, language, block) for page in PAGES for language, block in _FENCE.findall(read(page))]
    return [f"{page}: {block}" for page, language, block in blocks if not language and _BEGINS.search(block)]


def _of_block(language: str, block: str) -> list[str]:
    lines = [line.strip() for line in block.splitlines()]
    if language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    elif language != "sh":
        return []
    return [re.split(r"\s+#\s", line)[0].strip() for line in lines if line and not line.startswith("#")]


def copy_repository(folder: Path) -> Path:
    """Copy the files that git knows, with a .venv that leads to the packages of this Python.

    It looks finished to make, so no command installs anything into it.
    """
    copy = folder / "signoff"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    venv = copy / ".venv"
    venv.mkdir()
    for part in ("bin", "lib", "include", "pyvenv.cfg"):
        (venv / part).symlink_to(Path(sys.prefix) / part)
    for mark in (".runs", ".ready"):
        (venv / mark).touch()
    return copy


def copy_again(copy: Path, folder: Path) -> Path:
    """Copy a copy of the repository, so that a command finds no traces of another. Files of the program are linked."""
    again = folder / "signoff"
    shutil.copytree(
        copy, again, symlinks=True, copy_function=os.link, ignore=lambda place, _: OWN if place == str(copy) else ()
    )
    for name in OWN:
        if (copy / name).exists():
            shutil.copytree(copy / name, again / name)
    return again

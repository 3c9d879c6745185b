"""Every block of docs/library.md runs, in order, as one program; and the page names everything that is public."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import signoff
from signoff.gate.inline import How
from signoff.library.decider import ApprovalMode

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join(BLOCKS), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "delete_file {'path': 'a', 'force': False}" in done.stdout


def test_the_blocks_are_all_python() -> None:
    assert len(BLOCKS) == PAGE.count("```") // 2 > 5


@pytest.mark.parametrize("name", signoff.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert re.search(rf"\b{name}\b", PAGE)


@pytest.mark.parametrize("word", [*inspect.signature(signoff.run_with_approval).parameters, *get_args(How)])
def test_every_parameter_and_every_way_to_decide_is_on_the_page(word: str) -> None:
    if word not in ("agent", "prompt"):
        assert re.search(rf"`{word}\b|\b{word}=", PAGE)


@pytest.mark.parametrize("mode", get_args(ApprovalMode))
def test_every_mode_is_on_the_page(mode: str) -> None:
    assert f"`{mode}`" in PAGE


def test_sync_and_async_take_the_same_parameters() -> None:
    for name in ("run_with_approval", "collect_approvals"):
        one, other = (inspect.signature(getattr(signoff, f)).parameters for f in (name, f"{name}_sync"))
        assert {k: v.default for k, v in one.items()} == {k: v.default for k, v in other.items()}

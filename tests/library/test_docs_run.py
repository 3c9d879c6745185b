"""Every Python example of the README and of docs runs, in order, as one program per page; plugins load as plugins.

Another check is that docs/library.md names everything that is public. tests/packaging type-checks the same examples in
strict mode.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

import signoff
from signoff.agent.setup import Brain
from signoff.config.schema import load_config
from signoff.gate.inline import How
from signoff.library.run import AllOptions
from signoff.library.settings import Settings, SignoffOptions
from signoff.library.ui import ApprovalMode
from tests.rigs.doc_pages import WITH_PYTHON, examples, program, read
from tests.rigs.nursery import PIPE, execute

PAGE = read("docs/library.md")


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON)
async def test_the_examples_of_a_page_run_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    file = tmp_path / "page.py"
    file.write_text(program(page), encoding="utf-8")
    process = await execute(str(file), cwd=tmp_path, stdout=PIPE, stderr=PIPE)
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, errors.decode()
    if page == "docs/library.md":
        assert "delete_file {'path': 'a', 'force': False}" in output.decode()


def test_there_are_examples_to_run() -> None:
    assert {"README.md", "docs/library.md", "docs/tools.md"} <= set(WITH_PYTHON)
    assert len(examples("docs/library.md", "python")) == PAGE.count("```") // 2 > 5


def test_the_plugin_of_the_readme_is_one_and_its_rules_apply(tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(program("README.md"), encoding="utf-8")
    (config,) = examples("README.md", "toml")
    (tmp_path / "signoff.toml").write_text(config, encoding="utf-8")
    brain = Brain.build(load_config(tmp_path / "signoff.toml", required=True), "demo")
    lines = dict(line.split(": ", 1) for line in brain.verdicts)
    assert lines["restart"] == "ask (declared; rules on its arguments apply too)"
    assert lines["resize"] == "depends on its arguments"


def test_the_plugin_of_the_page_on_tools_is_one(tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(program("docs/tools.md"), encoding="utf-8")
    (tmp_path / "signoff.toml").write_text('[tools]\nplugins = ["my_tools.py"]\n', encoding="utf-8")
    brain = Brain.build(load_config(tmp_path / "signoff.toml", required=True), "demo")
    lines = dict(line.split(": ", 1) for line in brain.verdicts)
    assert lines["restart"] == "ask (declared)"
    assert lines["scale"] == "depends on its arguments"
    assert {"resize", "uptime", "ask_helper"} < set(lines)


def test_every_public_name_is_on_the_page() -> None:
    assert signoff.__all__
    assert [name for name in [*signoff.__all__, "TerminalUI"] if not re.search(rf"\b{name}\b", PAGE)] == []


def test_every_parameter_and_every_way_to_decide_is_on_the_page() -> None:
    for words in (AllOptions.__annotations__, SignoffOptions.__annotations__, get_args(How)):
        assert words
        assert [word for word in words if not re.search(rf"`{word}\b|\b{word}=", PAGE)] == []


def test_signoff_has_a_default_for_each_of_its_options() -> None:
    assert {field.name for field in fields(Settings)} == set(SignoffOptions.__annotations__)


@pytest.mark.parametrize("mode", get_args(ApprovalMode))
def test_every_mode_is_on_the_page(mode: str) -> None:
    assert f"`{mode}`" in PAGE


def test_sync_and_async_take_the_same_parameters() -> None:
    for name in ("run_with_approval", "collect_approvals"):
        one, other = (inspect.signature(getattr(signoff, f)).parameters for f in (name, f"{name}_sync"))
        assert {k: v.default for k, v in one.items()} == {k: v.default for k, v in other.items()}
    run, run_sync = signoff.run_with_approval, signoff.run_with_approval_sync
    assert run.__annotations__["options"] == run_sync.__annotations__["options"]

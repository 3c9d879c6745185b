"""The import rules of pyproject.toml hold for files and packages that do not exist yet; and those of the tests hold."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINT = Path(sys.executable).parent / "lint-imports"

NEW_FILES = {
    "signoff/cards/brand_new.py": "discord",
    "signoff/approvals/brand_new.py": "discord",
    "signoff/agent/brand_new.py": "discord",
    "signoff/core.py": "discord",
    "signoff/brand_new_file.py": "discord",
    "signoff/brand_new_package/__init__.py": "discord",
    "signoff/brand_new_package/inner.py": "discord",
    "discord_sandbox/brand_new.py": "discord",
    "signoff/bot/brand_new.py": "pydantic_ai",
    "signoff/turns/brand_new.py": "pydantic_ai",
    "signoff/terminal/brand_new.py": "pydantic_ai",
    "signoff/another_package/__init__.py": "pydantic_ai",
    "discord_sandbox/another.py": "pydantic_ai",
}
"""A file below src -> a package that it must not import."""
ALLOWED = {"signoff/bot/allowed.py": "discord", "signoff/gate/allowed.py": "pydantic_ai"}


def lint(folder: Path, files: dict[str, str]) -> tuple[int, str]:
    """Run `lint-imports` on a copy of the source with these files added; return the exit code and the output."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, imported in files.items():
        path = folder / "src" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(f"\nimport {imported}\n")
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    ended = subprocess.run([LINT, "--no-cache"], cwd=folder, env=environment, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.slow
def test_the_source_keeps_the_rules_and_allowed_imports_pass(tmp_path: Path) -> None:
    code, output = lint(tmp_path, ALLOWED)
    assert code == 0, output


@pytest.mark.slow
def test_a_forbidden_import_breaks_the_rules_wherever_it_is_new(tmp_path: Path) -> None:
    code, output = lint(tmp_path, NEW_FILES)
    assert code != 0
    for name, imported in NEW_FILES.items():
        importer = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert f"{importer} -> {imported}" in output, output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["signoff/brand_new_file.py", "signoff/brand_new_package/__init__.py"])
def test_a_new_module_without_a_layer_breaks_the_rules(name: str, tmp_path: Path) -> None:
    code, output = lint(tmp_path, {name: "json"})
    assert code != 0
    assert "brand_new" in output


def test_no_test_imports_from_another_test() -> None:
    """Several tests share a helper by having it in `rigs`; otherwise nobody finds it."""
    imports = re.compile(r"^from tests\.[\w.]*\btest_\w+ import", re.MULTILINE)
    files = list((ROOT / "tests").rglob("*.py"))
    assert [str(file) for file in files if imports.search(file.read_text(encoding="utf-8"))] == []

"""The wheel, installed in a clean virtual environment: nothing is missing from it, and the library needs few packages.

No test here uses the network. The environments see the packages that are installed beside pytest, but not Signoff's
source: `pip install --editable` adds that through a .pth file, which Python reads only in an environment's own folder.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import signoff
from tests.rigs.doc_pages import WITH_PYTHON, program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PARTS = ("src", "README.md", "LICENSE", "pyproject.toml")
PROMISED = f"from signoff import {', '.join(signoff.__all__)}"
FORBIDDEN = ("discord", "rich", "typer", "markdown_it", "dotenv", "pydantic_settings", "aiohttp", "fastmcp", "openai")


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, so that no build folder is left in the checkout."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    source.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            leave_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / part, source / part, ignore=leave_out)
        else:
            shutil.copy(ROOT / part, source / part)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder, source, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def environment(folder: Path, wheel: Path, packages: Path) -> Path:
    """Make a virtual environment with the wheel; it finds everything else in `packages`. Return its bin folder."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-index", "--no-deps", "--no-compile", wheel, cwd=folder.parent)
    (site,) = folder.glob("lib/python3.*/site-packages")
    (site / "others.pth").write_text(f"{packages}\n", encoding="utf-8")
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("full") / "venv", wheel, pytest_site())


@pytest.fixture(scope="module")
def lean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with PydanticAI's core package and its requirements only: no discord.py, no rich, no typer."""
    folder = tmp_path_factory.mktemp("lean")
    packages = folder / "packages"
    packages.mkdir()
    for name in required_by("pydantic-ai-slim"):
        for part in top_level(metadata.distribution(name)):
            if not (packages / part.name).exists():
                (packages / part.name).symlink_to(part)
    return environment(folder / "venv", wheel, packages)


def pytest_site() -> Path:
    return Path(str(metadata.distribution("pytest").locate_file("")))


def required_by(name: str) -> set[str]:
    """Return a distribution and all that it requires here, without its optional extras."""
    names: set[str] = set()
    todo = [(name, "")]
    while todo:
        current, extra = todo.pop()
        names.add(current)
        for text in metadata.requires(current) or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                key = re.sub(r"[-_.]+", "-", wanted.name).lower()
                todo += [(key, part) for part in ("", *wanted.extras) if key not in names or part]
    return names


def top_level(distribution: metadata.Distribution) -> Iterator[Path]:
    """Yield the folders and modules that a distribution put into site-packages, and its metadata."""
    names = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    yield from (Path(str(distribution.locate_file(name))).resolve() for name in sorted(names))


def data_files(package: str, patterns: Iterable[str]) -> set[str]:
    source = ROOT / "src" / package
    return {
        f"{package}/{file.relative_to(source).as_posix()}"
        for pattern in patterns
        for file in source.glob(pattern)
        if file.is_file()
    }


def test_the_wheel_holds_every_module_and_every_data_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    migrations = data_files("signoff", ["store/migrations/*.sql"])
    page = data_files("discord_sandbox", ["web/static/**/*"])
    assert migrations
    assert page
    wanted = migrations | page | {"signoff/py.typed", "discord_sandbox/py.typed"}
    for package in ("signoff", "discord_sandbox"):
        wanted |= data_files(package, ["**/*.py", "README.md"])
    assert wanted <= names
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"signoff", "discord_sandbox"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_metadata_says_the_one_version_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        about = file.read(name).decode()
    assert f"\nVersion: {signoff.__version__}\n" in about
    assert "\nLicense-Expression: MIT\n" in about
    for wanted in ("discord.py", "pydantic-ai", "python-dotenv"):
        assert re.search(rf"^Requires-Dist: {re.escape(wanted)}\b(?!.*extra)", about, re.MULTILINE)
    assert not re.search(r"^Requires-Dist: (?:pytest|playwright|pyright|ruff)\b(?!.*extra)", about, re.MULTILINE)


def test_the_console_script_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "signoff", "version", cwd=tmp_path).strip() == signoff.__version__
    shown = run(installed / "signoff", "--help", cwd=tmp_path)
    assert all(command in shown for command in ("discord", "sandbox", "chat", "audit", "version"))


def test_the_code_comes_from_the_wheel_and_not_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    shown = run(
        installed / "python",
        "-c",
        "import signoff, discord_sandbox; print(signoff.__file__, discord_sandbox.__file__)",
        cwd=tmp_path,
    )
    for file in shown.split():
        assert Path(file).is_relative_to(installed.parent)


def test_the_installed_program_opens_a_database_and_asks(installed: Path, tmp_path: Path) -> None:
    """The migrations must be found in the installed package."""
    typed = 'please run the test approval tool with parameter "hello"\na\n'
    talk = subprocess.run(
        [installed / "signoff", "chat"], cwd=tmp_path, input=typed, capture_output=True, text=True, timeout=60
    )
    assert talk.returncode == 0, talk.stdout + talk.stderr
    assert "Tool Approval Required" in talk.stdout
    database = ("--database", "sqlite:///data/chat/signoff.db")
    assert re.match(r"intact: [1-9]\d* rows", run(installed / "signoff", "audit", "verify", *database, cwd=tmp_path))


def test_the_library_works_with_pydantic_ai_alone(lean: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"""\
from importlib.util import find_spec
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
{PROMISED}

assert not [name for name in {FORBIDDEN!r} if find_spec(name)]
agent = Agent(TestModel())
calls: list[str] = []

@agent.tool_plain(requires_approval=True)
def delete(path: str) -> str:
    calls.append(path)
    return "deleted"

run_with_approval_sync(agent, "go", ui=ScriptedUI([False]))
assert calls == []
run_with_approval_sync(agent, "go", ui=ScriptedUI([True]), policy=Policy(rules=(Rule("x", Verdict.DENY),)))
assert calls == ["a"]
""",
        encoding="utf-8",
    )
    run(lean / "python", program, cwd=tmp_path)


def test_the_terminals_ui_says_which_package_is_missing(lean: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [lean / "python", "-c", "from signoff import TerminalUI"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'rich'" in done.stderr


def test_the_examples_of_the_docs_pass_a_strict_type_check_in_a_users_project(installed: Path, tmp_path: Path) -> None:
    """pyright sees the package as users have it: installed from the wheel, typed because of its py.typed."""
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    for page in WITH_PYTHON:
        name = page.removesuffix(".md").replace("/", "_").lower()
        (tmp_path / f"{name}.py").write_text(program(page), encoding="utf-8")
    assert len(list(tmp_path.glob("*.py"))) >= 3
    shown = pyright(tmp_path, installed)
    assert shown.returncode == 0, shown.stdout


def test_the_type_check_of_the_examples_can_fail(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    wrong = "from signoff import ApprovalDecision\n\nApprovalDecision(approved='yes')\n"
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    shown = pyright(tmp_path, installed)
    assert shown.returncode == 1
    assert "reportArgumentType" in shown.stdout


def pyright(project: Path, installed: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "pyright"
    command = [program, "--project", project, "--pythonpath", installed / "python"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)

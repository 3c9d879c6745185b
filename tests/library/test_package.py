"""`import signoff` is cheap, and every promised name exists."""

from __future__ import annotations

import subprocess
import sys

import pytest

import signoff
import signoff.library

pytestmark = pytest.mark.slow

HEAVY = "import sys; assert not {'pydantic_ai', 'pydantic', 'signoff.library'} & set(sys.modules), sorted(sys.modules)"


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["import signoff; dir(signoff)", "from signoff import __version__, errors"])
def test_importing_the_package_loads_nothing_heavy(statement: str) -> None:
    subprocess.run([sys.executable, "-c", f"{statement}; {HEAVY}"], check=True)


@pytest.mark.slow
def test_the_command_line_starts_without_pydantic_ai() -> None:
    light = "import sys, signoff.cli; assert 'pydantic_ai' not in sys.modules"
    subprocess.run([sys.executable, "-c", light], check=True)


@pytest.mark.slow
def test_the_library_needs_neither_discord_nor_the_store() -> None:
    alone = "import sys, signoff; signoff.run_with_approval; assert not {'discord', 'signoff.store'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", alone], check=True)


def test_every_promised_name_is_the_librarys() -> None:
    assert signoff.__all__
    for name in signoff.__all__:
        assert getattr(signoff, name) is getattr(signoff.library, name)
        assert name in dir(signoff)


def test_the_package_and_the_library_promise_the_same_names() -> None:
    assert signoff.__all__ == signoff.library.__all__


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'aproval'"):
        signoff.aproval  # type: ignore[attr-defined]  # noqa: B018

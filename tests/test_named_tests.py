"""The check behind the parity and attack tables notices every way to skip a named test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs.named_tests import problem

FINE = """
import pytest

@pytest.fixture
def number():
    return 1

@pytest.mark.parametrize("value", [1, 2])
def test_it(number, value):
    assert number < 3
"""
SKIPPING = "import pytest\n@pytest.fixture\ndef a():\n    pytest.skip('x')\n"
LEFT_OUT = {
    "a mark": "import pytest\n@pytest.mark.skip\ndef test_it(): ...",
    "a conditional mark": "import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test_it(): ...",
    "an expected failure": "import pytest\n@pytest.mark.xfail\ndef test_it(): ...",
    "a mark with a name": "import pytest\nlater = pytest.mark.skip\n@later\ndef test_it(): ...",
    "a marked parameter": (
        "import pytest\n@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.skip)])\ndef test_it(a): ..."
    ),
    "a mark of the module": "import pytest\npytestmark = [pytest.mark.skip]\ndef test_it(): ...",
    "a call in the module": "import pytest\npytest.importorskip('x')\ndef test_it(): ...",
    "a condition in the module": "import pytest\nif True:\n    pytest.skip('x')\ndef test_it(): ...",
    "a call in the body": "import pytest\ndef test_it():\n    if 1:\n        pytest.skip('x')",
    "an imported name": "from pytest import skip\ndef test_it():\n    skip('x')",
    "a missing import in the body": "import pytest\ndef test_it():\n    pytest.importorskip('x')",
    "a fixture": f"{SKIPPING}def test_it(a): ...",
    "a fixture of a fixture": f"{SKIPPING}@pytest.fixture\ndef b(a): ...\ndef test_it(b): ...",
    "an automatic fixture": SKIPPING.replace("fixture", "fixture(autouse=True)") + "def test_it(): ...",
    "a fixture by name": f"{SKIPPING}@pytest.mark.usefixtures('a')\ndef test_it(): ...",
    "a helper": "import pytest\ndef give_up():\n    pytest.skip('x')\ndef test_it():\n    give_up()",
    "a class": "class TestIt:\n    def test_it(self): ...",
    "a condition": "if True:\n    def test_it(): ...",
    "a lost test": "def test_other(): ...",
}


def test_an_honest_test_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FINE)
    assert problem("test_one.py", "test_it", tmp_path) is None


@pytest.mark.parametrize("way", LEFT_OUT)
def test_a_test_that_is_left_out_is_noticed(way: str, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(LEFT_OUT[way])
    assert problem("test_one.py", "test_it", tmp_path) is not None


def test_a_fixture_in_a_conftest_above_is_read(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef a():\n    pytest.skip('x')")
    (tmp_path / "deep" / "test_one.py").write_text("def test_it(a): ...")
    assert "skip in a" in (problem("deep/test_one.py", "test_it", tmp_path) or "")


def test_a_file_that_is_lost_is_noticed(tmp_path: Path) -> None:
    assert problem("test_none.py", "test_it", tmp_path) == "test_none.py does not exist"


def test_a_fixture_in_a_plugin_that_a_conftest_names_is_read(tmp_path: Path) -> None:
    root = tmp_path / "tests"
    (root / "rigs").mkdir(parents=True)
    (root / "rigs" / "numbers.py").write_text(SKIPPING)
    (root / "conftest.py").write_text('pytest_plugins = ["tests.rigs.numbers"]\n')
    (root / "test_one.py").write_text("def test_it(a): ...")
    assert problem("test_one.py", "test_it", root) is not None

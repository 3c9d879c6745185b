"""docs/architecture.md lists every file, and so every file that a mention or a click touches."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.rigs.doc_pages import ROOT, read

PAGE = read("docs/architecture.md")
SOURCE = ROOT / "src" / "signoff"
FILES = sorted(file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py") if file.name != "__init__.py")
MOST = 96
"""The most files that a mention and a click may each touch. Raise it only for a feature that people asked for."""
OBSERVERS = {
    "approvals/decision_log.py",
    "bot/open_inboxes.py",
    "gate/observed_book.py",
    "text/log_lines.py",
    "turns/activity.py",
    "turns/activity_log.py",
}
"""They only watch: they log, count, or draw an open inbox anew. Nobody has to follow them to understand a click."""

Report: TypeAlias = dict[str, dict[str, dict[str, int]]]
"""Phase -> file -> function -> number of calls."""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Trace the real bot against the sandbox: a mention up to its card, and a click up to the reply."""
    command = [sys.executable, ROOT / "tools" / "trace.py", "--json"]
    done = subprocess.run(command, cwd=tmp_path_factory.mktemp("trace"), capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("phase", ["mention", "click"])
def test_a_newcomer_follows_a_limited_number_of_files(traced: Report, phase: str) -> None:
    followed = set(traced[phase]) - OBSERVERS
    assert len(followed) <= MOST, sorted(followed)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("phase", ["mention", "click"])
def test_every_file_that_is_touched_is_on_the_page(traced: Report, phase: str) -> None:
    assert [file for file in traced[phase] if f"`{file}`" not in PAGE] == []


@pytest.mark.long
@pytest.mark.slow
def test_the_trace_follows_the_whole_way(traced: Report) -> None:
    """It goes from Discord's event to the card, and from the click to the tool."""
    mention, click = traced["mention"], traced["click"]
    assert {"bot/client.py", "turns/driver.py", "gate/gate.py", "approvals/desk.py", "bot/card_view.py"} <= set(mention)
    assert {"bot/buttons.py", "approvals/votes.py", "gate/gate.py", "agent/tools/harmless.py"} <= set(click)
    assert "agent/tools/harmless.py" not in mention, "nothing runs before the click"


def test_every_file_has_its_line_on_the_map() -> None:
    listed = set(re.findall(r"^\| `([^`]+)` \| \S", PAGE, re.MULTILINE))
    assert FILES
    assert [file for file in FILES if file not in listed] == []


def test_the_page_names_no_file_that_does_not_exist() -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", PAGE))
    assert [name for name in sorted(named) if not any((place / name).exists() for place in (SOURCE, ROOT))] == []


def test_the_page_has_the_layers_of_the_import_rules() -> None:
    """They are compared row by row with pyproject.toml."""
    layers = re.search(r"^layers = \[\n(.*?)^\]", read("pyproject.toml"), re.MULTILINE | re.DOTALL)
    assert layers
    wanted = [row.split(" | ") for row in re.findall(r'"([^"]+)"', layers[1])]
    rows = re.findall(r"^\| \d+ \| ((?:`[a-z]+`(?:, )?)+) \|$", PAGE, re.MULTILINE)
    assert [re.findall(r"`([a-z]+)`", row) for row in rows] == wanted


@pytest.mark.parametrize(
    "word",
    [
        *(
            "asker",
            "approver",
            "missing approver",
            "deleted",
            "request",
            "batch",
            "card",
            "question",
            "held",
            "waiting",
        ),
        *(
            "pause",
            "desk",
            "gate",
            "grant",
            "operator rules",
            "server rules",
            "tool slots",
            "package",
            "model response",
        ),
        *("reply", "response", "containment", "record", "wording"),
    ],
)
def test_the_glossary_has_the_word(word: str) -> None:
    glossary = PAGE.partition("\n## Glossary\n")[2]
    assert re.search(rf"^\|.*\*\*{word}\*\*.*\| \S", glossary, re.MULTILINE)


def test_the_map_says_what_each_package_is_for() -> None:
    packages = {Path(file).parts[0] for file in FILES if "/" in file}
    assert packages == set(re.findall(r"^### ([a-z]+): ", PAGE, re.MULTILINE))

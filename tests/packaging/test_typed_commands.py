"""Every command in README.md and docs/*.md works as typed. This test reads them out of the pages and runs them.

`make soak` does the same from a fresh clone, with `make run` as the first command: see from_scratch.py.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from discord_sandbox import Plan, SandboxServer
from tests.rigs.audit_samples import write_record
from tests.rigs.doc_pages import ROOT
from tests.rigs.typed_commands import commands, copy_again, copy_repository, unmarked_blocks

TYPED = commands()
Copies = Callable[..., Path]
"""Returns the copy of the repository in which these commands were run, which must not be changed further."""
PATIENCE = 120
PAGE = re.compile(r"Open (http://\S+)")

PROGRAM = ".venv/bin/signoff"
SERVERS = {"make run", "python3 main.py", PROGRAM, f"{PROGRAM} sandbox", f"{PROGRAM} sandbox --fresh"}
"""They run until they are stopped. Without a token each of them is the sandbox and prints one address."""
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
LESS_OFTEN = set[str]() if SOAK else {f"{PROGRAM} sandbox", f"{PROGRAM} sandbox --fresh"}
"""Only `make soak` types these. tests/page/test_launch.py starts `main.py sandbox` as a process of its own, too."""
ON_DISCORD = {f"{PROGRAM} discord", f"{PROGRAM} check --discord"}
"""They need a token, so they get the sandbox's."""
NOT_RUN = {
    "make test": "this test is a part of it",
    "make checks": "it takes a minute; the workflow in .github runs it",
    "make bench": "it takes minutes, and measures",
    ".venv/bin/python -m bench.profile": "it takes a minute; below, a few rounds of it are run",
    ".venv/bin/python -m bench.promises": "it takes two minutes; below, one block of it is run",
    ".venv/bin/python -m bench.compare ../other": "it needs another checkout; below, a version is compared with itself",
    ".venv/bin/signoff restore FILE": "it keeps a database that exists; the form with --replace is run",
    "pip install .": "it needs a network; test_wheel.py installs the wheel without one",
    "signoff version": "it needs the line before; test_wheel.py runs the installed program",
    ".venv/bin/python tools/trace.py --functions": "test_architecture.py runs this script",
}
"""Command -> why it is not run here. A target of make is tried with `make -n`."""


BACKUP = ("mkdir -p backups", f"{PROGRAM} backup backups/monday.db")
NEEDED = {
    BACKUP[1]: BACKUP[:1],
    f"{PROGRAM} restore backups/monday.db --replace": BACKUP,
    f"{PROGRAM} audit verify --database sqlite:///backups/monday.db": BACKUP,
}
"""Command -> the commands of its page that must come before it."""


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Copies of the repository with a record. Those who need the same commands first share one run of them."""
    first = copy_repository(tmp_path_factory.mktemp("typed"))
    asyncio.run(write_record(first / "data" / "signoff.db", 3))

    @cache
    def after(*needed: str) -> Path:
        if not needed:
            return first
        copy = copy_again(after(*needed[:-1]), tmp_path_factory.mktemp("typed"))
        done = run(needed[-1], copy)
        assert done.returncode == 0, f"{needed[-1]}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"
        return copy

    return after


@pytest.fixture
def copy(copies: Copies, tmp_path: Path) -> Path:
    return copy_again(copies(), tmp_path)


def environment(**further: str) -> dict[str, str]:
    """Return what a newcomer has: no token, and no program of ours on the PATH."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    folders = [one for one in os.environ.get("PATH", os.defpath).split(":") if not (Path(one) / "signoff").exists()]
    return kept | {"PATH": ":".join(folders)} | further


def run(command: str, folder: Path, **further: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment(**further), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=PATIENCE,
    )  # fmt: skip


@contextmanager
def running(command: str, folder: Path, log: Path, **further: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the end of the block. Then interrupt it, as Ctrl-C does."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, shell=True, cwd=folder, env=environment(**further), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
        os.killpg(process.pid, signal.SIGINT)
        process.wait(PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def says(words: re.Pattern[str], log: Path, process: subprocess.Popen[bytes]) -> re.Match[str]:
    until = time.monotonic() + PATIENCE
    while not (match := words.search(log.read_text(errors="replace"))):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.05)
    return match


def test_the_pages_are_read() -> None:
    assert {"make run", ".venv/bin/signoff check", ".venv/bin/signoff init", ".venv/bin/signoff chat"} <= set(TYPED)
    assert unmarked_blocks() == [], "mark a block of commands as sh or console"


def test_the_list_of_commands_that_are_not_run_is_short_and_true() -> None:
    assert set(NOT_RUN) | set(NEEDED) | set(BACKUP) | LESS_OFTEN <= set(TYPED)
    assert len(NOT_RUN) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("command", [one for one in TYPED if one not in SERVERS | ON_DISCORD | set(NOT_RUN)])
def test_a_command_works_as_typed(command: str, copies: Copies, tmp_path: Path) -> None:
    done = run(command, copy_again(copies(*NEEDED.get(command, ())), tmp_path))
    assert done.returncode == 0, f"{TYPED[command]}: {command}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("command", [one for one in NOT_RUN if one.startswith("make ")])
def test_a_target_that_is_not_run_can_be_made(command: str, copy: Path) -> None:
    done = run(command.replace("make ", "make -n "), copy)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_the_profile_names_the_parts_of_the_three_bots(copy: Path) -> None:
    done = run(".venv/bin/python -m bench.profile --rounds 3", copy)
    assert done.returncode == 0, done.stderr
    parts, functions = done.stdout.strip().split("\n\n")
    rows = {cells[1].strip(): [float(cell) for cell in cells[2:5]] for cells in rows_of(parts)}
    assert all(time > 0 for time in rows["PydanticAI"] + rows["all"])
    reasons = {cells[1].strip(): cells[5].strip() for cells in rows_of(parts)}
    assert all(reasons[part] for part in rows if part not in ("all", "other threads"))
    stored = [times for part, times in rows.items() if part.startswith("the store: ")]
    assert [[time > 0 for time in times] for times in stored] == [[True, True, False]] * 3
    assert all(float(cells[2]) > 0 for cells in rows_of(functions))


@pytest.mark.long
@pytest.mark.slow
def test_each_promise_has_its_cost(copy: Path) -> None:
    done = run(".venv/bin/python -m bench.promises --blocks 1", copy)
    assert done.returncode == 0, done.stderr
    rows = {cells[1].strip(): [float(cell.split()[0]) for cell in cells[2:-1]] for cells in rows_of(done.stdout)}
    bots = {"bare", "hooks", "stream", "hooks and commits", "card", "hooks and kept", "least", "frame"}
    assert bots | {"owed", "limit", "Signoff"} <= set(rows)
    assert all(figure > 0 for figures in rows.values() for figure in figures)


@pytest.mark.long
@pytest.mark.slow
def test_two_versions_are_compared(copy: Path, tmp_path: Path) -> None:
    other, loaded = tmp_path / "other", tmp_path / "loaded"
    shutil.copytree(copy / "src", other / "src")
    shutil.copy(copy / "main.py", other)
    with (other / "src" / "signoff" / "__init__.py").open("a") as module:
        module.write(f"\nopen({str(loaded)!r}, 'w').close()\n")
    done = run(f".venv/bin/python -m bench.compare {other} --copies 1 --blocks 1", copy)
    assert done.returncode == 0, done.stderr
    rows = {cells[1].strip(): [float(cell.split()[0]) for cell in cells[2:6]] for cells in rows_of(done.stdout)}
    assert len(rows) == 5
    assert loaded.exists(), "the other version was not the one that ran"
    for before, now, _, ratio in rows.values():
        assert ratio == pytest.approx(now / before, abs=0.05)  # the times are rounded
    refused = run(".venv/bin/python -m bench.compare tests", copy)
    assert refused.returncode == 1
    assert "is not a checkout of Signoff" in refused.stderr


@pytest.mark.long
@pytest.mark.slow
def test_decisions_take_longer_than_their_bare_statements(copy: Path) -> None:
    done = run(".venv/bin/python -m bench.durable --runs 1 --rows 2000", copy)
    assert done.returncode == 0, done.stderr
    times = {cells[1].strip(): float(cells[2]) for cells in rows_of(done.stdout)}
    bare = times["the bare statements of 200, in as many commits"]
    assert 0 < times["one decision"] < bare < times["200 decisions at once"]
    assert times["200 jobs at once that do nothing"] < times["200 decisions at once"]
    took = re.search(r"which takes ([\d.]+) ms", done.stdout)
    assert took
    assert 0 < float(took[1]) < times["200 decisions at once"] / 200


def rows_of(table: str) -> list[list[str]]:
    """Return the cells of each row of a Markdown table, below its head."""
    return [line.split("|") for line in table.splitlines() if line.startswith("|")][2:]


@pytest.mark.slow
@pytest.mark.parametrize("command", [one for one in TYPED if one in SERVERS - LESS_OFTEN])
def test_a_server_starts_shows_its_page_and_stops(command: str, copy: Path, tmp_path: Path) -> None:
    log = tmp_path / "output.txt"
    with running(command, copy, log) as process:
        address = says(PAGE, log, process)
        with build_opener(HTTPCookieProcessor()).open(address[1], timeout=PATIENCE) as page:
            assert page.status == 200
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
async def test_the_commands_that_need_a_token_work_with_one(
    copy: Path, tmp_path: Path, sandbox_server: SandboxServer
) -> None:
    """The sandbox runs in this process, so the commands run in a thread."""
    log, server = tmp_path / "output.txt", sandbox_server
    given = {"DISCORD_TOKEN": Plan.token, "DISCORD_API_URL": server.api_url, "DISCORD_GATEWAY_URL": server.gateway_url}

    def serve() -> None:
        with running(f"{PROGRAM} discord", copy, log, **given) as process:
            says(re.compile("signed in as"), log, process)

    await asyncio.to_thread(serve)
    assert "Traceback" not in log.read_text()
    checked = await asyncio.to_thread(run, f"{PROGRAM} check --discord", copy, **given)
    assert checked.returncode == 0, checked.stdout
    assert "Signed in as" in checked.stdout
    assert set(TYPED) >= ON_DISCORD, "these are the commands that need one"


@pytest.mark.slow
def test_a_python_without_the_packages_finds_the_right_one(copy: Path) -> None:
    """`python3 main.py chat`, where python3 is the system's own."""
    outside = subprocess.run(
        [Path(os.path.realpath(ROOT / ".venv" / "bin" / "python")), "-S", "-E", "main.py", "chat"], cwd=copy,
        env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert outside.returncode == 0, outside.stderr
    assert "Signoff, model demo" in outside.stdout

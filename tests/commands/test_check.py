"""`signoff check` finds every mistake of a long list. Each finding is a line with its place and what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from signoff.commands.init import write_starter
from tests.rigs.command_line import run
from tests.rigs.mistakes import NOBODY, SECRET, config
from tests.rigs.mistakes import environment as given
from tests.rigs.preloaded import Ended, launcher
from tests.rigs.setup_mistakes import LOCKS, OTHERS, SEMANTIC, WITH_SERVERS, Mistake

Check = Callable[..., Ended]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Check]:
    """Run `signoff check` in the test's folder, with the environment of the keywords."""

    def check(*arguments: str, **environment: str) -> Ended:
        names = given(**{"DISCORD_TOKEN": "", **environment})
        return run(tmp_path, "check", *arguments, environment=names, monkeypatch=monkeypatch, capfd=capfd)

    yield check
    for lock in LOCKS:
        lock.release()
    LOCKS.clear()


def findings(ended: Ended) -> list[str]:
    assert "Traceback" not in ended.errors, ended.errors
    return [line for line in ended.output.splitlines() if line.startswith(("error: ", "warning: ", "note: "))]


def judge(mistake: Mistake, ended: Ended) -> None:
    """The mistake gives exactly one line, with severity, place, cause and remedy."""
    (line,) = findings(ended)
    severity, _, rest = line.partition(": ")
    assert severity == ("error" if mistake.fatal else "warning")
    assert rest.startswith(mistake.place), line
    assert [word for word in mistake.words if word not in rest] == [], line
    assert "; " in rest or ". " in rest or ": " in rest.removeprefix(mistake.place), f"no remedy: {line}"
    assert SECRET not in ended.output
    assert ended.code == (1 if mistake.fatal else 0)
    assert "Nothing is wrong" not in ended.output


def test_the_list_is_long_enough() -> None:
    assert len(SEMANTIC) >= 10
    assert len(SEMANTIC) + len(OTHERS) >= 20


@pytest.mark.parametrize("name", [*SEMANTIC, *OTHERS])
def test_a_mistake_gets_one_line_with_place_and_remedy(name: str, tmp_path: Path, check: Check) -> None:
    mistake = (SEMANTIC | OTHERS)[name]
    mistake.prepare(tmp_path)
    judge(mistake, check(**mistake.environment))


@pytest.mark.slow  # it starts MCP servers
@pytest.mark.parametrize("name", WITH_SERVERS)
def test_a_mistake_about_an_mcp_server_gets_its_line(name: str, tmp_path: Path, check: Check) -> None:
    mistake = WITH_SERVERS[name]
    mistake.prepare(tmp_path)
    judge(mistake, check(**mistake.environment))


@pytest.mark.slow
async def test_a_process_of_its_own_says_the_same(tmp_path: Path) -> None:
    async with launcher() as program:
        for name in ("a reminder longer than the timeout", "a plugin that raises", "auto_approve"):
            mistake = (SEMANTIC | OTHERS)[name]
            folder = tmp_path / name.replace(" ", "_")
            folder.mkdir()
            mistake.prepare(folder)
            judge(mistake, await program.run(folder, "check", environment=given(DISCORD_TOKEN="")))


def test_several_mistakes_are_all_said(tmp_path: Path, check: Check) -> None:
    config(
        '[agent]\nmodel = "gpt-99"\n[approvals]\napprovers = ["asker"]\nfour_eyes = true\n[tools]\n'
        'plugins = ["lost.py", "worse.py"]\n[[rules]]\ntool = "wirte_file"\nverdict = "deny"\n'
    )(tmp_path)
    (tmp_path / "worse.py").write_text("raise ValueError('bad')\n")
    ended = check(SIGNOFF_MODLE="x")
    places = [line.split(": ")[1] for line in findings(ended)]
    assert places == [
        "the environment", "signoff.toml:4", "signoff.toml:7", "worse.py:1", "signoff.toml:2", "signoff.toml:9",
    ]  # fmt: skip
    assert ended.output.splitlines()[-1].startswith("4 errors, 2 warnings.")


def test_a_clean_set_up_is_summed_up_in_three_lines(tmp_path: Path, check: Check) -> None:
    config('[[rules]]\ntool = "write_file"\nverdict = "ask"\nwhen = { path = "*.env" }\n')(tmp_path)
    ended = check()
    assert ended.code == 0
    assert ended.output.splitlines() == [
        "7 tools: 2 ask always, 1 asks depending on its arguments, 4 never ask.",
        "signoff.toml: 1 rule; model demo; no DISCORD_TOKEN, so it runs in the sandbox.",
        "Nothing is wrong.",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["signoff.toml"], "it creates nothing"


def test_without_any_file_nothing_is_wrong(check: Check) -> None:
    ended = check()
    assert (ended.code, findings(ended)) == (0, [])
    assert "no signoff.toml, so the defaults apply" in ended.output


def test_the_files_of_init_pass(tmp_path: Path, check: Check) -> None:
    write_starter(tmp_path)
    ended = check()
    assert (ended.code, findings(ended)) == (0, [])
    assert ended.output.startswith("9 tools: ")


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(("free", "severity"), [(10, "error"), (100, "warning"), (100_000, None)])
def test_a_disk_that_is_nearly_full_is_said(
    free: int, severity: str | None, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 0, free * 1_000_000))
    said = findings(check())
    assert [line.partition(":")[0] for line in said] == ([severity] if severity else [])
    assert all(f"{free} MB left" in line and "free some space" in line for line in said)


def test_a_rule_may_be_about_a_tool_of_a_server_that_does_not_answer(tmp_path: Path, check: Check) -> None:
    """Its tools are not known, so the rule is not called wrong. The broken server is."""
    rule = '[[rules]]\ntool = "docs_search"\nverdict = "allow"\nwhen = { anything = "x" }\n'
    config('[mcp.docs]\nurl = "https://x.example"\nheaders = { A = "${NOT_SET}" }\n' + rule)(tmp_path)
    (line,) = findings(check())
    assert "NOT_SET" in line


def test_discord_cannot_be_checked_without_a_token(check: Check) -> None:
    (line,) = findings(check("--discord"))
    assert line.startswith("error: .env: DISCORD_TOKEN is not set")


def test_a_discord_that_cannot_be_reached_is_an_error(check: Check) -> None:
    ended = check("--discord", DISCORD_TOKEN=SECRET, DISCORD_API_URL=NOBODY)
    (line,) = findings(ended)
    assert "Cannot reach Discord" in line
    assert ended.code == 1
    assert SECRET not in ended.output

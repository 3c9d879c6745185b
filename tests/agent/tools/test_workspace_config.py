"""The workspace's place, and that it never contains the bot's own files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.config.schema import Config, load_config, parse_config
from signoff.errors import ConfigError

MAIN = Path(__file__).parents[3] / "main.py"


def configured(folder: Path, text: str) -> Config:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "signoff.toml").write_text(text, encoding="utf-8")
    return load_config(folder / "signoff.toml", required=True)


def test_it_is_seen_from_the_folder_of_the_file(tmp_path: Path) -> None:
    assert Config().workspace == Path("data/workspace")
    assert configured(tmp_path, "").workspace == tmp_path / "data/workspace"
    assert configured(tmp_path, '[tools]\nworkspace = "files"').workspace == tmp_path / "files"
    assert configured(tmp_path, '[tools]\nworkspace = "/srv/files"').workspace == Path("/srv/files")
    for wrong in ('""', "5", '"a\\u0000b"'):
        with pytest.raises(ConfigError, match=r"\[tools\] workspace is .*; write a folder, relative to this file"):
            parse_config(f"[tools]\nworkspace = {wrong}")


@pytest.mark.parametrize(
    ("workspace", "named"),
    [
        (".", "signoff.db"),
        ("data", "signoff.db"),
        ("..", "signoff.db"),
        ("data/../data/.", "signoff.db"),
        ("link", "signoff.db"),
        ("secrets", ".env"),
        ("mine", "mine.py"),
        ("mine/mine.py", "mine.py"),
        ("served", "server.py"),
        (str(MAIN.parent), "signoff"),
        ("/", "signoff.db"),
    ],
)
def test_it_may_not_hold_the_bots_own_files(tmp_path: Path, workspace: str, named: str) -> None:
    folder = tmp_path / "bot"
    mcp = '[mcp.docs]\ncommand = ["python", "served/server.py"]'
    config = configured(folder, f'[tools]\nplugins = ["mine/mine.py"]\nworkspace = "{workspace}"\n{mcp}')
    (folder / "data").mkdir()
    (folder / "link").symlink_to("data")
    with pytest.raises(ConfigError) as caught:
        config.keep_workspace_apart(folder / "data/signoff.db", folder / "secrets/.env")
    assert f"contains {named}, which the agent must not reach; write a folder of its own" in str(caught.value)


def test_beside_them_it_may_be(tmp_path: Path) -> None:
    configured(tmp_path, "").keep_workspace_apart(tmp_path / "data/signoff.db", tmp_path / ".env")
    assert not (tmp_path / "data").exists()
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="is not a folder; write another name"):
        configured(tmp_path, '[tools]\nworkspace = "taken"').keep_workspace_apart()


@pytest.mark.slow
def test_the_program_does_not_start_with_a_workspace_that_holds_its_database(tmp_path: Path) -> None:
    configured(tmp_path, '[tools]\nworkspace = "data"')
    environment = {"PATH": os.environ["PATH"], "DISCORD_TOKEN": "x"}
    ended = subprocess.run(
        [sys.executable, str(MAIN), "discord"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith('signoff: [tools] workspace = "data" contains signoff.db')
    assert ended.stderr.count("\n") == 1


def test_it_may_not_be_a_part_of_the_program(tmp_path: Path) -> None:
    config = configured(tmp_path, f'[tools]\nworkspace = "{MAIN.parent / "src" / "signoff" / "store"}"')
    with pytest.raises(ConfigError, match="is a part of the program"):
        config.keep_workspace_apart(tmp_path / "data/signoff.db")

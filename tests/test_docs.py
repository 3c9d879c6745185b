"""What users are told is what there is: every setting, key and command is documented, and files say nothing private."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

import pytest
import typer.main
from discord import app_commands
from pydantic import BaseModel

from signoff.bot.access import Access
from signoff.bot.admin.record import Record
from signoff.bot.admin.tree import signoff_group
from signoff.cli import commands
from signoff.config.schema import BUILTIN_TOOLS, Config, parse_config
from signoff.settings import Settings
from signoff.turns.administration import Administration

ROOT = Path(__file__).parents[1]
SETTINGS = sorted(str(field.validation_alias) for field in Settings.model_fields.values())
COMMANDS = sorted(typer.main.get_group(commands).commands)  # type: ignore[attr-defined]


def slash_options() -> Iterator[tuple[str, str]]:
    """(command, option) for everything that can be typed after /signoff; an empty option is the command itself."""
    nobody = cast(Administration, None)  # nothing is ordered here
    group = signoff_group(nobody, Record(nobody), lambda args: args, lambda: 0.0, Access())
    for command in group.walk_commands():
        yield command.name, ""
        if isinstance(command, app_commands.Command):
            yield from ((command.name, option.display_name) for option in command.parameters)


SLASH = sorted(slash_options())

PRIVATE = {
    "a package registry": re.compile(
        r"(?i)\b(?:p[y]pi\.org|python[h]osted\.org|registry\.np[m]js\.org|artifactory|nexus\.|/simple/?\b)|--(?:extra-)?index-url"
    ),
    "a path of one machine": re.compile(r"(?<![\w.])/(?:(?:work|root|Users)/[\w.-]|home/(?!user/)[\w.-])"),
}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tables() -> Iterator[tuple[str, str]]:
    """(table, key) for everything that signoff.toml may hold."""
    for table, field in Config.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        model = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
        for name, key in model.model_fields.items():
            yield table, key.alias or name


KEYS = sorted(tables())


def committed() -> list[str]:
    """What is or will be committed; without git, as in an archive, there is nothing to look at."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    return [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_in_the_readme_and_in_the_example(name: str) -> None:
    assert f"`{name}`" in read("README.md")
    assert re.search(rf"^(?:# )?{name}=", read(".env.example"), re.MULTILINE)


def test_the_example_names_no_setting_that_does_not_exist() -> None:
    named = set(re.findall(r"^(?:# )?((?:SIGNOFF|DISCORD)_\w+)=", read(".env.example"), re.MULTILINE))
    assert named == set(SETTINGS)


@pytest.mark.parametrize(("table", "key"), KEYS)
def test_every_key_of_the_config_is_in_the_readme(table: str, key: str) -> None:
    heading = {"rules": "[[rules]]", "mcp": "[mcp.NAME]"}.get(table, f"[{table}]")
    assert heading in read("README.md")
    assert re.search(rf"(?:`{key}`|^(?:# ?)?{key} *=|^\| *{key} *\|)", read("README.md"), re.MULTILINE)


def test_every_example_of_a_config_in_the_readme_is_one() -> None:
    examples = re.findall(r"^```toml\n(.*?)^```", read("README.md"), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        parse_config(example, "README.md")


@pytest.mark.parametrize("name", BUILTIN_TOOLS)
def test_every_built_in_tool_is_in_the_readme(name: str) -> None:
    assert name in read("README.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name: str) -> None:
    assert re.search(rf"python main\.py {name}\b|`signoff {name}\b|`{name}`", read("README.md"))


@pytest.mark.parametrize(("name", "option"), SLASH)
def test_every_slash_command_and_option_is_in_the_readme(name: str, option: str) -> None:
    section = read("README.md").partition("\n## Commands in Discord\n")[2].partition("\n## ")[0]
    of_command = [line for line in section.splitlines() if f"`/signoff {name}`" in line]
    assert of_command
    if option:
        listed = section.partition("options of `/signoff protect`")[2] if name == "protect" else "\n".join(of_command)
        assert f"`{option}`" in listed


def test_the_readme_names_no_slash_command_that_does_not_exist() -> None:
    assert set(re.findall(r"`/signoff (\w+)", read("README.md"))) == {name for name, _ in SLASH}


@pytest.mark.parametrize("command", ["make run", "make test"])
def test_the_readme_says_the_two_commands(command: str) -> None:
    assert command in read("README.md")


def test_the_readme_says_what_happens_to_mentions_while_the_bot_is_down() -> None:
    assert re.search(r"(?i)mentions?\b[^.]{0,80}\bmissed|missed[^.]{0,80}\bmentions?", read("README.md"))


def test_every_link_of_the_docs_into_the_repository_leads_somewhere() -> None:
    for name in ("README.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", read(name)):
            assert (ROOT / target).exists(), f"{name}: {target}"


def test_the_changelog_says_something() -> None:
    assert re.search(r"^## .+\n+(?:.*\n)*?- \w", read("CHANGELOG.md"), re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("what", PRIVATE)
def test_no_file_names_what_is_private(what: str) -> None:
    found = []
    for name in committed():
        if name == Path(__file__).relative_to(ROOT).as_posix():
            continue
        try:
            text = read(name)
        except UnicodeDecodeError:
            continue
        lines = text.splitlines()
        found += [f"{name}:{n}: {line.strip()[:100]}" for n, line in enumerate(lines, 1) if PRIVATE[what].search(line)]
    assert found == []


@pytest.mark.slow
def test_no_lock_file_of_another_tool_is_committed() -> None:
    assert not {"uv.lock", "poetry.lock", "Pipfile.lock"} & {Path(name).name for name in committed()}

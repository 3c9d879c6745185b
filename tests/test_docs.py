"""The docs are complete and true: they have every setting, key, command and option. No file says anything private."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args

import pytest
import typer.main
from discord import app_commands
from pydantic import BaseModel

from signoff.bot.access import Access
from signoff.bot.admin.record import Record
from signoff.bot.admin.tree import signoff_group
from signoff.commands.parser import commands
from signoff.config.schema import BUILTIN_TOOLS, WORKSPACE_TOOLS, Config, parse_config
from signoff.settings import Settings
from signoff.turns.administration import Administration
from tests.rigs.doc_pages import PAGES, REFERENCE, ROOT, examples, read

CONFIGURATION = "docs/configuration.md"
COMMAND_PAGE = "docs/commands.md"
PROGRAM = ".venv/bin/signoff"
SETTINGS = sorted(str(field.validation_alias) for field in Settings.model_fields.values())
ENTRY: Any = typer.main.get_group(commands)


def command_options(group: Any = ENTRY, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield (command, option) for all that can be typed after the program's name; an empty option is the command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from command_options(command, f"{before}{name} ")
            continue
        yield f"{before}{name}", ""
        for parameter in command.params:
            named = [parameter.metavar or parameter.name] if parameter.param_type_name == "argument" else parameter.opts
            yield from ((f"{before}{name}", option) for option in named)


COMMANDS = sorted(command_options())


def slash_options() -> Iterator[tuple[str, str]]:
    """Yield (command, option) for everything that can be typed after /signoff; an empty option is the command."""
    nobody = cast(Administration, None)  # nothing is called on it here
    group = signoff_group(nobody, Record(nobody), lambda args: args, lambda: 0.0, Access())
    for command in group.walk_commands():
        name = command.qualified_name.removeprefix("signoff ")
        yield name, ""
        if isinstance(command, app_commands.Command):
            yield from ((name, option.display_name) for option in command.parameters)


SLASH = sorted(slash_options())

PRIVATE = {
    "a package registry": re.compile(
        r"(?i)\b(?:p[y]pi\.org|python[h]osted\.org|registry\.np[m]js\.org|artifactory|nexus\.|/simple/?\b)|--(?:extra-)?index-url"
    ),
    "a path of one machine": re.compile(r"(?<![\w.])/(?:(?:work|root|Users)/[\w.-]|home/(?!user/)[\w.-])"),
}


def tables() -> Iterator[tuple[str, str]]:
    """Yield (table, key) for everything that signoff.toml may hold."""
    for table, field in Config.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        model = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
        for name, key in model.model_fields.items():
            yield table, key.alias or name


KEYS = sorted(tables())


def committed() -> list[str]:
    """List the files that are or will be committed; without git, as in an archive, the list is empty."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    return [name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_documented_and_in_the_example(name: str) -> None:
    assert f"`{name}`" in read(CONFIGURATION)
    assert re.search(rf"^(?:# )?{name}=", read(".env.example"), re.MULTILINE)


def test_the_example_names_no_setting_that_does_not_exist() -> None:
    named = set(re.findall(r"^(?:# )?((?:SIGNOFF|DISCORD)_\w+)=", read(".env.example"), re.MULTILINE))
    assert named == set(SETTINGS)


def test_the_docs_name_no_setting_that_does_not_exist() -> None:
    named = {name for page in (*REFERENCE, "README.md") for name in re.findall(r"`(SIGNOFF_\w+)`", read(page))}
    assert named <= set(SETTINGS)


def test_every_key_of_the_config_is_documented() -> None:
    assert KEYS
    for table, key in KEYS:
        heading = {"rules": "[[rules]]", "mcp": "[mcp.NAME]"}.get(table, f"[{table}]")
        assert heading in read(CONFIGURATION), (table, key)
        described = re.search(rf"(?:`{key}`|^(?:# ?)?{key} *=|^\| *{key} *\|)", read(CONFIGURATION), re.MULTILINE)
        assert described, (table, key)


def test_the_example_of_the_config_has_every_key_in_its_own_table() -> None:
    """The check above also accepts a key of another table; this one reads the example as TOML."""
    (example,) = examples(CONFIGURATION, "toml")
    config = parse_config(example.replace("# import", "import"), CONFIGURATION)
    shown = {
        (table, type(part).model_fields[name].alias or name)
        for table in Config.model_fields
        for part in _parts(getattr(config, table))
        for name in part.model_fields_set
    }
    assert shown == set(KEYS)


def _parts(value: Any) -> list[BaseModel]:
    if isinstance(value, BaseModel):
        return [value]
    return list(value.values() if isinstance(value, dict) else value)


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page, "toml")])
def test_every_example_of_a_config_is_one(page: str) -> None:
    for example in examples(page, "toml"):
        parse_config(example, page)


def test_the_readme_and_the_page_on_configuration_show_a_config() -> None:
    assert examples("README.md", "toml")
    assert examples(CONFIGURATION, "toml")


@pytest.mark.parametrize("name", [*BUILTIN_TOOLS, *WORKSPACE_TOOLS])
def test_every_built_in_tool_is_documented(name: str) -> None:
    assert f"`{name}`" in read("docs/tools.md")
    assert f'"{name}"' in read(CONFIGURATION)


def test_every_command_and_option_is_documented() -> None:
    assert COMMANDS
    for name, option in COMMANDS:
        row = re.compile(rf"\| `{re.escape(PROGRAM)} {re.escape(name)}(?: [A-Z]+)*` \|")
        rows = [line for line in read(COMMAND_PAGE).splitlines() if row.match(line)]
        assert len(rows) == 1, (name, option)
        assert f"`{option}" in rows[0], (name, option)


def typed_commands() -> Iterator[tuple[str, str]]:
    """Yield (page, words) for each command of the program that a page tells people to type."""
    for page in (*REFERENCE, "README.md", "CONTRIBUTING.md"):
        for words in re.findall(rf"{re.escape(PROGRAM)}((?: [\w./:-]+)*)", read(page)):
            yield page, words.strip()


@pytest.mark.parametrize(("page", "words"), sorted(set(typed_commands())))
def test_every_command_that_the_docs_tell_people_to_type_is_accepted(page: str, words: str) -> None:
    command, rest, context = ENTRY, shlex.split(words), None
    while hasattr(command, "commands") and rest:
        with command.make_context("signoff", [], parent=context, resilient_parsing=True) as context:
            name, command, rest = command.resolve_command(context, rest)
            assert name
    command.make_context("signoff", rest, parent=context, resilient_parsing=not words)


@pytest.mark.slow  # it starts git
def test_there_is_one_way_to_type_a_command() -> None:
    """`python main.py chat` fails where `python` is not the one of .venv, so no page and no message says it."""
    pages = [*PAGES, ".env.example", *(name for name in committed() if re.match(r"src/.*\.(?:py|md|js|html)$", name))]
    assert [name for name in pages if re.search(r"\bpython main\.py", read(name))] == []


def test_every_slash_command_and_option_is_documented() -> None:
    assert SLASH
    section = read(COMMAND_PAGE).partition("\n## Commands in Discord\n")[2].partition("\n## ")[0]
    of_protect = section.partition("options of `/signoff protect`")[2]
    for name, option in SLASH:
        of_command = [line for line in section.splitlines() if f"`/signoff {name}`" in line]
        assert of_command, name
        listed = of_protect if name == "protect" else "\n".join(of_command)
        assert not option or f"`{option}`" in listed, (name, option)


def test_the_docs_name_no_slash_command_that_does_not_exist() -> None:
    named = {name for page in (*REFERENCE, "README.md") for name in re.findall(r"`/signoff (\w+)", read(page))}
    assert named == {name.split()[0] for name, _ in SLASH}


@pytest.mark.parametrize("page", ["README.md", "docs/install.md", "CONTRIBUTING.md"])
def test_the_pages_for_newcomers_say_the_two_commands(page: str) -> None:
    assert "make run" in read(page)
    assert "make test" in read(page)


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:^|`)make ([a-z]+)\b", read(page), re.MULTILINE))
        assert named <= targets, page


def test_the_docs_say_what_happens_to_mentions_while_the_bot_is_down() -> None:
    text = read("docs/operations.md")
    assert re.search(r"(?i)mentions?\b[^.]{0,80}\bmissed|missed[^.]{0,80}\bmentions?", text)


def test_the_readme_leads_to_every_page_of_the_reference() -> None:
    for page in REFERENCE:
        assert page == "docs/parity.md" or f"({page})" in read("README.md"), page
    assert len(read("README.md").splitlines()) <= 120, "the README is one page; reference belongs to docs"


def test_every_link_of_a_page_into_the_repository_leads_somewhere() -> None:
    link_of = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)|(?:src|srcset|href)=\"(?!https?:)([^\"]+)\"")
    links = [(page, next(filter(None, link))) for page in PAGES for link in link_of.findall(read(page))]
    assert links
    for page, link in links:
        target, _, anchor = link.partition("#")
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in headings(file), f"{page}: {target}#{anchor}"


def headings(file: Path) -> set[str]:
    """Return the anchors that a page of Markdown has on GitHub."""
    lines = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line).strip().lower().replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", [*REFERENCE, "README.md"])
def test_every_name_of_a_module_or_class_that_a_page_gives_exists(page: str) -> None:
    files = r"(?!signoff\.(?:toml|db)\b)"
    for module, name in re.findall(
        rf"`{files}((?:signoff|discord_sandbox)(?:\.[a-z_]+)+)(?:\.([A-Z]\w+))?", read(page)
    ):
        assert not name or hasattr(import_module(module), name)
        import_module(module)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/parity.md"])
def test_the_pages_are_in_plain_english(page: str) -> None:
    """Subject first: no sentence begins with "Whoever" or "What". Words that the glossary gave up stay away."""
    prose = re.sub(r"^```.*?^```|^#.*?$|`[^`]+`", "", read(page), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"(?:^|[.:!?] |^[-|] )((?:Who|What)(?:m?ever)? [^.]{0,40})", prose, re.MULTILINE) == []
    assert re.findall(r"(?i)\b(?:rooms?|the floor|foreign|goes? round|gone round|absences?)\b", prose) == []
    assert "!" not in re.sub(r"!\[|<!|&!", "", prose)


def test_the_changelog_says_something() -> None:
    assert re.search(r"^## .+\n+(?:.*\n)*?- \w", read("CHANGELOG.md"), re.MULTILINE)


@pytest.mark.slow  # it starts git
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


@pytest.mark.slow  # it starts git
def test_no_lock_file_of_another_tool_is_committed() -> None:
    assert not {"uv.lock", "poetry.lock", "Pipfile.lock"} & {Path(name).name for name in committed()}

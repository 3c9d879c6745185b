"""`signoff check`: finds every mistake in the set-up that can be found before somebody mentions the bot.

One line per finding. The same checks run at every start, except those that the start itself makes: opening the database
and building the model.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from dataclasses import field
from pathlib import Path

from signoff.agent.setup import Brain, Problem
from signoff.agent.tool_survey import Survey, survey
from signoff.bot.connection import point_at
from signoff.config.approval_checks import check_approvals
from signoff.config.findings import Finding, Severity, error, of_error, warning
from signoff.config.mark_checks import check_marks, marked_tools
from signoff.config.rule_checks import KnownTools, check_rules
from signoff.config.schema import Config, load_config
from signoff.config.setting_checks import check_settings, setting_place
from signoff.dataclass import dataclass
from signoff.errors import ConfigError, SettingsError, StartupError
from signoff.settings import Settings, load_settings
from signoff.store.store import nearest_folder, sqlite_path

ENV_FILE = Path(".env")
MEGABYTE = 1_000_000
LITTLE_SPACE = 200 * MEGABYTE
NO_SPACE = 20 * MEGABYTE
FILE_TOOLS = {"read_file", "write_file", "delete_file", "rotate_log"}
VERDICTS = {
    "ask": ("asks always", "ask always"),
    "depends": ("asks depending on its arguments", "ask depending on their arguments"),
    "allow": ("never asks", "never ask"),
    "deny": ("is denied", "are denied"),
}
"""First word of a tool's verdict -> what the summary says about one such tool, and about several."""


@dataclass
class Report:
    findings: list[Finding] = field(default_factory=list[Finding])
    facts: list[str] = field(default_factory=list[str])
    """Lines about what was found in order."""

    @property
    def lines(self) -> list[str]:
        return [*(finding.line for finding in self.findings), *self.facts, self._total()]

    @property
    def failed(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def _total(self) -> str:
        counts = Counter(finding.severity for finding in self.findings if finding.severity is not Severity.NOTE)
        if not counts:
            return "Nothing is wrong."
        parts = [_number(counts[one], one) for one in Severity if counts[one]]
        return f"{', '.join(parts)}. Each line above says where it is and what to do."


async def run_check(*, discord: bool = False) -> Report:
    """Check everything that can be checked here; with `discord`, connect and check the servers as well."""
    from signoff.store.checkup import check_database  # here, because a start opens the database instead

    report = Report()
    try:
        settings = load_settings(ENV_FILE)
    except SettingsError as failure:
        report.findings += [_of_setting(line) for line in str(failure).splitlines()]
        report.findings += check_settings(os.environ, ENV_FILE)
        return report
    report.findings += check_settings(os.environ, ENV_FILE)
    try:
        config = load_config(settings.config_path, required=settings.config_required)
    except ConfigError as failure:
        report.findings += of_error(failure)
    else:
        await _check_config(report, settings, config)
        if discord:
            await _check_discord(report, settings, config)
    report.findings += check_database(settings.database_url, _place("SIGNOFF_DATABASE_URL"))
    report.findings += check_disk(settings)
    return report


async def findings_at_start(settings: Settings, config: Config, brain: Brain) -> list[Finding]:
    """Return what to say at a start. Raises ConfigError if two tools have one name: every request would fail."""
    tools = await survey(brain, config, keep_running=True)
    if collisions := tools.collisions(config):
        raise ConfigError("\n".join(map(str, collisions)))
    return [
        *findings_without_agent(config),
        *tools.findings,
        *check_rules(config, tools.known),
        *check_marks(config, tools.known),
        *check_workspace(config),
        *check_prices(config, brain),
        *check_disk(settings),
    ]


def findings_without_agent(config: Config) -> list[Finding]:
    """Return what the settings and signoff.toml alone tell, in milliseconds."""
    return [*check_settings(os.environ, ENV_FILE), *check_approvals(config)]


async def _check_config(report: Report, settings: Settings, config: Config) -> None:
    try:
        config.keep_workspace_apart(settings.config_path, ENV_FILE, *_database_files(settings))
    except ConfigError as failure:
        report.findings += of_error(failure, config.where("tools", "workspace"))
    report.findings += check_approvals(config)
    problems: list[Problem] = []
    model = settings.choose_model_name(config.agent.model)
    brain = Brain.build(config, model, problems)
    report.findings += [finding for problem in problems for finding in _of_problem(problem, settings, config)]
    tools = await survey(brain, config, keep_running=False)
    report.findings += [*tools.findings, *tools.collisions(config), *check_workspace(config)]
    report.findings += check_prices(config, brain)
    known = tools.known
    if any(path != ("agent", "model") for path, _ in problems):
        known = KnownTools(known.tools, ("",))  # a part with tools is left out, so any name may exist
    report.findings += [*check_rules(config, known), *check_marks(config, known)]
    report.facts += [_counted(tools), *marked_tools(config, known), _used(settings, config, model)]


async def _check_discord(report: Report, settings: Settings, config: Config) -> None:
    if settings.discord_token is None:
        problem = "DISCORD_TOKEN is not set, so Discord cannot be checked"
        report.findings.append(error(str(ENV_FILE), problem, "write the bot's token into .env"))
        return
    from signoff.bot.checkup import check_by_connecting  # here, because a start connects by itself

    try:
        point_at(settings.api_url, settings.gateway_url)
        findings, fact = await check_by_connecting(settings.discord_token.get_secret_value(), config)
    except StartupError as failure:
        report.findings += of_error(failure, _place("DISCORD_TOKEN"))
        return
    report.findings += findings
    report.facts.append(fact)


def check_workspace(config: Config) -> list[Finding]:
    if config.agent.import_ or not (FILE_TOOLS & set(config.tools.enable) or config.tools.workspace_tools):
        return []
    folder = nearest_folder(config.workspace.resolve() / "file")
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return []
    problem = f'[tools] workspace = "{config.tools.workspace}": this user may not write to {folder}'
    remedy = "give this user the right to write there, or name another folder"
    return [error(config.where("tools", "workspace"), problem, remedy)]


def check_prices(config: Config, brain: Brain) -> list[Finding]:
    """Find limits in dollars that do not hold, because nobody knows what the model costs."""
    if not config.budgets.has_cost_limits:
        return []
    from signoff.agent.prices import unpriced_models  # here, because few limit the cost

    if not (names := unpriced_models(brain.extras.model or brain.agent.model)):
        return []
    unknown = f"the price of {', '.join(names)} is not known, so its responses count as free"
    remedy = "limit the tokens as well, or remove the limit on the cost"
    return [warning(config.where("budgets"), f"[budgets] limits the cost, and {unknown}", remedy)]


def check_disk(settings: Settings) -> list[Finding]:
    place, remedy = _place("SIGNOFF_DATABASE_URL"), "free some space, or move the database"
    for file in _database_files(settings):
        try:
            disk = shutil.disk_usage(nearest_folder(file.resolve()))
        except OSError:
            return []
        if not disk.total:
            return []  # not a disk
        free = disk.free
        problem = f"the disk of {file} has {free // MEGABYTE} MB left"
        if free < NO_SPACE:
            return [error(place, f"{problem}, so decisions cannot be stored", remedy)]
        if free < LITTLE_SPACE:
            return [warning(place, f"{problem} and is nearly full", remedy)]
    return []


def _database_files(settings: Settings) -> list[Path]:
    try:
        return [sqlite_path(settings.database_url)]
    except StartupError:
        return []


def _place(setting: str) -> str:
    return setting_place(setting, os.environ, ENV_FILE)


def _of_setting(line: str) -> Finding:
    """Turn a line of a SettingsError, which begins with the setting's name or with file and line, into a finding."""
    name = line.partition(":")[0]
    return Finding(Severity.ERROR, line, place="" if name.startswith(str(ENV_FILE)) else _place(name))


def _of_problem(problem: Problem, settings: Settings, config: Config) -> list[Finding]:
    path, failure = problem
    if path == ("agent", "model") and "model" in settings.model_fields_set:
        return of_error(failure, _place("SIGNOFF_MODEL"))
    if path[0] == "tools" and re.match(r".+?\.py:\d+: ", str(failure)):
        return of_error(failure)  # it names the plugin's own file and line
    return of_error(failure, config.where(*path))


def _counted(tools: Survey) -> str:
    counts = Counter(verdict.split()[0] for verdict in tools.verdicts.values())
    parts = [
        f"{counts[word]} {texts[counts[word] != 1]}"
        for word, texts in VERDICTS.items()
        if counts[word] or (tools.verdicts and word != "deny")
    ]
    return f"{_number(len(tools.verdicts), 'tool')}{': ' if parts else ''}{', '.join(parts)}."


def _used(settings: Settings, config: Config, model: str) -> str:
    file = settings.config_path
    rules = f"{file}: {_number(len(config.rules), 'rule')}" if file.exists() else f"no {file}, so the defaults apply"
    brain = f"agent {config.agent.import_}" if config.agent.import_ else f"model {model}"
    where = "Discord" if settings.discord_token else "no DISCORD_TOKEN, so it runs in the sandbox"
    return f"{rules}; {brain}; {where}."


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

"""signoff.toml: the operator's choices, as a frozen tree in which everything has a default.

Each field's description is what an error tells people to write. Knows nothing of the environment, of Discord or of
PydanticAI; what a rule means is the policy's affair, and so is loading plugins the agent's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    ValidationError,
    model_validator,
)

from signoff.approvals.model import Verdict
from signoff.config_problems import Hints, describe_problems, describe_syntax
from signoff.errors import ConfigError

BuiltinTool = Literal[
    "test_discord_approval", "post_announcement", "roll_dice", "current_time", "read_file", "write_file"
]
BUILTIN_TOOLS: tuple[BuiltinTool, ...] = get_args(BuiltinTool)
WORKSPACE = "data/workspace"

INSTRUCTIONS = (
    "You are a helpful assistant in a Discord server. You work with tools. Some tool calls wait for a person's "
    "approval: do not ask for it in words, make the call. If a call is rejected, say so and do not repeat it."
)

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ms|s|m|h|d)")
_LONGEST = 30 * _UNITS["d"]
_LONGEST_KEPT = 3650 * _UNITS["d"]
_ID = re.compile(r"[1-9][0-9]{0,19}")
_NESTED_REPEAT = re.compile(r"(?<![\\+*}])(?:[+*]|\{[0-9]*,[0-9]*\})(?!\+)[^(]{0,200}\)(?:[+*](?!\+)|\{[0-9]*,)")
_APPROVER = re.compile(rf"manage_server|asker|(?:role|user):{_ID.pattern}")


def _seconds(value: object) -> object:
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        return float(match[1]) * _UNITS[match[2]]
    return value


def _id(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _regular_expression(value: str) -> str:
    """A repeat of a repeat, as in (a+)+, may take forever on the wrong text."""
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None
    if _NESTED_REPEAT.search(value):
        raise ValueError("repeats what repeats")
    return value


Duration = Annotated[float, BeforeValidator(_seconds), Field(ge=0.1, le=_LONGEST)]
LongDuration = Annotated[float, BeforeValidator(_seconds), Field(ge=_UNITS["h"], le=_LONGEST_KEPT)]
Id = Annotated[str, BeforeValidator(_id), Field(pattern=rf"\A{_ID.pattern}\z")]
Approver = Annotated[str, Field(pattern=rf"\A(?:{_APPROVER.pattern})\z")]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Quorum = Annotated[int, Field(ge=1, le=10)]
SecretName = Annotated[str, Field(pattern=r"[A-Za-z0-9]")]
SecretPattern = Annotated[str, Field(min_length=1), AfterValidator(_regular_expression)]
# TOML has lists, a frozen tree has tuples: the container is lax, what is in it is strict.
Ids = Annotated[tuple[Id, ...], Strict(False)]
Approvers = Annotated[tuple[Approver, ...], Strict(False), Field(min_length=1)]
Patterns = Annotated[tuple[Text, ...], Strict(False), BeforeValidator(_one_or_more), Field(min_length=1)]

_APPROVERS_HINT = 'a list of "manage_server", "asker", "role:ID" or "user:ID", with at least one entry'
_DURATION_HINT = 'seconds, or a text such as "90s", "5m" or "1h", from 0.1 seconds to 30 days'
_IDS_HINT = 'a list of Discord ids, for example ["123456789012345678"]'
_PATTERNS_HINT = 'argument = "pattern" or a list of patterns, in quotes, for example { path = ["/etc/*", "*.key"] }'
_COUNT_HINT = "a whole number, 1 or more"
_QUORUM_HINT = "how many people have to accept, from 1 to 10"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AgentConfig(_Section):
    """`[agent]`: who answers."""

    instructions: str = Field(default=INSTRUCTIONS, description="a text")
    model: Text | None = Field(default=None, description='a model name in quotes, for example "demo"')
    """None: the environment's SIGNOFF_MODEL, or the demo."""
    import_: str | None = Field(
        default=None,
        alias="import",
        pattern=r"\A[A-Za-z_][\w.]*:[A-Za-z_]\w*\z",
        description='"module:agent", for example "my_agents.support:agent"',
    )


class ToolsConfig(_Section):
    """`[tools]`: what the agent may use."""

    enable: Annotated[tuple[BuiltinTool, ...], Strict(False)] = Field(
        default=BUILTIN_TOOLS, description=f"a list of some of: {', '.join(BUILTIN_TOOLS)}"
    )
    plugins: Annotated[tuple[Text, ...], Strict(False)] = Field(
        default=(), description='a list of Python files, relative to this file, for example ["my_tools.py"]'
    )
    undeclared: Literal["allow", "ask"] = Field(default="allow", description='"allow" or "ask"')
    """What happens to a call of a tool that says nothing about approval and that no rule matches."""
    workspace: str = Field(
        default=WORKSPACE,
        pattern=r"\A[^\x00]+\z",
        description=f'a folder, relative to this file, for example "{WORKSPACE}"',
    )
    """Where the file tools work: every server has a folder of its own below it."""


class AccessConfig(_Section):
    """`[access]`: who may ask. An empty list of servers, channels or roles is no restriction."""

    servers: Ids = Field(default=(), description=_IDS_HINT)
    channels: Ids = Field(default=(), description=_IDS_HINT)
    roles: Ids = Field(default=(), description=_IDS_HINT)
    dm_users: Ids = Field(default=(), description=_IDS_HINT)
    """Direct messages are for these people only: an empty list is nobody."""


class ApprovalsConfig(_Section):
    """`[approvals]`: how cards are decided where no rule says otherwise."""

    mode: Literal["interactive", "auto_approve", "auto_deny"] = Field(
        default="interactive", description='"interactive", "auto_approve" or "auto_deny"'
    )
    timeout: Duration = Field(default=300.0, description=_DURATION_HINT)
    batch: Literal["hold", "split"] = Field(default="hold", description='"hold" or "split"')
    approvers: Approvers = Field(default=("manage_server",), description=_APPROVERS_HINT)
    quorum: Quorum = Field(default=1, description=_QUORUM_HINT)
    """The least for every card; a rule may ask for more."""
    four_eyes: bool = Field(default=False, description="true or false")
    """Whether the asker is kept from deciding, on every card; a rule may do so for its own."""
    reminder: Duration | None = Field(default=None, description=_DURATION_HINT)
    """So long before the deadline those who may decide are reminded; None: not at all."""
    ping: bool = Field(default=False, description="true or false")
    """Whether the reminder pings the roles and people who may decide."""
    remember: Literal["none", "session", "always"] = Field(
        default="session", description='"none", "session" or "always"'
    )
    """How far people may have their decisions remembered."""
    grant_lifetime: Duration = Field(default=_LONGEST, description=_DURATION_HINT)
    grant_uses: Count = Field(default=50, description=_COUNT_HINT)
    on_no_approver: Literal["reject", "approve"] = Field(default="reject", description='"reject" or "approve"')


class RuleConfig(_Section):
    """`[[rules]]`: a verdict for the calls that it matches.

    `tool` is a glob on the tool's name. `when` and `unless` map an argument's name to one or more globs, of which one
    must match the text of its value: a string as it is, a list item by item, anything else as JSON (`5`, `true`). The
    rule matches if every entry of `when` does, except where there is an `unless` of which every entry does. An absent
    argument matches nothing. Globs are those of `fnmatch`: `*`, `?`, `[abc]`; upper and lower case are told apart.
    """

    tool: Text = Field(description='tool = "NAME", where NAME may have wildcards, for example "file_*"')
    verdict: Annotated[Verdict, Strict(False)] = Field(description='verdict = "allow", "ask" or "deny"')
    when: Mapping[str, Patterns] = Field(default_factory=dict[str, Any], description=_PATTERNS_HINT)
    unless: Mapping[str, Patterns] = Field(default_factory=dict[str, Any], description=_PATTERNS_HINT)
    approvers: Approvers | None = Field(default=None, description=_APPROVERS_HINT)
    """None: those of `[approvals]`."""
    timeout: Duration | None = Field(default=None, description=_DURATION_HINT)
    """None: that of `[approvals]`."""
    quorum: Quorum = Field(default=1, description=_QUORUM_HINT)
    four_eyes: bool = Field(default=False, description="true or false")
    reminder: Duration | None = Field(default=None, description=_DURATION_HINT)
    ping: bool = Field(default=False, description="true or false")
    message: str = Field(default="", description="a text for those who decide")
    relaxable: bool = Field(default=False, description="true or false")
    """Whether a server's admins may let such calls pass without asking."""
    reason: str = Field(default="", description="a text for the card or, in a deny rule, for the model")

    @model_validator(mode="after")
    def _only_asking_has_approvers(self) -> RuleConfig:
        asking = (self.approvers, self.timeout, self.quorum > 1, self.four_eyes, self.reminder, self.ping, self.message)
        if self.verdict is not Verdict.ASK and any(asking):
            raise ValueError(
                "has approvers, a timeout, a quorum, four_eyes, a reminder or a message, but nobody is asked; "
                'write verdict = "ask" or remove them'
            )
        if self.verdict is not Verdict.ASK and self.relaxable:
            raise ValueError('is relaxable, which only an ask rule can be; write verdict = "ask" or remove it')
        return self


class LimitsConfig(_Section):
    """`[limits]`: how much at once."""

    calls_per_response: Count = Field(default=10, description=_COUNT_HINT)
    turns_per_person: Count = Field(default=3, description=_COUNT_HINT)
    queue_per_person: Count = Field(default=5, description=_COUNT_HINT)
    queue_per_conversation: Count = Field(default=5, description=_COUNT_HINT)
    model_requests_per_turn: Count = Field(default=25, description=_COUNT_HINT)
    tool_seconds: Duration = Field(default=120.0, description=_DURATION_HINT)


class AuditConfig(_Section):
    """`[audit]`: the record of decisions."""

    keep_text: LongDuration = Field(
        default=90 * _UNITS["d"], description='a text such as "90d", from one hour to 3650 days'
    )
    """How long the arguments of calls are kept with their rows; the rows themselves stay."""
    log_channels: Ids = Field(default=(), description=_IDS_HINT)


class SecretsConfig(_Section):
    """`[secrets]`: what is masked beyond what is known anyway."""

    names: Annotated[tuple[SecretName, ...], Strict(False)] = Field(
        default=(), description='a list of names of arguments, for example ["badge number"]'
    )
    patterns: Annotated[tuple[SecretPattern, ...], Strict(False)] = Field(
        default=(),
        description="a list of regular expressions in single quotes, for example ['EMP-[0-9]{6}'], "
        "in which nothing that repeats is repeated, unless by ++ or *+",
    )
    """The whole match is masked, or group 1 if there is one."""


class Config(_Section):
    """The whole file. `Config()` is what holds without one."""

    agent: AgentConfig = AgentConfig()
    tools: ToolsConfig = ToolsConfig()
    access: AccessConfig = AccessConfig()
    approvals: ApprovalsConfig = ApprovalsConfig()
    rules: Annotated[tuple[RuleConfig, ...], Strict(False)] = ()
    """In the order of the file."""
    limits: LimitsConfig = LimitsConfig()
    audit: AuditConfig = AuditConfig()
    secrets: SecretsConfig = SecretsConfig()

    _folder: Path = PrivateAttr(default=Path("."))

    @property
    def folder(self) -> Path:
        """Where the file lies: the paths of plugins and of the workspace are relative to it."""
        return self._folder

    @property
    def workspace(self) -> Path:
        return self._folder / self.tools.workspace

    def keep_workspace_apart(self, *own: Path) -> None:
        """Raises ConfigError if the file tools could reach one of these files of ours, a plugin or the program."""
        root, setting = self.workspace.resolve(), f'[tools] workspace = "{self.tools.workspace}"'
        plugins = (self._folder / plugin for plugin in self.tools.plugins)
        for path in (*own, self._folder / "signoff.toml", *plugins, Path(__file__)):
            if path.resolve().is_relative_to(root):
                cause = f"{setting} contains {path.name}, which the agent must not reach"
                raise ConfigError(f'{cause}; write a folder of its own, for example "{WORKSPACE}"')
        if root.exists() and not root.is_dir():
            raise ConfigError(f"{setting} is not a folder; write another name")


def load_config(path: Path, *, required: bool) -> Config:
    """Read the file; without one, and if it need not be there, everything is at its default."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        if required:
            raise ConfigError(f"{path}: there is no such file; create it or correct SIGNOFF_CONFIG") from None
        return Config()
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; make it a readable file or correct SIGNOFF_CONFIG") from None
    config = parse_config(text, str(path))
    config._folder = path.parent  # pyright: ignore[reportPrivateUsage]
    return config


def parse_config(text: str, name: str = "signoff.toml") -> Config:
    """Check a file's text. The error lists every problem, one per line, in the order of the file."""
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}:{describe_syntax(error, text)}") from None
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        problems = describe_problems(error.errors(include_url=False), text, _hints())
        raise ConfigError("\n".join(f"{name}:{problem}" for problem in problems)) from None


def _hints() -> Hints:
    """Of every table, every key and what to write for it."""
    first = (AgentConfig, ToolsConfig, AccessConfig, ApprovalsConfig, RuleConfig)
    models = (*first, LimitsConfig, AuditConfig, SecretsConfig)
    return {
        section: {field.alias or name: field.description or "" for name, field in model.model_fields.items()}
        for section, model in zip(Config.model_fields, models, strict=True)
    }

"""The content of signoff.toml as frozen models. Every table has defaults.

A field's description is the hint in its error message. Knows nothing of the environment, Discord or PydanticAI. The
policy applies the rules, and the agent package loads the plugins.

The annotations here are evaluated with the module: as texts, Pydantic would evaluate each of them, which takes longer.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticKnownError

from signoff.approvals.model import Escalation, Verdict
from signoff.approvals.policy import Rule
from signoff.approvals.tool_description import MARKS
from signoff.config.types import (
    APPROVERS_HINT,
    COUNT_HINT,
    DOLLARS_HINT,
    DURATION_HINT,
    ESCALATE_HINT,
    IDS_HINT,
    LONGEST,
    NOTIFY_HINT,
    OFF_HINT,
    PATTERNS_HINT,
    QUORUM_HINT,
    UNITS,
    AbsolutePath,
    Approvers,
    Count,
    Dollars,
    Duration,
    DurationOrOff,
    EscalatedTo,
    Ids,
    LongDuration,
    Notify,
    Patterns,
    Quorum,
    SecretName,
    SecretPattern,
    ServerName,
    Text,
    TimeZone,
)
from signoff.errors import ConfigError
from signoff.servers.tool_names import DiscordTool

BuiltinTool = Literal[
    "test_discord_approval",
    "post_announcement",
    "roll_dice",
    "current_time",
    "ask_user",
    "read_file",
    "write_file",
    "delete_file",
    "rotate_log",
]
BUILTIN_TOOLS: tuple[BuiltinTool, ...] = get_args(BuiltinTool)
DEFAULT_TOOLS: tuple[BuiltinTool, ...] = tuple(
    name for name in BUILTIN_TOOLS if name not in ("delete_file", "rotate_log")
)
"""The tools without `[tools] enable`. The tools that clean up are only for those who ask for them by name."""
WorkspaceTool = Literal[
    "read",
    "list_dir",
    "glob",
    "grep",
    "todo",
    "write",
    "edit",
    "multi_edit",
    "apply_patch",
    "diagnostics",
    "bash",
    "web_fetch",
]
"""Tools that are off unless `[tools] enable` names them. "workspace" stands for all but bash and web_fetch."""
WORKSPACE_TOOLS: tuple[WorkspaceTool, ...] = get_args(WorkspaceTool)
WORKSPACE_GROUP = "workspace"
EnabledTool = Literal[BuiltinTool, WorkspaceTool, "workspace", DiscordTool]
WORKSPACE = "data/workspace"
_TARGET = r"\A[A-Za-z_][\w.]*:[A-Za-z_]\w*\z"
_FILLED_HINT = 'names and texts, in which ${NAME} is taken from the environment, for example { TOKEN = "${MY_TOKEN}" }'

INSTRUCTIONS = (
    "You are a helpful assistant in a Discord server. You work with tools. Some tool calls wait for a person's "
    "approval: do not ask for it in words, make the call. If a call is rejected, say so and do not repeat it."
)


class _Section(BaseModel):
    # Pydantic builds one validator for the whole file when it is read, and not one for each table at import.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class AgentConfig(_Section):
    """`[agent]`: the agent that replies."""

    instructions: str = Field(default=INSTRUCTIONS, description="a text")
    model: Text | None = Field(default=None, description='a model name in quotes, for example "demo"')
    """None: use SIGNOFF_MODEL of the environment, or the demo model."""
    import_: str | None = Field(
        default=None,
        alias="import",
        pattern=_TARGET,
        description='"module:agent", for example "my_agents.support:agent"',
    )
    deps: str | None = Field(
        default=None,
        pattern=_TARGET,
        description='"module:make_deps", for example "my_agents.support:make_deps"',
    )
    """A function that makes the dependencies of each run."""
    settings: Mapping[str, Any] = Field(
        default_factory=dict[str, Any], description="a table [agent.settings] with values of your own"
    )
    """The operator's own values, which `deps` gets."""


class ToolsConfig(_Section):
    """`[tools]`: the tools that the agent may use."""

    enable: Annotated[tuple[EnabledTool, ...], Strict(False)] = Field(
        default=DEFAULT_TOOLS, description=f"a list of some of: {', '.join(get_args(EnabledTool))}"
    )
    plugins: Annotated[tuple[Text, ...], Strict(False)] = Field(
        default=(), description='a list of Python files, relative to this file, for example ["my_tools.py"]'
    )
    undeclared: Literal["allow", "ask"] | None = Field(default=None, description='"allow" or "ask"')
    """The verdict for tools that declare nothing about approval and that no rule matches.

    None: allow for Signoff's own tools and those of plugins, ask for those of imported agents and capabilities.
    """
    workspace: str = Field(
        default=WORKSPACE,
        pattern=r"\A[^\x00]+\z",
        description=f'a folder, relative to this file, for example "{WORKSPACE}"',
    )
    """The root folder of the file tools. Each server has its own folder in it."""
    sandbox: Literal["required", "if available", "off"] = Field(
        default="required", description='"required", "if available" or "off"'
    )
    """Whether bash and diagnostics run in a sandbox of bubblewrap."""
    network: bool = Field(default=False, description="true or false")
    """Whether commands in the sandbox have network."""
    sandbox_reads: Annotated[tuple[AbsolutePath, ...], Strict(False)] = Field(
        default=(), description='a list of absolute folders, for example ["/opt/python"]'
    )
    """Further folders that commands in the sandbox may read."""
    diagnostics: Annotated[tuple[Text, ...], Strict(False)] = Field(
        default=(), description='a list, for example ["ruff", "check"]'
    )
    """The checker that the tool diagnostics runs. Without it the tool is not offered."""
    shell: Mapping[str, Patterns] = Field(
        default_factory=dict[str, Any], description='tool = "argument", for example { box_run = "command" }'
    )
    """Glob for a tool's name -> its arguments that are shell commands, for tools that do not say so themselves."""

    @property
    def workspace_tools(self) -> frozenset[WorkspaceTool]:
        """The enabled tools among WORKSPACE_TOOLS. The group has diagnostics only if a checker is named."""
        alone = {"bash", "web_fetch", *(() if self.diagnostics else ("diagnostics",))}
        group = WORKSPACE_TOOLS if WORKSPACE_GROUP in self.enable else ()
        return frozenset(
            name for name in WORKSPACE_TOOLS if name in self.enable or (name in group and name not in alone)
        )


class AccessConfig(_Section):
    """`[access]`: who may mention the bot. An empty list of servers, channels or roles means no restriction."""

    servers: Ids = Field(default=(), description=IDS_HINT)
    channels: Ids = Field(default=(), description=IDS_HINT)
    roles: Ids = Field(default=(), description=IDS_HINT)
    dm_users: Ids = Field(default=(), description=IDS_HINT)
    """Only these people may send direct messages. An empty list means nobody."""


class EscalateConfig(_Section):
    """`escalate = { after = "2m", to = ["role:ID"] }`: who may decide too if nobody has decided in time."""

    after: Duration
    to: Annotated[tuple[EscalatedTo, ...], Strict(False)] = Field(min_length=1)

    @property
    def terms(self) -> Escalation:
        return Escalation(self.after, self.to)


class ApprovalsConfig(_Section):
    """`[approvals]`: how cards are decided, unless a rule says otherwise."""

    mode: Literal["interactive", "auto_approve", "auto_deny"] = Field(
        default="interactive", description='"interactive", "auto_approve" or "auto_deny"'
    )
    timeout: Duration = Field(default=300.0, description=DURATION_HINT)
    batch: Literal["hold", "split"] = Field(default="hold", description='"hold" or "split"')
    approvers: Approvers = Field(default=("manage_server",), description=APPROVERS_HINT)
    answerers: Approvers = Field(default=("asker", "manage_server"), description=APPROVERS_HINT)
    """Who may answer what a call asks people, if the call itself needs no approval."""
    quorum: Quorum = Field(default=1, description=QUORUM_HINT)
    """The minimum for every card. A rule may require more."""
    four_eyes: bool = Field(default=False, description="true or false")
    """If true, the asker may not decide on any card. If false, a rule may still forbid it for its own calls."""
    reminder: Duration | None = Field(default=None, description=DURATION_HINT)
    """Post a reminder this long before the deadline; None: no reminder."""
    ping: bool = Field(default=False, description="true or false")
    """Whether the reminder pings the roles and people who may decide."""
    notify: Notify = Field(default="none", description=NOTIFY_HINT)
    """How approvers are told when a card opens."""
    escalate: EscalateConfig | None = Field(default=None, description=ESCALATE_HINT)
    remember: Literal["none", "session", "always"] = Field(
        default="session", description='"none", "session" or "always"'
    )
    """The longest scope for which people may have a decision remembered."""
    grant_lifetime: Duration = Field(default=LONGEST, description=DURATION_HINT)
    grant_uses: Count = Field(default=50, description=COUNT_HINT)
    on_no_approver: Literal["reject", "approve"] = Field(default="reject", description='"reject" or "approve"')

    @model_validator(mode="after")
    def _escalates_before_the_deadline(self) -> Self:
        _refuse_late_escalation(self.escalate, self.timeout)
        return self


class RuleConfig(_Section):
    """`[[rules]]`: a verdict for the calls that it matches.

    `tool` is a glob for the tool's name, or a list of globs. `read_only`, `acts`, `destructive` and `idempotent` match
    tools by their marks; without `tool`, they match any tool. `when` and `unless` map an argument's name to one or more
    globs. An entry matches if one of its globs matches the text of the argument's value: a string as it is, a list item
    by item, anything else as JSON (`5`, `true`). The rule matches if every entry of `when` matches, unless there is an
    `unless` whose entries all match. A missing argument matches nothing. Globs are those of `fnmatch` (`*`, `?`,
    `[abc]`) and case-sensitive.
    """

    read_only: bool | None = Field(default=None, description="true or false")
    """None, here and below: the rule matches tools with and without this mark."""
    acts: bool | None = Field(default=None, description="true or false")
    destructive: bool | None = Field(default=None, description="true or false")
    idempotent: bool | None = Field(default=None, description="true or false")
    tool: Patterns = Field(
        default=("*",),
        validate_default=True,
        description='tool = "NAME", where NAME may have wildcards, for example "file_*", or a list',
    )
    verdict: Annotated[Verdict, Strict(False)] = Field(description='verdict = "allow", "ask" or "deny"')
    when: Mapping[str, Patterns] = Field(default_factory=dict[str, Any], description=PATTERNS_HINT)
    unless: Mapping[str, Patterns] = Field(default_factory=dict[str, Any], description=PATTERNS_HINT)
    approvers: Approvers | None = Field(default=None, description=APPROVERS_HINT)
    """None: use the approvers of `[approvals]`."""
    answerers: Approvers | None = Field(default=None, description=APPROVERS_HINT)
    """Who may answer what the call asks people. None: its approvers or, if it needs none, those of `[approvals]`."""
    timeout: Duration | None = Field(default=None, description=DURATION_HINT)
    """None: use the timeout of `[approvals]`."""
    quorum: Quorum = Field(default=1, description=QUORUM_HINT)
    four_eyes: bool = Field(default=False, description="true or false")
    reminder: Duration | None = Field(default=None, description=DURATION_HINT)
    ping: bool = Field(default=False, description="true or false")
    notify: Notify | None = Field(default=None, description=NOTIFY_HINT)
    """None: use the setting of `[approvals]`, and so for `escalate`."""
    escalate: EscalateConfig | None = Field(default=None, description=ESCALATE_HINT)
    message: str = Field(default="", description="a text for those who decide")
    relaxable: bool = Field(default=False, description="true or false")
    """Whether a server's admins may allow such calls without approval."""
    reason: str = Field(default="", description="a text for the card or, in a deny rule, for the model")

    @property
    def names_a_mark(self) -> bool:
        return any(getattr(self, name) is not None for name in MARKS)

    def as_rule(self) -> Rule:
        """Return the rule as the policy has it."""
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in ("tool", "escalate")}
        tool = self.tool[0] if len(self.tool) == 1 else self.tool
        return Rule(tool, escalate=self.escalate and self.escalate.terms, **own)

    @field_validator("tool", mode="wrap")
    @classmethod
    def _is_needed_without_marks(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        # TOML has no tuples, so only the default is this one.
        if value == ("*",) and all(info.data.get(name) is None for name in MARKS):
            raise PydanticKnownError("missing")
        return handler(value)

    @model_validator(mode="after")
    def _only_asking_has_approvers(self) -> Self:
        asking = (self.approvers, self.quorum > 1, self.four_eyes, self.ping, self.notify, self.escalate)
        # With answerers, people are asked for an answer even if the call needs no approval.
        timed = () if self.answerers else (self.timeout, self.reminder, self.message)
        if self.verdict is not Verdict.ASK and any((*asking, *timed)):
            raise ValueError(
                "has approvers, a timeout, a quorum, four_eyes, a reminder, a message, notify or escalate, "
                "but nobody is asked; "
                'write verdict = "ask" or remove them'
            )
        if self.verdict is Verdict.DENY and self.answerers:
            raise ValueError('has answerers, but the call is denied; write verdict = "ask" or "allow", or remove them')
        if self.verdict is not Verdict.ASK and self.relaxable:
            raise ValueError('is relaxable, which only an ask rule can be; write verdict = "ask" or remove it')
        _refuse_late_escalation(self.escalate, self.timeout)
        return self


def _refuse_late_escalation(escalate: EscalateConfig | None, timeout: float | None) -> None:
    if escalate and timeout is not None and escalate.after >= timeout:
        raise ValueError("escalates after its timeout, so never; write a shorter escalate.after or a longer timeout")


class LimitsConfig(_Section):
    """`[limits]`: how much runs at once, and for how long."""

    calls_per_response: Count = Field(default=10, description=COUNT_HINT)
    turns_per_person: Count = Field(default=3, description=COUNT_HINT)
    queue_per_person: Count = Field(default=5, description=COUNT_HINT)
    queue_per_conversation: Count = Field(default=5, description=COUNT_HINT)
    model_requests_per_turn: Count = Field(default=25, description=COUNT_HINT)
    model_retries: int = Field(default=3, ge=0, le=10, description="a whole number up to 10; 0 tries only once")
    """How often a request is repeated if the model's provider fails for a moment."""
    history_tokens: Annotated[int, Field(ge=1000)] = Field(default=100_000, description="a whole number, at least 1000")
    """About how many tokens of a conversation the model gets. A summary takes the place of the older ones."""
    rejected_cards: Count = Field(default=3, description=COUNT_HINT)
    """A turn ends after so many cards in a row of which nothing was accepted."""
    tools_per_person: Count = Field(default=10, description=COUNT_HINT)
    """How many tools of one person run at once. The person's further calls wait, other people's do not."""
    tool_seconds: Duration = Field(default=120.0, description=DURATION_HINT)
    shutdown_grace: Duration = Field(default=15.0, description=DURATION_HINT)
    """How long running tools may continue after the process was told to stop."""
    attachment_kinds: Annotated[tuple[Literal["text", "image"], ...], Strict(False)] = Field(
        default=("text", "image"), description='a list of "text" and "image"; an empty list turns attachments off'
    )
    attachments_per_message: Count = Field(default=4, description=COUNT_HINT)
    attachment_text_bytes: Count = Field(default=100_000, description=COUNT_HINT)
    attachment_image_bytes: Count = Field(default=4_000_000, description=COUNT_HINT)
    quoted_characters: int = Field(default=2000, ge=0, description="a whole number; 0 leaves out replied-to messages")
    """How much the agent gets of the message that a mention replies to."""
    catch_up: DurationOrOff = Field(default=3600.0, description=OFF_HINT)
    """How old a mention may be that was sent while the bot was offline and is answered when it is back; 0: none."""


class BudgetsConfig(_Section):
    """`[budgets]`: how much of the model a thread, a person or a server may use before people are asked for more."""

    tokens_per_thread: Count | None = Field(default=None, description=COUNT_HINT)
    tokens_per_person_per_day: Count | None = Field(default=None, description=COUNT_HINT)
    tokens_per_server_per_day: Count | None = Field(default=None, description=COUNT_HINT)
    cost_per_thread: Dollars | None = Field(default=None, description=DOLLARS_HINT)
    cost_per_person_per_day: Dollars | None = Field(default=None, description=DOLLARS_HINT)
    cost_per_server_per_day: Dollars | None = Field(default=None, description=DOLLARS_HINT)
    overage_percent: int = Field(default=50, ge=1, le=1000, description="a whole number from 1 to 1000")
    """How much more an accepted card allows, in percent of the limit."""
    timezone: TimeZone = Field(default="UTC", description='a time zone in quotes, for example "Europe/Berlin"')
    """Where a day begins at midnight."""

    @property
    def has_limits(self) -> bool:
        return any(key.startswith(("tokens", "cost")) and value is not None for key, value in self)

    @property
    def has_cost_limits(self) -> bool:
        return any(key.startswith("cost") and value is not None for key, value in self)


class SchedulesConfig(_Section):
    """`[schedules]`: prompts that run by themselves. Admins of a server make them with `/signoff schedule`."""

    allow: bool = Field(default=False, description="true or false")
    modes: Annotated[tuple[Literal["interactive", "auto_deny", "auto_approve"], ...], Strict(False)] = Field(
        default=("interactive", "auto_deny"), description='a list of "interactive", "auto_deny" and "auto_approve"'
    )
    """The modes that a schedule may have of its own."""
    per_server: Count = Field(default=20, description=COUNT_HINT)
    minimum_interval: Duration = Field(default=900.0, description=DURATION_HINT)
    """The shortest time between two runs of one schedule."""
    grace: Duration = Field(default=3600.0, description=DURATION_HINT)
    """A run that was missed is made up for if it is not older than this."""
    timezone: TimeZone = Field(default="UTC", description='a time zone in quotes, for example "Europe/Berlin"')


class AuditConfig(_Section):
    """`[audit]`: the record of decisions."""

    keep_text: LongDuration = Field(
        default=90 * UNITS["d"], description='a text such as "90d", from one hour to 3650 days'
    )
    """How long the texts of calls are kept. The rows of the record are kept for ever."""
    log_channels: Ids = Field(default=(), description=IDS_HINT)


class SecretsConfig(_Section):
    """`[secrets]`: names and patterns to mask, in addition to the built-in ones."""

    names: Annotated[tuple[SecretName, ...], Strict(False)] = Field(
        default=(), description='a list of names of arguments, for example ["badge number"]'
    )
    patterns: Annotated[tuple[SecretPattern, ...], Strict(False)] = Field(
        default=(),
        description="a list of regular expressions in single quotes, for example ['EMP-[0-9]{6}'], "
        "without nested repeats such as (a+)+; use ++ or *+ there",
    )
    """The whole match is masked, or group 1 if there is one."""


class McpConfig(_Section):
    """`[mcp.NAME]`: a server whose tools the agent may use. We run it or connect to it ourselves."""

    command: Annotated[tuple[Text, ...], Strict(False)] | None = Field(
        default=None, min_length=1, description='a list, for example ["python", "server.py"]'
    )
    """Runs in the folder of signoff.toml. Its environment is `env` plus PATH and the like, and nothing else of ours."""
    url: str | None = Field(
        default=None, pattern=r"\Ahttps?://[^\s]+\z", description='an address in quotes that starts with "https://"'
    )
    env: Mapping[str, str] = Field(default_factory=dict[str, str], description=_FILLED_HINT)
    headers: Mapping[str, str] = Field(default_factory=dict[str, str], description=_FILLED_HINT)
    tools: Patterns = Field(default=("*",), description='a list of names as the server has them, for example ["get_*"]')
    """Tools whose names match none of these are not offered."""
    trusted: bool = Field(default=False, description="true or false")
    """Whether to believe the server about which of its tools only read. Those then do not ask."""
    start: Duration = Field(default=10.0, description=DURATION_HINT)
    """How long the server may take to start when a turn begins. After that the turn runs without it."""
    prefix: str | None = Field(
        default=None,
        pattern=r"\A(?:[A-Za-z][A-Za-z0-9_]{0,19})?\z",
        description="up to 20 of A-Z, a-z, 0-9 and _, with a letter first, or an empty text for no prefix",
    )
    """The names of its tools begin with this and `_`. None: NAME."""
    sampling: bool = Field(default=False, description="true or false")
    """Whether the server may use the bot's model while one of its tools runs."""
    elicitation: bool = Field(default=True, description="true or false")
    """Whether the server may ask people something while one of its tools runs. They answer on a card."""

    @model_validator(mode="after")
    def _is_run_or_reached(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs a command or a url; write one of the two")
        if self.url and self.env:
            raise ValueError("has a url and env, which only a command takes; write headers or remove it")
        if self.command and self.headers:
            raise ValueError("has a command and headers, which only a url takes; write env or remove them")
        return self


def _table() -> Any:
    """A table that may be missing. Its default is read like the file, so that it needs no validator of its own."""
    return Field(default_factory=dict, validate_default=True)


class Config(_Section):
    """The whole file. `Config()` is used if there is none."""

    agent: AgentConfig = _table()
    tools: ToolsConfig = _table()
    access: AccessConfig = _table()
    approvals: ApprovalsConfig = _table()
    rules: Annotated[tuple[RuleConfig, ...], Strict(False)] = ()
    """The rules in the order of the file."""
    limits: LimitsConfig = _table()
    budgets: BudgetsConfig = _table()
    schedules: SchedulesConfig = _table()
    audit: AuditConfig = _table()
    secrets: SecretsConfig = _table()
    mcp: Mapping[ServerName, McpConfig] = Field(default_factory=dict[str, McpConfig])

    _folder: Path = PrivateAttr(default=Path("."))
    _name: str = PrivateAttr(default="signoff.toml")
    _text: str = PrivateAttr(default="")
    _own: tuple[Path, ...] = PrivateAttr(default=())

    def where(self, *path: str | int) -> str:
        """Return the file and the line of a key, for example `signoff.toml:12` for `("rules", 1, "when")`."""
        from signoff.config.toml_lines import TomlLines  # here, because only messages name a line

        try:
            return f"{self._name}:{TomlLines(self._text).find(path)}" if self._text else self._name
        except ValueError:
            return self._name

    @property
    def folder(self) -> Path:
        """The folder of the file. The paths of plugins and of the workspace are relative to it."""
        return self._folder

    @property
    def workspace(self) -> Path:
        return self._folder / self.tools.workspace

    @property
    def hidden_folders(self) -> list[Path]:
        """The folders that commands must not see: of signoff.toml, of all workspaces, and of the bot's own files."""
        return [self._folder, self.workspace, *(path.absolute().parent for path in self._own)]

    def keep_workspace_apart(self, *own: Path) -> None:
        """Raise ConfigError if tools could reach `own` files, our code, signoff.toml or programs that we run."""
        self._own = own
        root, setting = self.workspace.resolve(), f'[tools] workspace = "{self.tools.workspace}"'
        for folder in self.tools.sandbox_reads:
            if any(
                path.resolve().is_relative_to(Path(folder).resolve()) for path in (*own, self._folder / "signoff.toml")
            ):
                raise ConfigError(
                    f'[tools] sandbox_reads: "{folder}" contains files of the bot; name a narrower folder'
                )
            if root.is_relative_to(Path(folder).resolve()) or Path(folder).resolve().is_relative_to(root):
                raise ConfigError(
                    f'[tools] sandbox_reads: "{folder}" would show the workspaces of all servers; name another folder'
                )
        programs = [*self.tools.plugins, *(word for server in self.mcp.values() for word in server.command or ())]
        ours = (self._folder / name for name in ("signoff.toml", *programs))
        program = Path(__file__).resolve().parents[1]
        instead = f'which the agent must not reach; write a folder of its own, for example "{WORKSPACE}"'
        if root.is_relative_to(program):
            raise ConfigError(f"{setting} is a part of the program, {instead}")
        for path in (*own, *ours, program):
            if path.resolve().is_relative_to(root):
                raise ConfigError(f"{setting} contains {path.name}, {instead}")
        if root.exists() and not root.is_dir():
            raise ConfigError(f"{setting} is not a folder; write another name")


def load_config(path: Path, *, required: bool) -> Config:
    """Read the file. If there is none and it is not required, return the defaults."""
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
        from signoff.config.problems import describe_syntax  # here, because most files are right

        raise ConfigError(f"{name}:{describe_syntax(error, text)}") from None
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        from signoff.config.problems import describe_problems  # here for the same reason

        problems = describe_problems(error.errors(include_url=False), text, _hints())
        raise ConfigError("\n".join(f"{name}:{problem}" for problem in problems)) from None
    config._name, config._text = name, text  # pyright: ignore[reportPrivateUsage]
    return config


def _hints() -> dict[str, dict[str, str]]:
    """Table -> key -> hint."""
    first = (AgentConfig, ToolsConfig, AccessConfig, ApprovalsConfig, RuleConfig)
    models = (*first, LimitsConfig, BudgetsConfig, SchedulesConfig, AuditConfig, SecretsConfig, McpConfig)
    return {
        section: {field.alias or name: field.description or "" for name, field in model.model_fields.items()}
        for section, model in zip(Config.model_fields, models, strict=True)
    }

"""Mistakes in the set-up of a bot, and the line that `signoff check` must print about each of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from signoff.store.lock import ProcessLock
from tests.rigs.mistakes import Prepare, config, newer_database, plugin

SHOP = Path(__file__).with_name("shop_tools.py")


@dataclass(frozen=True)
class Mistake:
    place: str
    """What the finding must begin with: the file and the line, or the setting's place."""
    words: tuple[str, ...]
    prepare: Prepare
    fatal: bool = True
    """Whether something cannot work, so that the exit code is 1."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def toml(line: int, text: str, *words: str, fatal: bool = True, **environment: str) -> Mistake:
    """Return a mistake in this line of signoff.toml."""
    return Mistake(f"signoff.toml:{line}: ", words, config(text), fatal, environment)


def env_file(line: int, text: str, *words: str, fatal: bool = True) -> Mistake:
    return Mistake(f".env:{line}: ", words, lambda folder: (folder / ".env").write_text(text), fatal)


def rule(text: str) -> str:
    """Return a rule that begins in line 1."""
    return f"[[rules]]\n{text}"


WRITE = 'tool = "write_file"\nverdict = "ask"\n'
TWO = "123456789012345678"

SEMANTIC = {
    "only the asker, with four eyes": toml(
        2, '[approvals]\napprovers = ["asker"]\nfour_eyes = true\n', "only the asker", "name another approver"
    ),
    "only the asker, with a quorum of two": toml(
        4, rule(WRITE + 'approvers = ["asker"]\nquorum = 2\n'), "number 1", "quorum is 2", "one person", "quorum = 1"
    ),
    "a quorum larger than the people who are named": toml(
        2, '[approvals]\napprovers = ["user:1", "user:2"]\nquorum = 3\n', "2 people", "user:1, user:2", "quorum = 2"
    ),
    "four eyes in a rule, and only the asker in general": toml(
        5, '[approvals]\napprovers = ["asker"]\n[[rules]]\ntool = "write_file"\nfour_eyes = true\nverdict = "ask"\n',
        "number 1", "only the asker",
    ),
    "two rules without a common approver": toml(
        5, rule(f'{WRITE}approvers = ["user:1"]\n') + "[[rules]]\n" + WRITE + 'approvers = ["user:2"]\n',
        "signoff.toml:1", "write_file", "nobody is user:1 and user:2", "share",
    ),
    "a reminder longer than the timeout": toml(
        3, '[approvals]\ntimeout = "2m"\nreminder = "10m"\n', "10m", "2m", "never posted"
    ),
    "a rule's deadline before the reminder": toml(
        5, '[approvals]\nreminder = "2m"\n[[rules]]\ntool = "write_file"\ntimeout = "90s"\nverdict = "ask"\n',
        "number 1", "2m", "90s",
    ),
    "a rule's deadline before the escalation": toml(
        6, '[approvals]\nescalate = { after = "2m", to = ["role:5"] }\n[[rules]]\n' + WRITE + 'timeout = "90s"\n',
        "number 1", "never escalated", "2m", "90s",
    ),
    "an escalation to the same people": toml(
        2, '[approvals]\nescalate = { after = "3m", to = ["manage_server"] }\n', "changes nothing", "somebody else",
        fatal=False,
    ),
    "a rule's escalation after the usual deadline": toml(
        4, rule(WRITE + 'escalate = { after = "10m", to = ["role:5"] }\n'), "never escalated", "10m", "5m"
    ),
    "a rule for a tool that does not exist": toml(
        2, rule('tool = "wirte_file"\nverdict = "ask"\n'), "wirte_file", "protects nothing", 'write tool = "write_file"'
    ),
    "a pattern for tools that do not exist": toml(
        2, rule('tool = "billing_*"\nverdict = "deny"\n'), "billing_*", "roll_dice", "or remove the rule"
    ),
    "an allow rule for a tool that does not exist": toml(
        2, rule('tool = "Roll_Dice"\nverdict = "allow"\n'), "allows nothing", "roll_dice", fatal=False
    ),
    "a rule for a tool that is not enabled": toml(
        4, '[tools]\nenable = ["roll_dice"]\n[[rules]]\ntool = "write_file"\nverdict = "ask"\n',
        "enable leaves it out", fatal=False,
    ),
    "a rule about an argument that does not exist": toml(
        4, rule(f'{WRITE}when = {{ pth = "*.env" }}\n'), 'no argument "pth"', "never matches", "write path"
    ),
    "an exception for an argument that does not exist": toml(
        4, rule(f'{WRITE}unless = {{ folder = "x" }}\n'), "never applies", "path", fatal=False
    ),
    "a value that the argument never has": toml(
        4, rule('tool = "post_announcement"\nverdict = "ask"\nwhen = { audience = "evryone" }\n'),
        '"evryone"', "never", '"everyone"',
    ),
    "text where the argument is a number": toml(
        4, rule('tool = "roll_dice"\nverdict = "deny"\nwhen = { sides = "many" }\n'), '"many"', "a number"
    ),
    "an allow rule that an ask rule overrules": toml(
        4, rule(WRITE) + '[[rules]]\ntool = "write_file"\nverdict = "allow"\nwhen = { path = "notes/*" }\n',
        "never has an effect", "signoff.toml:1", "ask wins over allow", "unless", fatal=False,
    ),
    "an ask rule that a deny rule overrules": toml(
        1, rule(WRITE) + '[[rules]]\ntool = "write_*"\nverdict = "deny"\n', "signoff.toml:4", "deny wins", fatal=False
    ),
    "a rule that is there twice": toml(4, rule(WRITE) + "[[rules]]\n" + WRITE, "repeats", "remove one", fatal=False),
    "a rule that denies everything": toml(
        1, rule('tool = "*"\nverdict = "deny"\n'), "every call of every tool", "name the tools", fatal=False
    ),
    "a rule that allows everything": toml(
        1, rule('tool = "*"\nverdict = "allow"\n'), "ask by themselves", "name the tools", fatal=False
    ),
    "auto_approve": toml(2, '[approvals]\nmode = "auto_approve"\n', "WITHOUT A PERSON", "interactive", fatal=False),
    "auto_deny": toml(2, '[approvals]\nmode = "auto_deny"\n', "WITHOUT A PERSON", "interactive", fatal=False),
    "calls that run if nobody can decide": toml(
        2, '[approvals]\non_no_approver = "approve"\n', "without a person", '"reject"', fatal=False
    ),
    "a rule that lowers the quorum": toml(
        6, f"[approvals]\nquorum = 3\n{rule(WRITE)}quorum = 2\n", "no effect", "requires 3", fatal=False
    ),
    "a rule that lifts four eyes": toml(
        6, f"[approvals]\nfour_eyes = true\n{rule(WRITE)}four_eyes = false\n", "no effect", fatal=False
    ),
    "a ping without a reminder": toml(4, f"{rule(WRITE)}ping = true\n", "nobody is pinged", "reminder =", fatal=False),
    "terms of grants without grants": toml(
        3, '[approvals]\nremember = "none"\ngrant_uses = 5\n', "grant_uses", "no effect", fatal=False
    ),
    "direct messages with four eyes": toml(
        2, f'[access]\ndm_users = ["{TWO}"]\n[approvals]\nfour_eyes = true\n', "direct messages", '"asker"', fatal=False
    ),
    "direct messages with a role as approver": toml(
        2, f'[access]\ndm_users = ["{TWO}"]\n[approvals]\napprovers = ["role:{TWO}"]\n', "direct messages", fatal=False
    ),
}  # fmt: skip


def locked(folder: Path) -> None:
    """Leave a database that this very process owns."""
    (folder / "used.db").touch()
    LOCKS.append(ProcessLock.acquire((folder / "used.db").resolve()))


LOCKS: list[ProcessLock] = []
"""The locks that were taken here. The test releases them."""


def own_agent(folder: Path) -> None:
    (folder / "mine.py").write_text("from pydantic_ai import Agent\nagent = Agent('test')\n")
    config('[agent]\nimport = "mine:agent"\ninstructions = "Be kind."\n')(folder)


def agent_with_deps(folder: Path) -> None:
    (folder / "needy.py").write_text(
        "from pydantic_ai import Agent\nagent = Agent(deps_type=str)\ndef two(info, more): ...\n"
    )


def needy(keys: str) -> Callable[[Path], object]:
    return lambda folder: (agent_with_deps(folder), config(f'[agent]\nimport = "needy:agent"\n{keys}')(folder))


def own_model(folder: Path) -> None:
    own_agent(folder)
    config('[agent]\nimport = "mine:agent"\nmodel = "demo"\n')(folder)


OTHERS = {
    "a syntax error": toml(2, "[agent]\nmodel = demo\n", "quotes"),
    "an unknown key": toml(3, "[approvals]\n\ntimeut = 5\n", "timeut", "write timeout"),
    "an unknown table": toml(1, "[limit]\n", "[limits]"),
    "a wrong value": toml(2, '[approvals]\ntimeout = "soon"\n', '"5m"'),
    "no approvers": toml(2, "[approvals]\napprovers = []\n", "at least one entry"),
    "a grant that lives too long": toml(2, '[approvals]\ngrant_lifetime = "90d"\n', "30 days"),
    "approvers of a rule that does not ask": toml(
        1, rule('tool = "roll_dice"\nverdict = "deny"\nquorum = 2\n'), "nobody is asked", 'verdict = "ask"'
    ),
    "a misspelled setting in .env": env_file(
        2, "DISCORD_TOKEN=\nSIGNOFF_MODLE=demo\n", "SIGNOFF_MODLE", "write SIGNOFF_MODEL", fatal=False
    ),
    "a setting of another name in .env": env_file(
        3, "\n\nDISCORD_BOT_TOKEN=x\n", "DISCORD_BOT_TOKEN", "write DISCORD_TOKEN", fatal=False
    ),
    "a misspelled setting in the environment": Mistake(
        "the environment: ", ("SIGNOFF_DATABSE_URL", "write SIGNOFF_DATABASE_URL"), lambda folder: None, False,
        {"SIGNOFF_DATABSE_URL": "x"},
    ),
    "a line of .env that cannot be read": env_file(2, "A=1\nthis is it\n", "NAME=value"),
    "a wrong log level": env_file(1, "SIGNOFF_LOG_LEVEL=loud\n", "SIGNOFF_LOG_LEVEL", "WARNING"),
    "a model without its key": env_file(1, "SIGNOFF_MODEL=openai-chat:gpt-5-mini\n", "OPENAI_API_KEY=", ".env"),
    "a model that does not exist": toml(2, '[agent]\nmodel = "gpt-99-nonsense"\n', "gpt-99-nonsense", "demo"),
    "a plugin that is missing": toml(2, '[tools]\nplugins = ["lost.py"]\n', "lost.py", "[tools] plugins"),
    "a plugin with a syntax error": Mistake(
        "my_tools.py:2: ", ("not valid Python", "correct this line"), plugin("x = 1\ndef broken(:\n")
    ),
    "a plugin that raises": Mistake("my_tools.py:2: ", ("KeyError",), plugin("\n{}['missing']\ntools = []\n")),
    "a plugin tool with the name of a built-in one": Mistake(
        "my_tools.py:2: ", ("roll_dice", "Signoff itself", "another name"),
        plugin("def roll_dice() -> str: ...\ntools = [roll_dice]\n"),
    ),
    "an agent that cannot be imported": toml(2, '[agent]\nimport = "nowhere:agent"\n', "nowhere:agent", "module:agent"),
    "an imported agent without its dependencies": Mistake(
        "signoff.toml:2: ", ("needs deps of the type str", 'deps = "module:make_deps"'), needy("")
    ),
    "dependencies from a function that takes two arguments": Mistake(
        "signoff.toml:3: ", ("one argument", "def two(info)"), needy('deps = "needy:two"\n')
    ),
    "a model beside an imported agent that has its own": Mistake(
        "signoff.toml:3: ", ("[agent] model has no effect", "remove it"), own_model, False
    ),
    "instructions beside an imported agent": Mistake(
        "signoff.toml:3: ", ("instructions", "no effect", "remove"), own_agent, False
    ),
    "an MCP server whose secret is not set": toml(
        1, '[mcp.shop]\nurl = "https://shop.example/mcp"\nheaders = { Authorization = "${SHOP_TOKEN}" }\n',
        "SHOP_TOKEN", "not set", ".env",
    ),
    "a workspace that contains the configuration": toml(2, '[tools]\nworkspace = "."\n', "must not reach"),
    "a workspace that cannot be written": Mistake(
        "signoff.toml:2: ", ("may not write", "another folder"),
        lambda at: ((at / "file").touch(), config('[tools]\nworkspace = "file/workspace"\n')(at)),
    ),
    "a database that is a folder": Mistake(
        "the environment: ", ("is a folder", "SIGNOFF_DATABASE_URL"), lambda at: (at / "x.db").mkdir(), True,
        {"SIGNOFF_DATABASE_URL": "sqlite:///x.db"},
    ),
    "a database below a file": Mistake(
        "the environment: ", ("is a file", "SIGNOFF_DATABASE_URL"), lambda at: (at / "file").touch(), True,
        {"SIGNOFF_DATABASE_URL": "sqlite:///file/x.db"},
    ),
    "a database that is none": Mistake(
        "the environment: ", ("not a SQLite database",), lambda at: (at / "x.db").write_bytes(b"garbage" * 999), True,
        {"SIGNOFF_DATABASE_URL": "sqlite:///x.db"},
    ),
    "a database of a newer version": Mistake(
        "the environment: ", ("999", "update the program"), newer_database, True,
        {"SIGNOFF_DATABASE_URL": "sqlite:///newer.db"},
    ),
    "a database that another process uses": Mistake(
        "the environment: ", ("is in use", "process ", "stop"), locked, False,
        {"SIGNOFF_DATABASE_URL": "sqlite:///used.db"},
    ),
    "PostgreSQL": Mistake(
        "the environment: ", ("PostgreSQL", "sqlite:///"), lambda at: None, True,
        {"SIGNOFF_DATABASE_URL": "postgresql://a:secret@host/db"},
    ),
}  # fmt: skip


def server(name: str, folder: Path) -> str:
    """Return the table of an MCP server that really runs, with the tools list_orders and refund."""
    return f"[mcp.{name}]\ncommand = {json.dumps([sys.executable, str(SHOP), str(folder / 'ledger')])}\n"


def colliding(folder: Path) -> None:
    (folder / "my_tools.py").write_text("def shop_refund(order: str) -> str: ...\n\n\ntools = [shop_refund]\n")
    config('[tools]\nplugins = ["my_tools.py"]\n' + server("shop", folder))(folder)


WITH_SERVERS = {
    "an MCP tool with the name of a plugin's tool": Mistake(
        "signoff.toml:3: ", ("two tools are called shop_refund", "my_tools.py", "[mcp.shop]", "another NAME"), colliding
    ),
    "an MCP server that does not start": toml(
        1, '[mcp.docs]\ncommand = ["no-such-program"]\n', "docs does not answer", "no-such-program", "its command"
    ),
    "patterns for the tools of an MCP server that it does not have": Mistake(
        "signoff.toml:1: ", ("offers no tool", "search"),
        lambda at: config(server("shop", at) + 'tools = ["search"]\n')(at), False,
    ),
    "a rule about a tool that the MCP server does not have": Mistake(
        "signoff.toml:4: ", ("shop_refnd", 'tool = "shop_refund"'),
        lambda at: config(server("shop", at) + '[[rules]]\ntool = "shop_refnd"\nverdict = "deny"\n')(at),
    ),
}  # fmt: skip

"""The texts that `signoff init` writes. A test checks that every key in them exists and that the tools work."""

from __future__ import annotations

PLUGIN_NAME = "my_tools.py"

_CONFIG = """\
# Signoff's configuration. Lines that begin with # are examples: remove the # to use them.
# `signoff check` says whether everything here can work. docs/configuration.md explains every key.

[agent]
# instructions = "You look after our servers."
# model = "anthropic:claude-sonnet-4-5"   # SIGNOFF_MODEL in .env wins; "demo" is offline and free

[tools]
enable = ["test_discord_approval", "post_announcement", "roll_dice", "current_time", "read_file", "write_file"]
plugins = ["my_tools.py"]                 # your own tools: look into this file
# undeclared = "ask"                      # for all tools that say nothing about approval
# workspace = "data/workspace"            # where the file tools work
# enable may also name "workspace" (search and edit files) and "bash" (commands in a sandbox): see docs/tools.md

[access]
# Who may ask. Right-click in Discord (Developer Mode) copies an id. An empty list restricts nothing.
# servers = ["123456789012345678"]
# channels = ["123456789012345678"]
# roles = ["123456789012345678"]
# dm_users = ["123456789012345678"]       # who may use direct messages; empty: nobody

[approvals]
# mode = "interactive"                    # or "auto_approve", "auto_deny": then nobody is asked
timeout = "5m"                            # a card that nobody decides is rejected after this time
approvers = ["manage_server"]             # or "asker", "role:ID", "user:ID"
# quorum = 1                              # how many people must accept
# four_eyes = true                        # the asker may not decide
# reminder = "1m"                         # remind this long before the deadline
# ping = true                             # the reminder pings the people who may decide
# notify = "ping"                         # tell approvers when a card opens: "none", "ping", "dm" or "channel:ID"
# escalate = { after = "3m", to = ["role:123456789012345678"] }   # who may decide too after this time
# remember = "session"                    # the longest memory that people may choose: "none", "session", "always"
# batch = "hold"                          # "split": calls that need no approval do not wait for the others

# Rules: among those that match a call, deny wins over ask, and ask wins over allow.
[[rules]]
tool = "write_file"
verdict = "ask"
when = { path = ["*.env", "secrets/*"] }
four_eyes = true
reason = "secrets live here"

# [[rules]]
# tool = "restart_service"                # a tool of my_tools.py
# verdict = "ask"
# when = { service = "prod-*" }
# unless = { service = "prod-test" }
# approvers = ["role:123456789012345678"]
# quorum = 2
# timeout = "10m"
# message = "Is anybody using it?"

# [[rules]]
# tool = "roll_dice"
# verdict = "deny"
# reason = "no games here"

[limits]
# turns_per_person = 3
# tool_seconds = 120                      # then a tool's call counts as failed

[audit]
# keep_text = "90d"                       # how long the record keeps arguments
# log_channels = ["123456789012345678"]   # channels that get a line for every decision

# [mcp.docs]                              # an MCP server: its tools are called docs_NAME, and ask
# command = ["python", "docs_server.py"]  # or url = "https://..."
# tools = ["search", "get_*"]
# trusted = false
"""

_ENV = """\
# Settings and secrets. Keep this file private. The environment wins over it.

# The bot's token (https://discord.com/developers/applications, Bot, Reset Token). Empty: the offline sandbox starts.
DISCORD_TOKEN=

# demo is offline and free. For a real model, write its name and the key of its provider, for example
# SIGNOFF_MODEL=anthropic:claude-sonnet-4-5
# ANTHROPIC_API_KEY=
SIGNOFF_MODEL=demo

# SIGNOFF_DATABASE_URL=sqlite:///data/signoff.db
# SIGNOFF_LOG_LEVEL=INFO
"""

_PLUGIN = '''\
"""Tools of your own. Signoff loads every function in the list `tools` at the end of this file.

The model reads a function's docstring to decide when to use it, and its type annotations to fill in the arguments.
"""

from pydantic_ai import ApprovalRequired, RunContext, Tool

SERVICES = {"website": "running", "database": "running", "prod-api": "running"}


def service_status(service: str) -> str:
    """Say whether a service is running."""
    return SERVICES.get(service, "unknown")


def restart_service(service: str) -> str:
    """Restart a service."""
    if service not in SERVICES:
        return f"there is no service {service}"
    SERVICES[service] = "restarted"
    return f"{service} was restarted"


def resize_disk(ctx: RunContext, gigabytes: int) -> str:
    """Resize the disk."""
    if gigabytes > 100 and not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"reason": "a large disk costs money"})
    return f"the disk has {gigabytes} GB"


tools = [
    Tool(service_status, metadata={"read_only": True}),  # never asks
    Tool(restart_service, requires_approval=True),  # always asks
    resize_disk,  # asks only for large disks
]
'''

FILES = {"signoff.toml": _CONFIG, ".env": _ENV, PLUGIN_NAME: _PLUGIN}
"""Name -> text of each file."""

"""Discord on loopback, for testing any bot: the REST API, the gateway, a few people and a web page.

It depends on no Discord library, because a bot talks to it over sockets only. `README.md` beside this file documents
the names below; they are the stable interface, and everything else may change.
"""

from discord_sandbox import discord_py
from discord_sandbox.client import Person, SandboxClient, SandboxError, SandboxTimeout
from discord_sandbox.permissions import Permission
from discord_sandbox.process import SandboxProcess, sandbox_process
from discord_sandbox.seed import Plan
from discord_sandbox.seen import Button, Outcome, Place, SeenMessage, buttons_of, selects_of, text_of
from discord_sandbox.server import NotLoopback, SandboxServer

__all__ = [
    "Button",
    "NotLoopback",
    "Outcome",
    "Permission",
    "Person",
    "Place",
    "Plan",
    "SandboxClient",
    "SandboxError",
    "SandboxProcess",
    "SandboxServer",
    "SandboxTimeout",
    "SeenMessage",
    "buttons_of",
    "discord_py",
    "sandbox_process",
    "selects_of",
    "text_of",
]

"""A Discord on loopback: REST, gateway and people, for tests and for trying the bot without Discord.

It imports nothing of the rest of Signoff and nothing of discord.py: a bot meets it over sockets only.
"""

from discord_sandbox.client import Person, SandboxClient, SandboxError, SandboxTimeout
from discord_sandbox.seed import Plan
from discord_sandbox.seen import Button, Outcome, Place, SeenMessage, buttons_of, selects_of, text_of
from discord_sandbox.server import SandboxServer

__all__ = [
    "Button",
    "Outcome",
    "Person",
    "Place",
    "Plan",
    "SandboxClient",
    "SandboxError",
    "SandboxServer",
    "SandboxTimeout",
    "SeenMessage",
    "buttons_of",
    "selects_of",
    "text_of",
]

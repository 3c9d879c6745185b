"""A Discord on loopback: REST, gateway and people, for tests and for trying the bot without Discord.

It imports nothing of the rest of Signoff and nothing of discord.py: a bot meets it over sockets only.
"""

from discord_sandbox.client import Person, SandboxClient, SandboxError, SandboxTimeout
from discord_sandbox.seed import Plan
from discord_sandbox.server import SandboxServer
from discord_sandbox.sight import Answer, Button, Place, SeenMessage, buttons_of, selects_of, text_of

__all__ = [
    "Answer",
    "Button",
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

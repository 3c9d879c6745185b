"""A Discord on loopback: REST, gateway and people, for tests and for trying the bot without Discord.

It imports nothing of the rest of Signoff and nothing of discord.py: a bot meets it over sockets only.
"""

from signoff.sandbox.client import Person, SandboxClient, SandboxError, SandboxTimeout
from signoff.sandbox.seed import Plan
from signoff.sandbox.server import SandboxServer
from signoff.sandbox.sight import Answer, Button, Place, SeenMessage, buttons_of, selects_of, text_of

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

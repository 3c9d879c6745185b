"""The sandbox's page: a small Discord in the browser, served beside the bot's API.

It shows the world to one person at a time and lets that person act. It can do nothing that `control` cannot, and it
sees only as much of the bot as any Discord client does.
"""

from discord_sandbox.web.guard import Guard, page_token
from discord_sandbox.web.guide import BadGuide, Guide
from discord_sandbox.web.page import Page

__all__ = ["BadGuide", "Guard", "Guide", "Page", "page_token"]

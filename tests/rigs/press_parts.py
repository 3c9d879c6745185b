"""Rows of buttons and posted messages that several tests press."""

from typing import Any

from discord import ui

from discord_sandbox import SandboxClient, SeenMessage
from tests.rigs.real_client import Bot, text_channel


def row(*items: ui.Item[Any]) -> ui.View:
    view = ui.View(timeout=None)
    for item in items:
        view.add_item(item)
    return view


async def post(bot: Bot, sandbox: SandboxClient, view: Any, **content: Any) -> SeenMessage:
    sent = await text_channel(bot).send(view=view, **content)
    max_ = await sandbox.person("Max")
    return await max_.wait_for_message("general", lambda m: m.id == sent.id)

"""Suggestions while somebody types: tools, their arguments, rules and grants, for people who may use the command.

A suggestion is only an offer: the commands check every option as if nothing had been suggested.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

import discord
from discord import app_commands

from signoff.approvals.errors import Refused
from signoff.approvals.policy import Rule, Verdict
from signoff.approvals.server_rules import described
from signoff.bot.access import Access
from signoff.bot.admin.authority import admin_of, owner_of
from signoff.bot.admin.listing import Mask, masked
from signoff.bot.split import size
from signoff.text.visible import clip
from signoff.turns.administration import Administration

log = logging.getLogger(__name__)

MOST = 25
SPACE = 100
"""Discord's limits: MOST suggestions, and SPACE characters for the value and for the label of each."""
PATIENCE = 2.0

Offer = tuple[str, str]
"""The value that is sent, and the label that is shown for it."""
Find = Callable[[discord.Interaction[Any], str], Awaitable[Sequence[Offer]]]
Suggest = Callable[[discord.Interaction[Any], str], Coroutine[Any, Any, list[app_commands.Choice[str]]]]


class Suggestions:
    """Makes the autocomplete function of each option."""

    def __init__(self, admin: Administration, mask: Mask, access: Access) -> None:
        self._admin = admin
        self._mask = mask
        self._access = access

    def tools(self) -> Suggest:
        async def find(interaction: discord.Interaction[Any], typed: str) -> Sequence[Offer]:
            return [(tool.name, tool.name) for tool in self._admin.tools()]

        return _safely(find)

    def arguments(self) -> Suggest:
        async def find(interaction: discord.Interaction[Any], typed: str) -> Sequence[Offer]:
            wanted: object = interaction.namespace.tool
            names = wanted[:SPACE].split("|") if isinstance(wanted, str) else ["*"]
            rule = Rule(tuple(name.strip() for name in names), Verdict.ASK)
            tools = [tool for tool in self._admin.tools() if rule.names(tool.name)]
            return [(name, name) for name in dict.fromkeys(name for tool in tools for name in tool.arguments)]

        return _safely(find)

    def rules(self) -> Suggest:
        async def find(interaction: discord.Interaction[Any], typed: str) -> Sequence[Offer]:
            rules = await self._admin.rules(admin_of(interaction).server)
            return [(one.id, f"{one.id}: {described(one.rule)}") for one in reversed(rules)]

        return _safely(find)

    def grants(self) -> Suggest:
        async def find(interaction: discord.Interaction[Any], typed: str) -> Sequence[Offer]:
            grants = await self._admin.grants(owner_of(interaction, self._access))
            return [(one.id, f"{one.id}: {one.tool} {masked(one.args, self._mask)}") for one in grants]

        return _safely(find, lambda interaction: owner_of(interaction, self._access))


def offered(offers: Iterable[Offer], typed: str) -> list[app_commands.Choice[str]]:
    """Return the offers that contain the typed text, within Discord's limits. Those that begin with it come first."""
    wanted = typed.casefold()
    fitting = [(value, shown) for value, shown in offers if wanted in shown.casefold() and 0 < size(value) <= SPACE]
    fitting.sort(key=lambda offer: not offer[0].casefold().startswith(wanted))
    return [app_commands.Choice(name=_label(shown), value=value) for value, shown in fitting[:MOST]]


def _label(shown: str) -> str:
    label = clip(shown, SPACE)[0]
    return label if size(label) <= SPACE else clip(shown, SPACE // 2)[0]


def _safely(find: Find, check: Callable[[discord.Interaction[Any]], object] = admin_of) -> Suggest:
    async def suggest(interaction: discord.Interaction[Any], typed: str) -> list[app_commands.Choice[str]]:
        try:
            check(interaction)
            async with asyncio.timeout(PATIENCE):
                return offered(await find(interaction, typed), typed)
        except Refused:
            return []
        except TimeoutError:
            log.info("suggestions took too long and were left out")
        except Exception:
            log.exception("suggestions failed")
        return []

    return suggest

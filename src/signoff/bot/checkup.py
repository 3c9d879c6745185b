"""Compares signoff.toml with the servers that the bot is in: ids that exist, permissions, members of roles.

Asks Discord only where the gateway's own data does not say it, and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import discord

from signoff.approvals.approvers import MANAGE_SERVER
from signoff.approvals.model import Verdict
from signoff.bot.client import SignoffClient
from signoff.bot.connection import run_client
from signoff.bot.sending import while_open
from signoff.config.approval_checks import rule_name
from signoff.config.findings import Finding, Severity, error, warning
from signoff.config.schema import Config
from signoff.dataclass import dataclass
from signoff.errors import LoginFailed
from signoff.servers.tool_names import enabled_tools
from signoff.text.patterns import lazy_pattern

CONNECTING = 60.0
"""Seconds that Discord may take to send all servers."""
MANY_SERVERS = 5
"""With more servers than this, the check at the start makes no requests of its own."""
NEEDED = {
    "view_channel": "View Channel",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "create_public_threads": "Create Public Threads",
    "attach_files": "Attach Files",
    "read_message_history": "Read Message History",
}
"""discord.py's name of each permission that the bot needs in a channel -> its name in Discord."""
_NAMED = lazy_pattern(r"(role|user|channel):(\d+)")

Path = tuple[str | int, ...]


async def check_by_connecting(token: str, config: Config) -> tuple[list[Finding], str]:
    """Log in, wait for all servers, check, and disconnect. Return also what Discord says about the bot, in one line."""
    client, ready = SignoffClient(), asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    async def prepare() -> None: ...

    client.event(on_ready)
    serving = asyncio.ensure_future(run_client(client, token, prepare))
    waiting = asyncio.ensure_future(ready.wait())
    try:
        await asyncio.wait({serving, waiting}, timeout=CONNECTING, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        if not ready.is_set():
            raise LoginFailed(f"Discord did not send the bot's servers within {CONNECTING:g} seconds. Try again.")
        servers = ", ".join(guild.name for guild in client.guilds) or "no server"
        return await check_servers(client, config), f"Signed in as {client.user}, in {servers}."
    finally:
        waiting.cancel()
        with suppress(Exception):
            await client.close()
        serving.cancel()
        await asyncio.wait({serving})


async def check_servers(client: discord.Client, config: Config, *, at_start: bool = False) -> list[Finding]:
    """Check a client that is ready. At the start of a bot in many servers, nobody is looked up."""
    checkup = Checkup(client, config)
    findings = [*checkup.servers(), *checkup.channels(), *checkup.roles(), *checkup.permissions(), *checkup.tools()]
    if not at_start or len(client.guilds) <= MANY_SERVERS:
        findings += [*await checkup.people(), *await checkup.quorums()]
    return findings


@dataclass(frozen=True)
class Checkup:
    client: discord.Client
    config: Config

    @property
    def _guilds(self) -> list[discord.Guild]:
        """The servers in which people may ask."""
        wanted = self.config.access.servers
        return [guild for guild in self.client.guilds if not wanted or str(guild.id) in wanted]

    def _ids(self, table: str, key: str) -> Iterator[tuple[str, int]]:
        """Yield the place and the number of each id in a list."""
        for index, identifier in enumerate(getattr(getattr(self.config, table), key)):
            yield self.config.where(table, key, index), int(identifier)

    def _named(self, kind: str) -> Iterator[tuple[str, int]]:
        """Yield the place and the number of each `role:ID`, `user:ID` or `channel:ID` anywhere in the file."""
        for path, text in _texts(self.config.model_dump(by_alias=True)):
            if (match := _NAMED.fullmatch(text)) and match[1] == kind:
                yield self.config.where(*path), int(match[2])

    def servers(self) -> Iterator[Finding]:
        for place, number in self._ids("access", "servers"):
            if self.client.get_guild(number) is None:
                yield error(place, f"the bot is not in the server {number}", "invite it, or remove the id")
        if not self.client.guilds:
            yield error("", "the bot is in no server", "invite it: docs/install.md has the link")

    def channels(self) -> Iterator[Finding]:
        used = [*self._ids("access", "channels"), *self._ids("audit", "log_channels"), *self._named("channel")]
        for place, number in used:
            channel = self._channel(number)
            if channel is None:
                problem = f"there is no channel {number} that the bot can see"
                yield error(place, problem, "correct the id (Discord: Developer Mode, Copy Channel ID), or remove it")
            elif lacking := _lacking(channel):
                problem = f"in #{channel.name} of {channel.guild.name} the bot lacks {_listed(lacking)}"
                yield error(place, problem, "grant it to the bot's role in that channel")

    def roles(self) -> Iterator[Finding]:
        for place, number in [*self._ids("access", "roles"), *self._named("role")]:
            if self.client.get_guild(number) is not None:
                yield error(place, f"role {number} is @everyone, which never counts", "name another role")
            elif not any(guild.get_role(number) for guild in self.client.guilds):
                problem = f"role {number} is missing: no server of the bot has it"
                yield error(place, problem, "correct the id (Discord: Developer Mode, Copy Role ID), or remove it")

    def permissions(self) -> Iterator[Finding]:
        """Yield one finding per server and set of missing permissions, for the channels that the bot can see."""
        configured = {number for _, number in self._ids("access", "channels")}
        for guild in self._guilds if not configured else ():
            channels: dict[tuple[str, ...], list[str]] = {}
            for channel in guild.text_channels:
                if channel.permissions_for(guild.me).view_channel and (lacking := _lacking(channel)):
                    channels.setdefault(lacking, []).append(f"#{channel.name}")
            for lacking, names in channels.items():
                shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
                problem = f"in {shown} of {guild.name} the bot lacks {_listed(lacking)}, so it cannot work there"
                yield warning(
                    "", problem, "grant it to the bot's role, or name the right channels in [access] channels"
                )

    def tools(self) -> Iterator[Finding]:
        """Yield what the bot lacks for the Discord tools that are enabled."""
        if enabled_tools(self.config.tools.enable):
            from signoff.bot.tool_permissions import tool_findings  # here, because few need it

            yield from tool_findings(self.client, self._guilds, self.config)

    async def people(self) -> list[Finding]:
        findings: list[Finding] = []
        for place, number in self._named("user"):
            if self.client.guilds and not any([await self._is_member(guild, number) for guild in self.client.guilds]):
                problem = f"user {number} is missing: they are in none of the bot's servers"
                findings.append(error(place, problem, "correct the id (Discord: Developer Mode, Copy User ID)"))
        for place, number in self._ids("access", "dm_users"):
            try:
                await while_open(self.client, self.client.fetch_user(number))
            except discord.NotFound:
                findings.append(error(place, f"there is no user {number}", "correct the id, or remove it"))
            except discord.HTTPException as failure:
                note = f"user {number} could not be looked up: Discord answered with status {failure.status}"
                findings.append(Finding(Severity.NOTE, note, "try again later", place))
        return findings

    async def quorums(self) -> list[Finding]:
        """Compare quorums with the members that roles really have."""
        asking = self.config.approvals
        wanted: list[tuple[Path, str, Sequence[str], int]] = [
            (("approvals", "approvers"), "[approvals]", asking.approvers, asking.quorum)
        ]
        for number, rule in enumerate(self.config.rules):
            if rule.verdict is Verdict.ASK and (rule.approvers or rule.quorum > asking.quorum):
                key = "approvers" if rule.approvers else "quorum"
                quorum = max(rule.quorum, asking.quorum)
                wanted.append((("rules", number, key), rule_name(number), rule.approvers or asking.approvers, quorum))
        # Discord does not say how many people have Manage Server, so such an entry counts as enough.
        wanted = [one for one in wanted if MANAGE_SERVER not in one[2] and any(a.startswith("role:") for a in one[2])]
        findings: list[Finding] = []
        for guild in self._guilds if wanted else ():
            counts = await self._counts(guild)
            for path, what, approvers, quorum in wanted:
                findings += self._too_few(guild, self.config.where(*path), what, approvers, quorum, counts)
        return findings

    def _too_few(
        self, guild: discord.Guild, place: str, what: str, approvers: Sequence[str], quorum: int, counts: Counts
    ) -> list[Finding]:
        roles = [number for one in approvers if (number := _role(one)) and guild.get_role(number)]
        if isinstance(counts, str):
            problem = f"{what}: the members of its roles in {guild.name} could not be counted ({counts})"
            return [Finding(Severity.NOTE, problem, f"make sure that {_people(quorum)} can decide there", place)]
        people = sum(counts.get(number, 0) for number in roles)
        people += len([one for one in approvers if not one.startswith("role:")])
        if people >= quorum:
            return []
        problem = f"{what}: {_people(quorum)} must accept, but in {guild.name} only {people} may decide"
        return [error(place, problem, f"give the role to more members, or write quorum = {max(people, 1)}")]

    async def _counts(self, guild: discord.Guild) -> Counts:
        try:
            counts = await while_open(self.client, guild.role_member_counts())
        except discord.Forbidden:
            return "the bot lacks Manage Roles"
        except discord.HTTPException as failure:
            return f"Discord answered with status {failure.status}"
        return {role.id: count for role, count in counts.items()}

    async def _is_member(self, guild: discord.Guild, number: int) -> bool:
        try:
            await while_open(self.client, guild.fetch_member(number))
        except discord.NotFound:
            return False
        except discord.HTTPException:
            return True  # Discord did not say that they are missing
        return True

    def _channel(self, number: int) -> discord.abc.GuildChannel | None:
        channel = self.client.get_channel(number)
        if isinstance(channel, discord.Thread):
            return channel.parent
        return channel if isinstance(channel, discord.abc.GuildChannel) else None


Counts = Mapping[int, int] | str
"""Role id -> its members; or why they could not be counted."""


def _lacking(channel: discord.abc.GuildChannel) -> tuple[str, ...]:
    allowed = channel.permissions_for(channel.guild.me)
    return tuple(words for name, words in NEEDED.items() if not getattr(allowed, name))


def _listed(permissions: Sequence[str]) -> str:
    return permissions[0] if "View Channel" in permissions else ", ".join(permissions)


def _role(approver: str) -> int | None:
    kind, _, identifier = approver.partition(":")
    return int(identifier) if kind == "role" else None


def _people(count: int) -> str:
    return "one person" if count == 1 else f"{count} people"


def _texts(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every text in nested tables and lists, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _texts(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("Sequence[Any]", value)):
            yield from _texts(inner, (*path, index))

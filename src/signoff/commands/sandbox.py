"""`signoff sandbox`: runs a Discord on loopback in one process and the real bot in another, and ends both together.

The bot is the same program and uses the same protocol. It only gets another address, its own token and database and, if
there is no signoff.toml, a few rules to try. It is killed and started again when somebody asks for that on the page.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import ClientError

from discord_sandbox.client import SandboxClient, SandboxError
from discord_sandbox.process import SandboxProcess, sandbox_process
from discord_sandbox.web.page import RESTART
from signoff.commands.sandbox_folder import bot_token, claimed
from signoff.commands.sandbox_guide import HURRY, guide
from signoff.commands.sandbox_own import add_named, own_guide
from signoff.commands.sandbox_workspace import PLUGIN, seed_workspace, write_plugin
from signoff.config.schema import BUILTIN_TOOLS, Config
from signoff.dataclass import dataclass

NAMES = ("--bot", "Signoff", "--server", "Signoff Lab")
"""The names of the bot and its server in a new sandbox."""
PORT = 9000
"""The preferred port, so that the page usually has the same address. If it is taken, any free port is used."""
HURRY_SECONDS = 20
APPROVALS = "approvals"
"""The channel where approvers see every open card."""
VIEW_CHANNEL = 1 << 10
DATABASE = "signoff.db"
WORKSPACE = "workspace"
"""The folder of the file tools, in the sandbox's folder."""
ENDING = 10.0
"""Seconds that the bot has to end, in addition to the `[limits] shutdown_grace` of its running tools."""

RULES = """\
# Written by the sandbox because there is no signoff.toml: your own file takes its place.
[tools]
enable = [{tools}]
plugins = ["{plugin}"]
workspace = "{workspace}"

[access]
dm_users = ["{ada}"]

[approvals]
approvers = ["manage_server", "role:{approvers}"]
remember = "always"
notify = "channel:{channel}"

[[rules]]
tool = "test_discord_approval"
when = {{ test_parameter = "*{word}*" }}
verdict = "ask"
timeout = "{seconds}s"
reason = "this one has only {seconds} seconds"
"""


@dataclass
class Bot:
    """The bot's process and how to start it. Its output goes to a file, so that the terminal stays readable."""

    command: list[str]
    environment: dict[str, str]
    log: Path | None
    grace: float
    """Seconds that the bot gives its running tools when it is told to stop."""
    process: asyncio.subprocess.Process | None = None
    began: int = 0

    async def start(self) -> None:
        if self.log is None:
            with _deaf_to_interrupts():
                self.process = await asyncio.create_subprocess_exec(*self.command, env=self.environment)
            return
        with self.log.open("ab") as output, _deaf_to_interrupts():
            self.began = output.tell()
            self.process = await asyncio.create_subprocess_exec(
                *self.command, env=self.environment, stdout=output, stderr=asyncio.subprocess.STDOUT
            )

    async def ended(self) -> int:
        assert self.process
        return await self.process.wait()

    async def restart(self) -> None:
        """Kill the bot without warning and start it again. The new process has to recover the unfinished work."""
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        await self.start()

    async def stop(self) -> None:
        if self.process is None or self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), self.grace + ENDING)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()

    def last_words(self) -> str:
        """Return the error that the bot ended with: the text from `signoff:` on, else the last line."""
        if self.log is None:
            return "see above"
        with self.log.open("rb") as output:
            output.seek(self.began)
            said = output.read().decode(errors="replace").strip()
        at = said.rfind("\nsignoff: ") + 1
        return said[at:] if said.startswith("signoff: ", at) else said.rpartition("\n")[2]


async def sandbox(folder: Path, *, fresh: bool, program: list[str], config: Config) -> None:
    """Run both until interrupted. They keep their data in `folder`, apart from any other database.

    `config` is the operator's own configuration. Without a signoff.toml, the sandbox writes rules of its own.
    """
    with claimed(folder, folder / DATABASE, fresh=fresh):
        await _serve(folder, program, config)


async def _serve(folder: Path, program: list[str], config: Config) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, told.set)
    own_rules = _has_rules()
    suggestions = folder / "guide.json"
    shown = own_guide(config) if own_rules else guide(HURRY_SECONDS)
    suggestions.write_text(json.dumps(shown, indent=2), encoding="utf-8")
    # Otherwise, the Discord of a killed sandbox would go on to save its world over that of the next one.
    options = ["--or-any", "--restarts", "--with-parent", "--guide", str(suggestions), *NAMES]
    with _deaf_to_interrupts():
        starting = sandbox_process(*options, state=folder / "world.json", port=PORT, token=bot_token(folder))
        world = await starting.__aenter__()
    try:
        async with world.client() as client:
            if own_rules:
                await add_named(client, config)
            bot = await _bot(folder, world, client, program, own_rules, config.limits.shutdown_grace)
            where = f"The bot's log is {bot.log}. " if bot.log else ""
            print(f"Open {world.page_url}\n{where}Stop with Ctrl-C.", flush=True)
            try:
                await bot.start()
                await _watch(bot, client, told)
            finally:
                await bot.stop()
    finally:
        await starting.__aexit__(None, None, None)


async def _bot(
    folder: Path, world: SandboxProcess, client: SandboxClient, program: list[str], own_rules: bool, grace: float
) -> Bot:
    environment = os.environ | {
        "DISCORD_TOKEN": bot_token(folder),
        "DISCORD_API_URL": world.api_url,
        "DISCORD_GATEWAY_URL": world.gateway_url,
        "SIGNOFF_DATABASE_URL": f"sqlite:///{folder / DATABASE}",
    }
    if not own_rules:
        rules = folder / "signoff.toml"
        rules.write_text(await _rules(client), encoding="utf-8")
        environment["SIGNOFF_CONFIG"] = str(rules)
        write_plugin(folder, WORKSPACE)
        seed_workspace(folder / WORKSPACE, await client.guild_id())
    log = None if os.environ.get("SIGNOFF_LOG_LEVEL", "").strip().upper() == "DEBUG" else folder / "bot.log"
    if log is not None:
        log.write_bytes(b"")
    return Bot([*program, "discord"], environment, log, grace)


async def _rules(client: SandboxClient) -> str:
    """Return the sandbox's own rules, with the ids of this world. Add the approvals channel if it is missing."""
    return RULES.format(
        tools=", ".join(f'"{name}"' for name in BUILTIN_TOOLS),
        plugin=PLUGIN,
        workspace=WORKSPACE,
        ada=(await client.person("Ada")).id,
        approvers=await client.role_id("Approvers"),
        channel=await _approvals_channel(client),
        word=HURRY,
        seconds=HURRY_SECONDS,
    )


async def _approvals_channel(client: SandboxClient) -> int:
    """Return the channel for approvers, which the others cannot see."""
    try:
        return (await client.channel(APPROVALS)).id
    except SandboxError:
        channel = await client.create_channel(APPROVALS)
    await client.overwrite(channel, "@everyone", deny=VIEW_CHANNEL)
    for who in ("Admins", "Approvers", client.bot_id):
        await client.overwrite(channel, who, allow=VIEW_CHANNEL)
    return channel.id


async def _watch(bot: Bot, client: SandboxClient, told: asyncio.Event) -> None:
    """Restart the bot when the page asks, and print a line when it ends by itself, until told to stop."""
    stopping = asyncio.ensure_future(told.wait())
    asked = asyncio.ensure_future(_restart_asked(client))
    ended = asyncio.ensure_future(bot.ended())
    try:
        while True:
            await asyncio.wait({stopping, asked, ended}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                return
            if asked.done():
                asked.result()
                await bot.restart()
                asked = asyncio.ensure_future(_restart_asked(client))
            elif not await client.log(kind="gateway", name="READY"):
                raise SystemExit(bot.last_words())
            else:
                print(f"The bot ended: {bot.last_words()}", flush=True)
                print("Start it again from the page, or stop with Ctrl-C.", flush=True)
                await asyncio.wait({stopping, asked}, return_when=asyncio.FIRST_COMPLETED)
                continue
            ended = asyncio.ensure_future(bot.ended())
    finally:
        for task in (stopping, asked, ended):
            task.cancel()


async def _restart_asked(client: SandboxClient) -> None:
    after = await client.head()
    try:
        while not await client.log(after, timeout=60, kind="world", name=RESTART):
            pass
    except ClientError:
        raise SystemExit("The sandbox ended by itself, so the bot was stopped too. Nothing is lost.") from None


def _has_rules() -> bool:
    return bool(os.environ.get("SIGNOFF_CONFIG", "").strip()) or Path("signoff.toml").exists()


@contextmanager
def _deaf_to_interrupts() -> Generator[None]:
    """Start children that ignore Ctrl-C, which a terminal sends to all processes at once. We end them ourselves."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""The bot in one process and the sandbox's Discord in another, for end-to-end tests."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from discord_sandbox import Plan
from discord_sandbox.client import SandboxClient
from discord_sandbox.person import Person
from discord_sandbox.seen import Outcome, SeenMessage
from signoff.commands.sandbox import NAMES
from tests.rigs import quiescence
from tests.rigs.nursery import PIPE, STDOUT, Forked, execute, forked_sandbox
from tests.rigs.quiescence import OpenCard

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "main.py"
CRASHING = Path(__file__).with_name("crashing_main.py")
PLUGIN = Path(__file__).with_name("recording_tools.py")
PATIENCE = 60.0
"""Seconds to wait for things that normally take a fraction of one: these machines are noisy."""
STARTING = 180.0
"""Seconds for the bot to connect: its imports alone take three seconds of a processor that others use too."""
DEFERRED = (5, 6)
"""The interaction response types that only ask for more time."""

AnyRig = TypeVar("AnyRig", bound="Rig")


@dataclass(frozen=True)
class Patient(Person):
    """Waits for the whole response if the bot, on a slow machine, first asks for more time."""

    async def click(
        self,
        message: SeenMessage,
        button: str,
        *,
        wait: float | None = None,
        forged: bool = False,
        guild_id: int | None = None,
    ) -> Outcome:
        answer = await super().click(message, button, wait=wait, forged=forged, guild_id=guild_id)
        end = time.monotonic() + PATIENCE
        while wait is None and answer.callback_type in DEFERRED and not (answer.updated or answer.messages):
            assert time.monotonic() < end, f"a click on {button} was put off and never answered"
            await asyncio.sleep(0.05)
            answer = Outcome(await self.line.call("GET", f"/interactions/{answer.id}", wait=0))
        return answer


@dataclass(eq=False)
class Rig:
    running: ClassVar[list[Rig]] = []
    """The rigs of this process, for the fixture that lets them come to rest between tests."""

    program: ClassVar[tuple[str, ...]] = (str(MAIN), "discord")

    folder: Path
    sandbox: SandboxClient
    environment: dict[str, str]
    people: dict[str, Patient] = field(default_factory=dict[str, Patient])
    bot: Forked | asyncio.subprocess.Process | None = None

    @property
    def trace(self) -> list[str]:
        """The lines that the tools wrote, in order, over all processes."""
        file = self.folder / "trace.txt"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    @property
    def output(self) -> str:
        return (self.folder / "bot.log").read_text(encoding="utf-8")

    def configure(self, text: str = "") -> None:
        """Write signoff.toml. `[tools]` is set here; pass further tables."""
        tools = f'[tools]\nplugins = ["{PLUGIN}"]\n'
        (self.folder / "signoff.toml").write_text(tools + text, encoding="utf-8")

    async def start(self, **environment: str) -> None:
        """Start the bot and wait until it is connected. If it ends instead, fail and show its last output."""
        before = await self.sandbox.head()
        bot = await self.launch(**environment)
        ready = asyncio.ensure_future(self.sandbox.wait_for("READY", after=before, timeout=STARTING, kind="gateway"))
        ended = asyncio.ensure_future(bot.wait())
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if bot.returncode is not None and not ready.done():
            ready.cancel()
            raise AssertionError(f"the bot ended with {bot.returncode}:\n{self.output[-2000:]}")
        await ready

    async def launch(self, **environment: str) -> Forked | asyncio.subprocess.Process:
        with (self.folder / "bot.log").open("ab") as log:
            self.bot = await self._spawn(environment, log)
        return self.bot

    async def launch_another(self) -> tuple[int, str]:
        """Run a second process beside the first, to its end; return its exit code and its output."""
        process = await self._spawn({}, PIPE)
        try:
            said, _ = await asyncio.wait_for(process.communicate(), STARTING)
        finally:
            process.kill()
        return process.returncode or 0, said.decode()

    async def _spawn(self, environment: dict[str, str], output: Any) -> Forked | asyncio.subprocess.Process:
        return await execute(
            *self.program, cwd=self.folder, env=self.environment | environment, stdout=output, stderr=STDOUT
        )

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        assert self.bot
        if self.bot.returncode is None:
            self.bot.send_signal(number)
        return await asyncio.wait_for(self.bot.wait(), PATIENCE)

    async def leave(self) -> None:
        if self.bot and self.bot.returncode is None:
            await self.kill()

    async def ask(self, text: str, who: str = "Max", where: str = "general") -> SeenMessage:
        return await self.people[who].say(where, f"{self.sandbox.mention} {text}")

    async def accept_all(self, card: SeenMessage) -> None:
        """Ada accepts every call, page by page."""
        ada = self.people["Ada"]
        while card.buttons:
            labels = [b.label for b in card.buttons if not b.disabled]
            accept = next((label for label in labels if label.startswith("Accept") and label != "Accept"), "Accept")
            press = accept if accept in labels else "▶"
            if press not in labels:
                return
            answer = await ada.click(card, press)
            card = answer.updated or card

    async def card(self, thread: int, who: str = "Ada", *, after: int = 0) -> SeenMessage:
        """Wait for the open card in a thread, newer than the message `after`."""
        return await self.people[who].wait_for_message(
            thread, lambda m: m.id > after and m.buttons and "Accept" in [b.label for b in m.buttons], timeout=PATIENCE
        )

    async def sees(self, where: int | str, *words: str, who: str = "Ada") -> SeenMessage:
        """Wait for a message of the bot that contains all the words."""
        return await self.people[who].wait_for_message(
            where, lambda m: m.author == "Signoff" and all(word in m.text for word in words), timeout=PATIENCE
        )

    async def wait_for_trace(self, line: str) -> None:
        await self.until(lambda: line in self.trace, f"the line {line!r} in the trace")

    async def until(self, holds: Callable[[], object], what: str, timeout: float = PATIENCE) -> None:
        """Wait for a condition that only files show, the database included."""
        end = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < end, f"waited {timeout} s for {what}"
            await asyncio.sleep(0.02)

    # The card and its buttons

    async def with_button(self, thread: int, label: str, who: str = "Ada") -> SeenMessage:
        return await self.people[who].wait_for_message(
            thread, lambda m: label in [b.label for b in m.buttons], timeout=PATIENCE
        )

    async def closed(self, card: SeenMessage, *words: str, who: str = "Ada") -> SeenMessage:
        """Wait until the card has no buttons and shows all the words."""
        return await self.people[who].wait_for_change(
            card, lambda m: not m.buttons and all(word in m.text for word in words), timeout=PATIENCE
        )

    # The database

    @property
    def database(self) -> Path:
        return self.folder / "data" / "signoff.db"

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Read the database of the running bot without changing anything."""
        return quiescence.rows(self.database, sql, *parameters)

    def open_cards(self) -> set[OpenCard]:
        return quiescence.open_cards(self.database)

    @property
    def up(self) -> bool:
        return self.bot is not None and self.bot.returncode is None

    async def rests(self) -> None:
        """Wait until no turn changes by itself any more; the turns that are left wait for people."""
        if self.up:
            await quiescence.at_rest(self.database, PATIENCE)

    async def come_to_rest(self, kept: set[OpenCard]) -> None:
        """Reject the cards that a test left open, except those in `kept`, and let every turn end."""
        if not self.up:
            return
        await self.sandbox.clear_faults()
        await self.rests()
        ada = self.people["Ada"]
        for left in self.open_cards() - kept:
            for message in await ada.messages(left.channel):
                for button in message.buttons if message.id == left.message else []:
                    if button.label in ("Reject", "Skip"):
                        await ada.click(message, str(button.custom_id), forged=True)
        await self.rests()

    def state(self, asked: SeenMessage) -> str:
        """Return the state of the turn that this message started; empty if it is not stored."""
        found = self.rows("SELECT state FROM turns WHERE message = ?", str(asked.id))
        return found[0][0] if found else ""

    async def ended(self, asked: SeenMessage) -> None:
        """Wait until the turn is done and its reply is recorded as posted."""
        sql = "SELECT 1 FROM turns WHERE message = ? AND state = 'done' AND reply_posted"
        await self.until(lambda: self.rows(sql, str(asked.id)), f"the end of turn {asked.id}")


@dataclass(eq=False)
class FreshRig(Rig):
    """A rig whose bot is started as a person starts it, without the nursery's shortcut."""

    async def _spawn(self, environment: dict[str, str], output: Any) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *self.program,
            cwd=self.folder,
            env=self.environment | environment,
            stdout=output,
            stderr=STDOUT,
        )


@dataclass(eq=False)
class CrashingRig(Rig):
    """A rig whose bot kills itself where a test says; see crashing_main."""

    program = (str(CRASHING),)

    def arm(self, moment: str) -> None:
        (self.folder / "crash.txt").write_text(moment, encoding="utf-8")

    async def dies(self) -> None:
        assert self.bot
        assert await asyncio.wait_for(self.bot.wait(), PATIENCE) == -signal.SIGKILL


@asynccontextmanager
async def rig(
    folder: Path, config: str = "", *, start: bool = True, kind: type[AnyRig] = Rig
) -> AsyncGenerator[AnyRig]:
    async with forked_sandbox(*NAMES) as server, server.client() as sandbox:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SIGNOFF_", "DISCORD_", "OPENAI_", "ANTHROPIC_"))
        }
        environment |= {
            "DISCORD_TOKEN": Plan.token,
            "DISCORD_API_URL": server.api_url,
            "DISCORD_GATEWAY_URL": server.gateway_url,
            "SIGNOFF_TEST_TRACE": str(folder / "trace.txt"),
        }
        found = kind(folder, sandbox, environment)
        found.configure(config)
        # Discord gives a bot three seconds. Tests are about the response, not about how busy the machine is.
        await sandbox.settings(interaction_deadline=PATIENCE)
        for name in ("Ada", "Max", "Olga", "Otto"):
            found.people[name] = patient(await sandbox.person(name))
        Rig.running.append(found)
        try:
            if start:
                await found.start()
            yield found
        finally:
            Rig.running.remove(found)
            await found.leave()


def patient(person: Person) -> Patient:
    return Patient(person.line, person.id, person.name)

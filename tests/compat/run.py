"""`make compat`: connects bots in other libraries to the sandbox and checks what they can do there.

Each bot registers /echo, replies to a mention with two buttons, changes its message at the first one, opens a modal at
the second one, and responds to the submission privately. The discord.js bot of the sandbox's README runs too, just as
it is written there. The libraries are installed from npm and PyPI into a folder that is deleted afterwards; everything
else stays on loopback. Give names of libraries to run only those.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
import venv
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import discord_sandbox
from discord_sandbox import Outcome, Person, SandboxClient, SandboxServer, SeenMessage

HERE = Path(__file__).parent
README = Path(discord_sandbox.__file__).with_name("README.md")
PATIENCE = 60.0


class Failed(Exception):
    """A step did not work."""


@dataclass(frozen=True)
class Library:
    name: str
    package: str
    bot: str
    from_readme: bool = False

    @property
    def is_javascript(self) -> bool:
        return self.bot.endswith(".mjs")


LIBRARIES = [
    Library("discord.js", "discord.js@14", "discord_js.mjs"),
    Library("README's bot", "discord.js@14", "bot.mjs", from_readme=True),
    Library("disnake", "disnake", "disnake_bot.py"),
    Library("hikari", "hikari>=2.7", "hikari_bot.py"),
    Library("interactions.py", "discord-py-interactions", "interactions_bot.py"),
]


async def execute(*command: str, folder: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output = (await process.communicate())[0].decode(errors="replace")
    if process.returncode:
        raise Failed(f"{' '.join(command[:3])} ended with {process.returncode}: {output.strip()[-300:]}")
    return output


async def install(library: Library, folder: Path) -> tuple[list[str], str]:
    """Install a library; return the command that starts the bot, and the installed version."""
    if library.from_readme:
        (block,) = re.findall(r"```js\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
        (folder / library.bot).write_text(block, encoding="utf-8")
    else:
        shutil.copy(HERE / library.bot, folder)
    if library.is_javascript:
        if shutil.which("npm") is None:
            raise Failed("npm is not installed")
        await execute("npm", "install", "--no-audit", "--no-fund", library.package, folder=folder)
        script = "console.log(require('discord.js').version)"
        return ["node", library.bot], (await execute("node", "-e", script, folder=folder)).strip()
    await asyncio.to_thread(venv.create, folder / "venv", with_pip=True)
    python = str(folder / "venv/bin/python")
    await execute(python, "-m", "pip", "install", "--quiet", library.package, folder=folder)
    name = library.package.partition(">")[0]
    script = f"import importlib.metadata as m; print(m.version('{name}'))"
    return [python, library.bot], (await execute(python, "-c", script, folder=folder)).strip()


@asynccontextmanager
async def started(command: list[str], folder: Path, server: SandboxServer) -> AsyncGenerator[Path]:
    """Run the bot in a process; yield the file with its output."""
    own = {"DISCORD_TOKEN": server.token, "DISCORD_API_URL": server.api_url, "PYTHONUNBUFFERED": "1"}
    own |= {"DISCORD_API": server.api_url.removesuffix("/v10")}
    with (folder / "bot.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, env=os.environ | own, stdout=log, stderr=asyncio.subprocess.STDOUT
        )
    try:
        yield folder / "bot.log"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def expect(condition: object, problem: str) -> None:
    if not condition:
        raise Failed(problem)


@dataclass
class Tour:
    """The steps, in order. Each returns a word or two about the result."""

    sandbox: SandboxClient
    person: Person

    async def connect(self) -> str:
        await self.sandbox.wait_for_bot(timeout=PATIENCE)
        (session,) = await self.sandbox.sessions()
        return f"session with intents {session['intents']}"

    async def reply_to_a_mention(self) -> str:
        message = await self._ask()
        return f"{message.text!r} with buttons {[button.label for button in message.buttons]}"

    async def get_a_click(self) -> str:
        message = await self._ask()
        outcome = await self.person.click(message, "Press me")
        self._check(outcome)
        changed = await self.person.wait_for_change(message, lambda m: "Pressed" in m.text, timeout=PATIENCE)
        expect(changed.text == f"Pressed by {self.person.id}" and not changed.buttons, f"it shows {changed.text!r}")
        return f"the message changed to {changed.text!r}"

    async def open_a_modal(self) -> str:
        outcome = await self._modal()
        return f"a modal named {(outcome.modal or {})['title']!r}"

    async def get_the_submission(self) -> str:
        outcome = await self.person.submit(await self._modal(), {"reason": "it rains"})
        self._check(outcome)
        reply = outcome.reply
        expect(reply and reply.ephemeral and reply.text == "Because it rains", f"it said {outcome.text!r}")
        return f"a private {outcome.text!r}"

    async def register_a_command(self) -> str:
        await self.sandbox.wait_for("command.registered", timeout=PATIENCE)
        (command,) = await self.person.commands("general")
        return f"/{command['name']} with {[option['name'] for option in command['options']]}"

    async def respond_to_the_command(self) -> str:
        outcome = await self.person.run("general", "echo", text="hello")
        self._check(outcome)
        expect(outcome.text == "Echo hello", f"it said {outcome.text!r}")
        return repr(outcome.text)

    async def resume_after_a_dropped_socket(self) -> str:
        before = await self.sandbox.head()
        await self.sandbox.drop_sockets()
        await self.sandbox.wait_for("RESUMED", after=before, timeout=PATIENCE, kind="gateway")
        await self._ask()
        return "resumed, and replied to another mention"

    async def stay_within_the_known_routes(self) -> str:
        unknown = await self.sandbox.unknown_routes()
        expect(not unknown, f"the sandbox does not know {', '.join(unknown)}")
        return "no call to a route that the sandbox lacks"

    def steps(self) -> list[Callable[[], Awaitable[str]]]:
        return [
            self.connect,
            self.register_a_command,
            self.reply_to_a_mention,
            self.get_a_click,
            self.open_a_modal,
            self.get_the_submission,
            self.respond_to_the_command,
            self.resume_after_a_dropped_socket,
            self.stay_within_the_known_routes,
        ]

    async def _ask(self) -> SeenMessage:
        said = await self.person.say("general", f"{self.sandbox.mention} hello")
        return await self.person.wait_for_message("general", lambda m: m.id > said.id and m.buttons, timeout=PATIENCE)

    async def _modal(self) -> Outcome:
        outcome = await self.person.click(await self._ask(), "Open a form")
        self._check(outcome)
        expect(outcome.modal, "no modal was opened")
        return outcome

    def _check(self, outcome: Outcome) -> None:
        expect(outcome.answered, f"the bot did not respond: {outcome.error}")


class ReadmeTour(Tour):
    """The steps that the README describes."""

    async def get_a_click(self) -> str:
        outcome = await self.person.click(await self._ask(), "Wave back")
        expect(outcome.text == f"{self.person.name} waves", f"it said {outcome.text!r}, {outcome.error}")
        return repr(outcome.text)

    async def respond_to_the_command(self) -> str:
        outcome = await self.person.run("general", "roll", sides=1)
        expect(outcome.text == "You rolled 1", f"it said {outcome.text!r}, {outcome.error}")
        return repr(outcome.text)

    def steps(self) -> list[Callable[[], Awaitable[str]]]:
        return [
            self.connect,
            self.register_a_command,
            self.reply_to_a_mention,
            self.get_a_click,
            self.respond_to_the_command,
        ]


async def tour(library: Library, folder: Path) -> bool:
    try:
        command, version = await install(library, folder)
    except Failed as problem:
        print(f"{library.name:16} FAILED  install: {problem}", flush=True)
        return False
    print(f"{library.name:16} ok      install: version {version}", flush=True)
    async with SandboxServer() as server, SandboxClient(server.control_url, server.key) as sandbox:
        await sandbox.settings(interaction_deadline=PATIENCE)
        async with started(command, folder, server) as log:
            kind = ReadmeTour if library.from_readme else Tour
            for step in kind(sandbox, await sandbox.person("Max")).steps():
                name = step.__name__.replace("_", " ")
                try:
                    print(f"{library.name:16} ok      {name}: {await step()}", flush=True)
                except Exception as problem:
                    said = log.read_text(encoding="utf-8", errors="replace").strip()[-1500:]
                    print(f"{library.name:16} FAILED  {name}: {problem}\nThe bot printed:\n{said}", flush=True)
                    return False
    return True


async def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="library", help=", ".join(library.name for library in LIBRARIES))
    names = parser.parse_args().names
    chosen = [library for library in LIBRARIES if not names or library.name in names]
    results: list[bool] = []
    for library in chosen:
        with tempfile.TemporaryDirectory(prefix="compat-") as folder:
            results.append(await tour(library, Path(folder)))
    print(f"{sum(results)} of {len(results)} libraries work with the sandbox")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

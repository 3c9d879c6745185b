"""`make compat`: runs the filesystem and everything servers of npm behind the gate, over stdio and over HTTP.

For each step, an agent with a scripted model makes a call, somebody accepts its card, and the result is checked. The
servers are installed from npm into a folder that is deleted afterwards; everything else stays on loopback.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from signoff.agent.mcp import server_in
from signoff.cards.build import build_card
from signoff.store import Store
from signoff.turns.model import Finished, Step, Waiting
from tests.conftest import HandClock
from tests.rigs.mcp_shop import Shop, batch_of
from tests.rigs.scripted import Answer, calls

PACKAGES = ("@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-everything")
ELICITING = "npm_trigger-elicitation-request"
PATIENCE = 60.0


class Failed(Exception):
    """A step did not work."""


def expect(condition: object, problem: str) -> None:
    if not condition:
        raise Failed(problem)


@dataclass
class Tour:
    """The steps, in order. Each returns a word or two about the result."""

    folder: Path
    store: Store
    turns: int = 0

    def program(self, package: str, *arguments: str) -> list[str]:
        return ["node", str(self.folder / "node_modules" / package / "dist" / "index.js"), *arguments]

    @asynccontextmanager
    async def agent(self, table: str) -> AsyncGenerator[Shop]:
        """Give an agent this server, as `npm`."""
        shop = Shop(self.folder, self.store, HandClock(), turns=self.turns)
        shop.open(f'[mcp.npm]\nstart = "{PATIENCE:.0f}s"\n{table}\n')
        try:
            yield shop
        finally:
            self.turns = shop.turns
            assert shop.runner
            for toolset in shop.runner.agent.toolsets:
                if server := server_in(toolset):
                    await server.end()

    async def write_a_file(self) -> str:
        command = json.dumps(self.program(PACKAGES[0], str(self.folder / "files")))
        (self.folder / "files").mkdir()
        path = self.folder / "files" / "fence.txt"
        async with self.agent(f"command = {command}\ntrusted = true") as shop:
            step = await shop.ask(calls(("npm_write_file", {"path": str(path), "content": "red"})), "written")
            card = shown(step)
            for words in ("Write File", str(path), "this tool is marked destructive"):
                expect(words in card, f"the card lacks {words!r}")
            expect(not path.exists(), "it was written before anybody accepted")
            await shop.accept(step)
            expect(path.read_text() == "red", "the file has another text")
            step = await shop.ask(calls(("npm_read_text_file", {"path": str(path)})), "red")
            expect(isinstance(step, Finished), "reading asks, although the server is trusted")
            expect("red" in shop.script.results["call_0"], shop.script.results["call_0"])
            step = await shop.ask(calls(("npm_write_file", {"path": 5})), "I cannot")
            expect(isinstance(step, Finished), "arguments that do not fit are on a card")
            expect("5 is not of type 'string'" in shop.script.results["call_0"], shop.script.results["call_0"])
        return "asked, written, read without asking, and a misfit was sent back"

    async def add_two_numbers(self) -> str:
        return await self._add(f"command = {json.dumps(self.program(PACKAGES[1], 'stdio'))}")

    async def add_over_http(self) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *self.program(PACKAGES[1], "streamableHttp"),
            env=os.environ | {"PORT": str(port)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        _, writer = await asyncio.open_connection("127.0.0.1", port)
                        break
                    except OSError:
                        await asyncio.sleep(0.1)
            writer.close()
            return await self._add(f'url = "http://127.0.0.1:{port}/mcp"')
        finally:
            process.kill()
            await process.wait()

    async def _add(self, table: str) -> str:
        async with self.agent(table) as shop:
            step = await shop.ask(calls(("npm_get-sum", {"a": 2, "b": 40})), "it is 42")
            expect("Get Sum Tool" in shown(step), "the card lacks the title")
            await shop.accept(step)
            expect("42" in shop.script.results["call_0"], shop.script.results["call_0"])
        return shop.script.results["call_0"]

    async def get_an_image(self) -> str:
        async with self.agent(f"command = {json.dumps(self.program(PACKAGES[1], 'stdio'))}\ntrusted = true") as shop:
            step = await shop.ask(calls(("npm_get-tiny-image", {})), "it is small")
            expect(isinstance(step, Finished), "it asks, although the server is trusted")
        return "passed on"

    async def refuse_sampling(self) -> str:
        result = await self._sample("")
        expect("Unknown tool" in result, result)
        return "the server does not offer it"

    async def allow_sampling(self) -> str:
        result = await self._sample("sampling = true")
        expect("a red fence" in result, result)
        return "the server used the model"

    async def _sample(self, table: str) -> str:
        command = json.dumps(self.program(PACKAGES[1], "stdio"))
        async with self.agent(f"command = {command}\n{table}") as shop:
            answers: list[Answer] = [calls(("npm_trigger-sampling-request", {"prompt": "Which fence?"})), "a red fence"]
            step = await shop.ask(*answers)
            if isinstance(step, Waiting):
                await shop.accept(step)
            return shop.script.results["call_0"]

    async def refuse_questions(self) -> str:
        command = json.dumps(self.program(PACKAGES[1], "stdio"))
        async with self.agent(f"command = {command}\nelicitation = false") as shop:
            await shop.ask(calls((ELICITING, {})), "I cannot")
            result = shop.script.results["call_0"]
            expect("Unknown tool" in result, result)
        return "the server does not offer it"

    async def answer_a_question(self) -> str:
        command = json.dumps(self.program(PACKAGES[1], "stdio"))
        async with self.agent(f"command = {command}") as shop:
            step = await shop.accept(await shop.ask(calls((ELICITING, {})), "thank you"))
            inquiry = batch_of(step).requests[0].inquiry
            expect(inquiry, "the server asks nothing")
            assert inquiry
            expect([field.name for field in inquiry.fields if field.required] == ["name"], str(inquiry.fields))
            expect(isinstance(await shop.answer(step, {"name": "Ada"}), Finished), "the turn goes on")
            result = shop.script.results["call_0"]
            expect("Ada" in result, result)
            step = await shop.accept(await shop.ask(calls((ELICITING, {})), "a pity"))
            await shop.decline(step)
            expect("declined" in shop.script.results["call_0"], shop.script.results["call_0"])
        return f"a form with {len(inquiry.fields)} fields was answered, and another one declined"

    async def be_killed_in_a_call(self) -> str:
        command = json.dumps(self.program(PACKAGES[1], "stdio"))
        async with self.agent(f"command = {command}") as shop:
            wait = {"duration": 60, "steps": 2}
            step = await shop.ask(calls(("npm_trigger-long-running-operation", wait)), "it may have run")
            running = asyncio.ensure_future(shop.accept(step))
            await asyncio.sleep(3)
            expect(not running.done(), "the operation has already ended")
            os.kill(await self._process(), signal.SIGKILL)
            expect(isinstance(await running, Finished), "the turn goes on")
            expect("the call may have run" in shop.script.results["call_0"], shop.script.results["call_0"])
        return "the call may have run"

    async def _process(self) -> int:
        """Return the id of the server's process, which this program started."""
        listing = await asyncio.create_subprocess_exec("ps", "-eo", "pid,args", stdout=asyncio.subprocess.PIPE)
        lines = (await listing.communicate())[0].decode().splitlines()
        (line,) = [line for line in lines if str(self.folder) in line and PACKAGES[1] in line]
        return int(line.split()[0])

    def steps(self) -> list[Callable[[], Awaitable[str]]]:
        return [
            self.write_a_file,
            self.add_two_numbers,
            self.add_over_http,
            self.get_an_image,
            self.refuse_sampling,
            self.allow_sampling,
            self.refuse_questions,
            self.answer_a_question,
            self.be_killed_in_a_call,
        ]


def shown(step: Step) -> str:
    return str(build_card(batch_of(step), now=batch_of(step).opened))


async def install(folder: Path) -> None:
    command = ("npm", "install", "--no-audit", "--no-fund", *PACKAGES)
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output = (await process.communicate())[0].decode(errors="replace")
    expect(not process.returncode, f"npm ended with {process.returncode}: {output.strip()[-300:]}")


async def main() -> int:
    with tempfile.TemporaryDirectory(prefix="compat-") as name:
        folder = Path(name)
        await install(folder)
        async with await Store.open(f"sqlite:///{folder / 'signoff.db'}") as store:
            tour, failures = Tour(folder, store), 0
            for step in tour.steps():
                title = step.__name__.replace("_", " ")
                try:
                    print(f"{'MCP servers':16} ok      {title}: {await step()}", flush=True)
                except Exception as problem:
                    failures += 1
                    print(f"{'MCP servers':16} FAILED  {title}: {type(problem).__name__}: {problem}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

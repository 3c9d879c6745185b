"""The web example and `resume` as real processes: they end, are killed and race, and the tool runs once."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path

import aiohttp
import pytest

from tests.rigs.doc_pages import ROOT
from tests.rigs.nursery import PIPE, STDOUT, Forked, execute

pytestmark = pytest.mark.slow

PAUSE = 0.02


async def output_of(*arguments: str, cwd: Path, **environment: str) -> str:
    process = await execute(*arguments, cwd=cwd, env={**os.environ, **environment}, stdout=PIPE, stderr=STDOUT)
    told, _ = await asyncio.wait_for(process.communicate(), 60)
    return told.decode()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@asynccontextmanager
async def serving(folder: Path, port: int) -> AsyncGenerator[Forked]:
    process = await execute(str(folder / "page.py"), str(port), cwd=folder, stdout=PIPE, stderr=STDOUT)
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    await asyncio.sleep(PAUSE)
        yield process
    finally:
        process.kill()
        await process.wait()


async def test_the_run_goes_on_in_a_page_that_was_killed_and_started_again(tmp_path: Path) -> None:
    folder, port = tmp_path / "web", free_port()
    shutil.copytree(ROOT / "examples/web_approval", folder)
    told = await output_of(str(folder / "robot.py"), cwd=folder)
    assert told.startswith("Waiting for a decision: ")
    id = told.split()[-1]
    url = f"http://127.0.0.1:{port}/"
    async with aiohttp.ClientSession() as browser:
        async with serving(folder, port), browser.get(url) as shown:
            stale = token_of(await shown.text())
        async with serving(folder, port):  # the first one was killed
            async with browser.get(url) as shown:
                text = await shown.text()
                assert "frame-ancestors 'none'" in shown.headers["Content-Security-Policy"]
            assert "restart: the tool is declared" in text
            assert '"service": "a"' in unescape(text)
            for wrong in ({"token": stale}, {"token": ""}, {}):
                async with browser.post(url, data={"id": id, "say": "accept", **wrong}) as refused:
                    assert refused.status == 403
            async with browser.get(url, headers={"Host": "evil.example"}) as refused:
                assert refused.status == 403
            assert not (folder / "restarts.txt").exists()
            token = token_of(text)
            for says in ("More has to be decided.", "was already approved by somebody on the web page"):
                async with browser.post(url, data={"id": id, "say": "accept", "token": token}) as decided:
                    text = await decided.text()
                assert says in text
            assert "Who should hear that a was restarted?" in text
            assert '<option value="#1">the team</option>' in text
            asked = re.findall('name="id" value="([^"]+)"', text)[0]
            for chosen, says in (("", "must not be empty"), ("#9", "must be one of"), ("#1", "The run ended: ")):
                form = {"id": asked, "say": "accept", "token": token, "field0": chosen}
                async with browser.post(url, data=form) as decided:
                    text = await decided.text()
                assert says in text
            assert '"ask_whom_to_tell":"the team"' in unescape(text)
    assert (folder / "restarts.txt").read_text(encoding="utf-8") == "a\n"


def token_of(page: str) -> str:
    found = re.search('name="token" value="([^"]+)"', page)
    assert found
    return found[1]


AGENT = """
import os, sys, time
from pathlib import Path
from pydantic_ai import Agent, DeferredToolRequests
from signoff import ApprovalStore, Pending, Signoff, resume_sync
from signoff.errors import SignoffError

store = ApprovalStore("approvals.db")
agent = Agent("test", output_type=[str, DeferredToolRequests], capabilities=[Signoff(store=store)])

@agent.tool_plain(requires_approval=True)
def act() -> str:
    with open("ran.txt", "a") as file:
        file.write("ran\\n")
    while os.environ.get("HANG"):
        time.sleep(0.01)
    time.sleep(0.2)
    return "acted"

try:
    match sys.argv[1:]:
        case []:
            output = agent.run_sync("go").output
        case [id]:
            output = resume_sync(agent, id).output
        case [id, name]:
            output = resume_sync(agent, id, True, by=name).output
    print(*(f"{one.kind} {one.id}" for one in output.requests) if isinstance(output, Pending) else ("ended", output))
except SignoffError as error:
    print("refused", error)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    return str(tmp_path / "agent.py")


async def test_two_processes_race_and_one_of_them_wins(program: str, tmp_path: Path) -> None:
    kind, id = (await output_of(program, cwd=tmp_path)).split()
    assert kind == "call"
    told = await asyncio.gather(*(output_of(program, id, name, cwd=tmp_path) for name in ("Ada", "Ben")))
    ended, refused = sorted(told)
    assert ended.startswith("ended")
    winner = "Ada" if told[0] == ended else "Ben"
    assert refused.startswith(f"refused The request about act was already approved by {winner}.")
    assert (tmp_path / "ran.txt").read_text(encoding="utf-8") == "ran\n"


async def test_a_tool_that_was_killed_is_asked_about_again_and_not_repeated(program: str, tmp_path: Path) -> None:
    id = (await output_of(program, cwd=tmp_path)).split()[1]
    environment = {**os.environ, "HANG": "1"}
    killed = await execute(program, id, "Ada", cwd=tmp_path, env=environment, stdout=PIPE, stderr=STDOUT)
    async with asyncio.timeout(60):
        while not (tmp_path / "ran.txt").exists():  # noqa: ASYNC110 - another process writes the file
            await asyncio.sleep(PAUSE)
    assert "goes on in another process" in await output_of(program, id, "Ben", cwd=tmp_path)
    killed.kill()
    await killed.wait()
    kind, again = (await output_of(program, id, "Ada", cwd=tmp_path)).split()
    assert (kind, (tmp_path / "ran.txt").read_text(encoding="utf-8")) == ("may_have_run", "ran\n")
    assert (await output_of(program, again, "Ada", cwd=tmp_path)).startswith("ended")
    assert (tmp_path / "ran.txt").read_text(encoding="utf-8") == "ran\nran\n"

"""The lock and the crash, with real processes and kill -9."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.errors import AlreadyRunning
from signoff.store import Store
from signoff.turns.model import TurnState

pytestmark = pytest.mark.slow

HOLD = """
import asyncio, subprocess, sys
from signoff.store import Store

async def main(url):
    async with await Store.open(url):
        if len(sys.argv) > 2:
            print(subprocess.Popen(["sleep", "30"], close_fds=False).pid, flush=True)
        print("open", flush=True)
        await asyncio.sleep(60)

asyncio.run(main(sys.argv[1]))
"""

WRITE = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[2])
from tests.rigs.store_samples import a_turn
from signoff.store import Store

async def keep_writing(store, who):
    for n in range(1_000_000):
        name = f"{who}.{n}"
        def work(tx):
            tx.insert_turn(a_turn(name))
            tx.audit("asked", "s1", name, "u1", {}, 1.0)
        await store.run(work)
        os.write(1, name.encode() + b"\\n")

async def main(url):
    async with await Store.open(url) as store:
        await asyncio.gather(*(keep_writing(store, who) for who in range(20)))

asyncio.run(main(sys.argv[1]))
"""

FILL_THE_DISK = """
import asyncio, resource, sys
sys.path.insert(0, sys.argv[2])
from tests.rigs.store_samples import a_turn
from signoff.errors import StoreError
from signoff.store import Store

async def main(url):
    async with await Store.open(url) as store:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
        kept = 0
        try:
            while True:
                await store.run(lambda tx: tx.insert_turn(a_turn(f"t{kept}", text="x" * 1000)))
                kept += 1
        except StoreError as error:
            print(error)
        results = await asyncio.gather(
            *(store.run(lambda tx, n=n: tx.insert_turn(a_turn(f"lost{n}", text="x" * 99_000))) for n in range(9)),
            return_exceptions=True,
        )
        assert all(isinstance(r, StoreError) for r in results), results
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        await store.run(lambda tx: tx.insert_turn(a_turn("after")))
        print(kept)

asyncio.run(main(sys.argv[1]))
"""


def spawn(script: str, *args: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)  # type: ignore[call-overload]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill(process: subprocess.Popen[str]) -> str:
    """Send kill -9 and return the rest of the output."""
    process.send_signal(signal.SIGKILL)
    return process.communicate()[0]


async def test_a_second_process_is_refused_with_a_line_that_names_the_first(database: Path) -> None:
    first = spawn(HOLD, f"sqlite:///{database}")
    try:
        assert first_line(first) == "open"
        with pytest.raises(AlreadyRunning) as caught:
            await Store.open(f"sqlite:///{database}")
    finally:
        kill(first)
    text = str(caught.value)
    assert f"process {first.pid} on " in text
    assert re.search(r"since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", text)
    assert str(database) in text
    assert "\n" not in text
    async with await Store.open(f"sqlite:///{database}"):
        pass  # the lock ended with its owner


async def test_the_lock_is_found_by_other_names_of_the_file(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, folder_link = database.parent.parent / "link.db", database.parent.parent / "folder"
    link.symlink_to(database)
    folder_link.symlink_to(database.parent)
    async with await Store.open(f"sqlite:///{database}"):
        monkeypatch.chdir(database.parent)
        for url in ("signoff.db", f"../{database.parent.name}/signoff.db", link, folder_link / "signoff.db"):
            with pytest.raises(AlreadyRunning, match=f"process {os.getpid()} "):
                await Store.open(f"sqlite:///{url}")


async def test_a_program_that_the_first_started_does_not_keep_the_lock(database: Path) -> None:
    first = spawn(HOLD, f"sqlite:///{database}", "with a child")
    child = int(first_line(first))
    try:
        assert first_line(first) == "open"
        first.kill()
        first.wait()
        os.kill(child, 0)
        async with await Store.open(f"sqlite:///{database}"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        first.communicate()


def scribble(database: Path, content: bytes) -> None:
    Path(f"{database}.lock").write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"pid": "x\\nFAKE", "host": "h", "since": 1}'])
async def test_a_lock_file_with_nonsense_in_it_still_refuses(database: Path, content: bytes) -> None:
    async with await Store.open(f"sqlite:///{database}"):
        scribble(database, content)
        with pytest.raises(AlreadyRunning, match="another process") as caught:
            await Store.open(f"sqlite:///{database}")
        assert "FAKE" not in str(caught.value)


async def test_kill_9_loses_nothing_that_was_acknowledged(database: Path) -> None:
    url = f"sqlite:///{database}"
    acknowledged: set[str] = set()
    for _ in range(2):
        writer = spawn(WRITE, url, Path(__file__).parents[2])
        acknowledged.update(first_line(writer) for _ in range(100))
        *lines, _torn = kill(writer).split("\n")
        acknowledged.update(lines)
    assert len(acknowledged) > 50
    async with await Store.open(url) as store:
        turns = {turn.id for turn in await store.run(lambda tx: tx.turns_in(TurnState.QUEUED))}
        audited = await store.run(lambda tx: tx.db.all("SELECT subject FROM audit"))
    assert acknowledged <= turns
    assert turns == {subject for (subject,) in audited}, "a transaction is whole or not there"


async def test_a_full_disk_is_told_and_the_store_goes_on_once_there_is_space(database: Path) -> None:
    process = spawn(FILL_THE_DISK, f"sqlite:///{database}", Path(__file__).parents[2])
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    text, kept = output.splitlines()
    assert "nothing of this step was kept" in text
    assert "space" in text
    async with await Store.open(f"sqlite:///{database}") as store:
        turns = [turn.id for turn in await store.run(lambda tx: tx.turns_in(TurnState.QUEUED))]
    assert turns == [*(f"t{n}" for n in range(int(kept))), "after"]

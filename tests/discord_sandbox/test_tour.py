"""Which steps of the guide count as done: what the bot's messages show, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from discord_sandbox import SandboxClient, SandboxServer
from discord_sandbox.web import BadGuide, Guide
from discord_sandbox.web.tour import progress
from tests.rigs.real_client import Bot

STEP: dict[str, Any] = {
    "id": "a",
    "title": "A",
    "short": "A",
    "text": "do it",
    "then": "Wait.",
    "done": [r"APPROVED by (?!.*<@{asker}>)", "finished"],
}


async def test_a_step_is_done_when_all_its_texts_are_in_the_thread(
    bot: Bot, sandbox: SandboxClient, sandbox_server: SandboxServer
) -> None:
    max_, olga = await sandbox.person("Max"), await sandbox.person("Olga")
    world = sandbox_server.sandbox

    def now() -> list[str]:
        return progress(world, [STEP]).done

    asked = await max_.say("general", f"{sandbox.mention} do it")
    thread = await max_.open_thread("general", "t", asked)
    place = bot.get_partial_messageable(thread.id)
    elsewhere = bot.get_partial_messageable((await sandbox.channel("ops")).id)
    await elsewhere.send(f"APPROVED by <@{olga.id}>, finished")
    await max_.say(thread, f"APPROVED by <@{olga.id}>, finished")  # people can write this, too
    assert now() == []
    await place.send(f"APPROVED by <@{max_.id}>")
    await place.send("finished")
    assert now() == [], "the asker accepted it"
    await place.send(f"APPROVED by <@{olga.id}>")
    assert now() == ["a"]


async def test_a_step_in_a_direct_conversation(bot: Bot, sandbox: SandboxClient, sandbox_server: SandboxServer) -> None:
    ada = await sandbox.person("Ada")
    direct = await ada.dm(sandbox.bot_id)
    step = STEP | {"done": ["finished"]}
    place = bot.get_partial_messageable(direct.id)
    await place.send("finished, but before")
    await ada.say(direct, "do it")
    assert progress(sandbox_server.sandbox, [step]).done == []
    await place.send("finished")
    assert progress(sandbox_server.sandbox, [step]).done == ["a"]


@pytest.mark.parametrize("where", ["thread", "direct"])
async def test_a_step_that_is_repeated_begins_anew_and_keeps_its_tick(
    bot: Bot, sandbox: SandboxClient, sandbox_server: SandboxServer, where: str
) -> None:
    ada = await sandbox.person("Ada")
    direct = await ada.dm(sandbox.bot_id)
    step = STEP | {"done": ["finished"]}
    runs: list[str] = []
    for number in (1, 2):
        asked = await ada.say("general" if where == "thread" else direct, f"{sandbox.mention} do it")
        place = await ada.open_thread("general", "t", asked) if where == "thread" else direct
        before = progress(sandbox_server.sandbox, [step])
        runs.append(before.runs["a"].message)
        assert not before.runs["a"].done
        assert before.done == ([] if number == 1 else ["a"])
        await bot.get_partial_messageable(place.id).send("finished")
        assert progress(sandbox_server.sandbox, [step]).runs["a"].done
    assert len(set(runs)) == 2


async def test_the_advice_follows_what_happened(
    bot: Bot, sandbox: SandboxClient, sandbox_server: SandboxServer
) -> None:
    max_ = await sandbox.person("Max")
    advice = [{"found": "REJECTED", "then": "Better?"}, {"found": "by <@{asker}>, lost", "then": "Start again."}]
    step = STEP | {"advice": advice}

    def then() -> str:
        return progress(sandbox_server.sandbox, [step]).runs["a"].then

    asked = await max_.say("general", f"{sandbox.mention} do it")
    place = bot.get_partial_messageable((await max_.open_thread("general", "t", asked)).id)
    assert then() == "Wait."
    await place.send("by nobody, lost")
    assert then() == "Wait."
    await place.send(f"by <@{max_.id}>, lost")
    await place.send("REJECTED")
    assert then() == "Start again.", "the last one in the list that is found"


async def test_a_page_that_was_disconnected_learns_what_was_done_meanwhile() -> None:
    async with (
        SandboxServer(guide=Guide(steps=(STEP,))) as server,
        SandboxClient(server.control_url, server.key) as sandbox,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True), headers={"Origin": server.url}) as browser,
    ):
        async with browser.get(server.page_url) as answer:
            assert answer.status == 200
        head = server.sandbox.log.head
        asked = await (await sandbox.person("Max")).say("general", "do it")
        async with browser.ws_connect(f"{server.url}/page/people/Max/stream?after={head}") as socket:
            frame = await socket.receive_json(timeout=10)
    (event,) = [event for event in frame["events"] if event["type"] == "tour"]
    assert event["tour"]["runs"]["a"]["message"] == str(asked.id)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("done", ["("]),
        ("done", [1]),
        ("acts", [1]),
        ("answers", [None]),
        ("advice", ["x"]),
        ("advice", [{"found": "("}]),
        ("advice", [{"found": "(", "then": "x"}]),
    ],
)
def test_a_guide_with_a_bad_step_is_refused(tmp_path: Path, key: str, value: object) -> None:
    file = tmp_path / "guide.json"
    file.write_text(json.dumps({"steps": [STEP | {key: value}]}), encoding="utf-8")
    with pytest.raises(BadGuide, match=key):
        Guide.read(file)

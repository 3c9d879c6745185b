"""Files and quoted messages of a mention: which are read, from where, how much of them, and what the asker is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest
from aiohttp import web

from discord_sandbox import Person
from signoff.bot import attachments
from signoff.bot.attachments import INTERRUPTED, FileLimits, announced, downloaded, is_discords, recognized, unread
from signoff.bot.connection import point_at
from signoff.turns.model import Quoted, TurnFile
from tests.rigs.bot import Rig

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


def limit(rig: Rig, **limits: Any) -> None:
    """Set the operator's limits of a running bot."""
    rig.bot.mentions._files = FileLimits(**limits)


async def files_of(rig: Rig, person: Person, files: dict[str, bytes], text: str = "look") -> tuple[TurnFile, ...]:
    await person.say("general", f"{rig.sandbox.mention} {text}", files=files)
    await rig.hears()
    return rig.driver.only.files


async def notices(person: Person, thread: str) -> list[str]:
    return [m.text for m in await person.messages(thread) if m.author == "Signoff"]


async def test_text_files_and_images_are_read(rig: Rig, max_: Person) -> None:
    text, image = await files_of(rig, max_, {"notes.txt": "Grüße".encode(), "cat.png": PNG})
    assert text == TurnFile("notes.txt", 7, "text/plain", "Grüße".encode())
    assert image == TurnFile("cat.png", len(PNG), "image/png", PNG)
    assert rig.driver.only.text == "look"
    assert (await rig.sandbox.channel(rig.driver.only.message)).name == "look"
    assert await notices(max_, rig.driver.only.message) == []


async def test_the_turn_names_its_files_before_they_are_downloaded(rig: Rig, max_: Person) -> None:
    """A restart during the download loses only the contents, and the model is told."""
    stored: list[tuple[TurnFile, ...]] = []
    submit = rig.driver.submit

    async def noted(turn: Any) -> Any:
        stored.append(turn.files)
        return await submit(turn)

    rig.driver.submit = noted  # type: ignore[method-assign]
    await files_of(rig, max_, {"notes.txt": b"abc"})
    assert stored == [(TurnFile("notes.txt", 3, problem=INTERRUPTED),)]


async def test_a_mention_with_nothing_but_a_file_is_a_request(rig: Rig, max_: Person) -> None:
    await files_of(rig, max_, {"notes.txt": b"abc"}, text="")
    assert rig.driver.only.text == ""
    assert (await rig.sandbox.channel(rig.driver.only.message)).name == "A request"


async def test_other_files_are_named_with_the_reason_to_model_and_asker(rig: Rig, max_: Person) -> None:
    limit(rig, text_bytes=10, image_bytes=50, per_message=2)
    sent = {
        "film.mp4": b"12",
        "fake.png": b"no image",
        "tool.bin": b"\x00\x01",
        "large.log": b"x" * 11,
        "large.png": PNG,
        "third.txt": b"3",
    }
    files = await files_of(rig, max_, sent)
    assert [file.data for file in files] == [b""] * 6
    reasons = {file.name: file.problem for file in files}
    assert "only text files and images" in reasons["film.mp4"]
    assert "only text files and images" in reasons["fake.png"]
    assert "only text files and images" in reasons["tool.bin"]
    assert reasons["large.log"] == "it has 11 bytes, and the limit for text files is 10"
    assert reasons["large.png"] == "it has 108 bytes, and the limit for images is 50"
    assert reasons["third.txt"] == "I read at most 2 files of a message"
    (told,) = await notices(max_, rig.driver.only.message)
    assert told.count("\n") == 0
    assert all(name in told.replace("\\", "") for name in sent)


@pytest.mark.parametrize(
    ("kinds", "reason"), [((), "turned attachments off"), (("text",), "turned images off"), (("image",), "")]
)
async def test_the_operator_chooses_the_kinds(rig: Rig, max_: Person, kinds: tuple[str, ...], reason: str) -> None:
    limit(rig, kinds=frozenset(kinds))
    (file,) = await files_of(rig, max_, {"cat.png": PNG})
    assert reason in file.problem
    assert bool(file.problem) == bool(reason)
    assert bool(file.data) == (not reason)


async def test_a_download_that_fails_is_said_and_the_run_goes_on(rig: Rig, max_: Person) -> None:
    original = attachments._download

    async def failing(url: str, most: int) -> bytes | None:
        return await original(url.replace("/attachments/", "/attachments/9"), most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attachments, "_download", failing)
        await files_of(rig, max_, {"notes.txt": b"abc"})
    assert rig.driver.only.files[0].problem == "the download failed"
    assert "notes" in (await notices(max_, rig.driver.only.message))[0]


# Where from, and how much


class Elsewhere:
    """A web server that counts its requests; `/redirect` leads to `/file`, which is long; `/slow` never ends."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sent = 0
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if request.path == "/redirect":
            raise web.HTTPFound("/file")
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while self.sent < 50_000_000:
                await response.write(b"x" * 100_000)
                self.sent += 100_000
                if request.path == "/slow":
                    await asyncio.Event().wait()
        except ConnectionError:
            pass
        return response


@pytest.fixture
async def elsewhere() -> AsyncIterator[Elsewhere]:
    other = Elsewhere()
    app = web.Application()
    app.router.add_get("/{path:.*}", other.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    other.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield other
    await runner.cleanup()


def attached(url: str, size: int = 3, name: str = "notes.txt") -> discord.Attachment:
    data = {"id": "1", "filename": name, "size": size, "url": url, "proxy_url": url}
    return discord.Attachment(data=cast(Any, data), state=cast(Any, SimpleNamespace(http=None)))


async def read(attachment: discord.Attachment, **limits: Any) -> TurnFile:
    found = FileLimits(**limits)
    (file,) = await downloaded([attachment], announced([attachment], found), found)
    return file


async def test_nothing_is_fetched_from_another_host(pointed: None, elsewhere: Elsewhere) -> None:
    file = await read(attached(f"{elsewhere.url}/file"))
    assert file.problem == "it is not stored at Discord"
    assert elsewhere.asked == []


async def test_a_redirect_is_not_followed(pointed: None, elsewhere: Elsewhere) -> None:
    point_at(f"{elsewhere.url}/api/v10", None)
    file = await read(attached(f"{elsewhere.url}/redirect"))
    assert file.problem == "the download failed"
    assert elsewhere.asked == ["/redirect"]


async def test_a_file_that_is_larger_than_discord_said_is_cut_off(pointed: None, elsewhere: Elsewhere) -> None:
    point_at(f"{elsewhere.url}/api/v10", None)
    file = await read(attached(f"{elsewhere.url}/file"), text_bytes=1000)
    assert "the limit for text files is 1,000" in file.problem
    assert file.data == b""
    await asyncio.sleep(0.05)
    assert elsewhere.sent < 50_000_000


async def test_a_slow_download_ends(pointed: None, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "SECONDS", 0.05)
    point_at(f"{elsewhere.url}/api/v10", None)
    file = await read(attached(f"{elsewhere.url}/slow"), text_bytes=10**12)
    assert file.problem == "the download failed"
    assert elsewhere.sent == 100_000


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://cdn.discordapp.com/attachments/1/2/a.txt?ex=1&is=2", True),
        ("https://media.discordapp.net/attachments/1/2/a.txt", True),
        ("http://cdn.discordapp.com/attachments/1/2/a.txt", False),
        ("https://cdn.discordapp.com:444/attachments/1/2/a.txt", False),
        ("https://me@cdn.discordapp.com/attachments/1/2/a.txt", False),
        ("https://cdn.discordapp.com.evil.example/a.txt", False),
        ("http://169.254.169.254/latest/meta-data", False),
        ("file:///etc/passwd", False),
        ("nonsense", False),
    ],
)
def test_only_discords_own_hosts_count(url: str, allowed: bool) -> None:
    assert is_discords(url) == allowed


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", None),
        (b"\xef\xbb\xbfhello\r\n", "text/plain"),
        (b"", "text/plain"),
        (b"a\x1b[31mb", None),
        (b"\xff\xfe\x00", None),
    ],
)
def test_contents_decide_what_a_file_is(data: bytes, kind: str | None) -> None:
    assert recognized(data) == kind


def test_nothing_is_said_if_all_files_were_read() -> None:
    assert unread([TurnFile("a", 1, "text/plain", b"x")]) == ""


# Quoted messages


async def test_the_message_that_a_mention_replies_to_comes_along(rig: Rig, max_: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    original = await olga.say("general", "Lunch is at noon.")
    await max_.say("general", f"{rig.sandbox.mention} sum it up", reply_to=original)
    await rig.hears()
    assert rig.driver.only.quoted == Quoted("Olga", "Lunch is at noon.")
    assert rig.driver.only.text == "sum it up"
    assert (await rig.sandbox.channel(rig.driver.only.message)).name == "sum it up"


async def test_a_long_quoted_message_is_cut_and_a_limit_of_zero_leaves_it_out(rig: Rig, max_: Person) -> None:
    original = await max_.say("general", "word " * 100)
    for characters, expected in ((10, "word word … (shortened)"), (0, None)):
        limit(rig, quoted_characters=characters)
        said = await max_.say("general", f"{rig.sandbox.mention} sum it up", reply_to=original)
        await rig.hears(len(rig.driver.turns) + 1)
        turn = next(turn for turn in rig.driver.turns.values() if turn.message == str(said.id))
        assert (turn.quoted.text if turn.quoted else None) == expected


async def test_a_reply_without_words_is_a_request_about_the_quoted_message(rig: Rig, max_: Person) -> None:
    original = await max_.say("general", "Lunch is at noon.")
    await max_.say("general", rig.sandbox.mention, reply_to=original)
    await rig.hears()
    assert rig.driver.only.text == ""


async def test_the_bots_own_message_in_the_same_thread_is_known_already(rig: Rig, max_: Person) -> None:
    thread = await max_.open_thread("general", "work", await max_.say("general", "hi"))
    turn = await rig.turn(max_, str(thread.id))
    await rig.front_end.reply(turn, "three")
    mine = await max_.wait_for_message(thread, lambda m: m.text == "three")
    await max_.say(thread, f"{rig.sandbox.mention} and twice that?", reply_to=mine)
    await rig.hears()
    assert rig.driver.only.quoted is None


async def test_the_bots_own_message_elsewhere_comes_along(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.front_end.reply(turn, "three")
    mine = await max_.wait_for_message("general", lambda m: m.text == "three")
    await max_.say("general", f"{rig.sandbox.mention} and twice that?", reply_to=mine)
    await rig.hears()
    assert rig.driver.only.quoted == Quoted("Signoff", "three")


async def test_an_original_that_is_not_in_the_event_is_fetched(rig: Rig, max_: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    original = await olga.say("general", f"{rig.sandbox.mention}")
    await max_.wait_for_message("general", lambda m: "say what to do" in m.text)
    said = await max_.say("general", "not for you", reply_to=original)
    event = dict(said.raw) | {"content": f"{rig.sandbox.mention} sum it up", "guild_id": rig.server}
    event |= {"mentions": [{**(await bot_user(rig))}], "id": str(said.id + 1)}
    event.pop("referenced_message")
    await rig.sandbox.inject("MESSAGE_CREATE", event, int(rig.server))
    await rig.hears()
    assert rig.driver.only.quoted == Quoted("Olga", rig.sandbox.mention)
    assert len(await rig.sandbox.rest_calls("GET", f"/messages/{original.id}$")) == 1


async def bot_user(rig: Rig) -> dict[str, Any]:
    world = await rig.sandbox.world()
    return next(user for user in world["users"] if user["id"] == str(rig.sandbox.bot_id))

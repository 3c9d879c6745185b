"""Mentions that were sent while the bot was offline are found when it is back, each once, and none that it refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import discord
import pytest

from discord_sandbox import Person
from signoff.approvals.model import Actor, Place
from signoff.bot import catch_up, refusals, sending
from signoff.bot.access import Access
from signoff.store import Store
from signoff.turns.listening import ATTEMPTS, Listening
from signoff.turns.model import Admission, Turn
from tests.rigs.bot import Rig, until
from tests.rigs.bot_fakes import WallClock

HOUR = 3600.0


@pytest.fixture
async def away(idle: Rig, store: Store) -> Rig:
    """A bot that listened until a moment ago and is not running now."""
    idle.listening = Listening(store, WallClock())
    await store.run(lambda tx: tx.set_listened_until(time.time()))
    return idle


def restarted(rig: Rig, store: Store) -> Rig:
    """The next process: it knows only what the store knows."""
    rig.listening = Listening(store, WallClock())
    return rig


async def caught_up(rig: Rig) -> None:
    await until(lambda: rig.bot.catch_up is not None and rig.bot.catch_up.done)


def heard(rig: Rig) -> list[str]:
    return [turn.text for turn in rig.driver.turns.values()]


async def test_mentions_in_channels_threads_and_direct_messages_are_heard_in_order(
    away: Rig, ada: Person, max_: Person, store: Store
) -> None:
    direct = await max_.dm(away.sandbox.bot_id)
    place = Place("dm", str(direct.id), str(direct.id))
    away.access = Access(dm_users=frozenset({str(max_.id)}))
    known = Turn(f"{direct.id}-1", place, "1", Actor(str(max_.id), "Max", "dm"), "earlier", 0.0)
    await store.run(lambda tx: tx.insert_turn(known))
    first = await max_.say("general", f"{away.sandbox.mention} one")
    thread = await ada.open_thread("general", "talk", await ada.say("general", "not for the bot"))
    await ada.say(thread, f"{away.sandbox.mention} two")
    await max_.say(direct, "three")
    await max_.say("general", "nothing for the bot")
    async with away.running():
        await caught_up(away)
    assert heard(away) == ["one", "two", "three"]
    one, two, three = away.driver.turns.values()
    assert one.asked is not None
    assert abs(one.asked - time.time()) < 60
    assert one.id.endswith(f"-{first.id}")
    assert two.place.channel == str(thread.id)
    assert three.place == place


async def test_the_asker_of_a_late_mention_has_their_roles(away: Rig, ada: Person, max_: Person) -> None:
    role = str(await away.sandbox.role_id("Admins"))
    away.access = Access(roles=frozenset({role}))
    await ada.say("general", f"{away.sandbox.mention} from an admin")
    await max_.say("general", f"{away.sandbox.mention} from a member")
    async with away.running():
        await caught_up(away)
        await max_.wait_for_message("general", lambda m: "certain roles" in m.text)
    assert heard(away) == ["from an admin"]
    (turn,) = away.driver.turns.values()
    assert turn.asker.manages_server
    assert role in turn.asker.roles


async def refused(rig: Rig, person: Person) -> None:
    rig.driver.admission = Admission("refused", "Too many mentions are queued.")
    async with rig.running():
        await caught_up(rig)
        for number in range(3):
            await person.say("general", f"{rig.sandbox.mention} refused {number}")
        await person.wait_for_message("general", lambda m: "Too many" in m.text)
        listening = rig.listening
        assert listening is not None
        await until(lambda: len(listening._heard) == 3 and len(listening._unnoted) == 2)  # pyright: ignore[reportPrivateUsage]


async def greeted(rig: Rig, person: Person) -> None:
    async with rig.running():
        await caught_up(rig)
        await person.say("general", rig.sandbox.mention)
        await person.wait_for_message("general", lambda m: "say what to do" in m.text)


@pytest.mark.parametrize("before", [refused, greeted])
async def test_a_mention_that_was_heard_and_became_no_turn_is_not_answered_later(
    away: Rig, max_: Person, store: Store, before: Callable[[Rig, Person], Awaitable[None]]
) -> None:
    await before(away, max_)
    away.driver.admission = Admission("started")
    said = len(await max_.messages("general"))
    async with restarted(away, store).running():
        await caught_up(away)
    assert heard(away) == []
    assert len(await max_.messages("general")) == said


async def test_a_refusal_is_noted_before_it_is_told(away: Rig, max_: Person, store: Store) -> None:
    """Even a process that is killed right after the refusal leaves the note."""
    async with away.running():
        await caught_up(away)
        said = await max_.say("general", away.sandbox.mention)
        await max_.wait_for_message("general", lambda m: "say what to do" in m.text)
        channel = (await away.place()).channel
        assert await store.run(lambda tx: tx.was_heard(f"{channel}-{said.id}"))


async def test_a_mention_that_is_a_turn_already_is_not_heard_again(away: Rig, max_: Person, store: Store) -> None:
    said = await max_.say("general", f"{away.sandbox.mention} once")
    place = await away.place()
    turn = Turn(f"{place.channel}-{said.id}", place, str(said.id), await away.asker(), "once", 0.0)
    await store.run(lambda tx: tx.insert_turn(turn))
    async with away.running():
        await caught_up(away)
    assert heard(away) == []


@pytest.mark.parametrize(("limit", "count"), [(HOUR, 1), (0.001, 0), (0.0, 0)], ids=["new", "too old", "off"])
async def test_only_mentions_within_the_limit_are_answered(away: Rig, max_: Person, limit: float, count: int) -> None:
    await max_.say("general", f"{away.sandbox.mention} hello")
    away.catch_up = limit
    await asyncio.sleep(0.05)
    async with away.running():
        await caught_up(away)
    assert len(heard(away)) == count


async def test_the_first_start_looks_for_nothing(idle: Rig, max_: Person, store: Store) -> None:
    idle.listening = Listening(store, WallClock())
    await max_.say("general", f"{idle.sandbox.mention} before it was ever there")
    async with idle.running():
        await caught_up(idle)
    assert heard(idle) == []
    assert await store.run(lambda tx: tx.listened_until())


async def test_somebody_who_left_the_server_is_not_answered(away: Rig) -> None:
    gus = await away.sandbox.add_person("Gus")
    await away.sandbox.join(gus)
    await gus.say("general", f"{away.sandbox.mention} and away")
    await away.sandbox.leave(gus)
    async with away.running():
        await caught_up(away)
    assert heard(away) == []


async def test_a_channel_that_cannot_be_read_now_is_read_later_and_until_then_nothing_is_noted(
    away: Rig, max_: Person, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "DELAYS", (1.0,))
    before = await store.run(lambda tx: tx.listened_until())
    await max_.say("general", f"{away.sandbox.mention} hello")
    channel = (await away.place()).channel
    path = f"/channels/{channel}/messages"
    await away.sandbox.fault("GET", path, status=503)
    async with away.running():
        while not await away.sandbox.rest_calls("GET", path):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert await store.run(lambda tx: tx.listened_until()) == before
        await caught_up(away)
    assert heard(away) == ["hello"]
    assert await store.run(lambda tx: tx.listened_until()) != before


@pytest.mark.long
async def test_after_a_session_that_cannot_be_resumed_nothing_is_missed_or_heard_twice(away: Rig, max_: Person) -> None:
    async with away.running():
        await caught_up(away)
        await max_.say("general", f"{away.sandbox.mention} one")
        await away.hears(1)
        head = await away.sandbox.head()
        await away.sandbox.drop_sockets(resumable=False)
        await max_.say("general", f"{away.sandbox.mention} two")
        await away.sandbox.wait_for("READY", after=head, kind="gateway", timeout=60)
        await away.hears(2)
        await max_.say("general", f"{away.sandbox.mention} three")
        await away.hears(3)
    assert heard(away) == ["one", "two", "three"]


async def test_a_channel_that_may_not_be_read_is_left_out_and_the_others_are_read(away: Rig, max_: Person) -> None:
    await max_.say("general", f"{away.sandbox.mention} unreadable")
    thread = await max_.open_thread("general", "talk", await max_.say("general", "hi"))
    await max_.say(thread, f"{away.sandbox.mention} readable")
    await away.sandbox.fault("GET", f"/channels/{(await away.place()).channel}/messages", status=403, code=50001)
    async with away.running():
        await caught_up(away)
    assert heard(away) == ["readable"]


@pytest.mark.long
async def test_a_new_session_is_not_said_to_listen_before_it_has_looked(
    away: Rig, max_: Person, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a process that is killed while it looks would lose what it has not found yet."""
    monkeypatch.setattr(catch_up, "BEAT", 0.01)
    monkeypatch.setattr(catch_up, "DELAYS", (0.3,))
    async with away.running():
        await caught_up(away)
        await max_.say("general", "for nobody")
        path = f"/channels/{(await away.place()).channel}/messages"
        await away.sandbox.fault("GET", path, status=503)
        looking = away.bot.catch_up
        assert looking is not None
        await away.sandbox.drop_sockets(resumable=False)
        await until(lambda: not looking.done)
        before = await store.run(lambda tx: tx.listened_until())
        while not looking.done:
            assert await store.run(lambda tx: tx.listened_until()) == before
            await asyncio.sleep(0.01)
        await until(lambda: looking.done)


@pytest.mark.long
async def test_between_two_sessions_the_bot_is_not_said_to_listen(
    away: Rig, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket of the new session is open before the bot looks for what it missed."""
    monkeypatch.setattr(catch_up, "BEAT", 0.01)
    async with away.running():
        await caught_up(away)
        ready, go_on = asyncio.Event(), asyncio.Event()

        async def slow_look() -> None:
            ready.set()
            await go_on.wait()

        monkeypatch.setattr(away.bot.missing_approvers, "look", slow_look)
        await away.sandbox.drop_sockets(resumable=False)
        await asyncio.wait_for(ready.wait(), 60)
        assert catch_up.is_connected(away.client)
        before = await store.run(lambda tx: tx.listened_until())
        await asyncio.sleep(0.1)
        assert await store.run(lambda tx: tx.listened_until()) == before
        go_on.set()
        while await store.run(lambda tx: tx.listened_until()) == before:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_resumed_session_listens_on(away: Rig, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "BEAT", 0.01)
    async with away.running():
        await caught_up(away)
        head = await away.sandbox.head()
        await away.sandbox.drop_sockets(resumable=True)
        await away.sandbox.wait_for("RESUMED", after=head, kind="gateway", timeout=60)
        resumed = time.time()
        async with asyncio.timeout(60):
            while (await store.run(lambda tx: tx.listened_until()) or 0.0) <= resumed:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_look_that_a_new_session_overtakes_does_not_end_the_other(
    away: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with away.running():
        await caught_up(away)
        looking = away.bot.catch_up
        assert looking is not None
        looks, go_on = list[bool](), asyncio.Event()

        async def slow_find() -> None:
            looks.append(looking.done)
            await go_on.wait()
            go_on.clear()

        monkeypatch.setattr(looking, "_find", slow_find)
        both = [asyncio.create_task(looking.run()) for _ in range(2)]
        await until(lambda: looks)
        go_on.set()
        await until(lambda: len(looks) == 2)
        assert not looking.done
        go_on.set()
        await asyncio.gather(*both)
        assert looking.done


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mentions that were put off are looked for at once."""
    monkeypatch.setattr(catch_up, "BEAT", 0.01)
    monkeypatch.setattr(catch_up, "AGAIN", 0.0)
    monkeypatch.setattr(sending, "DELAYS", ())


@pytest.mark.usefixtures("soon")
async def test_a_mention_that_the_brake_held_back_is_heard_when_the_brake_lets_go(
    away: Rig, max_: Person, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with away.running():
        await caught_up(away)
        listening = away.listening
        assert listening is not None
        with monkeypatch.context() as braking:
            braking.setattr(refusals, "FEWEST", -1)
            await max_.say("general", f"{away.sandbox.mention} hello")
            await until(lambda: listening.has_put_off)
            before = await store.run(lambda tx: tx.listened_until())
            await asyncio.sleep(0.1)
            assert await store.run(lambda tx: tx.listened_until()) == before, "a killed process must find it, too"
            assert heard(away) == []
        await away.hears()
        assert heard(away) == ["hello"]
        async with asyncio.timeout(60):
            while await store.run(lambda tx: tx.listened_until()) == before:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("failures", "count"), [(2, 1), (ATTEMPTS + 1, 0)], ids=["soon over", "given up"])
async def test_a_mention_whose_place_cannot_be_looked_up_is_heard_later(
    away: Rig, max_: Person, monkeypatch: pytest.MonkeyPatch, failures: int, count: int
) -> None:
    async with away.running():
        await caught_up(away)
        mentions, tries = away.bot.mentions, list[int]()
        look_up = mentions._spot  # pyright: ignore[reportPrivateUsage]

        async def failing(message: discord.Message) -> object:
            tries.append(message.id)
            if len(tries) <= failures:
                raise OSError("unreachable")
            return await look_up(message)

        monkeypatch.setattr(mentions, "_spot", failing)
        await max_.say("general", f"{away.sandbox.mention} hello")
        await until(lambda: len(tries) == failures + count)
        if count:
            await away.hears()
        await asyncio.sleep(0.1)
        assert len(tries) == failures + count
        assert heard(away) == ["hello"] * count
        assert away.listening is not None
        assert not away.listening.has_put_off

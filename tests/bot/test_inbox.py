"""The inbox shows a person what they may decide, in all servers, and a press there is judged in the card's server."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from discord_sandbox import Person
from signoff.approvals.model import DIRECT, Actor, Batch, Place
from signoff.bot import card_view
from signoff.bot import inbox as inbox_module
from signoff.bot.inbox import Inbox
from signoff.bot.inbox_view import Found, InboxView
from signoff.bot.responses import Visit
from signoff.cards import wording
from signoff.cards.actions import Offers
from tests.rigs.bot import Rig
from tests.rigs.bot_fakes import make_batch, make_request


async def elsewhere(rig: Rig, *approvers: str) -> Batch:
    """Open a card in another server, which the bot has joined."""
    await rig.sandbox.join(await rig.sandbox.person("Signoff"), "Other Place")
    server = str(await rig.sandbox.guild_id("Other Place"))
    lobby = str((await rig.sandbox.channel("lobby")).id)
    otto = await rig.sandbox.person("Otto")
    asker = Actor(str(otto.id), "Otto", server)
    batch = make_batch(Place(server, lobby, lobby), asker, make_request({"path": "b"}, approvers=approvers))
    return rig.desk.open(replace(batch, card_message="77"))


async def here(rig: Rig, *approvers: str) -> Batch:
    request = make_request({"path": "a"}, approvers=approvers)
    return rig.desk.open(make_batch(await rig.place(), await rig.asker(), request, card_message="66"))


async def person_of(rig: Rig, name: str) -> Actor:
    found = await rig.sandbox.person(name)
    assert rig.desk.directory is not None
    actor = await rig.desk.directory.person(rig.server, str(found.id))
    assert actor is not None
    return actor


@pytest.fixture
def inbox(rig: Rig) -> Inbox:
    return rig.bot.clicks.inbox


async def test_it_has_the_cards_of_all_servers_and_only_those_that_the_person_may_decide(
    rig: Rig, inbox: Inbox, max_: Person
) -> None:
    await rig.sandbox.join(max_, "Other Place")
    far, _ = await elsewhere(rig, f"user:{max_.id}"), await elsewhere(rig, "manage_server")
    near, _ = await here(rig, f"user:{max_.id}"), await here(rig, "manage_server")
    found = await inbox.of(await person_of(rig, "Max"))
    assert {batch.id for batch in found.batches} == {far.id, near.id}
    assert found.complete


async def test_a_person_who_is_not_in_the_other_server_sees_nothing_of_it(rig: Rig, inbox: Inbox, max_: Person) -> None:
    await elsewhere(rig, f"user:{max_.id}", "manage_server")
    assert await inbox.of(await person_of(rig, "Ada")) == Found([])
    assert await inbox.of(await person_of(rig, "Max")) == Found([])


async def test_rights_here_count_for_nothing_there(rig: Rig, inbox: Inbox, ada: Person) -> None:
    await rig.sandbox.join(ada, "Other Place")
    await elsewhere(rig, "manage_server")
    ada_here = await person_of(rig, "Ada")
    assert ada_here.manages_server
    assert await inbox.of(ada_here) == Found([])


async def test_a_server_that_cannot_be_asked_is_reported(rig: Rig, inbox: Inbox, max_: Person) -> None:
    await rig.sandbox.join(max_, "Other Place")
    await elsewhere(rig, f"user:{max_.id}")
    near = await here(rig, f"user:{max_.id}")
    actor = await person_of(rig, "Max")
    await rig.sandbox.fault("GET", "/members/", status=403, code=50001, times=1)
    found = await inbox.of(actor)
    assert ([batch.id for batch in found.batches], found.complete) == ([near.id], False)
    view = InboxView(found, 0.0, Offers())
    assert "Some servers could not be asked who you are there" in str(view.to_components())


async def test_in_a_direct_conversation_the_cards_of_the_servers_are_listed(
    rig: Rig, inbox: Inbox, max_: Person
) -> None:
    near = await here(rig, f"user:{max_.id}")
    found = await inbox.of(Actor(str(max_.id), "Max", DIRECT))
    assert [batch.id for batch in found.batches] == [near.id]


async def test_a_press_far_from_the_card_is_judged_in_the_cards_server(rig: Rig, inbox: Inbox, max_: Person) -> None:
    await rig.sandbox.join(max_, "Other Place")
    far = await elsewhere(rig, f"user:{max_.id}")
    pressed = Visit(await person_of(rig, "Max"), (await rig.place()).channel, None, private=True)
    visit = await inbox.at_home(pressed, far.requests[0].id)
    assert isinstance(visit, Visit)
    assert (visit.actor.server, visit.channel, visit.away) == (far.place.server, far.place.channel, True)
    assert not visit.actor.manages_server
    public = replace(pressed, private=False, card="5")
    assert await inbox.at_home(public, far.id) == public


async def test_a_press_in_an_approvals_channel_of_another_server_is_judged_in_the_cards_server(
    rig: Rig, inbox: Inbox, max_: Person
) -> None:
    await rig.sandbox.join(max_, "Other Place")
    channel = (await rig.place()).channel
    far, near = await elsewhere(rig, f"user:{max_.id}"), await here(rig, f"user:{max_.id}")
    far = rig.desk.open(replace(far, id="f" * 16, notify=(f"channel:{channel}",)))
    near = rig.desk.open(replace(near, id="e" * 16, notify=("channel:1",)))
    pressed = Visit(await person_of(rig, "Max"), channel, None, private=True)
    visit = await inbox.at_home(pressed, far.id)
    assert isinstance(visit, Visit)
    assert (visit.actor.server, visit.channel, visit.away) == (far.place.server, far.place.channel, True)
    copy_here = replace(pressed, channel="1")
    assert await inbox.at_home(copy_here, near.id) == copy_here


async def test_a_press_of_somebody_who_is_not_there_decides_nothing(rig: Rig, inbox: Inbox) -> None:
    far = await elsewhere(rig, "manage_server")
    pressed = Visit(await person_of(rig, "Ada"), "1", None, private=True)
    assert await inbox.at_home(pressed, far.id) == wording.UNKNOWN_REQUEST
    assert await inbox.at_home(pressed, "0" * 16) == pressed
    await rig.sandbox.fault("GET", "/members/", status=403, code=50001, times=1)
    assert await inbox.at_home(pressed, far.id) == wording.SLOW


async def test_a_large_card_is_opened_in_a_thread(
    rig: Rig, inbox: Inbox, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    fit = card_view.fit_card

    def noting(*args: Any, **more: Any) -> Any:
        threads.append(threading.current_thread().name)
        return fit(*args, **more)

    shown: list[Any] = []

    async def redrawn(interaction: Any, view: Any, **more: Any) -> None:
        shown.append(view)

    monkeypatch.setattr(card_view, "fit_card", noting)
    monkeypatch.setattr(inbox_module, "redraw", redrawn)
    request = make_request({"text": "word " * 20_000}, approvers=("manage_server",))
    batch = make_batch(await rig.place(), await rig.asker(), request, card_message="6")
    visit = Visit(await person_of(rig, "Ada"), batch.place.channel, None, private=True)
    await inbox.show_card(cast("Any", SimpleNamespace(message=None, extras={})), visit, batch, 0)
    assert len(shown) == 1
    assert threads == ["signoff-large"]

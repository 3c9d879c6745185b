"""Decisions call by call and by several people, on a real card: votes, four eyes, pages, and outdated cards."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from discord_sandbox import Person
from signoff.approvals.model import Choice, RequestKind, RequestState
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_answers import drawn, old_button, private, states
from tests.rigs.bot_fakes import make_batch, make_request


async def test_each_of_ten_calls_is_decided_by_itself(rig: Rig, ada: Person) -> None:
    requests = [make_request({"n": str(n)}) for n in range(10)]
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    for number, request in enumerate(requests):
        if number and number % 4 == 0:
            card = drawn(await ada.click(card, "▶"))
        verb = "reject" if number % 3 == 0 else "accept"
        card = drawn(await ada.click(card, f"signoff:{verb}:{request.id}:0:{number // 4}"))
        assert f"<@{ada.id}>" in card.text
    assert states(rig, batch.id) == [RequestState.REJECTED if n % 3 == 0 else RequestState.APPROVED for n in range(10)]
    assert "DECIDED" in card.text
    assert [b.label for b in card.buttons] == ["◀", "Page 3 of 3"]
    first = drawn(await ada.click(drawn(await ada.click(card, "◀")), "◀"))
    assert "REJECTED by" in first.text
    await until(lambda: rig.desk.final == [batch.id])


async def test_accept_covers_the_page_and_reject_everything(rig: Rig, ada: Person) -> None:
    requests = [make_request({"n": str(n)}) for n in range(6)]
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    second = drawn(await ada.click(card, "▶"))
    assert "Calls 5 to 6 of 6" in second.text
    after = drawn(await ada.click(second, "Accept these 2"))
    assert "Page 2 of 2" in [b.label for b in after.buttons], "it stays on the page"
    assert states(rig, batch.id) == [RequestState.PENDING] * 4 + [RequestState.APPROVED] * 2
    done = drawn(await ada.click(after, "Reject all"))
    assert states(rig, batch.id) == [RequestState.REJECTED] * 4 + [RequestState.APPROVED] * 2
    assert [b.label for b in done.buttons] == ["◀", "Page 2 of 2"]


async def test_calls_that_may_have_run_are_decided_on_every_page(rig: Rig, ada: Person) -> None:
    requests = [make_request({"n": str(n)}, kind=RequestKind.MAY_HAVE_RUN) for n in range(11)]
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    last = drawn(await ada.click(drawn(await ada.click(card, "▶")), "▶"))
    assert [b.label for b in last.buttons][:3] == ["It ran", "Run it again", "Skip"]
    await ada.click(last, f"signoff:skip:{requests[10].id}:0:2")
    ended = rig.desk.batches[batch.id].requests[10].settlement
    assert ended is not None
    assert ended.choice is Choice.SKIP


async def test_two_people_deciding_two_calls_at_once_are_both_on_the_card(rig: Rig, ada: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    either = ("manage_server", f"user:{olga.id}")
    requests = [make_request({"n": str(n)}, approvers=either) for n in range(4)]
    _, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    presses = [
        person.click(card, f"signoff:accept:{request.id}:0:0", forged=True)
        for request, person in zip(requests, [ada, olga, ada, olga], strict=True)
    ]
    await asyncio.gather(*presses)
    final = await ada.see(card)
    assert final is not None
    assert final.text.count("APPROVED by") + final.text.count("DECIDED") >= 2
    assert not final.buttons


async def test_a_vote_is_on_the_card_and_the_second_one_settles(rig: Rig, ada: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    request = make_request({"path": "a"}, approvers=("manage_server", f"user:{olga.id}"), quorum=2)
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    assert "Accepted by 0 of 2" in card.text
    assert "2 people have to accept" in card.text
    voted = drawn(await ada.click(card, "Accept"))
    assert f"Accepted by 1 of 2: <@{ada.id}>" in voted.text
    assert private(await ada.click(voted, "Accept")) == "Your accept is counted: 1 of 2."
    done = drawn(await olga.click(voted, "Accept"))
    assert f"APPROVED by <@{ada.id}> and <@{olga.id}>" in done.text
    assert states(rig, batch.id) == [RequestState.APPROVED]


async def test_a_vote_whose_role_is_lost_before_the_completing_click_does_not_count(rig: Rig, ada: Person) -> None:
    """Beyond 6: every vote is checked again at the click that completes the quorum."""
    olga, role = await rig.sandbox.person("Olga"), await rig.sandbox.role_id("Approvers")
    request = make_request({"path": "a"}, approvers=("manage_server", f"role:{role}"), quorum=2)
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    await olga.click(card, "Accept")
    await rig.sandbox.revoke(olga, role)
    after = drawn(await ada.click(card, "Accept"))
    assert f"Accepted by 1 of 2: <@{ada.id}>" in after.text
    assert states(rig, batch.id) == [RequestState.PENDING]
    assert ("vote_void", request.id) in rig.desk.memory.rows


async def test_a_voter_who_left_does_not_count(rig: Rig, ada: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    request = make_request({"path": "a"}, approvers=("manage_server", f"user:{olga.id}"), quorum=2)
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    await olga.click(card, "Accept")
    await rig.sandbox.leave(olga)
    await ada.click(card, "Accept")
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_nothing_is_settled_if_voters_cannot_be_looked_at(rig: Rig, ada: Person) -> None:
    """Attack 29."""
    olga = await rig.sandbox.person("Olga")
    request = make_request({"path": "a"}, approvers=("manage_server", f"user:{olga.id}"), quorum=2)
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    await olga.click(card, "Accept")
    await rig.sandbox.fault("GET", "/members/", status=403, code=50001, times=1)
    assert "Nothing was decided" in private(await ada.click(card, "Accept"))
    assert states(rig, batch.id) == [RequestState.PENDING]
    assert "APPROVED" in drawn(await ada.click(card, "Accept")).text


async def test_the_asker_may_not_decide_where_four_eyes_is_on(rig: Rig, ada: Person) -> None:
    """Attack 13."""
    asker = replace(await rig.asker("Ada"), manages_server=True)
    batch, card = await show(rig, make_batch(await rig.place(), asker, make_request({"path": "a"}, four_eyes=True)))
    assert "not by the asker" in card.text
    for label in ("Accept", "More…"):
        assert "the asker may not decide (four eyes)" in private(await ada.click(card, label))
    assert "the asker may not decide (four eyes)" in private(await old_button(ada, card, "Reject with a reason…"))
    assert states(rig, batch.id) == [RequestState.PENDING]


async def test_an_accept_of_what_was_edited_since_is_out_of_date(rig: Rig, ada: Person) -> None:
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker()))
    edited = replace(batch, revision=1)
    rig.desk.open(edited)
    assert "was edited after you opened this" in private(await ada.click(card, "Accept"))
    await rig.front_end.refresh_card(edited)
    stale = await ada.click(card, f"signoff:accept:{batch.id}:0:0", forged=True)
    assert "was edited after you opened this" in private(stale)
    assert states(rig, batch.id) == [RequestState.PENDING]
    fresh = await ada.see(card)
    assert fresh is not None
    assert "APPROVED" in drawn(await ada.click(fresh, "Accept")).text


async def test_a_button_that_just_left_the_card_still_gets_its_answer(rig: Rig, ada: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    either = ("manage_server", f"user:{olga.id}")
    requests = [make_request({"n": str(n)}, approvers=either) for n in range(6)]
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    await ada.click(card, f"signoff:accept:{requests[0].id}:0:0")
    late = await olga.click(card, f"signoff:reject:{requests[0].id}:0:0", forged=True)
    assert f"APPROVED by <@{ada.id}>" in private(late)
    await ada.click(card, f"signoff:page:{batch.id}:0:1", forged=True)
    # Olga still sees the first page, so she accepts only what it showed.
    seen = await olga.click(card, f"signoff:accept:{requests[1].id}:0:0", forged=True)
    assert f"APPROVED by <@{olga.id}>" in drawn(seen).text


@pytest.mark.parametrize("tail", ["", ":0", ":0:7", ":0:99", ":5:0"])
async def test_an_accept_that_no_card_offered_is_refused(rig: Rig, ada: Person, tail: str) -> None:
    """Attack 27: forged pages and revisions. Nobody can accept what they have not seen."""
    requests = [make_request({"n": str(n)}) for n in range(6)]
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    answer = await ada.click(card, f"signoff:accept:{batch.id}{tail}", forged=True)
    assert "Nothing was decided" in private(answer)
    assert states(rig, batch.id) == [RequestState.PENDING] * 6


async def test_a_forged_page_shows_one_that_is_there(rig: Rig, ada: Person) -> None:
    requests = [make_request({"n": str(n)}) for n in range(6)]
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    turned = await ada.click(card, f"signoff:page:{batch.id}:0:99", forged=True)
    assert "Page 2 of 2" in [b.label for b in drawn(turned).buttons]


async def test_anyone_may_turn_the_pages_but_not_of_another_place(rig: Rig, max_: Person) -> None:
    requests = [make_request({"n": str(n)}) for n in range(6)]
    elsewhere = rig.desk.open(make_batch(await rig.place("ops"), await rig.asker(), *requests))
    _, card = await show(
        rig, make_batch(await rig.place(), await rig.asker(), *(replace(r, id=f"{r.id}b") for r in requests))
    )
    assert "Calls 5 to 6" in drawn(await max_.click(card, "▶")).text
    forged = await max_.click(card, f"signoff:page:{elsewhere.id}:0:1", forged=True)
    assert private(forged).startswith("Unknown request")


async def test_files_follow_the_page(rig: Rig, ada: Person) -> None:
    requests = [make_request({"script": f"{n}\n" * 9000}) for n in range(5)]
    _, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests))
    assert len(card.files) == 4
    second = drawn(await ada.click(card, "▶"))
    assert [file["filename"] for file in second.files] == [f"request-{requests[4].id[:8]}.txt"] or len(
        second.files
    ) == 1

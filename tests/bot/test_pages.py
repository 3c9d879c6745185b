"""Cards with several calls: a row of buttons for each, pages of four, and every limit kept for any contents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Actor, ApprovalRequest, Batch, Choice, Edit, Remember, RequestKind, Vote
from signoff.bot.buttons import parse
from signoff.bot.card_view import render
from signoff.cards.actions import Offers
from signoff.cards.model import Verb
from tests.rigs.bot_fakes import make_batch, make_request, settled
from tests.rigs.drawn_cards import ADA, MAX, PLACE, buttons, components, texts, within_limits
from tests.rigs.hostile_text import ATTACKS

EVERYTHING = Offers(edit=True, grants=GrantTerms(Remember.ALWAYS))
DIFF = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new"

people = st.builds(Actor, st.integers(1, 10**18).map(str), st.text(max_size=40), st.just("1"))
hostile = st.sampled_from(ATTACKS) | st.text(max_size=80)
args = st.dictionaries(hostile, hostile | st.text(max_size=6000) | st.integers(), max_size=4)
specs = st.sampled_from(["manage_server", "asker", "role:7", "user:8", "role:7&manage_server", "user:8&role:7&role:9"])


@st.composite
def requests(draw: st.DrawFn) -> ApprovalRequest:
    edit = draw(st.none() | st.builds(Edit, args, st.just("0" * 64), people, st.just(1.0), st.lists(people).map(tuple)))
    return make_request(
        draw(args),
        tool=draw(st.text(min_size=1, max_size=90) | st.sampled_from(ATTACKS)),
        why=draw(st.text("a*_` ", max_size=500)),
        message=draw(st.text("b*_` ", max_size=500)),
        preview=draw(st.just("") | st.just(DIFF * 200) | hostile),
        quorum=draw(st.integers(1, 9)),
        four_eyes=draw(st.booleans()),
        approvers=tuple(draw(st.lists(specs, max_size=6))),
        missing=tuple(draw(st.lists(specs, max_size=3))),
        votes=tuple(Vote(by, 1.0) for by in draw(st.lists(people, max_size=8))),
        void=tuple(Vote(by, 1.0) for by in draw(st.lists(people, max_size=8))),
        edit=edit,
        kind=draw(st.sampled_from(list(RequestKind))),
    )


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    found = draw(st.lists(requests(), min_size=1, max_size=11))
    batch = make_batch(
        PLACE, MAX, *found, model_text=draw(st.just("") | st.text(max_size=4000)), revision=draw(st.integers(0, 99))
    )
    done = draw(st.sets(st.sampled_from(found).map(lambda r: r.id)))
    ended = settled(batch, draw(st.sampled_from([Choice.ACCEPT, Choice.REJECT, None])), ADA, draw(hostile))
    kept = (new if new.id in done else old for old, new in zip(batch.requests, ended.requests, strict=True))
    return replace(batch, requests=tuple(kept))


@pytest.mark.long
@pytest.mark.slow
@given(batches(), st.booleans(), st.integers(0, 3))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
async def test_every_page_of_every_card_fits(batch: Batch, can_attach: bool, page: int) -> None:
    rendered = render(batch, batch.opened, can_attach=can_attach, page=page, offers=EVERYTHING)
    within_limits(rendered)
    assert [call.request for call in rendered.card.calls] == [r.id for r in batch.page(min(page, batch.pages - 1))]
    ids = [button["custom_id"] for button in buttons(rendered)]
    assert len(ids) == len(set(ids))
    assert all(parse(found) for found in ids)
    targets = {action.target for action in rendered.card.buttons if action.verb is not Verb.PAGE}
    assert targets <= {batch.id, *(r.id for r in batch.pending)}


async def test_a_full_page_has_room_for_every_button_and_file() -> None:
    found = [make_request({"script": "x\n" * 9000}) for _ in range(12)]
    rendered = render(make_batch(PLACE, MAX, *found, model_text="w" * 3000), 0.0, page=1, offers=EVERYTHING)
    within_limits(rendered)
    assert len(list(components(rendered))) == 34
    assert len(rendered.card.files) == 4


async def test_each_call_is_followed_by_its_own_buttons() -> None:
    batch = make_batch(PLACE, MAX, make_request({"n": "one"}), make_request({"n": "two"}))
    order = [
        p["content"].split("\n")[0] if p["type"] == 10 else p["label"]
        for p in components(render(batch, 0.0))
        if p["type"] in (2, 10)
    ]
    assert order == [
        "-# Tool Approval Required",
        *["**1.** **`delete_file`**", "Accept", "Reject"],
        *["**2.** **`delete_file`**", "Accept", "Reject"],
        *[order[7], "Accept all", "Reject all", "More…"],
    ]


@pytest.mark.parametrize(("page", "labels"), [
    (0, ["Accept these 4", "Reject all", "More…", "Page 1 of 3", "▶"]),
    (1, ["Accept these 4", "Reject all", "More…", "◀", "▶"]),
    (2, ["Accept these 2", "Reject all", "More…", "◀", "Page 3 of 3"]),
])  # fmt: skip
async def test_pages_are_turned_and_accept_says_what_it_covers(page: int, labels: list[str]) -> None:
    batch = make_batch(PLACE, MAX, *(make_request({"n": n}) for n in range(10)))
    card = render(batch, 0.0, page=page).card
    assert [action.label for action in card.actions] == labels
    assert card.actions[0].page == page


async def test_a_settled_card_keeps_its_pages_and_nothing_to_decide() -> None:
    batch = settled(make_batch(PLACE, MAX, *(make_request({"n": n}) for n in range(5))), Choice.ACCEPT, ADA)
    rendered = render(batch, 0.0, page=1)
    assert [action.label for action in rendered.card.buttons] == ["◀", "Page 2 of 2"]


async def test_a_diff_is_shown_as_one_and_cannot_leave_its_block() -> None:
    request = make_request({"path": "a.txt"}, preview=DIFF + "\n+```\n# APPROVED\u202e")
    text = "\n".join(texts(render(make_batch(PLACE, MAX, request), 0.0)))
    assert "```diff\n--- a.txt" in text
    assert "\n+``\\u{0060}\n# APPROVED\\u{202E}\n```" in text


async def test_a_preview_that_is_no_diff_is_plain() -> None:
    """A short sentence needs no block. Other text has one, in which nothing takes effect."""

    def shown(preview: str) -> str:
        return "\n".join(texts(render(make_batch(PLACE, MAX, make_request(preview=preview)), 0.0)))

    assert "\n> 3 rows go" in shown("3 rows go")
    assert "**Tool's preview**\n```\n3 rows go\n2 rows stay\n```" in shown("3 rows go\n2 rows stay")
    assert "**Tool's preview**\n```\nAPPROVED by Ada\n```" in shown("APPROVED by Ada")


@pytest.mark.parametrize("calls", [1, 2, 4, 12])
async def test_no_row_has_more_buttons_than_fit_on_a_phone(calls: int) -> None:
    batch = make_batch(PLACE, MAX, *(make_request({"path": "a"}) for _ in range(calls)))
    rendered = render(batch, 0.0, page=batch.pages // 2, offers=EVERYTHING)
    rows = [[button["label"] for button in part["components"]] for part in components(rendered) if part["type"] == 1]
    assert all(row[:2] == ["Accept", "Reject"] for row in rows[:-1])
    assert all(len(row) <= 5 for row in rows)
    if calls == 1:
        assert rows == [["Accept", "Reject", "More…"]]

"""A card as Discord gets it: within every limit, and nothing in it can pretend to be ours."""

from __future__ import annotations

import asyncio
import re
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signoff.approvals.model import Batch, Choice, RequestKind
from signoff.bot import card_view
from signoff.bot.buttons import CUSTOM_ID, ApprovalButton, Locator, parse
from signoff.bot.card_view import ON_LOOP, ApprovalView, Rendered, render, render_off_loop
from signoff.cards.actions import Offers
from signoff.cards.model import Card, Verb
from signoff.text.secrets.masker import Masker
from tests.rigs.bot_fakes import make_batch, make_request, settled
from tests.rigs.discord_markdown import live, read
from tests.rigs.drawn_cards import ADA, MAX, PLACE, texts, within_limits
from tests.rigs.hostile_text import ATTACKS
from tests.rigs.loop_probe import LoopProbe

strings = st.one_of(st.sampled_from([a + "FORGED" for a in ATTACKS]), st.text(max_size=300), st.text(max_size=9000))
values = st.one_of(strings, st.integers(), st.none(), st.lists(strings, max_size=3))
requests = st.lists(
    st.builds(
        lambda args, tool, summary: make_request(args, tool=tool, metadata={"summary": summary}),
        st.dictionaries(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=60)), values, max_size=5),
        st.one_of(st.sampled_from(ATTACKS), st.text(min_size=1, max_size=80)),
        strings,
    ),
    min_size=1,
    max_size=8,
)


def endings(batch: Batch) -> list[Batch]:
    return [
        batch,
        settled(batch, Choice.ACCEPT, ADA),
        settled(batch, None, None),
        settled(batch, Choice.REJECT, ADA, "x" * 999),
    ]


@given(requests, strings, st.integers(0, 3), st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
async def test_any_card_fits_open_and_settled(found: list[Any], words: str, ending: int, can_attach: bool) -> None:
    batch = make_batch(PLACE, MAX, *found, model_text=words)
    state = endings(batch)[ending]
    rendered = render(state, batch.opened, can_attach=can_attach)
    within_limits(rendered)
    assert any(action.verb is not Verb.PAGE for action in rendered.card.buttons) == (not state.settled)


HEAVY = {
    "many lines": {"script": "\n".join(f"line {n} of the script" for n in range(60)) * 3},
    "emoji": {"text": "".join(chr(0x1F600 + n % 60) for n in range(6000))},
    "backticks": {"text": "```x" * 3000},
    "names of markup": {f"{n}*_~|<>#[]:@`": "*_~|<>" * 60 for n in range(40)},
    "many values": {f"argument_{n}": f"value {n}" for n in range(200)},
}


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 3, 8])
@pytest.mark.parametrize("kind", list(HEAVY))
async def test_a_heavy_card_uses_the_space_and_not_more(kind: str, calls: int) -> None:
    """Attack 7: the whole rest is in the file."""
    batch = make_batch(PLACE, MAX, *(make_request(HEAVY[kind]) for _ in range(calls)), model_text="and so on " * 300)
    for state in endings(batch):
        rendered = render(state, batch.opened)
        within_limits(rendered)
        assert rendered.view.content_length() > 250
        assert len(rendered.card.files) >= 1


async def test_a_card_whose_own_words_are_many_still_fits() -> None:
    many = [make_request({"n": "1"}, tool="`" * 90, why="*" * 500, message="_" * 900, quorum=3) for _ in range(10)]
    batch = make_batch(PLACE, MAX, *many, model_text="`" * 3000)
    for page in range(batch.pages):
        within_limits(render(batch, 0.0, page=page))


@given(st.lists(st.sampled_from([a + "FORGED" + a for a in ATTACKS]), min_size=1, max_size=6), st.booleans())
@settings(deadline=None)
async def test_nothing_quoted_is_ever_outside_of_code(values: list[str], done: bool) -> None:
    """Attacks 1 and 2: the forgery is inside code, never beside it."""
    args = {f"arg{n}": value for n, value in enumerate(values)}
    request = make_request(args, metadata={"summary": values[0]})
    batch = make_batch(PLACE, MAX, request, model_text=values[-1])
    batch = settled(batch, Choice.ACCEPT, ADA) if done else batch
    for text in texts(render(batch, batch.opened)):
        assert "FORGED" not in live(text)
        assert all(piece.language == "" for piece in read(text) if piece.kind == "block")


@pytest.mark.parametrize("name", ATTACKS)
async def test_names_of_tools_and_arguments_take_no_effect(name: str) -> None:
    request = make_request({name: "v"}, tool=name)
    rendered = render(make_batch(PLACE, MAX, request), 0.0)
    plain = "\n".join(live(text) for text in texts(rendered))
    assert set(re.findall(r"<[@t][^>]*>", plain)) <= {"<@100>", f"<t:{int(rendered_deadline(rendered))}:R>"}
    assert "@everyone" not in plain
    assert "https://" not in plain
    assert "||" not in plain
    assert not re.findall(r"^#+ ", plain, re.MULTILINE), "an open card has no heading"
    assert len(re.findall(r"^-# Tool Approval Required$", plain, re.MULTILINE)) == 1


def rendered_deadline(rendered: Rendered) -> str:
    found = re.search(r"<t:(\d+):R>", texts(rendered)[-1])
    assert found is not None
    return found[1]


async def test_each_call_stands_in_a_text_of_its_own() -> None:
    batch = make_batch(PLACE, MAX, make_request({"a": "1"}), make_request({"b": "2"}))
    bodies = [text.split("\n")[0] for text in texts(render(batch, batch.opened)) if "`delete_file`" in text]
    assert bodies == ["**1.** **`delete_file`**", "**2.** **`delete_file`**"]


async def test_a_settled_card_keeps_its_content() -> None:
    batch = make_batch(PLACE, MAX, make_request({"path": "a.txt"}))
    shown_open, shown_after = texts(render(batch, batch.opened)), texts(render(settled(batch, Choice.ACCEPT, ADA), 0.0))
    assert shown_open[1] == shown_after[1]
    assert shown_after[0] == "### APPROVED by <@200>"
    assert shown_after[-1].split("\n")[-1].startswith("-# Tool Approval Required · Request ")


async def test_fourteen_calls_that_may_have_run_are_paged_and_each_can_be_decided() -> None:
    many = [make_request({"n": str(n)}, kind=RequestKind.MAY_HAVE_RUN) for n in range(14)]
    batch = make_batch(PLACE, MAX, *many)
    pages = [render(batch, 0.0, page=page) for page in range(batch.pages)]
    for rendered in pages:
        within_limits(rendered)
    offered = [(action.verb, action.target) for rendered in pages for action in rendered.card.buttons]
    assert all((Verb.SKIP, request.id) in offered for request in many)


async def test_the_view_never_mixes_kinds_of_items_and_never_times_out() -> None:
    batch = make_batch(PLACE, MAX)
    view = render(batch, batch.opened).view
    assert isinstance(view, ApprovalView)
    assert view.timeout is None
    assert view.is_persistent()
    assert all(isinstance(item, ApprovalButton) for item in view.walk_children() if item.type.value == 2)
    assert not view.is_dispatchable(), "otherwise discord.py would keep the view of every card in memory"


@pytest.mark.parametrize("target", ["0123456789abcdef", "b" * 40, "a1b2c3d4"])
@pytest.mark.parametrize("choice", list(Choice))
def test_a_custom_id_says_choice_and_target(choice: Choice, target: str) -> None:
    assert parse(f"signoff:{choice}:{target}:3:12") == Locator(Verb(choice), target, 3, 12)


@pytest.mark.parametrize("verb", list(Verb))
@pytest.mark.parametrize("tail", ["", ":3"])
def test_an_id_that_does_not_say_what_was_on_the_card_is_nothing(verb: Verb, tail: str) -> None:
    """Such an id would match any revision and every page."""
    assert parse(f"signoff:{verb}:0123456789abcdef{tail}") is None


@pytest.mark.parametrize(
    "custom_id",
    [
        None,
        7,
        "",
        "signoff",
        "signoff:accept",
        "signoff:accept:",
        "signoff:accept:short:0:0",
        "signoff:accept:" + "a" * 41 + ":0:0",
        "signoff:accept:ABCDEFGH:0:0",
        "signoff:accept:0123456789abcdeg :0:0",
        "signoff:accept:0123456789abcdef:0:0\n",
        "\nsignoff:accept:0123456789abcdef:0:0",
        "signoff:accept:0123456789abcdef:0:more",
        "signoff:accept:0123456789abcdef:0:",
        "signoff:accept:0123456789abcdef::0",
        "signoff:accept:0123456789abcdef:01:0",
        "signoff:accept:0123456789abcdef:-1:0",
        "signoff:accept:0123456789abcdef:٣:0",
        "signoff:accept:0123456789abcdef:1000000:0",
        "signoff:accept:0123456789abcdef:1:100",
        "signoff:accept:0123456789abcdef:1:2:3",
        "signoff:accept_forever:0123456789abcdef:0:0",
        "signoff:ACCEPT:0123456789abcdef:0:0",
        "signoff:approve:0123456789abcdef:0:0",
        "signoff:accept:٠١٢٣٤٥٦٧:0:0",
        "signoff:accept:'; drop table requests; --",
        "xsignoff:accept:0123456789abcdef:0:0",
        "signoff:save:0123456789abcdef:0:0",
        "signoff:save:0123456789abcdef:0:0:accept.week.exact",
        "signoff:save:0123456789abcdef:0:0:ran.here.exact",
        "signoff:save:0123456789abcdef:0:0:accept.here.ffff",
        "signoff:accept:0123456789abcdef:0:0:accept.here.exact",
    ],
)
def test_a_malformed_custom_id_is_nothing(custom_id: object) -> None:
    """Attack 27."""
    assert parse(custom_id) is None
    assert not (isinstance(custom_id, str) and CUSTOM_ID.fullmatch(custom_id))


@given(st.text(max_size=110))
@settings(deadline=None)
def test_no_text_is_taken_for_an_id_by_accident(text: str) -> None:
    for candidate in (text, f"signoff:accept:{text}", f"signoff:accept:{text}:0:0"):
        located = parse(candidate)
        assert located is None or re.fullmatch("[0-9a-z]{8,40}", located.target)


@pytest.mark.parametrize(("length", "in_thread"), [(0, False), (ON_LOOP - 500, False), (ON_LOOP, True)])
async def test_only_a_large_card_is_built_in_a_thread(
    length: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small card is drawn in less time than a thread takes to start."""
    threads: list[threading.Thread] = []
    fit = card_view.fit_card

    def noting(*args: Any, **more: Any) -> Any:
        threads.append(threading.current_thread())
        return fit(*args, **more)

    monkeypatch.setattr(card_view, "fit_card", noting)
    batch = make_batch(PLACE, MAX, make_request({"path": "a.txt", "content": "x" * length}))
    await render_off_loop(batch, batch.opened)
    assert [one is not threading.main_thread() for one in threads] == [in_thread]


async def test_a_small_card_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Card] = []
    write = card_view.write

    def noting(card: Card) -> Any:
        written.append(card)
        return write(card)

    monkeypatch.setattr(card_view, "write", noting)
    rendered = render(make_batch(PLACE, MAX, make_request({"path": "a.txt"})), 0.0)
    assert written == [rendered.card]


@pytest.mark.parametrize("long", [0, 300, 3000, 6000])
async def test_the_view_has_the_texts_of_its_own_card_however_many_were_measured(long: int) -> None:
    made = make_batch(PLACE, MAX, *(make_request({"path": "a.txt", "content": "`y```\n" * long}) for _ in range(3)))
    for batch in endings(made):
        rendered = render(batch, batch.opened)
        assert rendered.view.to_components() == ApprovalView(rendered.card).to_components()


LARGE = {
    "lines": {"content": "\n".join(f"key{n}: the value {n}" for n in range(18_000))},
    "list": {"items": [f"item {n}" for n in range(20_000)]},
    "secrets": {"content": "password=abc123 token: xyz9\n" * 5000},
    "letters": {"content": "привет мир пaypal 日本 " * 20_000},
}


@pytest.mark.parametrize("kind", list(LARGE))
async def test_a_card_with_half_a_megabyte_leaves_the_loop_free(kind: str) -> None:
    """The best of three rounds counts: other programs may stop the loop, too."""
    batch = make_batch(PLACE, MAX, make_request(LARGE[kind]))
    shares: list[float] = []
    for _ in range(3):
        loop = asyncio.get_running_loop()
        offers = Offers(masker=Masker(b"0123456789abcdef"))
        async with LoopProbe() as probe:
            began = loop.time()
            within_limits(await render_off_loop(batch, batch.opened, offers=offers))
            took = loop.time() - began
        shares.append(probe.longest / took)
        if min(shares) < 0.5:
            break
    assert min(shares) < 0.5, "the loop stood still for most of the time"

"""How much work a card is: how often it is laid out and measured, and how often its arguments are masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from signoff.approvals.grants import GrantTerms
from signoff.approvals.inquiries import Inquiry
from signoff.approvals.model import Actor, Batch, CallRun, Choice, Edit, Remember, RequestKind, RunState
from signoff.bot.card_view import measure as measure_for_discord
from signoff.bot.card_view import render
from signoff.cards import build
from signoff.cards.actions import Offers, optional_calls
from signoff.cards.approver_names import NAME_BUDGET
from signoff.cards.budget import OPEN_MORE
from signoff.cards.build import build_card, fit_card
from signoff.cards.masking import mask_batch
from signoff.cards.model import Card, Verb
from signoff.text.secrets.masker import Masker
from tests.rigs.any_arguments import ARGS as ARGUMENTS
from tests.rigs.any_arguments import TEXT
from tests.rigs.cards import ADMIN, NOW, make_batch, make_request, may_have_run, quoted_strings, settle

KEY = b"0123456789abcdef"
ARGS = {"to": "ada@example.com", "subject": "Lunch at noon"}
LIMIT = 4000


@dataclass(frozen=True)
class CountingMasker(Masker):
    masked: list[Any] = field(default_factory=list[Any], compare=False)

    def mask_args(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        self.masked.append(args)
        return super().mask_args(args)


def offers(masker: Masker) -> Offers:
    return Offers(edit=True, grants=GrantTerms(Remember.ALWAYS), masker=masker)


def ran(batch: Batch) -> Batch:
    done = CallRun(RunState.DONE, NOW, NOW + 1, "sent")
    return replace(batch, requests=tuple(replace(r, run=done) for r in batch.requests))


@pytest.mark.parametrize("calls", [1, 3])
def test_a_small_card_is_measured_once_and_again_when_several_calls_are_settled(calls: int) -> None:
    measured: list[Card] = []

    def size(card: Card) -> int:
        measured.append(card)
        return measure_for_discord(card)

    batch = make_batch(*(make_request(n + 1, ARGS) for n in range(calls)))
    masker = CountingMasker(KEY)
    again = 1 if calls == 1 else 2
    for state, times in ((batch, 1), (settle(batch), again), (ran(settle(batch)), again)):
        measured.clear()
        masker.masked.clear()
        card = fit_card(state, now=NOW, limit=LIMIT, size=size, offers=offers(masker))
        assert len(measured) == times
        assert measured[-1] == card
        assert masker.masked == [ARGS] * calls, "the buttons do not depend on what can be edited or remembered"


@given(
    ARGUMENTS,
    TEXT,
    st.integers(0, 4000),
    st.sampled_from([("asker",), ("manage_server",), ("user:7&role:8", "bad")]),
    st.booleans(),
    st.sampled_from(RequestKind),
)
@example({"text": "x" * 900}, "", 0, ("asker",), True, RequestKind.CALL)
@example({"text": "one\n" * 20}, "", 0, ("asker",), True, RequestKind.CALL)
@settings(deadline=None)
def test_a_small_settled_card_is_the_same_as_one_that_was_fitted_with_its_open_card(
    args: dict[str, Any], name: str, long: int, approvers: tuple[str, ...], can_attach: bool, kind: RequestKind
) -> None:
    """If an open card could be larger than the limit, the settled one is always fitted together with it."""
    inquiry = Inquiry("Which?", (), server="shop") if kind is RequestKind.ANSWER else None
    request = make_request(1, {**args, "long": "`" * long}, approvers=approvers, kind=kind, inquiry=inquiry)
    batch = make_batch(request, asker=Actor("ada", name, "1"))
    for state in (settle(batch), settle(batch, Choice.REJECT, note=name), ran(settle(batch))):
        quick = fit_card(state, now=NOW, limit=LIMIT, size=measure_for_discord, can_attach=can_attach)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "OPEN_MORE", LIMIT)
            assert quick == fit_card(state, now=NOW, limit=LIMIT, size=measure_for_discord, can_attach=can_attach)


@pytest.mark.parametrize("can_attach", [True, False])
@pytest.mark.parametrize("kind", RequestKind)
def test_the_open_card_of_a_call_is_never_much_larger_than_the_settled_one(kind: RequestKind, can_attach: bool) -> None:
    """The longest names and conditions, in an inquiry of the server with the longest name."""
    wide = "&".join(["asker", *(f"role:{letter * NAME_BUDGET}" for letter in "abcde")])
    request = make_request(
        1,
        {"path": "x" * 5000},
        kind=kind,
        approvers=tuple(f"{wide}&role:{number}" for number in range(9)),
        quorum=99,
        four_eyes=True,
        inquiry=Inquiry("Which?", (), server="s" * 99) if kind is RequestKind.ANSWER else None,
    )
    batch = make_batch(request, asker=Actor("ada", "`" * NAME_BUDGET, "1"), deadline=NOW + 10.0**12)
    ending = settle(batch, by=Actor("9", "9", "1"))
    for budget in (0, 100, 2000):
        open_card, settled = (build_card(b, now=NOW, budget=budget, can_attach=can_attach) for b in (batch, ending))
        assert measure_for_discord(open_card) - measure_for_discord(settled) <= OPEN_MORE


def test_each_drawing_shows_the_arguments_of_its_own_batch() -> None:
    masker = Masker(KEY)
    batch = make_batch(make_request(1, ARGS))
    edited = replace(batch.requests[0], edit=Edit(ARGS, "ab" * 32, ADMIN, NOW))
    for subject in ("Dinner at eight", "token=Zebra42x", "Lunch at noon"):
        request = replace(edited, call=replace(edited.call, args={**ARGS, "subject": subject}))
        for state in (replace(batch, requests=(request,)), settle(replace(batch, requests=(request,)))):
            shown = "\n".join(quoted_strings(render(state, NOW, offers=offers(masker)).card))
            assert masker.mask_untrusted(subject) in shown
            assert "Zebra42x" not in shown


def test_other_masks_are_drawn_for_another_key() -> None:
    batch = make_batch(make_request(1, {"password": "Zebra42x"}))
    one, other = (render(batch, NOW, offers=offers(Masker(key))).card for key in (KEY, b"another key, as long"))
    assert one.calls[0].quotes[0].text != other.calls[0].quotes[0].text


def test_only_a_batch_without_anything_to_mask_or_leave_out_stays_itself() -> None:
    masker, plain = Masker(KEY), make_batch(make_request(1, ARGS), model_text="I will send it.")
    assert mask_batch(plain, masker) is plain
    assert mask_batch(settle(plain), masker) == settle(plain)
    for change in (
        {"metadata": {"summary": "Sends it", "internal": "Zebra42x"}},
        {"metadata": {"preview": "Sends it"}},
        {"drafts": {"1": {"a": 1}}},
        {"held": True},
    ):
        batch = replace(plain, requests=(replace(plain.requests[0], **change),))
        masked = mask_batch(batch, masker)
        assert masked != batch
        assert "Zebra42x" not in str(masked)
    assert "Zebra42x" not in str(mask_batch(settle(plain, note="the password is Zebra42x"), masker))
    assert "Zebra42x" not in str(mask_batch(replace(plain, model_text="the password is Zebra42x"), masker))


@given(st.lists(st.tuples(st.sampled_from(RequestKind), st.booleans(), st.booleans()), min_size=1, max_size=9))
def test_more_is_offered_if_it_leads_anywhere(kinds: list[tuple[RequestKind, bool, bool]]) -> None:
    made = [make_request(n + 1, ARGS, held=held) for n, (_, held, _) in enumerate(kinds)]
    ended = settle(make_batch(*made)).requests
    requests = [
        may_have_run(n + 1) if kind is RequestKind.MAY_HAVE_RUN and not held else ended[n] if settled else made[n]
        for n, (kind, held, settled) in enumerate(kinds)
    ]
    batch = make_batch(make_request(99, ARGS), *requests)
    for page in range(batch.pages):
        actions = build_card(batch, now=NOW, page=page, offers=Offers()).actions
        leads = not batch.settled and bool(optional_calls(batch, page, Offers()))
        assert any(action.verb is Verb.MORE for action in actions) == leads

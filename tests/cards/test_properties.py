"""Properties of every card, for any arguments."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from signoff.approvals.model import Batch, Choice, RequestState
from signoff.bot.card_view import measure as measure_for_discord
from signoff.cards.budget import left_out_overhead, settled_overhead
from signoff.cards.build import build_card, fit_card
from signoff.cards.layout import cost
from signoff.cards.model import Action, Card
from signoff.text.visible import is_hidden
from tests.rigs.any_arguments import ARGS, TEXT
from tests.rigs.cards import (
    NOW,
    arguments_of_file,
    arguments_of_quotes,
    make_batch,
    make_request,
    measure,
    quoted_strings,
    settle,
    trusted_strings,
)

BUDGET = st.sampled_from([0, 50, 300, 900, 2400, 20_000])
OVERHEAD = {1: 4474, 2: 7395, 3: 9373, 4: 11457}
"""Number of calls -> the most characters that everything but the quoted parts may take."""


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    count = draw(st.integers(1, 4))
    requests = [
        make_request(
            i + 1,
            draw(ARGS),
            tool=draw(TEXT),
            why=draw(st.text("abc ", max_size=400)),
            metadata={"summary": draw(TEXT)},
            approvers=draw(st.sampled_from([(), ("manage_server",), ("asker", "role:7", "user:8", "bad", "user:9")])),
        )
        for i in range(count)
    ]
    batch = make_batch(*requests, model_text=draw(TEXT), already_ran=tuple(draw(st.lists(TEXT, max_size=9))))
    how = draw(st.sampled_from(["open", "accept", "reject", "expired", "cancelled", "mixed"]))
    note = draw(TEXT)
    match how:
        case "open":
            return batch
        case "cancelled":
            return settle(batch, None, None, note, RequestState.CANCELLED)
        case "expired":
            return settle(batch, None, None)
        case "mixed":
            half = settle(batch, Choice.REJECT, note=note).requests[0]
            return replace(settle(batch, note=note), requests=(half, *settle(batch).requests[1:]))
        case _:
            return settle(batch, Choice(how), note=note)


@given(batches(), BUDGET)
@settings(deadline=None)
def test_no_hidden_character_is_left_anywhere(batch: Batch, budget: int) -> None:
    card = build_card(batch, now=NOW, budget=budget)
    for part in [*quoted_strings(card), *trusted_strings(card)]:
        assert not any(is_hidden(c) for c in part), part
    for file in card.files:
        assert not any(is_hidden(c) for c in file.data.decode("utf-8"))


@given(batches(), BUDGET)
@settings(deadline=None)
def test_the_exact_arguments_can_be_read_back(batch: Batch, budget: int) -> None:
    card = build_card(batch, now=NOW, budget=budget)
    files = {file.name: file for file in card.files}
    for request, call in zip(batch.requests, card.calls, strict=True):
        file = files.get(f"request-{request.id[:8]}.txt")
        found = arguments_of_file(file) if file else arguments_of_quotes(call)
        assert json.dumps(found, sort_keys=True) == json.dumps(request.call.args, sort_keys=True)


@given(batches(), BUDGET)
@settings(deadline=None)
def test_cards_are_bounded(batch: Batch, budget: int) -> None:
    card = build_card(batch, now=NOW, budget=budget)
    assert measure(card) <= budget + OVERHEAD[len(batch.requests)]
    as_open = settle(batch, None, None, state=RequestState.PENDING)
    open_card = build_card(as_open, now=NOW, budget=budget)
    quoted = sum(cost(call.quotes) for call in open_card.calls)
    assert quoted + (len(open_card.model_text.text) if open_card.model_text else 0) <= budget
    assert measure(card) <= measure(open_card) + settled_overhead(len(batch.requests))


@given(batches(), BUDGET, st.booleans())
@example(make_batch(make_request(args={"a": "b"}), model_text="I do."), 2400, True)
@settings(deadline=None)
def test_leaving_text_out_adds_little(batch: Batch, budget: int, can_attach: bool) -> None:
    batch = settle(batch, None, None, state=RequestState.PENDING)
    whole, none = (build_card(batch, now=NOW, budget=b, can_attach=can_attach) for b in (budget, 0))
    assert measure_for_discord(none) <= measure_for_discord(whole) + left_out_overhead(len(whole.calls))


@given(batches(), BUDGET)
@settings(deadline=None)
def test_the_same_batch_gives_the_same_card_whatever_the_store_does(batch: Batch, budget: int) -> None:
    def restored(args: Any) -> Any:
        return dict(reversed(json.loads(json.dumps(args)).items()))

    again = replace(
        copy.deepcopy(batch),
        requests=tuple(replace(r, call=replace(r.call, args=restored(r.call.args))) for r in batch.requests),
    )
    assert build_card(batch, now=NOW, budget=budget) == build_card(again, now=NOW, budget=budget)
    fitted = fit_card(batch, now=NOW, limit=4000, size=measure)
    assert fitted == fit_card(again, now=NOW, limit=4000, size=measure)


def accepted(card: Card) -> list[Action]:
    return [action for action in card.buttons if action.verb.choice is Choice.ACCEPT]


@given(batches(), BUDGET)
@settings(deadline=None)
def test_accept_is_offered_only_for_what_is_shown_or_attached(batch: Batch, budget: int) -> None:
    whole = build_card(batch, now=NOW, budget=budget, can_attach=True)
    blind = build_card(batch, now=NOW, budget=budget, can_attach=False)
    assert blind.files == ()
    part = {call.request for call in blind.calls if str(call.warnings[:1]).count("Not all of this call is shown")}
    assert bool(accepted(blind)) == (not batch.settled and len(part) < len(blind.calls))
    for request, call in zip(batch.requests, blind.calls, strict=True):
        if call.request not in part:
            assert json.dumps(arguments_of_quotes(call), sort_keys=True) == json.dumps(
                request.call.args, sort_keys=True
            )
    for file in whole.files:
        assert any(file.name in str(call.attached) and file.sha256[:12] in str(call.attached) for call in whole.calls)


@given(st.text("\n `#*@[]<>|x", min_size=1, max_size=300), BUDGET)
@settings(deadline=None)
def test_markup_stays_in_quoted_parts(text: str, budget: int) -> None:
    request = make_request(args={text: text}, tool=text, metadata={"summary": text})
    batch = make_batch(request, model_text=text, already_ran=(text,))
    for candidate in (batch, settle(batch, None, None, text, RequestState.CANCELLED)):
        for part in trusted_strings(build_card(candidate, now=NOW, budget=budget)):
            assert not set(part) & set("\n`#*@[]<>|")

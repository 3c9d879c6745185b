"""A card's contents and buttons: open, settled and too large."""

from __future__ import annotations

from dataclasses import replace

import pytest

from signoff.approvals.model import PAGE, Actor, Batch, Choice, RequestState
from signoff.cards.actions import Offers
from signoff.cards.build import build_card, fit_card
from signoff.cards.model import Style, Tone
from signoff.errors import CardFailed
from signoff.text.secrets.masker import Masker
from tests.rigs.cards import (
    ADMIN,
    FORGERY,
    NOW,
    as_text,
    card_of,
    make_batch,
    make_request,
    may_have_run,
    measure,
    settle,
)


def test_an_open_card_offers_accept_and_reject_for_the_batch() -> None:
    card = card_of(make_batch(make_request(args={"path": "a.txt"})))
    assert card.title == "Tool Approval Required"
    assert (card.tone, card.status) == (Tone.OPEN, None)
    assert [(a.verb.choice, a.target, a.label, a.style) for a in card.actions] == [
        (Choice.ACCEPT, "b0" * 8, "Accept", Style.GOOD),
        (Choice.REJECT, "b0" * 8, "Reject", Style.BAD),
        (None, "b0" * 8, "More…", Style.PLAIN),
    ]
    assert as_text(card.footer) == "Request 0101010101010101 · digest 010101010101"


def test_an_open_card_about_a_call_that_may_have_run_stands_out() -> None:
    batch = make_batch(make_request(1), may_have_run(2))
    assert card_of(batch).tone is Tone.IN_DOUBT
    assert card_of(settle(batch, Choice.REJECT)).tone is not Tone.IN_DOUBT


def test_after_the_deadline_nothing_is_offered() -> None:
    card = card_of(make_batch(), now=NOW + 290)
    assert card.actions == ()
    assert as_text(card.about[-1]).endswith(" · the deadline has passed")


def test_a_call_of_an_agent_inside_a_tool_shows_its_path_and_cannot_be_edited() -> None:
    request = replace(make_request(args={"path": "a.txt"}), path=("researcher",))
    card = card_of(make_batch(request))
    assert card.calls[0].tool == f"researcher › {request.call.tool}"
    assert not card.calls[0].warnings
    assert Offers(edit=True).why_no_edit(request) == "an agent inside a tool made it"
    deep = replace(request, path=("a", "b", "c", "d"))
    assert deep.shown_tool == f"a › … › d › {request.call.tool}"


def test_summary_then_reason_then_path_are_the_tools_words() -> None:
    metadata = {"path": "p", "reason": "r", "summary": "s"}
    for expected in ("s", "r", "p"):
        (quote,) = card_of(make_batch(make_request(metadata=metadata))).calls[0].quotes
        assert (quote.label, quote.text) == ("Tool's words", expected)
        metadata.popitem()


def test_siblings_that_ran_are_named() -> None:
    card = card_of(make_batch(already_ran=("glob", "read file`")))
    assert ("Already ran: glob, read\\u{0020}file\\u{0060}",) in card.about


# -- settled ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "tone", "words"),
    [
        (settle(make_batch()), Tone.APPROVED, "APPROVED by <Person 200>"),
        (settle(make_batch(), Choice.REJECT), Tone.REJECTED, "REJECTED by <Person 200>"),
        (
            settle(make_batch(), Choice.REJECT, None, "mode auto_deny"),
            Tone.REJECTED,
            "REJECTED automatically: mode auto_deny",
        ),
        (settle(make_batch(), None, None), Tone.EXPIRED, "TIMEOUT - Request expired"),
        (
            settle(make_batch(), None, None, "the server was paused", RequestState.CANCELLED),
            Tone.CANCELLED,
            "CANCELLED - the server was paused",
        ),
        (settle(make_batch(may_have_run()), Choice.RAN), Tone.REJECTED, "CONFIRMED as run by <Person 200>"),
        (settle(make_batch(may_have_run()), Choice.RERUN), Tone.APPROVED, "RUN AGAIN approved by <Person 200>"),
        (settle(make_batch(may_have_run()), Choice.SKIP), Tone.REJECTED, "SKIPPED by <Person 200>"),
    ],
)
def test_a_settled_card_says_how_it_ended_and_has_no_buttons(batch: Batch, tone: Tone, words: str) -> None:
    card = card_of(batch)
    assert (card.tone, as_text(card.status), card.actions) == (tone, words, ())


def test_a_settled_card_keeps_its_content_and_its_files() -> None:
    batch = make_batch(make_request(args={"text": "x\n" * 3000}), make_request(2, {"n": 1}), model_text="Because.")
    before, after = card_of(batch), card_of(settle(batch, Choice.REJECT, note="no"))
    assert before.files == after.files
    assert before.model_text == after.model_text
    assert replace(before.calls[0], actions=()) == after.calls[0]
    assert after.calls[1].quotes[:-1] == before.calls[1].quotes


def test_a_given_reason_is_quoted_never_trusted() -> None:
    card = card_of(settle(make_batch(), Choice.REJECT, note=FORGERY + "\u202e"))
    assert as_text(card.status) == "REJECTED by <Person 200>"
    (reason,) = card.calls[0].quotes
    assert reason.label == "Reason given"
    assert reason.text == FORGERY + "\\u{202E}"


def test_mixed_outcomes_are_told_call_by_call() -> None:
    yes, no = settle(make_batch(make_request())), settle(make_batch(make_request(2)), Choice.REJECT, note="why")
    card = card_of(make_batch(*yes.requests, *no.requests))
    assert (card.tone, card.status) == (Tone.MIXED, ("DECIDED: 1 approved, 1 rejected",))
    assert [as_text(c.outcome) for c in card.calls] == ["APPROVED by <Person 200>", "REJECTED by <Person 200>"]
    assert [q.text for q in card.calls[1].quotes] == ["why"]


def test_a_partly_settled_card_stays_open_and_says_what_is_settled() -> None:
    done = settle(make_batch(may_have_run(1)), Choice.SKIP).requests
    card = card_of(make_batch(*done, may_have_run(2)))
    assert (card.tone, card.status) == (Tone.IN_DOUBT, None)
    assert [as_text(c.outcome) for c in card.calls] == ["SKIPPED by <Person 200>", ""]
    assert card.actions == card.calls[0].actions == ()
    assert {a.target for a in card.buttons} == {"02" * 8}


def test_may_have_run_asks_per_call() -> None:
    card = card_of(make_batch(may_have_run(1), may_have_run(2)))
    assert card.title == "These calls may have run"
    assert [(a.label, a.target[:2]) for a in card.buttons] == [
        (label, target) for target in ("01", "02") for label in ("It ran", "Run it again", "Skip")
    ]
    assert " · skipped <Moment" in as_text(card.about[-1])


def test_a_card_says_how_many_of_its_calls_may_have_run() -> None:
    batch = make_batch(may_have_run(1), make_request(2, {"text": "x" * 9000}), make_request(3))
    card = card_of(batch, can_attach=False)
    assert card.title == "1 of these 3 calls may have run"
    lead = [as_text(line) for line in card.about]
    assert " · rejected or skipped <Moment" in lead[-1]
    assert any(line.startswith("Accept or Run it again is not offered") for line in lead)
    skipped = settle(make_batch(may_have_run(1)), Choice.SKIP).requests
    later = card_of(replace(batch, requests=(*skipped, *batch.requests[1:])))
    assert later.title == card.title
    assert " · rejected <Moment" in as_text(later.about[-1])


@pytest.mark.parametrize("can_attach", [True, False])
def test_the_models_text_names_a_file_only_if_there_is_one(can_attach: bool) -> None:
    card = card_of(make_batch(make_request(), model_text="x" * 3000), can_attach=can_attach)
    assert card.model_text
    assert bool(card.files) is can_attach
    assert (".txt" in card.model_text.note) is can_attach
    assert "3000 characters in all" in card.model_text.note


# -- size -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ten_calls_with_thirty_hostile_arguments_fit() -> None:
    args = {f"{i:02}\u202e" + "n" * 200: "\u202e\n`" * 300 for i in range(30)}
    requests = [make_request(i, args, tool="t" * 500, metadata={"summary": "s" * 5000}) for i in range(1, 11)]
    batch = make_batch(*requests, model_text="w" * 5000, already_ran=("r" * 90,) * 20)
    seen: list[str] = []
    for page in range(batch.pages):
        card = fit_card(batch, now=NOW, limit=4000, size=measure, page=page)
        assert measure(card) <= 3600, "leaves a front end some budget for markup"
        assert len(card.files) == len(card.calls) <= PAGE
        assert all("values only there" in as_text(call.attached) for call in card.calls)
        seen += [call.request for call in card.calls]
        done = settle(batch, note="n" * 4000)
        assert measure(fit_card(done, now=NOW, limit=4000, size=measure, page=page)) <= 4000
    assert seen == [request.id for request in requests], "nothing is dropped"


def test_ten_ordinary_calls_are_shown_whole() -> None:
    requests = [make_request(i, {"path": f"notes/{i}.txt", "content": "hello"}) for i in range(1, 11)]
    batch = make_batch(*requests, model_text="I will write ten notes.")
    for page in range(batch.pages):
        card = fit_card(batch, now=NOW, limit=4000, size=measure, page=page)
        assert card.files == ()
        assert all(len(call.quotes) == 2 for call in card.calls)


def test_fitting_does_not_depend_on_the_decision() -> None:
    batch = make_batch(make_request(args={"text": "word " * 3000}), model_text="x" * 3000)
    before = fit_card(batch, now=NOW, limit=4000, size=measure)
    after = fit_card(settle(batch), now=NOW + 500, limit=4000, size=measure)
    assert (before.files, before.model_text) == (after.files, after.model_text)
    for shown, folded in zip(before.calls[0].quotes, after.calls[0].quotes, strict=True):
        assert folded.text in shown.text, "the same beginning and end, but less of them"
    blind = [fit_card(b, now=NOW, limit=4000, size=measure, can_attach=False) for b in (batch, settle(batch))]
    assert blind[0].calls[0].quotes == blind[1].calls[0].quotes, "without a file, nothing is folded away"


def test_without_a_file_the_whole_budget_is_used() -> None:
    batch = make_batch(make_request(args={"text": "word " * 500}))
    (quote,) = fit_card(batch, now=NOW, limit=4000, size=measure, can_attach=False).calls[0].quotes
    assert quote.text == "word " * 500


@pytest.mark.parametrize("args", [{"x": object()}, {"x": 10**5000}, {"x": {1: 2, "a": 3}}])
def test_arguments_that_are_not_json_give_no_card(args: dict[str, object]) -> None:
    with pytest.raises(CardFailed, match="The arguments of write_file cannot be shown"):
        card_of(make_batch(make_request(args=args)))


def test_deep_nesting_gives_no_card() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(CardFailed):
        card_of(make_batch(make_request(args={"x": deep})))


def test_two_requests_with_the_same_short_id_get_files_of_their_own() -> None:
    twins = [replace(make_request(i, {"x": "y" * 9000}), id=f"aaaaaaaa{i}") for i in (1, 2)]
    card = card_of(make_batch(*twins))
    assert [f.name for f in card.files] == ["request-aaaaaaaa-1.txt", "request-aaaaaaaa-2.txt"]


def test_a_name_chosen_by_its_owner_is_made_visible() -> None:
    card = card_of(settle(make_batch(), by=Actor("9", "ad\u202emin\n" + "x" * 50, "1")))
    assert card.status is not None
    name = card.status[1].name  # type: ignore[union-attr]
    assert name.startswith("ad\\u{202E}min\\u{000A}")
    assert len(name) <= 32


def test_admin_and_asker_are_people() -> None:
    (line,) = card_of(make_batch()).about
    assert as_text(line) == "Asked by <Person 100> · may decide: Manage Server · rejected <Moment >"
    assert ADMIN.id == "200"


def test_more_than_anyone_could_review_gives_no_card() -> None:
    with pytest.raises(CardFailed, match="too long"):
        card_of(make_batch(make_request(args={"a": "x" * 300_000}), make_request(2, {"a": "x" * 300_000})))


def test_a_diff_that_the_tool_raised_is_shown_and_masked() -> None:
    request = make_request(
        metadata={"summary": "rewrites it", "diff": "-old\n+password=hunter2hunter2"}, preview="1 file"
    )
    card = build_card(make_batch(request), now=NOW, offers=Offers(masker=Masker(b"k" * 32)))
    quotes = [quote for call in card.calls for quote in call.quotes]
    (preview,) = [quote.text for quote in quotes if "-old" in quote.text]
    assert "1 file" in preview
    assert "hunter2" not in preview

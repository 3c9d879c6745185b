"""Each entry of the inbox can be decided from what it shows: tool, arguments, asker, place, deadline, buttons."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.inquiries import AnswerField, FieldKind, Inquiry, Option
from signoff.approvals.model import DIRECT, Actor, Batch, Place, RequestKind, Vote
from signoff.bot import inbox_view
from signoff.bot.buttons import ApprovalButton
from signoff.bot.card_view import Rendered, render
from signoff.bot.inbox_view import NOT_WHOLE, ON_PAGE, SENTENCE, Found, InboxView
from signoff.cards.actions import Offers
from signoff.text.secrets.masker import Masker
from tests.rigs.bot_fakes import make_batch, make_request

PLACE = Place("1", "2", "2")
MAX = Actor("30", "Max", "1")


def batch_of(*requests: Any, **fields: Any) -> Batch:
    return make_batch(PLACE, MAX, *requests, **{"card_message": "5", **fields})


def drawn(*batches: Batch, page: int = 0, **more: Any) -> tuple[str, list[str]]:
    """Return the text of a page and the labels of its buttons."""
    view = InboxView(Found(batches), time.time(), more.pop("offers", Offers()), page, **more)
    assert sum(1 for _ in view.walk_children()) <= 40
    buttons = [item for item in view.walk_children() if isinstance(item, ApprovalButton)]
    assert len({button.custom_id for button in buttons}) == len(buttons), "Discord refuses equal ids"
    text = "\n".join(content for item in view.walk_children() if (content := getattr(item, "content", None)))
    assert len(text) <= 4000
    return text, [str(button.label) for button in buttons]


def test_every_one_of_six_cards_shows_its_call_and_its_buttons() -> None:
    batches = [batch_of(make_request({"path": f"file-{n}.txt", "force": True}), deadline=2e9) for n in range(6)]
    text, labels = drawn(*batches)
    for n in range(ON_PAGE):
        assert f"**`delete_file`** · **force** `true` · **path** `file-{n}.txt`\nAsked by <@30> · rejected <t:" in text
    assert text.count("https://discord.com/channels/1/2/5") == ON_PAGE
    assert labels == ["Accept", "Reject", "Open…"] * ON_PAGE + ["Refresh", "Next"]
    assert "**6 open cards** for you, nearest deadline first · page 1 of 2" in text
    text, labels = drawn(*batches, page=1)
    assert "file-5.txt" in text
    assert labels == ["Accept", "Reject", "Open…", "Previous", "Refresh"]


def test_a_page_that_no_longer_exists_is_the_last_one() -> None:
    text, _ = drawn(*(batch_of(make_request({"n": n})) for n in range(7)), page=9)
    assert "page 2 of 2" in text
    text, labels = drawn(page=3)
    assert (text, labels) == ("No open card waits for your decision.", ["Refresh"])


def test_a_sentence_says_what_has_just_happened() -> None:
    assert drawn(said=("Done: APPROVED by Nina",))[0].startswith("Done: APPROVED by Nina\nNo open card")


def test_a_longer_value_is_a_block_and_the_call_is_still_whole() -> None:
    text, labels = drawn(batch_of(make_request({"path": "a.txt", "text": "one\ntwo\n" + "three " * 40})))
    assert "**path** `a.txt`\n`text`\n```\none\ntwo\nthree three" in text
    assert labels[:3] == ["Accept", "Reject", "Open…"]
    assert NOT_WHOLE not in text


@pytest.mark.parametrize("value", ["x" * 600, "line\n" * 200, "`" * 300, "\n" * 50])
def test_a_call_that_is_not_shown_whole_can_be_rejected_or_opened_but_not_accepted(value: str) -> None:
    text, labels = drawn(batch_of(make_request({"path": "a.txt", "text": value})))
    assert labels[:2] == ["Reject", "Open…"]
    assert "**path** `a.txt`" in text
    assert NOT_WHOLE in text


@pytest.mark.parametrize("value", [" ", "   ", " a", "a ", "a  b"])
def test_blanks_that_one_line_would_hide_are_shown_in_a_block(value: str) -> None:
    text, labels = drawn(batch_of(make_request({"text": value})))
    assert f"`text`\n```\n{value}\n```" in text
    assert labels[:3] == ["Accept", "Reject", "Open…"]


def test_a_diff_of_one_line_is_shown() -> None:
    text, labels = drawn(batch_of(make_request({"path": "a"}, preview="--- drop the table users")))
    assert "```diff\n--- drop the table users\n```" in text
    assert labels[:3] == ["Accept", "Reject", "Open…"]


def test_the_tail_of_a_folded_value_is_said_to_be_missing() -> None:
    text, _ = drawn(batch_of(make_request({"text": "begin " + "x" * 700 + " rm -rf"})))
    assert "`text` `begin xxxx" in text
    assert "xx…` (only its beginning)" in text
    assert "rm -rf" not in text


def test_warnings_are_in_the_list() -> None:
    text, labels = drawn(batch_of(make_request({"text": "a\u202eb"})))
    assert r"`a\u{202E}b`" in text
    assert "**Warning:**" in text
    assert labels[:3] == ["Accept", "Reject", "Open…"]


def test_a_value_cannot_imitate_the_list() -> None:
    text, _ = drawn(batch_of(make_request({"APPROVED": "` **APPROVED by** <@1> `", "b": "@everyone"})))
    assert r"`APPROVED` `\u{0060} **APPROVED by** <@1> \u{0060}`" in text
    assert "`@everyone`" in text


def test_secrets_are_masked() -> None:
    offers = Offers(masker=Masker(key=b"k" * 32))
    text, _ = drawn(batch_of(make_request({"password": "hunter2hunter2"})), offers=offers)
    assert "hunter2" not in text


def test_a_card_with_several_calls_lists_each_of_them() -> None:
    batch = batch_of(make_request({"path": "a"}), make_request({"path": "b"}), make_request({"n": 1}, held=True))
    text, labels = drawn(batch)
    assert "**1.** **`delete_file`** · **path** `a`" in text
    assert "**2.** **`delete_file`** · **path** `b`" in text
    assert "delete\\_file" in text.splitlines()[-3], "the held call that an accept would run is named"
    assert labels[:3] == ["Accept all", "Reject all", "Open…"]
    pages = batch_of(*(make_request({"path": f"{n}"}) for n in range(6)))
    text, labels = drawn(pages)
    assert "and 1 more" in text
    assert labels[:2] == ["Reject all", "Open…"], "nobody accepts calls that are on another page"


def test_the_models_words_and_votes_are_in_the_list() -> None:
    request = make_request({"path": "a"}, quorum=2, votes=(Vote(Actor("9", "Nina", "1"), 0.0),))
    text, labels = drawn(batch_of(request, model_text="just say yes"))
    assert "**Model's words** `just say yes` (not checked)" in text
    assert "Accepted by 1 of 2: <@9>" in text
    assert labels[0] == "Accept"


def test_a_call_that_may_have_run_carries_the_same_warning_as_its_card() -> None:
    request = make_request({"path": "a"}, kind=RequestKind.MAY_HAVE_RUN, why="the bot was interrupted while it ran")
    batch = batch_of(request)
    card = render(batch, time.time()).card
    text, labels = drawn(batch)
    assert f"**{card.title}**\n**`delete_file`** · **path** `a`" in text
    assert "Why: the bot was interrupted while it ran" in text
    assert "· skipped <t:" in text
    assert labels[:4] == ["It ran", "Run it again", "Skip", "Open…"]
    long = batch_of(replace(request, call=replace(request.call, args={"text": "x" * 900})))
    text, labels = drawn(long)
    assert f"**{card.title}**" in text
    assert labels[:3] == ["It ran", "Skip", "Open…"]


def test_arguments_that_do_not_fit_are_counted() -> None:
    text, labels = drawn(batch_of(make_request({f"argument_{n}": "x" * 70 for n in range(20)})))
    assert "**argument\\_0** `xxx" in text
    assert " · 17 more\n" in text
    assert labels[:2] == ["Reject", "Open…"]


def test_the_longest_entries_stay_within_one_message() -> None:
    odd = "\u202e`" * 300
    request = make_request({"t": odd, "u" * 90: odd}, tool="t" * 200, why="w" * 900, message="m" * 900)
    may_have_run = replace(request, kind=RequestKind.MAY_HAVE_RUN)
    for one in (request, may_have_run):
        text, labels = drawn(*(batch_of(one, one, model_text=odd) for _ in range(40)))
        assert labels.count("Open…") == ON_PAGE
        assert "page 1 of 8" in text


def test_a_sentence_above_full_entries_stays_within_one_message() -> None:
    for length in range(540, 580):  # at one of these lengths, an entry is as long as an entry may be
        batches = [batch_of(make_request({"text": "x" * length}))] * ON_PAGE
        found = Found([*batches, *[batch_of()] * 490], complete=False)
        view = InboxView(found, time.time(), Offers(), 0, ("s" * SENTENCE,))
        texts = [content for item in view.walk_children() if (content := getattr(item, "content", None))]
        assert texts[0].startswith("s" * SENTENCE)
        assert sum(map(len, texts)) <= 4000


def test_a_large_card_is_listed_without_being_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[str] = []

    def counting(batch: Batch, *args: Any, **more: Any) -> Rendered:
        laid_out.append(batch.id)
        return render(batch, *args, **more)

    monkeypatch.setattr(inbox_view, "render", counting)
    small = batch_of(make_request({"path": "a.txt"}))
    large = batch_of(make_request({"text": "word " * 90_000}), card_message="6")
    text, labels = drawn(small, large)
    assert laid_out == [small.id]
    assert labels == ["Accept", "Reject", "Open…", "Reject", "Open…", "Refresh"]
    assert "**`delete_file`** · too long for this list · `text`" in text
    assert "channels/1/2/6" in text


def test_a_link_to_a_direct_conversation_names_no_server() -> None:
    batch = make_batch(Place(DIRECT, "123", "123"), MAX, card_message="456")
    assert "https://discord.com/channels/@me/123/456" in drawn(batch)[0]


def asking(words: str, **changes: Any) -> Any:
    field = AnswerField("colour", FieldKind.CHOICE, "Colour", options=(Option(1, "red"), Option(2, "blue")))
    return make_request(kind=RequestKind.ANSWER, inquiry=Inquiry(words, (field,)), tool="ask_colour", **changes)


def test_a_question_can_be_answered_or_declined_from_the_list() -> None:
    text, labels = drawn(batch_of(asking("Which colour?")))
    assert "**Answer Needed**" in text
    assert "**Question** `Which colour?` · **Colour** `red · blue` (choose one of 2)" in text
    assert "The agent asks this" in text
    assert "Asked by <@30> · expires <t:" in text
    assert labels == ["Answer…", "Decline", "Open…", "Refresh"]


def test_a_question_that_is_not_shown_whole_is_not_answered_from_the_list() -> None:
    text, labels = drawn(batch_of(asking("Which colour?\n" * 90)))
    assert NOT_WHOLE in text
    assert labels == ["Decline", "Open…", "Refresh"]


def test_a_question_beside_a_call_is_listed_with_both() -> None:
    text, labels = drawn(batch_of(make_request({"path": "a"}), asking("Which colour?")))
    assert "**Approval and Answer Needed**" in text
    assert "rejected or declined <t:" in text
    assert labels == ["Open…", "Refresh"]


def test_a_large_question_is_listed_without_its_text() -> None:
    large = replace(asking("Which?"), call=make_request({"text": "x" * 300_000}).call)
    text, labels = drawn(batch_of(large))
    assert NOT_WHOLE in text
    assert labels == ["Open…", "Refresh"]

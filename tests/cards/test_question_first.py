"""A card leads with the question: the tool and its own sentence, then the arguments, then who may decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from inline_snapshot import snapshot

from signoff.approvals.model import Actor, ApprovalRequest, Choice
from signoff.approvals.tool_description import ToolDescription
from signoff.bot.card_view import render
from signoff.cards.actions import Offers
from signoff.cards.folding import FOLDED
from signoff.cards.model import Card, Shape, Tone
from signoff.text.secrets.masker import Masker
from tests.rigs.cards import (
    ADMIN,
    ASKER,
    NOW,
    arguments_of_file,
    as_text,
    card_of,
    make_batch,
    make_request,
    settle,
)
from tests.rigs.discord_markdown import live
from tests.rigs.drawn_cards import texts

POSTS = ToolDescription("Post a message.", order=("text", "audience", "urgent"), defaults={"urgent": False})
DIFF = "Changes a.txt: 1 line removed, 1 line added.\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new"


def announcement(**changes: Any) -> ApprovalRequest:
    args = {"audience": "everyone", "text": "Lunch is at noon.", "urgent": False}
    words = {"summary": "Announce to everyone: Lunch is at noon."}
    return make_request(args=args, tool="post_announcement", metadata=words, description=POSTS, **changes)


def written(request: ApprovalRequest, offers: Offers | None = None) -> str:
    return "\n".join(texts(render(make_batch(request), NOW, offers=offers)))


def shapes(card: Card) -> list[tuple[str, Shape]]:
    return [(quote.label, quote.shape) for quote in card.calls[0].quotes]


async def test_a_small_call_is_read_in_five_seconds() -> None:
    assert written(announcement()) == snapshot("""\
-# Tool Approval Required
**`post_announcement`** · Post a message.
> Announce to everyone: Lunch is at noon.
**text** `Lunch is at noon.` · **audience** `everyone`
-# defaults: **urgent** `false`
-# Why: write\\_file asks before every call
Asked by <@100> · may decide: Manage Server · rejected <t:1700000290:R>
-# Request 0101010101010101 · digest 010101010101\
""")


def test_arguments_are_in_the_order_of_the_tool_and_others_by_name() -> None:
    description = ToolDescription(order=("to", "subject", "body"))
    args = {"body": "x\ny", "zone": "UTC", "also": 1, "subject": "Hello", "to": "ada"}
    card = card_of(make_batch(make_request(args=args, description=description)))
    assert [quote.label for quote in card.calls[0].quotes] == ["to", "subject", "also", "zone", "body"]


@pytest.mark.parametrize(
    ("value", "shape"),
    [(False, Shape.DEFAULT), (True, Shape.INLINE), (0, Shape.INLINE), ("false", Shape.INLINE), (None, Shape.INLINE)],
)
def test_only_a_value_that_equals_the_default_is_in_the_small_line(value: object, shape: Shape) -> None:
    request = make_request(args={"urgent": value}, description=POSTS)
    assert shapes(card_of(make_batch(request))) == [("urgent", shape)]


async def test_a_number_and_the_same_digits_as_text_are_told_apart() -> None:
    text = written(make_request(args={"a": 5, "b": "5", "c": "", "d": ["x"], "e": '["x"]'}))
    assert '**a** `5` · **b** `5` (text) · **c** (empty text) · **d** `["x"]` · **e** `["x"]` (text)' in text


@pytest.mark.parametrize(
    "value",
    [
        "team` · **audience** `everyone",
        "team\n**audience** `everyone`",
        "team  everyone",
        " team",
        "team ",
        "te\u200bam",
        "te\u0430m",
        "x" * 81,
    ],
)
def test_a_value_that_could_pass_for_something_else_gets_a_block(value: str) -> None:
    """Attacks 1, 4, 5."""
    assert shapes(card_of(make_batch(make_request(args={"text": value})))) == [("text", Shape.BLOCK)]


async def test_a_value_in_one_line_cannot_make_another_argument() -> None:
    """Attack 1: the separator and the bold name are inside the code, where they take no effect."""
    text = written(make_request(args={"text": "hi · **audience** <@1>", "z": "1"}))
    assert "**text** `hi · **audience** <@1>` · **z** `1` (text)" in text
    assert "audience" not in live(text)


@pytest.mark.parametrize("name", ["APPROVED", "REJECTED", "TIMEOUT", "APPROVED_by"])
async def test_a_name_cannot_pass_for_an_outcome(name: str) -> None:
    """An outcome is a bold line too, so such a name is shown as code."""
    request = make_request(args={name: "by Olga", "note": "x"})
    assert shapes(card_of(make_batch(request))) == [("note", Shape.INLINE), (name, Shape.BLOCK)]
    assert f"`{name}`\n" in written(request)
    assert name not in live(written(request))


def test_a_name_that_is_no_word_gets_a_block() -> None:
    args = {"audience** `everyone` · **x": "team", "p\u0430th": "a"}
    assert {shape for _, shape in shapes(card_of(make_batch(make_request(args=args))))} == {Shape.BLOCK}


@pytest.mark.parametrize(
    "summary",
    [
        "APPROVED by Ada",
        "ok. May decide: everyone",
        "Warning: none",
        "one\ntwo",
        "see https://evil.example",
        "**bold**",
        "`code`",
        "<@1>",
        "a  b",
        "word " * 60,
    ],
)
async def test_the_tools_words_are_a_sentence_only_if_nobody_could_take_them_for_ours(summary: str) -> None:
    """Attacks 1, 2, 14: the tool's words contain what the model wrote."""
    request = make_request(metadata={"summary": summary})
    assert shapes(card_of(make_batch(request))) == [("Tool's words", Shape.BLOCK)]
    assert "Tool's words" in live(written(request))


# What the tool says about itself


async def test_a_description_is_quoted_text() -> None:
    """Attacks 1 and 2."""
    evil = ToolDescription("Reads `a` file**\n# APPROVED @everyone [x](https://evil.example) \u202e" + "y" * 300)
    text = written(make_request(description=evil))
    first = text.split("\n")[1]
    assert first.startswith("**`write_file`** · Reads \\`a\\` file\\*\\*\\\\u{000A}\\# APPROVED \\@everyone")
    assert first.endswith("…")
    assert "tool's description: contains 1 hidden character" in text
    assert "https://" not in live(text)


async def test_an_mcp_servers_words_are_said_to_be_its_own_unless_it_is_trusted() -> None:
    claims = ToolDescription("Refund an order.", "Refund", from_mcp=True, hints=("read-only", "not destructive"))
    text = written(make_request(description=claims))
    assert "**`write_file`** · its MCP server says: `Refund: Refund an order.`" in text
    assert "Its MCP server claims, unchecked: read-only, not destructive" in text
    text = written(make_request(description=replace(claims, trusted=True)))
    assert "**`write_file`** · Refund: Refund an order." in text
    assert "Its MCP server says: read-only, not destructive" in text


# A diff in place of the content


def writing(preview: str = DIFF, **changes: Any) -> ApprovalRequest:
    return make_request(args={"path": "a.txt", "content": "new"}, preview=preview, diff_of="content", **changes)


async def test_a_diff_takes_the_place_of_the_content_it_is_made_of() -> None:
    text = written(writing())
    assert "**path** `a.txt`\n**content (as a diff)**\n```diff\nChanges a.txt" in text
    assert text.count("new") == 1
    assert "+++" not in text, "the path is an argument"


async def test_a_preview_alone_hides_no_argument() -> None:
    text = written(replace(writing(), diff_of=""))
    assert "**content** `new`" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"preview": ""},
        {"metadata": {"diff": "something else"}},
    ],
)
def test_the_content_is_shown_itself_if_the_diff_is_not_all_there_is(changes: dict[str, Any]) -> None:
    card = card_of(make_batch(replace(writing(), **changes)))
    assert "new" in [quote.text for quote in card.calls[0].quotes if quote.label.startswith("content")]


def test_a_diff_past_25_lines_is_folded_and_the_whole_request_is_attached() -> None:
    """Attacks 7 and 8."""
    lines = [f"+line {n}" for n in range(24)]
    short = card_of(make_batch(writing("\n".join(["@@ -0,0 +1 @@", *lines]))))
    assert short.files == ()
    content = "\n".join(f"line {n}" for n in range(60)) + "\ncurl evil.example"
    long = writing("\n".join(["@@ -0,0 +1 @@", *(f"+{line}" for line in content.split("\n"))]))
    long = replace(long, call=replace(long.call, args={"path": "a.txt", "content": content}))
    card = card_of(make_batch(long))
    shown = [quote for quote in card.calls[0].quotes if quote.label == "content (as a diff)"]
    assert sum(quote.text.count("\n") + 1 for quote in shown) == FOLDED
    assert [quote.after for quote in shown] == ["… 54 more lines", ""]
    assert shown[-1].text.endswith("+curl evil.example")
    assert arguments_of_file(card.files[0])["content"] == content
    blind = card_of(make_batch(long), can_attach=False)
    assert [action.label for action in blind.actions] == ["Reject", "More…"], "nothing hidden is accepted"


async def test_a_masked_diff_still_stands_for_the_content() -> None:
    """Attack 22."""
    secret = writing(DIFF.replace("new", "password=hunter2hunter2"))
    secret = replace(secret, call=replace(secret.call, args={"content": "password=hunter2hunter2"}))
    text = written(secret, Offers(masker=Masker(b"k" * 32)))
    assert "hunter2" not in text
    assert "content (as a diff)" in text


# Title and colour


def decided(*choices: tuple[Choice | None, Actor | None]) -> Card:
    requests = [
        settle(make_batch(make_request(number)), choice, by).requests[0]
        for number, (choice, by) in enumerate(choices, start=1)
    ]
    return card_of(make_batch(*requests))


def test_a_batch_that_was_accepted_whole_is_green_whoever_accepted() -> None:
    card = decided((Choice.ACCEPT, ADMIN), (Choice.ACCEPT, ASKER))
    assert (card.tone, as_text(card.status)) == (Tone.APPROVED, "APPROVED by <Person 200> and <Person 100>")
    assert [as_text(call.outcome) for call in card.calls] == ["APPROVED by <Person 200>", "APPROVED by <Person 100>"]


def test_a_batch_that_was_rejected_whole_is_red_and_anything_else_is_mixed() -> None:
    assert decided((Choice.REJECT, ADMIN), (Choice.REJECT, ASKER)).tone is Tone.REJECTED
    mixed = decided((Choice.ACCEPT, ADMIN), (Choice.REJECT, ADMIN), (None, None))
    assert (mixed.tone, as_text(mixed.status)) == (Tone.MIXED, "DECIDED: 1 approved, 1 rejected, 1 expired")


async def test_the_outcome_of_each_call_is_in_its_first_line() -> None:
    endings = {1: Choice.ACCEPT, 2: Choice.REJECT}
    requests = [settle(make_batch(announcement(id=f"{n:02}" * 8)), choice).requests[0] for n, choice in endings.items()]
    lines = "\n".join(texts(render(make_batch(*requests), NOW))).split("\n")
    tools = [line for line in lines if "`post_announcement`" in line]
    assert tools == [
        "**1.** **`post_announcement`** · **APPROVED by <@200>** · Post a message.",
        "**2.** **`post_announcement`** · **REJECTED by <@200>** · Post a message.",
    ]
    assert sum("by <@200>" in line for line in lines) == 2, "and nowhere else"


async def test_the_outcome_is_the_title_of_a_settled_card() -> None:
    settled = settle(make_batch(announcement()))
    first, *_, last = texts(render(settled, NOW))
    assert first == "### APPROVED by <@200>"
    assert "rejected <t:" not in last

"""Who may ask, and the text, title and origin that a mention becomes."""

from __future__ import annotations

import pytest

from signoff.approvals.model import DIRECT, Actor, Place
from signoff.bot.access import Access
from signoff.bot.deletions import DeletedChannels
from signoff.bot.mentions import request_text
from signoff.bot.origins import Origin, origin, title

HERE = frozenset({"20", "21"})


def member(*roles: str, server: str = "1", is_bot: bool = False) -> Actor:
    return Actor("9", "Max", server, frozenset(roles), is_bot=is_bot)


@pytest.mark.parametrize(
    ("access", "actor", "allowed"),
    [
        (Access(), member(), True),
        (Access(servers=frozenset({"1"})), member(), True),
        (Access(servers=frozenset({"2"})), member(), False),
        (Access(channels=frozenset({"21"})), member(), True),
        (Access(channels=frozenset({"22"})), member(), False),
        (Access(roles=frozenset({"5"})), member("5", "6"), True),
        (Access(roles=frozenset({"5"})), member("6"), False),
        (Access(roles=frozenset({"5"})), member(), False),
        (Access(servers=frozenset({"1"}), channels=HERE, roles=frozenset({"5"})), member("5"), True),
        (Access(), member(server=DIRECT), False),
        (Access(dm_users=frozenset({"9"})), member(server=DIRECT), True),
        (Access(dm_users=frozenset({"8"})), member(server=DIRECT), False),
        (Access(dm_users=frozenset({"9"}), servers=frozenset({"1"})), member(server=DIRECT), True),
        (Access(dm_users=frozenset({"9"})), member(server=DIRECT, is_bot=True), False),
        (Access(), member(is_bot=True), False),
    ],
)
def test_access(access: Access, actor: Actor, allowed: bool) -> None:
    refusal = access.refusal(actor, HERE)
    assert (refusal is None) == allowed
    assert refusal is None or refusal.endswith(".")


def test_our_mention_is_taken_out_and_others_stay() -> None:
    assert request_text("<@5> hello <@!5> <@6>", 5) == "hello <@6>"
    assert request_text("hello <@5>", 5) == "hello"
    assert request_text(" <@5> ", 5) == ""
    assert request_text("<@55> x", 5) == "<@55> x"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tidy up", "tidy up"),
        ("tidy\n\nup  <@123> <#5> <:x:9>", "tidy up"),
        ("a\u200bb\u202ec\u3164", "abc"),
        ("", "A request"),
        ("<@1>", "A request"),
        ("> Olga wrote this\nsum it up", "sum it up"),
        ("Signoff, tidy up", "tidy up"),
        ("@signoff: tidy up", "tidy up"),
        ("signoffs are late", "signoffs are late"),
        ("what does Signoff do", "what does Signoff do"),
    ],
)
def test_titles(text: str, named: str) -> None:
    assert title(text, "Signoff") == named


@pytest.mark.parametrize("text", ["word " * 60, "x" * 400, "😀" * 300, "日本語 " * 50])
def test_long_titles_are_cut_within_the_limit(text: str) -> None:
    name = title(text)
    assert 0 < len(name.encode("utf-16-le")) // 2 <= 100
    assert name.endswith("…")


def test_a_turns_id_says_where_it_came_from() -> None:
    source = Origin("12", "34")
    assert origin(source.turn) == source
    assert source.opens(Place("1", "34", "34"))
    assert not source.opens(Place("1", "12", "12"))
    for other in ("", "12", "a-b", "12-34-56", "discord:7", "12-34\n"):
        assert origin(other) is None


def test_deleted_channels_are_remembered_within_bounds() -> None:
    gone = DeletedChannels(kept=2)
    for channel in "abc":
        gone.note(channel)
    assert [channel in gone for channel in "abc"] == [False, True, True]

"""The commands' input and wording, without Discord: rules from options, ids of pages, rows as text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signoff.approvals.audit import AuditRow
from signoff.approvals.errors import Refused
from signoff.approvals.model import Ruling, Verdict
from signoff.approvals.policy import Rule
from signoff.bot.admin import listing
from signoff.bot.admin.autocomplete import offered
from signoff.bot.admin.options import Asked, build_rule, read_arguments, remarks
from signoff.bot.admin.record import fitting
from signoff.bot.admin.record_pages import Filters, Page, Spot, checked_filters, newest_page, page_at, read_id, write_id
from signoff.bot.admin.record_wording import KINDS, row_text, what
from signoff.bot.split import size
from signoff.store.codec import dump_rule, load_rule
from tests.rigs.admin import NOW, OPERATOR_RULES, TOOLS


def row(kind: str, /, *, actor: str = "1", **data: Any) -> AuditRow:
    return AuditRow(7, NOW, kind, "9", "abc", actor, "delete_file", json.dumps(data), "", "")


# Rules from options


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Asked(""), "tool is empty"),
        (Asked("x" * 101), "longer than 100"),
        (Asked("a\u200bb"), "hidden character"),
        (Asked("a\nb"), "one line"),
        (Asked("t", pattern="a"), "pattern needs argument"),
        (Asked("t", argument="a"), "argument needs pattern"),
        (Asked("t", unless_pattern="a"), "unless_pattern needs unless_argument"),
        (Asked("t", argument="a", pattern="a||b"), "empty pattern"),
        (Asked("t", argument="a", pattern="|".join("abcdefghijklmnopqrstu")), "more than 20 patterns"),
        (Asked("t", argument="a", pattern="x" * 1001), "longer than 1000"),
        (Asked("t", timeout="0"), "timeout must be a duration"),
        (Asked("t", timeout="31d"), "30 days"),
        (Asked("t", timeout="nan"), "timeout must be a duration"),
        (Asked("t", timeout="10 parsecs"), "timeout must be a duration"),
        (Asked("t", timeout="1m", reminder="1m"), "shorter than timeout"),
        (Asked("t", ping=True), "ping needs a reminder"),
        (Asked("t", quorum=0), "from 1 to 10"),
        (Asked("t", quorum=2, person="1"), "only one person"),
        (Asked("t", verdict="deny", timeout="1m"), "timeout can't be set"),
        (Asked("t", verdict="allow", role="1", four_eyes=True), "role, four_eyes can't be set"),
        (Asked("t", verdict="allow", message="x"), "message can't be set"),
        (Asked("t", message="\u202e"), "hidden character"),
        (Asked("t", notify="everybody"), "notify must be none, ping or dm"),
        (Asked("t", notify="ping", approvals_channel="5"), "can't both be set"),
        (Asked("t", verdict="deny", approvals_channel="5"), "approvals_channel can't be set"),
        (Asked("t", verdict="allow", notify="dm"), "notify can't be set"),
    ],
)
def test_an_impossible_rule_is_refused_in_words(asked: Asked, why: str) -> None:
    with pytest.raises(Refused, match=why):
        build_rule(asked)


def test_times_are_written_as_in_the_config() -> None:
    assert build_rule(Asked("t", timeout="90s")).timeout == 90.0
    assert build_rule(Asked("t", timeout=" 1.5h ")).timeout == 5400.0
    assert build_rule(Asked("t", timeout="600")).timeout == 600.0


def test_a_rule_says_how_approvers_are_told_and_comes_back_from_its_row() -> None:
    for asked, notify, words in (
        (Asked("t", notify="dm"), "dm", "approvers get a direct message"),
        (Asked("t", approvals_channel="5"), "channel:5", "the card is shown in <#5> too"),
        (Asked("t"), None, ""),
    ):
        rule = build_rule(asked)
        assert rule.notify == notify
        assert words in listing.rule_line(rule)
        assert load_rule(dump_rule(rule)) == rule


def test_a_bar_can_be_part_of_a_pattern() -> None:
    assert build_rule(Asked("t", argument="c", pattern=r"cat * \| sh | rm *")).when == {"c": ("cat * | sh", "rm *")}


def test_the_message_of_a_deny_goes_to_the_model_and_that_of_an_ask_on_the_card() -> None:
    deny, ask = (build_rule(Asked("t", verdict=verdict, message="why ❤️")) for verdict in ("deny", "ask"))
    assert (deny.reason, deny.message) == ("why ❤️", "")
    assert (ask.reason, ask.message) == ("", "why ❤️")


def test_remarks_only_where_there_is_something_to_say() -> None:
    assert remarks(Rule("delete_file", Verdict.ASK, when={"path": ("*",)}), TOOLS, OPERATOR_RULES) == []
    assert "relaxable" in remarks(Rule("write_file", Verdict.ALLOW), TOOLS, OPERATOR_RULES)[0]
    both = Rule("write_file", Verdict.ASK, approvers=("role:1",))
    assert remarks(both, TOOLS, OPERATOR_RULES) == []
    assert "named by both" in remarks(both, TOOLS, [Rule("write_*", Verdict.ASK, approvers=("role:2",))])[0]
    assert "more time" in remarks(Rule("*", Verdict.ASK, reminder=60.0), TOOLS, OPERATOR_RULES)[0]


@given(st.text(), st.text(), st.text(), st.text(max_size=30), st.integers() | st.none())
def test_any_options_make_a_rule_that_can_be_shown_or_a_refusal(
    tool: str, argument: str, pattern: str, timeout: str, quorum: int | None
) -> None:
    for asked in (Asked(tool, message=pattern), Asked("t", "ask", argument, pattern, timeout=timeout, quorum=quorum)):
        with suppress(Refused):
            assert "\n" not in listing.rule_line(build_rule(asked))


# Arguments to test


@pytest.mark.parametrize(
    "text", ["", "[]", "5", '{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 2}', '"x', "[" * 100_000, '{"a": "\\ud800"}']
)
def test_arguments_that_no_tool_could_get_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="arguments"):
        read_arguments(text)


def test_arguments_are_read_as_they_are() -> None:
    assert read_arguments('{"a": [1, 2.5, null, true], "ü": "x"}') == {"a": [1, 2.5, None, True], "ü": "x"}


# Wording


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "0.5 seconds"),
        (1, "1 second"),
        (90, "90 seconds"),
        (600, "10 minutes"),
        (3600, "1 hour"),
        (86400, "1 day"),
    ],
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert listing.span(seconds) == words


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (row("approved", who="Ada"), "**Approved** by <@1> (`Ada`)"),
        (row("approved", remember="always"), "**Approved** by <@1>, always remembered"),
        (
            row("approved", actor="signoff", note="mode auto_approve"),
            "**Approved by the operator's mode** `auto_approve`",
        ),
        (row("rejected", actor="signoff", note="mode auto_deny"), "**Rejected by the operator's mode** `auto_deny`"),
        (
            row("approved", actor="signoff", note="remembered: grant 12 of Ada"),
            "**Approved by a remembered decision**: `remembered: grant 12 of Ada`",
        ),
        (
            row("rejected", actor="signoff", note="nobody may decide this request"),
            "**Rejected automatically**: `nobody may decide this request`",
        ),
        (row("rejected", choice="skip"), "**Skipped** by <@1>"),
        (row("expired", actor="signoff"), "**Timed out**: nobody decided in time"),
        (row("cancelled", actor="signoff", note="stopped by Ada"), "**Cancelled**: `stopped by Ada`"),
        (row("asked", kind="may_have_run"), "**Asked again after a restart** for <@1>: the call may have run"),
        (row("asked", kind="call", why="a rule"), "**Asked** for <@1>: `a rule`"),
        (row("edited", votes_void=["2", "3"]), "**Arguments edited** by <@1>, 2 earlier votes void"),
        (row("granted", grant="g1", scope="session"), "**Remembered** by <@1> for the conversation: grant `g1`"),
        (row("rule_added", rule="ask x"), "**Rule added** by <@1>: `ask x`"),
        (row("paused"), "**Server paused** by <@1>"),
        (row("asked", kind="answer", why="the tool asks"), "**Asked for an answer** for <@1>: `the tool asks`"),
        (row("answered", who="Ada", answer='{"a":"@everyone"}'), '**Answered** by <@1> (`Ada`): `{"a":"@everyone"}`'),
        (row("answered", who="Ada", answer="{}"), "**Answered** by <@1> (`Ada`): `{}`"),
        (row("declined", who="Ada", note="no"), "**Declined** by <@1> (`Ada`): `no`"),
        (row("declined", actor="signoff", note="mode auto_deny"), "**Declined by the operator's mode** `auto_deny`"),
        (row("from_the_future", note="n"), "**`from_the_future`** by <@1>: `n`"),
        (row("approved", actor="<@&5>"), "**Approved** by `<@&5>`"),
    ],
)
def test_rows_in_words(found: AuditRow, words: str) -> None:
    assert what(found) == words


def test_every_kind_has_words_and_a_letter_of_its_own() -> None:
    assert len(KINDS) <= 25
    assert len({entry.letter for entry in KINDS.values()}) == len(KINDS)
    assert len({what(row(kind, actor="signoff")) for kind in KINDS}) >= len(KINDS) - 1
    assert all(len(entry.label) <= 100 for entry in KINDS.values())


def test_a_row_tells_time_tool_arguments_and_request() -> None:
    found = AuditRow(7, NOW, "expired", "9", "abc", "signoff", "delete_file", "{}", "digest", "")
    assert row_text(found, '{"path":"a.txt"}') == (
        f"<t:{int(NOW)}:f> **Timed out**: nobody decided in time\n"
        '-# `delete_file` · `{"path":"a.txt"}` · request `abc` · row 7'
    )
    assert "no longer kept" in row_text(found, None)


@pytest.mark.parametrize("data", ["", "[]", "null", '{"note": 5, "votes_void": 3, "who": null}', "\x00"])
@pytest.mark.parametrize("kind", [*KINDS, "nothing"])
def test_spoiled_rows_are_still_shown(kind: str, data: str) -> None:
    assert row_text(AuditRow(1, float("nan"), kind, "", "", "", "", data, "x", ""), None)


@given(st.text(min_size=1, max_size=3000), st.integers(1, 10))
@example("\U0001f600" * 3000, 10)
@example("`" * 3000, 10)
@example("\u202e" * 3000, 10)
def test_a_page_never_overflows(text: str, count: int) -> None:
    rows = [
        AuditRow(10**9 + n, NOW, kind, "9", text, text, text, json.dumps({"who": text, "note": text}), "d", "")
        for n, kind in zip(range(count), ["approved", "rejected", text] * 4, strict=False)
    ]
    page = Page(rows, older=True, newer=True)
    filters = checked_filters("1" * 18, "t" * 50, "arguments_changed")
    assert sum(map(size, fitting(page, [text] * count, filters))) <= 4000


# Ids of pages


tools = st.text(alphabet=st.sampled_from("abcXYZ019_.:/*?[]!-é"), min_size=1, max_size=40)


@given(st.booleans(), st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1) | st.none(), tools | st.none(), st.data())
def test_an_id_is_read_back_as_it_was_written(
    older: bool, seq: int, actor: int | None, tool: str | None, data: st.DataObject
) -> None:
    kind, request = data.draw(st.sampled_from([None, *KINDS])), data.draw(st.sampled_from([None, "0123456789abcdef"]))
    spot = Spot(older, seq, Filters(None if actor is None else str(actor), tool[:30] if tool else None, kind, request))
    written = write_id(spot)
    assert len(written) <= 100
    assert read_id(written) == spot


@given(st.text() | st.from_regex(r"signoff:log:[on]([0-9a-f]{16})?:[0-9a-z]{0,14}:[0-9a-z]{0,14}:[a-z]?:.{0,70}"))
def test_what_is_not_written_so_is_not_read(custom_id: str) -> None:
    spot = read_id(custom_id)
    assert spot is None or write_id(spot) == custom_id


def test_the_longest_tool_names_fit_with_every_filter() -> None:
    checked_filters("1571792512098500608", "t" * 63, "arguments_changed")
    checked_filters(None, "t" * 64, "arguments_changed")
    checked_filters("9223372036854775807", "t" * 40, "asked", "0123456789abcdef")
    with pytest.raises(Refused, match="too long together"):
        checked_filters("9223372036854775807", "t" * 64, "asked")


@pytest.mark.parametrize("wrong", ["", "0123456789abcde", "0123456789abcdefa", "0123456789abcdeg", 7])
def test_a_request_is_named_by_its_whole_id(wrong: object) -> None:
    assert checked_filters(None, None, None, " 0123456789ABCDEF ").request == "0123456789abcdef"
    with pytest.raises(Refused, match="as its card and the record show it"):
        checked_filters(None, None, None, wrong)


# Pages


class Shelf:
    """Rows of one server, and how often they were fetched."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.rows = [AuditRow(n, NOW, "asked", "9", "", "1", "", "{}", "", "") for n in sorted(numbers, reverse=True)]
        self.fetched = 0

    async def fetch(self, before: int | None, limit: int) -> Sequence[AuditRow]:
        self.fetched += 1
        return [row for row in self.rows if before is None or row.seq < before][:limit]


@given(st.sets(st.integers(1, 5000) | st.integers(1, 10**12), min_size=1, max_size=400), st.data())
def test_newer_is_the_way_back_from_older(numbers: set[int], data: st.DataObject) -> None:
    shelf = Shelf(list(numbers))
    pages = [asyncio.run(newest_page(shelf.fetch))]
    while pages[-1].older:
        pages.append(asyncio.run(page_at(shelf.fetch, Spot(True, pages[-1].rows[-1].seq, Filters()))))
    assert [row for page in pages for row in page.rows] == shelf.rows
    if len(pages) > 1:
        at = data.draw(st.integers(1, len(pages) - 1))
        shelf.fetched = 0
        back = asyncio.run(page_at(shelf.fetch, Spot(False, pages[at].rows[0].seq, Filters())))
        assert list(back.rows) == list(pages[at - 1].rows)
        assert back.newer == (at > 1)
        assert shelf.fetched <= 60


def test_a_gap_and_then_a_crowd_is_still_one_page() -> None:
    shelf = Shelf([5, *range(10**9, 10**9 + 3000)])
    page = asyncio.run(page_at(shelf.fetch, Spot(False, 5, Filters())))
    assert [row.seq for row in page.rows] == list(range(10**9 + 9, 10**9 - 1, -1))


# Suggestions


def test_suggestions_stay_within_limits() -> None:
    found = offered([(f"tool{n}", "\u202e" * 300) for n in range(60)], "")
    assert len(found) == 25
    assert all(size(choice.name) <= 100 for choice in found)
    assert offered([("x" * 101, "x")], "") == []
    assert [choice.value for choice in offered([("my_file", "my_file"), ("file", "file")], "FILE")] == [
        "file",
        "my_file",
    ]


ASKING = Ruling(Verdict.ASK, "a rule", ("role:7",), 600.0)


def by(*approvers: str) -> Ruling:
    return replace(ASKING, approvers=approvers)


@pytest.mark.parametrize(
    ("ruling", "mode", "remembered", "words"),
    [
        (Ruling(Verdict.ALLOW, "no rule"), "interactive", 0, "The tool's own code may still ask"),
        (
            ASKING,
            "auto_approve",
            0,
            "the operator's mode is auto_approve, so the call is approved automatically",
        ),
        (ASKING, "auto_deny", 1, "the operator's mode is auto_deny, so the call is rejected automatically"),
        (ASKING, "interactive", 1, "Decisions about this tool are remembered"),
        (
            replace(ASKING, approvers=("user:1&user:2",)),
            "interactive",
            0,
            "Approvers: nobody: no person is named by all",
        ),
        (
            replace(ASKING, approvers=("user:1&user:2", "user:3&role:7")),
            "interactive",
            0,
            "Approvers: <@3> and <@&7>\n",
        ),
        (replace(ASKING, approvers=()), "interactive", 0, "Approvers: nobody\n"),
    ],
)
def test_what_would_happen_is_the_whole_of_it(ruling: Ruling, mode: str, remembered: int, words: str) -> None:
    assert words in listing.ruling_text("delete_file", ruling, None, mode, remembered)


def test_nothing_is_said_of_modes_and_memory_where_there_is_none() -> None:
    text = listing.ruling_text("delete_file", ASKING, None)
    assert "mode" not in text
    assert "remembered" not in text

"""Discord's markdown: its HTML, and that no other tags ever appear."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discord_sandbox.web.markdown import ALLOWED, render

LINK = 'rel="noopener noreferrer nofollow" target="_blank"'
VOID = {"br"}
MARKUP = [
    "**",
    "*",
    "__",
    "_",
    "~~",
    "||",
    "`",
    "```",
    "\n",
    "> ",
    ">>> ",
    "# ",
    "-# ",
    "- ",
    "1. ",
    "[",
    "](",
    ")",
    "<",
]
HOSTILE = [
    "<script>", "</p>", "<img src=x onerror=alert(1)>", "javascript:alert(1)", "https://a.b/", '"', "'", "&lt;", "\\",
    "<@12>", "<@&3>", "<#4>", "<t:1700000000:R>", "<t:99999999999:F>", "<:smile:5>", "@everyone", "data:text/html,x",
    "https://a.b/\"onmouseover=alert(1)", "\u202e", "\x00", "é", "]]>", "<!--", "x",
]  # fmt: skip


class Reader(HTMLParser):
    """Checks that each tag is on the whitelist and that all are closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name in ALLOWED[tag], (tag, name)
            if name == "href":
                assert re.match(r"https?://", value or "", re.I), value
            if name == "class":
                assert value in ("mention", "spoiler", "emoji")
            if name in ("data-id", "start"):
                assert (value or "").isdecimal()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    handle_pi = unknown_decl = handle_comment

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl!r}")


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(render(text))
    reader.close()
    assert reader.open == []
    return reader


@settings(deadline=None)
@given(st.lists(st.sampled_from(MARKUP + HOSTILE), max_size=60).map("".join))
def test_only_the_whitelist_comes_out_of_markup_and_hostility(text: str) -> None:
    read(text)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_only_the_whitelist_comes_out_of_any_text(text: str) -> None:
    read(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*MARKUP, "word", "<b>", "&amp;"]), max_size=40).map("".join))
def test_no_word_disappears(text: str) -> None:
    assert read(text).text.count("word") == text.count("word")


@pytest.mark.parametrize("piece", ["[", "> ", "||", "**", "*_", "`", "- ", "1. ", "<", "![](", "\\", "__a", "~~"])
def test_long_runs_of_one_thing_are_quick(piece: str) -> None:
    start = time.perf_counter()
    read(piece * (4000 // len(piece)))
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**b** *i* _e_ __u__ ~~s~~ `c`", "<strong>b</strong> <em>i</em> <em>e</em> <u>u</u> <s>s</s> <code>c</code>"),
        ("||**x**||", '<span class="spoiler"><strong>x</strong></span>'),
        ("one\ntwo", "one<br>\ntwo"),
        (r"\*\*plain\*\*", "**plain**"),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("[t](https://a.b/c)", f'<a href="https://a.b/c" title="https://a.b/c" {LINK}>t</a>'),
        ("see https://a.b/c.", f'see <a href="https://a.b/c" title="https://a.b/c" {LINK}>https://a.b/c</a>.'),
        ("[t](javascript:alert)", "[t](javascript:alert)"),
        ("[]()", "[]()"),
        ('[t]("title")', "[t](&quot;title&quot;)"),
        ("<@1> <@!2>", '<span class="mention" data-kind="user" data-id="1">@1</span> '
                       '<span class="mention" data-kind="user" data-id="2">@2</span>'),
        ("<@&3> <#4>", '<span class="mention" data-kind="role" data-id="3">@3</span> '
                       '<span class="mention" data-kind="channel" data-id="4">@4</span>'),
        ("@everyone", '<span class="mention" data-kind="everybody">@everyone</span>'),
        ("<t:0:R>", '<time datetime="1970-01-01T00:00:00+00:00" data-stamp="0" data-style="R">'
                    "1970-01-01T00:00:00+00:00</time>"),
        ("![x](https://a.b)", f'!<a href="https://a.b" title="https://a.b" {LINK}>x</a>'),
    ],
)  # fmt: skip
def test_what_stands_in_a_line(text: str, html: str) -> None:
    assert render(text) == f"<p>{html}</p>\n"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("## Title\ntext", "<h2>Title</h2>\n<p>text</p>\n"),
        ("#### no title", "<p>#### no title</p>\n"),
        ("-# small", "<small>small</small>\n"),
        ("> q\n> r\nn", "<blockquote>\n<p>q<br>\nr</p>\n</blockquote>\n<p>n</p>\n"),
        (">>> all\nof it", "<blockquote>\n<p>all<br>\nof it</p>\n</blockquote>\n"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        ("3. a", '<ol start="3"><li>a</li>\n</ol>\n'),
        ("a ```py\nx < 1\n``` b", "<p>a</p>\n<pre><code>x &lt; 1</code></pre><p>b</p>\n"),
        ("```**no**```", "<pre><code>**no**</code></pre>"),
        (r"\```not code```", "<p>```not code```</p>\n"),
        ("---", "<p>---</p>\n"),
        ("a\n===", "<p>a<br>\n===</p>\n"),
        ("    indented", "<p>indented</p>\n"),
        ("", ""),
    ],
)
def test_what_stands_on_lines_of_its_own(text: str, html: str) -> None:
    assert render(text) == html

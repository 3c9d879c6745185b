"""Discord's markdown as HTML, made by markdown-it-py with HTML switched off.

The output has only the tags and attributes in `ALLOWED`, for any input. People, roles, channels and times become empty
elements with an id in a data attribute, because the page knows their names. `render` is a pure function of the text.

Where Discord differs from CommonMark, this follows Discord: three backticks begin a block anywhere, `__` underlines,
`||` hides, `-#` is small, every line break counts, quotes do not nest; there are no images, tables or rules.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline, link

ALLOWED: dict[str, frozenset[str]] = {
    **{tag: frozenset[str]() for tag in ("p", "br", "strong", "em", "u", "s", "code", "pre", "blockquote", "li", "ul")},
    **{tag: frozenset[str]() for tag in ("h1", "h2", "h3", "small")},
    "ol": frozenset({"start"}),
    "a": frozenset({"href", "title", "rel", "target"}),
    "span": frozenset({"class", "data-kind", "data-id"}),
    "time": frozenset({"datetime", "data-stamp", "data-style"}),
}

NESTING = 20

# An escaped character, a code block, or inline code. The one that begins first contains the others.
_SPLIT = re.compile(
    r"\\[^0-9A-Za-z\s]|```(?:(?P<language>[a-z0-9_+\-.#]+?)\n)?\n*(?P<block>[^\n][\s\S]*?)\n*```"
    r"|(?P<ticks>`+)[\s\S]*?[^`](?P=ticks)(?!`)",
    re.I,
)
_LINE = re.compile(r"(#{1,3}|-#)[ \t]+(\S.*)")
_PLAIN = re.compile(r"(?:(?!https?://)[^\n\\`*_~|<\[\]@])+", re.I)
_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
_URL = re.compile(r"https?://[^\s<]*[^\s<.,:;\"')\]]", re.I)
_TARGET = re.compile(r"\(\s*<?https?://", re.I)
_SPOILER = re.compile(r"\|\|([\s\S]+?)\|\|")
_EVERYBODY = re.compile(r"@(everyone|here)\b")
_ANGLE = re.compile(
    r"<(?:@!?(?P<user>\d{1,20})|@&(?P<role>\d{1,20})|#(?P<channel>\d{1,20})|a?:(?P<emoji>\w{1,32}):\d{1,20}"
    r"|t:(?P<stamp>-?\d{1,12})(?::(?P<style>[tTdDfFR]))?)>"
)
_HEADINGS = {"#": "h1", "##": "h2", "###": "h3", "-#": "small"}


@lru_cache(maxsize=8192)
def render(text: str) -> str:
    """Return the text as HTML that is safe to insert into the page."""
    done: list[str] = []
    at = 0
    for match in _SPLIT.finditer(text):
        if match["block"] is None:
            continue
        done.append(_prose(text[at : match.start()]))
        done.append(f"<pre><code>{_code(match['block'], match['language'] or '')}</code></pre>")
        at = match.end()
    done.append(_prose(text[at:]))
    return "".join(done)


def _code(block: str, language: str) -> str:
    """Render a code block. Only diffs are coloured, because people read those before they decide."""
    if language.lower() != "diff":
        return escape(block)
    return "\n".join(_changed(line) for line in block.split("\n"))


def _changed(line: str) -> str:
    kind = {"+": "added", "-": "removed"}.get(line[:1])
    if kind is None or line.startswith(("+++ ", "--- ")):
        return escape(line)
    return f'<span class="{kind}">{escape(line)}</span>'


def _prose(text: str) -> str:
    if not text.strip():
        return ""
    env: dict[str, Any] = {}
    tokens = _MARKDOWN.parse(text.strip("\n"), env)
    # The parser drops deeper levels. No text may disappear, so such a text is shown without its lists.
    if any(token.level >= NESTING - 1 for token in tokens):
        return _FLAT.render(text.strip("\n"), {})
    return _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, env)


def _is_link(url: str) -> bool:
    return re.match(r"https?://[^/\s]", url, re.I) is not None


def _link(state: StateInline, silent: bool) -> bool:
    """Accept only `[text](http...)`: markdown-it would make `[]()` a link to nowhere."""
    if state.src[state.pos] != "[":
        return False
    end = state.md.helpers.parseLinkLabel(state, state.pos, True)
    return end >= 0 and _TARGET.match(state.src, end + 1) is not None and link(state, silent)


def _line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse headings and small print: one line each."""
    match = _LINE.fullmatch(_text(state, start))
    if match is None:
        return False
    if silent:
        return True
    tag = _HEADINGS[match[1]]
    state.line = start + 1
    state.push("line_open", tag, 1)
    inline = state.push("inline", "", 0)
    inline.content, inline.children, inline.map = match[2].strip(), [], [start, state.line]
    state.push("line_close", tag, -1)
    return True


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse `> ` for a line and `>>> ` for all the rest. A quote in a quote is plain text."""
    if state.env.get("quoted"):
        return False
    first = _text(state, start)
    if first.startswith(">>> "):
        lines = [first[4:], *(_text(state, number) for number in range(start + 1, end))]
    else:
        lines: list[str] = []
        for number in range(start, end):
            text = _text(state, number)
            if not text.startswith("> "):
                break
            lines.append(text[2:])
    if not lines:
        return False
    if silent:
        return True
    state.line = start + len(lines)
    state.push("blockquote_open", "blockquote", 1)
    state.env["quoted"] = True
    state.md.block.parse("\n".join(lines), state.md, state.env, state.tokens)
    state.env["quoted"] = False
    state.push("blockquote_close", "blockquote", -1)
    return True


def _text(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _plain(state: StateInline, silent: bool) -> bool:
    match = _PLAIN.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.pending += match[0]
    state.pos = match.end()
    return True


def _escape(state: StateInline, silent: bool) -> bool:
    match = _ESCAPED.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.pending += match[1]
    state.pos = match.end()
    return True


def _bare_link(state: StateInline, silent: bool) -> bool:
    match = _URL.match(state.src, state.pos, state.posMax)
    if match is None or state.linkLevel or not _is_link(match[0]):
        return False
    if not silent:
        state.push("link_open", "a", 1).attrs = {"href": state.md.normalizeLink(match[0])}
        state.push("text", "", 0).content = match[0]
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _spoiler(state: StateInline, silent: bool) -> bool:
    match = _SPOILER.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        end = state.posMax
        state.push("spoiler_open", "span", 1)
        state.pos, state.posMax = match.start(1), match.end(1)
        state.md.inline.tokenize(state)
        state.posMax = end
        state.push("spoiler_close", "span", -1)
    state.pos = match.end()
    return True


def _reference(state: StateInline, silent: bool) -> bool:
    """Parse people, roles, channels, times and custom emoji in angle brackets, and `@everyone` and `@here`."""
    match = _ANGLE.match(state.src, state.pos, state.posMax) or _EVERYBODY.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("reference", "", 0)
        token.content = match[0]
        token.meta = {key: value for key, value in match.groupdict().items() if value is not None}
    state.pos = match.end()
    return True


def _show_reference(renderer: object, tokens: Any, index: int, options: object, env: object) -> str:
    token = tokens[index]
    meta: dict[str, str] = token.meta
    if "stamp" in meta:
        return _moment(int(meta["stamp"]), meta.get("style", "f"), token.content)
    if "emoji" in meta:
        return f'<span class="emoji">:{escape(meta["emoji"])}:</span>'
    for kind, number in meta.items():
        return f'<span class="mention" data-kind="{kind}" data-id="{number}">@{number}</span>'
    return f'<span class="mention" data-kind="everybody">{escape(token.content)}</span>'


def _moment(stamp: int, style: str, source: str) -> str:
    try:
        when = datetime.fromtimestamp(stamp, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return escape(source)
    return f'<time datetime="{when}" data-stamp="{stamp}" data-style="{style}">{when}</time>'


def _show_link(renderer: object, tokens: Any, index: int, options: object, env: object) -> str:
    # The title shows the address too, because the text of a link may claim anything.
    href = escape(str(tokens[index].attrs.get("href", "")))
    return f'<a href="{href}" title="{href}" rel="noopener noreferrer nofollow" target="_blank">'


def _show_strong(renderer: object, tokens: Any, index: int, options: object, env: object) -> str:
    token = tokens[index]
    tag = "u" if token.markup == "__" else "strong"
    return f"<{tag}>" if token.nesting == 1 else f"</{tag}>"


def _show_list(renderer: object, tokens: Any, index: int, options: object, env: object) -> str:
    start = tokens[index].attrs.get("start")
    return f'<ol start="{int(start)}">' if start is not None else "<ol>"


def _build() -> MarkdownIt:
    markdown = MarkdownIt("zero", {"html": False, "breaks": True, "maxNesting": NESTING})
    markdown.enable(["list", "newline", "backticks", "strikethrough", "emphasis", "link", "autolink"])
    markdown.validateLink = _is_link  # type: ignore[method-assign]
    interrupts: RuleOptionsType = {"alt": ["paragraph", "list"]}
    markdown.block.ruler.before("list", "line", _line, interrupts)
    markdown.block.ruler.before("list", "quote", _quote, interrupts)
    markdown.inline.ruler.at("text", _plain)
    markdown.inline.ruler.at("link", _link)
    markdown.inline.ruler.after("text", "bare_link", _bare_link)
    markdown.inline.ruler.before("backticks", "discord_escape", _escape)
    markdown.inline.ruler.after("backticks", "spoiler", _spoiler)
    markdown.inline.ruler.before("autolink", "reference", _reference)
    markdown.add_render_rule("reference", _show_reference)
    markdown.add_render_rule("link_open", _show_link)
    markdown.add_render_rule("ordered_list_open", _show_list)
    markdown.add_render_rule("strong_open", _show_strong)
    markdown.add_render_rule("strong_close", _show_strong)
    markdown.add_render_rule("spoiler_open", lambda *_: '<span class="spoiler">')
    markdown.add_render_rule("spoiler_close", lambda *_: "</span>")
    return markdown


_MARKDOWN = _build()
_FLAT = _build().disable("list")

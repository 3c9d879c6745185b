"""The language of the offline demo model: a prompt's text becomes rounds of tool calls, or a reply.

Works on text alone, knows nothing of PydanticAI and keeps no state. There are two kinds of prompts:

- plain requests: the table `REQUESTS`, each with an example that help prints. In a text to write, a backslash and an
  n are a line break;
- the exact form `call NAME {"argument": "value"}` for any tool. Several of them, separated by `;` or on lines of their
  own, are one batch. `then call ...` starts the next round, after the results of the one before. `call NAME raw TEXT`
  sends the rest of the line as the arguments, even if it is not JSON. `say WORDS` before a call adds text to it.

These phrases may appear anywhere outside the JSON: "as json" and "as dict" choose the form of the arguments, "with
repeated call ids" uses the same ids again in every response, "with duplicate call ids" gives all calls of a response
one id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

from signoff.agent.demo.full_log import LOG, MACHINE
from signoff.dataclass import dataclass

Form = Literal["dict", "json"]
CallIds = Literal["unique", "repeated", "duplicate"]


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    args: dict[str, Any] | str
    """A text is sent unchanged."""


@dataclass(frozen=True, slots=True)
class Round:
    """One response of the model."""

    calls: tuple[Call, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    rounds: tuple[Round, ...] = ()
    """If empty, the prompt was not understood."""
    form: Form = "dict"
    ids: CallIds = "unique"
    story: bool = False
    """If true, `story` decides after each round how to go on."""


class CannotFollow(Exception):
    """The prompt asks for something that cannot be done; the text says what."""


@dataclass(frozen=True, slots=True)
class Request:
    """A plain request: an example, the pattern that finds it, and a function that builds its rounds."""

    example: str
    pattern: re.Pattern[str]
    build: Callable[[re.Match[str], str], Sequence[Round]]
    needs: tuple[str, ...] = ()
    """Tools that this request may use in addition to those of its rounds."""
    story: bool = False
    shows: str = ""
    """The tool that somebody sees at work with this example, if it calls one tool, once, without a trick."""

    def fits(self, tools: Collection[str]) -> bool:
        """Whether the example can be followed with these tools."""
        found = self.pattern.search(_QUOTED.sub('""', self.example))
        calls = [call for each in self.build(found, self.example) for call in each.calls] if found else []
        return {call.tool for call in calls} | set(self.needs) <= set(tools)


_QUOTED = re.compile(r'["“]([^"”]*)["”]')
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_NUMBER = r"(one|two|three|four|five|[1-9]\d{0,3})"
_PATH = r"(\S*[./]\S*)"
"""A word that looks like a path, so that "read me a poem" is not a request."""
_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\\": "\\"}
_ESCAPED = re.compile(r"\\[nrt\\]")
_LONGEST = 200_000
CHECK = "check_disk"
"""The tool of the simulated machine. Only the sandbox has it."""


def _one(tool: str, **args: Any) -> list[Round]:
    return [Round((Call(tool, args),))]


def _test_approval(found: re.Match[str], text: str) -> Sequence[Round]:
    if re.search(r"\blong\b", text, re.I):
        return _one("test_discord_approval", test_parameter=_filler(_count_of_characters(text, 20_000)))
    return _one("test_discord_approval", test_parameter=_quoted(text, "hello"))


def _announcement(found: re.Match[str], text: str) -> Sequence[Round]:
    audience = "everyone" if re.search(r"\b(everyone|everybody|all)\b", text, re.I) else "team"
    return _one("post_announcement", text=_quoted(text, "Lunch is at noon."), audience=audience)


def _dice(found: re.Match[str], text: str) -> Sequence[Round]:
    short = re.search(r"\b(\d+)d(\d+)\b", text, re.I)
    count = re.search(r"\b(\d+) (?:\d+-sided )?dice\b", text, re.I)
    sides = re.search(r"\b(\d+)[ -]side", text, re.I)
    if short:
        return _one("roll_dice", sides=int(short[2]), count=int(short[1]))
    return _one("roll_dice", sides=int(sides[1]) if sides else 6, count=int(count[1]) if count else 1)


def _time(found: re.Match[str], text: str) -> Sequence[Round]:
    zone = re.search(r"\bin ([A-Za-z_]+(?:/[A-Za-z_]+)+|UTC)", text)
    return _one("current_time", timezone=zone[1] if zone else "UTC")


def _read_file(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("read_file", path=_path(found[1]))


def _write_file(found: re.Match[str], text: str) -> Sequence[Round]:
    content = _ESCAPED.sub(lambda code: _ESCAPES[code[0]], _quoted(text, ""))
    return _one("write_file", path=_path(found[1]), content=content)


def _write_lines(found: re.Match[str], text: str) -> Sequence[Round]:
    number = _NUMBERS.get(found[2].lower()) or int(found[2])
    return _one("write_file", path=_path(found[1]), content="".join(f"line {n + 1}\n" for n in range(number)))


def _delete_file(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("delete_file", path=_path(found[1]))


def _rotate_log(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("rotate_log", path=_path(found[1]) if found[1] else LOG)


def _check_disk(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one(CHECK, host=_path(found[1]))


def _incident(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("read_file", path=LOG)


def _read_channel(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("read_channel", channel=_bare(found[1]))


def _post(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("post_message", channel=_bare(found[1]), text=_quoted(text, ""))


def _time_out(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("time_out_member", member=_bare(found[1]), minutes=int(found[2]))


def _ban(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("ban_member", member=_bare(found[1]))


def _bare(mention: str) -> str:
    """Return the id in a mention such as <@123>. If somebody typed a name instead, the tool says what it needs."""
    return mention.strip("<>@!#&,.;")


def _path(word: str) -> str:
    """Remove quotes and the punctuation at the end of a sentence from a path."""
    return word.strip("`").rstrip(",;:!?").removesuffix(".").rstrip("`")


def _batch(found: re.Match[str], text: str) -> Sequence[Round]:
    dice, time = Call("roll_dice", {"sides": 6, "count": 2}), Call("current_time", {"timezone": "UTC"})
    return [Round((dice, Call("test_discord_approval", {"test_parameter": _quoted(text, "one of three")}), time))]


def _rounds(found: re.Match[str], text: str) -> Sequence[Round]:
    number = _NUMBERS.get(found[1].lower()) or int(found[1])
    return [Round((Call("test_discord_approval", {"test_parameter": f"round {n + 1}"}),)) for n in range(number)]


def _ask(found: re.Match[str], text: str) -> Sequence[Round]:
    environment = {"name": "Environment", "question": "Where should I deploy it?", "kind": "choice"}
    copies = {"name": "Copies", "question": "How many copies should run?", "kind": "number"}
    note = {"name": "Note", "question": "Is there anything else I should know?", "optional": True}
    return _one("ask_user", questions=[{**environment, "options": ["staging", "production"]}, copies, note])


def _failure(found: re.Match[str], text: str) -> Sequence[Round]:
    return _one("current_time", timezone="Nowhere/Land")


def _long_answer(found: re.Match[str], text: str) -> Sequence[Round]:
    return [Round(words=_filler(_count_of_characters(text, 5_000)))]


def _words(found: re.Match[str], text: str) -> Sequence[Round]:
    said = _SAY.search(text)
    return [Round(words=said[2].strip().strip('"'))] if said else []


def _request(
    example: str, pattern: str, build: Callable[[re.Match[str], str], Sequence[Round]], shows: str = ""
) -> Request:
    return Request(example, re.compile(pattern, re.I), build, shows=shows)


INCIDENT = f"incident: the disk of {MACHINE} is full"
REQUESTS: tuple[Request, ...] = (
    Request(
        INCIDENT,
        re.compile(r"\bincident\b|\bdisk\b.*\bfull\b", re.I),
        _incident,
        needs=("delete_file", "rotate_log"),
        story=True,
    ),
    _request(f"check the disk of {MACHINE}", r"\bcheck (?:the )?disk (?:of |on )?(\S+)", _check_disk, CHECK),
    _request("ban @Max", r"\bban (<?@\S+)", _ban, "ban_member"),
    _request("time out @Max for 10 minutes", r"\btime ?out (<?@\S+) for (\d{1,5}) min", _time_out, "time_out_member"),
    _request('post "Lunch is at noon." in #general', r'\bpost "" in (<?#\S+)', _post, "post_message"),
    _request("read #general", r"\bread (?:the channel )?(<?#\S+)", _read_channel, "read_channel"),
    _request('write "PORT=8080" to config/app.env', r'\bwrite "" (?:in)?to (\S+)', _write_file),
    _request(
        "write notes.txt with three lines", rf"\bwrite {_PATH} with {_NUMBER} lines?\b", _write_lines, "write_file"
    ),
    _request("read notes.txt", rf"\bread (?:the file )?{_PATH}", _read_file, "read_file"),
    _request("rotate notes.txt", rf"\b(?:rotate|compress) (?:{_PATH}|it\b|the log\b)", _rotate_log, "rotate_log"),
    _request("delete notes.txt", rf"\bdelete (?:the file )?{_PATH}", _delete_file, "delete_file"),
    _request("three rounds", r"\b(two|three|four|five|[1-9]\d?) rounds\b", _rounds),
    _request("a batch of three calls, one of them protected", r"\bbatch\b|\bthree calls\b", _batch),
    _request("ask me what you need to deploy the app", r"\bask me\b", _ask, "ask_user"),
    _request("use a tool that fails", r"\bfail(?:s|ing|ure)?\b", _failure),
    _request('announce "Lunch is at noon." to everyone', r"\bannounce", _announcement, "post_announcement"),
    _request(
        'please run the test approval tool with parameter "hello"',
        r"\btest[ _](?:discord[ _])?approval\b|\bapproval test\b",
        _test_approval,
        "test_discord_approval",
    ),
    _request("roll 2 dice", r"\broll\b", _dice, "roll_dice"),
    _request("what time is it in Europe/Berlin", r"\b(?:what time|current time|time is it)\b", _time, "current_time"),
    _request("answer with 5000 characters", r"\banswer with [\d,]+ characters\b", _long_answer),
    _request("say good morning", r"\A\W*say\s", _words),
)
"""The first request whose pattern is found is used."""

_CALL = re.compile(
    r"(?:^|(?<=[;:,`])|(?<![\w\"])(?=(?:and|then|please|now)\s))\s*"
    r"(?P<lead>(?:(?:and|then|please|now|first)\s+)*)call\s+(?P<tool>[A-Za-z_][\w.-]*)[ \t]*",
    re.I | re.M,
)
_RAW = re.compile(r"raw[ \t]+([^\n]*)", re.I)
_SAY = re.compile(r"\b(then\s+)?say\s+([^;\n]+)", re.I)
_MENTION = re.compile(r"\A\s*(?:<@[!&]?\d+>\s*)+")
"""Mentions at the beginning. Further mentions are part of the request."""


def without_mentions(prompt: str) -> str:
    return _MENTION.sub("", prompt).strip()


def read(prompt: str, tools: Collection[str]) -> Plan:
    """Return the plan for a prompt. `tools` are the names of the available tools. Raises CannotFollow."""
    rounds, outside = _exact(prompt, tools)
    story = False
    if not rounds:
        rounds, needs, story = _plain(prompt)
        # Only the exact form may call a tool that does not exist, so that people can see what happens.
        if missing := ({call.tool for each in rounds for call in each.calls} | set(needs)) - set(tools):
            raise CannotFollow(f"the tool {', '.join(sorted(missing))} is not enabled here")
    phrases = _QUOTED.sub('""', outside)
    return Plan(tuple(rounds), _form(phrases), _ids(phrases), story)


def _plain(text: str) -> tuple[Sequence[Round], tuple[str, ...], bool]:
    """Return the rounds of the first request that is found, its further tools, and whether it is the story."""
    unquoted = _QUOTED.sub('""', text)
    for request in REQUESTS:
        if match := request.pattern.search(unquoted):
            return request.build(match, text), request.needs, request.story
    return (), (), False


def _exact(text: str, tools: Collection[str]) -> tuple[Sequence[Round], str]:
    """Return the rounds of the `call` form, and the text without their arguments."""
    rounds: list[Round] = []
    outside, at = "", 0
    while match := _CALL.search(text, at):
        before = text[at : match.start()]
        call, at = _arguments(text, match, tools)
        outside += before + match[0]
        if call is None:
            continue
        said = _SAY.search(before)
        if not rounds or "then" in match["lead"].lower().split() or (said and said[1]):
            rounds.append(Round())
        last = rounds[-1]
        rounds[-1] = Round((*last.calls, call), said[2].strip().strip('"') if said else last.words)
    return rounds, outside + text[at:]


def _arguments(text: str, match: re.Match[str], tools: Collection[str]) -> tuple[Call | None, int]:
    tool, at = match["tool"], match.end()
    if raw := _RAW.match(text, at):
        return Call(tool, raw[1]), raw.end()
    if text[at:].lstrip().startswith("{"):
        at = text.index("{", at)
        try:
            args, end = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            example = f'call {tool} {{"argument": "value"}}'
            raise CannotFollow(f"the arguments of {tool} are not JSON ({error}), write {example}") from None
        return Call(tool, args), end
    # "call me tomorrow" is not a call, but "call list_notes" is one without arguments.
    return (Call(tool, {}) if tool in tools else None), at


def _form(text: str) -> Form:
    return "json" if re.search(r"\bas json\b", text, re.I) else "dict"


def _ids(text: str) -> CallIds:
    found = re.search(r"\bwith (repeated|duplicate) call ids\b", text, re.I)
    if not found:
        return "unique"
    return "repeated" if found[1].lower() == "repeated" else "duplicate"


def _quoted(text: str, default: str) -> str:
    found = _QUOTED.search(text)
    return found[1] if found else default


def _count_of_characters(text: str, default: int) -> int:
    found = re.search(r"\b(\d[\d,]*) characters\b", text, re.I)
    return min(int(found[1].replace(",", "")), _LONGEST) if found else default


def _filler(length: int) -> str:
    """Return text of exactly this length in which every position is recognizable."""
    words = " ".join(f"{number:05d}" for number in range(length // 6 + 1))
    return f"{words} "[:length].replace(" ", "-") if length else ""

"""Check the options of commands: the rule of `/signoff protect`, the arguments of `/signoff test`, and ids.

Each problem is explained so that the person can fix it. Options may hold anything, because a forged command bypasses
the checks of Discord's client. Pure functions that know rules and tools, not interactions.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Sequence
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from signoff.approvals.errors import Refused
from signoff.approvals.model import JsonObject, Verdict
from signoff.approvals.notify import CHANNEL, DM, NONE, PING
from signoff.approvals.policy import Patterns, Rule
from signoff.approvals.tool_description import MARKS
from signoff.config.schema import Duration
from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import visible
from signoff.turns.administration import ToolFacts

TOOL_SPACE = 100
ARGUMENT_SPACE = 100
PATTERN_SPACE = 1000
"""Characters for all patterns of one option together."""
MESSAGE_SPACE = 500
MOST_PATTERNS = 20
MOST_PEOPLE = 10
DURATION_HINT = 'such as "90s", "10m" or "1h", from 0.1 seconds to 30 days'

RELAXABLE = "allow takes effect only where an operator rule asks and is marked relaxable."
NONE_RELAXABLE = "No such rule matches this tool at the moment, so nothing changes."

_ID = lazy_pattern(r"[0-9A-Za-z_-]{1,40}")
_BAR = lazy_pattern(r"(?<!\\)\|")
_JOINED = {"\ufe0f", "\u200d"}
"""Hidden characters that are parts of ordinary emoji: allowed only in a message."""
_duration: TypeAdapter[float] = TypeAdapter(Duration)


@dataclass(frozen=True, slots=True)
class Asked:
    """The unchecked options. The role and the person are ids."""

    tool: str
    verdict: str = "ask"
    argument: str | None = None
    pattern: str | None = None
    unless_argument: str | None = None
    unless_pattern: str | None = None
    role: str | None = None
    person: str | None = None
    quorum: int | None = None
    four_eyes: bool | None = None
    timeout: str | None = None
    reminder: str | None = None
    ping: bool | None = None
    message: str | None = None
    notify: str | None = None
    approvals_channel: str | None = None
    mark: str | None = None


def build_rule(asked: Asked) -> Rule:
    """Build a rule from the options. Raises Refused with a text for the person who typed the command."""
    verdict = _verdict(asked.verdict)
    tools = _tools(asked.tool)
    quorum = _quorum(asked)
    timeout, reminder = _seconds("timeout", asked.timeout), _seconds("reminder", asked.reminder)
    message = "" if asked.message is None else checked_text("message", asked.message, MESSAGE_SPACE, allowed=_JOINED)
    if verdict is not Verdict.ASK:
        _nobody_is_asked(asked, verdict)
    if asked.ping and reminder is None:
        raise Refused("ping needs a reminder: set reminder to a time before the deadline, or leave ping out.")
    if timeout is not None and reminder is not None and reminder >= timeout:
        raise Refused(
            "reminder must be shorter than timeout: it says how long before the deadline the reminder is posted."
        )
    return Rule(
        tools[0] if len(tools) == 1 else tools,
        verdict,
        when=_patterns("argument", asked.argument, "pattern", asked.pattern),
        unless=_patterns("unless_argument", asked.unless_argument, "unless_pattern", asked.unless_pattern),
        approvers=_approvers(asked),
        timeout=timeout,
        reason=message if verdict is Verdict.DENY else "",
        quorum=quorum,
        four_eyes=bool(asked.four_eyes),
        reminder=reminder,
        ping=bool(asked.ping),
        message=message if verdict is Verdict.ASK else "",
        notify=_notify(asked),
        **_marks(asked.mark),
    )


def remarks(rule: Rule, tools: Sequence[ToolFacts], operator_rules: Sequence[Rule]) -> list[str]:
    """Return notes, as trusted text, that the person should read about their valid rule."""
    known = [tool for tool in tools if rule.concerns(tool.name, tool.marks)]
    said: list[str] = []
    if not known:
        what = "has these marks" if rule.marks and any(rule.names(tool.name) for tool in tools) else "has that name"
        said.append(f"No known tool {what} at the moment. The rule is kept and applies once there is one.")
    for name in dict.fromkeys((*rule.when, *rule.unless)) if known else ():
        if not any(name in tool.arguments for tool in known):
            said.append(
                "No matching tool has one of these arguments at the moment, and a missing argument never matches."
            )
            break
    names = [tool.name for tool in known] or rule.globs
    asking = [one for one in operator_rules if one.verdict is Verdict.ASK and any(map(one.names, names))]
    if rule.verdict is Verdict.ALLOW:
        useful = any(one.relaxable for one in asking)
        said.append(RELAXABLE if useful else f"{RELAXABLE} {NONE_RELAXABLE}")
    if rule.approvers is not None and any(one.approvers is not None for one in asking):
        said.append(
            "Operator rules also name approvers for this tool. Where both match, an approver must be named by both."
        )
    if rule.reminder is not None and rule.timeout is None:
        said.append("The reminder is posted only for cards that have more time than that.")
    return said


def _verdict(given: object) -> Verdict:
    try:
        return Verdict(given)
    except ValueError:
        raise Refused("verdict must be ask, deny or allow.") from None


def checked_text(option: str, given: object, space: int, allowed: set[str] | None = None) -> str:
    text = given.strip() if isinstance(given, str) else ""
    if not text:
        raise Refused(f"{option} is empty.")
    if len(text) > space:
        raise Refused(f"{option} is longer than {space} characters.")
    bare = "".join(char for char in text if char not in (allowed or ()))
    if findings := visible(bare).findings:
        raise Refused(f"{option} {findings[0]}. Remove that and try again.")
    if "\n" in text or "\t" in text:
        raise Refused(f"{option} must be one line, without tabs.")
    return text


def _tools(given: object) -> tuple[str, ...]:
    names = [name.strip() for name in checked_text("tool", given, TOOL_SPACE).split("|")]
    if not all(names):
        raise Refused("tool has an empty name: | separates names.")
    for name in names:
        _compile("tool", name)
    return tuple(dict.fromkeys(names))


def _marks(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    name = given.removeprefix("not ")
    if name not in MARKS:
        raise Refused(f"mark must be one of {', '.join(MARKS)}, with or without the word not before it.")
    return {name: name == given}


def _patterns(name_option: str, name: str | None, globs_option: str, globs: str | None) -> Patterns:
    if name is None and globs is None:
        return {}
    if name is None:
        raise Refused(f"{globs_option} needs {name_option}: name the argument that it applies to.")
    if globs is None:
        raise Refused(f"{name_option} needs {globs_option}: give the values that match, or * for any.")
    argument = checked_text(name_option, name, ARGUMENT_SPACE)
    parts = [part.strip() for part in _BAR.split(checked_text(globs_option, globs, PATTERN_SPACE))]
    if not all(parts):
        raise Refused(rf"{globs_option} has an empty pattern: | separates patterns. Write \| for the character itself.")
    if len(parts) > MOST_PATTERNS:
        raise Refused(f"{globs_option} has more than {MOST_PATTERNS} patterns. Make several rules instead.")
    alternatives = tuple(dict.fromkeys(part.replace(r"\|", "|") for part in parts))
    for glob in alternatives:
        _compile(globs_option, glob)
    return {argument: alternatives}


def _compile(option: str, glob: str) -> None:
    try:
        re.compile(fnmatch.translate(glob))
    except (re.error, OverflowError, RecursionError):
        raise Refused(f"{option} is not a valid pattern: check its brackets.") from None


def _quorum(asked: Asked) -> int:
    quorum = 1 if asked.quorum is None else asked.quorum
    if type(quorum) is not int or not 1 <= quorum <= MOST_PEOPLE:
        raise Refused(f"quorum must be a whole number from 1 to {MOST_PEOPLE}.")
    if quorum > 1 and asked.person is not None and asked.role is None:
        raise Refused(f"{quorum} people must accept, but only one person may decide. Name a role, or lower quorum.")
    return quorum


def _seconds(option: str, given: object) -> float | None:
    if given is None:
        return None
    try:
        return _duration.validate_python(given.strip() if isinstance(given, str) else "")
    except ValidationError:
        raise Refused(f"{option} must be a duration {DURATION_HINT}.") from None


def _notify(asked: Asked) -> str | None:
    if asked.approvals_channel is not None:
        if asked.notify is not None:
            raise Refused("notify and approvals_channel can't both be set. A card in the channel tells its approvers.")
        return f"{CHANNEL}{asked.approvals_channel}"
    if asked.notify not in (None, NONE, PING, DM):
        raise Refused("notify must be none, ping or dm.")
    return asked.notify


def _approvers(asked: Asked) -> tuple[str, ...] | None:
    named = [f"role:{asked.role}"] if asked.role is not None else []
    named += [f"user:{asked.person}"] if asked.person is not None else []
    return tuple(named) or None


def _nobody_is_asked(asked: Asked, verdict: Verdict) -> None:
    given = {
        "role": asked.role is not None,
        "person": asked.person is not None,
        "quorum": asked.quorum not in (None, 1),
        "four_eyes": bool(asked.four_eyes),
        "timeout": asked.timeout is not None,
        "reminder": asked.reminder is not None,
        "ping": bool(asked.ping),
        "notify": asked.notify is not None,
        "approvals_channel": asked.approvals_channel is not None,
        "message": verdict is Verdict.ALLOW and asked.message is not None,
    }
    if set_ := [option for option, is_set in given.items() if is_set]:
        raise Refused(f"{verdict} asks nobody, so {', '.join(set_)} can't be set. Leave that out, or choose ask.")


def checked_id(what: str, given: object) -> str:
    """Return the id without surrounding spaces. Raises Refused if it cannot be an id."""
    identifier = given.strip() if isinstance(given, str) else ""
    if not _ID.fullmatch(identifier):
        raise Refused(f"That is not a {what} id. Choose one of the suggestions.")
    return identifier


def read_arguments(text: str) -> JsonObject:
    """Parse the arguments of a call from JSON. Raises Refused."""
    example = 'Write an object such as {"path": "a.txt"}.'
    try:
        arguments = json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)
        json.dumps(arguments, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise Refused(f"arguments is not valid JSON: {error.msg} at character {error.pos + 1}. {example}") from None
    except (ValueError, RecursionError, TypeError):
        raise Refused(
            f"arguments is nested too deeply, repeats a name, or holds a value that JSON does not allow. {example}"
        ) from None
    if not isinstance(arguments, dict):
        raise Refused(f"arguments is not a JSON object. {example}")
    return cast(JsonObject, arguments)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name twice")
    return members


def _finite(written: str) -> float:
    value = float(written)
    if value - value != 0:
        raise ValueError("not a number")
    return value

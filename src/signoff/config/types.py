"""The types of values in signoff.toml (durations, ids, approvers, patterns), and the hint in each one's error.

Does not know the tables that use them.
"""

from __future__ import annotations

import re
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from signoff.text.patterns import lazy_pattern

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = lazy_pattern(r"([0-9]+(?:\.[0-9]+)?) ?(ms|s|m|h|d)")
LONGEST = 30 * UNITS["d"]
_LONGEST_KEPT = 3650 * UNITS["d"]
_ID = lazy_pattern(r"[1-9][0-9]{0,19}")
_NESTED_REPEAT = lazy_pattern(r"(?<![\\+*}])(?:[+*]|\{[0-9]*,[0-9]*\})(?!\+)[^(]{0,200}\)(?:[+*](?!\+)|\{[0-9]*,)")
_APPROVER = lazy_pattern(rf"manage_server|asker|(?:role|user):{_ID.pattern}")


def _seconds(value: object) -> object:
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        return float(match[1]) * UNITS[match[2]]
    return value


def _off(value: object) -> object:
    return 0.0 if value == "off" else value


def _id(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _regular_expression(value: str) -> str:
    """Refuse an invalid expression, or one with nested repeats such as (a+)+, which may take forever on some texts."""
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None
    if _NESTED_REPEAT.search(value):
        raise ValueError("has nested repeats")
    return value


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ValueError("is not a known time zone") from None
    return value


Duration = Annotated[float, BeforeValidator(_seconds), Field(ge=0.1, le=LONGEST)]
DurationOrOff = Annotated[float, BeforeValidator(_off), BeforeValidator(_seconds), Field(ge=0, le=UNITS["d"])]
LongDuration = Annotated[float, BeforeValidator(_seconds), Field(ge=UNITS["h"], le=_LONGEST_KEPT)]
Id = Annotated[str, BeforeValidator(_id), Field(pattern=rf"\A{_ID.pattern}\z")]
Approver = Annotated[str, Field(pattern=rf"\A(?:{_APPROVER.pattern})\z")]
Notify = Annotated[str, Field(pattern=rf"\A(?:none|ping|dm|channel:{_ID.pattern})\z")]
EscalatedTo = Annotated[str, Field(pattern=rf"\A(?:manage_server|(?:role|user):{_ID.pattern})\z")]
Dollars = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Quorum = Annotated[int, Field(ge=1, le=10)]
ServerName = Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_]{0,19}\z")]
AbsolutePath = Annotated[str, Field(pattern=r"\A/[^\x00]*\z")]
SecretName = Annotated[str, Field(pattern=r"[A-Za-z0-9]")]
SecretPattern = Annotated[str, Field(min_length=1), AfterValidator(_regular_expression)]
# TOML has lists and the frozen models have tuples, so the container is checked laxly and its items strictly.
Ids = Annotated[tuple[Id, ...], Strict(False)]
Approvers = Annotated[tuple[Approver, ...], Strict(False), Field(min_length=1)]
Patterns = Annotated[tuple[Text, ...], Strict(False), BeforeValidator(_one_or_more), Field(min_length=1)]

APPROVERS_HINT = 'a list of "manage_server", "asker", "role:ID" or "user:ID", with at least one entry'
OFF_HINT = 'seconds, or a text such as "30m" or "1h", up to one day; "off" or 0 turns it off'
DURATION_HINT = 'seconds, or a text such as "90s", "5m" or "1h", from 0.1 seconds to 30 days'
NOTIFY_HINT = '"none", "ping", "dm" or "channel:ID", with the id of an approvals channel'
ESCALATE_HINT = '{ after = "2m", to = ["role:ID", "user:ID"] }, where after is a duration and to has at least one entry'
IDS_HINT = 'a list of Discord ids, for example ["123456789012345678"]'
PATTERNS_HINT = 'argument = "pattern" or a list of patterns, in quotes, for example { path = ["/etc/*", "*.key"] }'
COUNT_HINT = "a whole number, 1 or more"
DOLLARS_HINT = "an amount in US dollars, for example 2.50"
QUORUM_HINT = "how many people have to accept, from 1 to 10"

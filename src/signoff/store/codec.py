"""Turns values into column text and back without loss: JSON, people, votes, edits, rules, unusual text.

Knows no table and no database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any, cast

from signoff.approvals.inquiries import Inquiry
from signoff.approvals.model import Actor, Edit, GrantNote, JsonObject, Remember, Verdict, Vote
from signoff.approvals.policy import Rule
from signoff.approvals.tool_description import Marks, ToolDescription
from signoff.text.patterns import lazy_pattern
from signoff.turns.model import Quoted

DEPTH = 200
"""Most levels of nested JSON in a column. Low enough that a reader deep in its call stack can still parse the row."""

VOID = "void"
"""The last element of a stored vote that no longer counts."""

_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_SCALARS = frozenset({str, int, float, bool, type(None)})
_KEPT = 512
"""How many people, lists and votes are kept as they were read: the same few come in row after row."""


def escape(text: str) -> str:
    """Return text that any database can hold: unchanged, or as a JSON string.

    A text becomes a JSON string if it contains a NUL or half a surrogate pair, which databases refuse, or if it starts
    with a double quote. Equal texts give equal column values, so that they can be looked up; different texts never do.
    """
    if text[:1] == '"' or "\0" in text or not (text.isascii() or _SURROGATE.search(text) is None):
        return json.dumps(text)
    return text


def unescape(column: str) -> str:
    return json.loads(column) if column.startswith('"') else column


def dump_object(value: JsonObject) -> str:
    """Return ASCII JSON in the given key order, since a card shows arguments in the order they came.

    Raises ValueError if the value would come back different: an unreadable row would fail everyone who reads it.
    """
    if not value:
        return "{}"
    plain = _has_plain_keys(value, DEPTH)
    text = _dump(dict(value))
    if not plain and _dump(json.loads(text)) != text:
        raise ValueError("not JSON: keys that are equal as text")
    return text


def _has_plain_keys(value: Any, left: int) -> bool:
    """Whether all keys are ASCII texts, so that no two are equal as JSON. Raises ValueError if nested too deeply."""
    if not left:
        raise ValueError(f"not stored: nested too deeply, more than {DEPTH} levels")
    plain = True
    if isinstance(value, (dict, Mapping)):  # the test for a mapping alone takes several times as long
        keys = cast(Mapping[Any, Any], value)
        plain = all(type(key) is str and key.isascii() for key in keys)
        value = list(keys.values())
    if isinstance(value, (list, tuple)):
        for inner in cast(Sequence[Any], value):
            # A scalar, as most are, needs no call of its own unless it is nested too deeply itself.
            if left == 1 or not (type(inner) in _SCALARS or isinstance(inner, str)):
                plain = _has_plain_keys(inner, left - 1) and plain
    return plain


def load_object(column: str) -> dict[str, Any]:
    return {} if column == "{}" else json.loads(column)


@lru_cache(_KEPT)
def dump_strings(values: tuple[str, ...]) -> str:
    return _dump(values)


@lru_cache(_KEPT)
def load_strings(column: str) -> tuple[str, ...]:
    return tuple(json.loads(column))


@lru_cache(_KEPT)
def dump_actor(actor: Actor) -> str:
    return _dump(_fields(actor))


def _fields(actor: Actor) -> dict[str, Any]:
    return {
        "id": actor.id,
        "name": actor.name,
        "server": actor.server,
        "roles": sorted(actor.roles),
        "manages_server": actor.manages_server,
        "is_bot": actor.is_bot,
    }


@lru_cache(_KEPT)
def load_actor(column: str) -> Actor:
    return _actor(json.loads(column))


def _actor(fields: dict[str, Any]) -> Actor:
    return Actor(
        id=fields["id"],
        name=fields["name"],
        server=fields["server"],
        roles=frozenset(fields["roles"]),
        manages_server=fields["manages_server"],
        is_bot=fields["is_bot"],
    )


def dump_quoted(quoted: Quoted | None) -> str:
    return "" if quoted is None else _dump({"author": quoted.author, "text": quoted.text})


def load_quoted(column: str) -> Quoted | None:
    fields = json.loads(column) if column else None
    return None if fields is None else Quoted(fields["author"], fields["text"])


_dump = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def dump_votes(votes: Sequence[Vote], void: Sequence[Vote]) -> str:
    return json.dumps([*map(_vote, votes), *([*_vote(vote), VOID] for vote in void)])


@lru_cache(_KEPT)
def load_votes(column: str) -> tuple[tuple[Vote, ...], tuple[Vote, ...]]:
    """Return the votes that count and the votes that are void."""
    rows = [(Vote(_actor(by), at, Remember(scope)), mark) for by, at, scope, *mark in json.loads(column)]
    return tuple(vote for vote, mark in rows if not mark), tuple(vote for vote, mark in rows if mark)


def _vote(vote: Vote) -> list[Any]:
    return [_fields(vote.by), vote.at, vote.remember]


def dump_grant_note(note: GrantNote | None) -> str:
    if note is None:
        return ""
    named = None if note.named is None else list(note.named)
    by = _fields(note.by)
    return _dump({"grant": note.grant, "by": by, "until": note.until, "here": note.here, "named": named})


def load_grant_note(column: str) -> GrantNote | None:
    fields = json.loads(column) if column else None
    if fields is None:
        return None
    named = None if fields["named"] is None else tuple(fields["named"])
    return GrantNote(fields["grant"], _actor(fields["by"]), fields["until"], fields["here"], named)


def dump_edit(edit: Edit | None) -> str:
    """Return the edit as JSON, or an empty text if there is none."""
    if edit is None:
        return ""
    return dump_object(
        {
            "original": edit.original,
            "original_digest": edit.original_digest,
            "by": _fields(edit.by),
            "at": edit.at,
            "voided": [_fields(actor) for actor in edit.voided],
            "earlier": list(edit.earlier),
        }
    )


def load_edit(column: str) -> Edit | None:
    if not column:
        return None
    fields: dict[str, Any] = json.loads(column)
    return Edit(
        fields["original"],
        fields["original_digest"],
        _actor(fields["by"]),
        fields["at"],
        tuple(_actor(actor) for actor in fields["voided"]),
        tuple(fields.get("earlier", ())),
    )


def dump_inquiry(inquiry: Inquiry | None) -> str:
    return "" if inquiry is None else _dump(inquiry.dump())


def load_inquiry(column: str) -> Inquiry | None:
    return Inquiry.load(json.loads(column)) if column else None


def dump_optional(value: JsonObject | None) -> str:
    """Return the object as JSON, or an empty text if there is none."""
    return "" if value is None else dump_object(value)


def load_optional(column: str) -> dict[str, Any] | None:
    return load_object(column) if column else None


def dump_described(description: ToolDescription, diff_of: str) -> str:
    """Return what a request's card says about its tool, and the argument that its preview shows as a diff, as JSON."""
    # `asdict` does the same, and copies everything first.
    marks = {name: getattr(description.marks, name) for name in Marks.__slots__}
    fields = {name: getattr(description, name) for name in ToolDescription.__slots__}
    return dump_object({**fields, "marks": marks, "diff_of": diff_of})


@lru_cache(_KEPT)
def load_described(column: str) -> tuple[ToolDescription, str]:
    if not column:
        return ToolDescription(), ""  # a request of an older version
    fields: dict[str, Any] = json.loads(column)
    diff_of: str = fields.pop("diff_of")
    for name in ("hints", "order", "shell"):
        fields[name] = tuple(fields.get(name, ()))
    fields["marks"] = Marks(**fields.get("marks", {}))
    return ToolDescription(**fields), diff_of


def dump_rule(rule: Rule) -> str:
    return dump_object({name: value for name, value in asdict(rule).items() if value is not None})


def load_rule(column: str) -> Rule:
    fields: dict[str, Any] = json.loads(column)
    for name in ("when", "unless"):
        fields[name] = {argument: tuple(globs) for argument, globs in fields[name].items()}
    if isinstance(fields["tool"], list):
        fields["tool"] = tuple(cast("list[str]", fields["tool"]))
    for name in ("approvers", "answerers"):
        if name in fields:
            fields[name] = tuple(fields[name])
    fields["verdict"] = Verdict(fields["verdict"])
    return Rule(**fields)

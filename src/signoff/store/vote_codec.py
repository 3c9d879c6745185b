"""Votes, edits and rules between the heart's dataclasses and JSON columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from signoff.approvals.model import Edit, Remember, Verdict, Vote
from signoff.approvals.policy import Rule
from signoff.store.codec import dump_actor, dump_object, load_actor

VOID = "void"
"""Stands behind a vote that no longer counts."""


def dump_votes(votes: Sequence[Vote], void: Sequence[Vote]) -> str:
    return json.dumps([*map(_vote, votes), *([*_vote(vote), VOID] for vote in void)])


def load_votes(column: str) -> tuple[tuple[Vote, ...], tuple[Vote, ...]]:
    """The votes that count, and those that are void."""
    rows = [
        (Vote(load_actor(json.dumps(by)), at, Remember(scope)), mark) for by, at, scope, *mark in json.loads(column)
    ]
    return tuple(vote for vote, mark in rows if not mark), tuple(vote for vote, mark in rows if mark)


def _vote(vote: Vote) -> list[Any]:
    return [json.loads(dump_actor(vote.by)), vote.at, vote.remember]


def dump_edit(edit: Edit | None) -> str:
    """Empty where nothing was edited."""
    if edit is None:
        return ""
    return dump_object(
        {
            "original": edit.original,
            "original_digest": edit.original_digest,
            "by": json.loads(dump_actor(edit.by)),
            "at": edit.at,
            "voided": [json.loads(dump_actor(actor)) for actor in edit.voided],
        }
    )


def load_edit(column: str) -> Edit | None:
    if not column:
        return None
    fields: dict[str, Any] = json.loads(column)
    return Edit(
        fields["original"],
        fields["original_digest"],
        load_actor(json.dumps(fields["by"])),
        fields["at"],
        tuple(load_actor(json.dumps(actor)) for actor in fields["voided"]),
    )


def dump_rule(rule: Rule) -> str:
    return dump_object({name: value for name, value in asdict(rule).items() if value is not None})


def load_rule(column: str) -> Rule:
    fields: dict[str, Any] = json.loads(column)
    for name in ("when", "unless"):
        fields[name] = {argument: tuple(globs) for argument, globs in fields[name].items()}
    if "approvers" in fields:
        fields["approvers"] = tuple(fields["approvers"])
    fields["verdict"] = Verdict(fields["verdict"])
    return Rule(**fields)

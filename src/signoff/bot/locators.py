"""The ids of our buttons and forms: locators, read to the letter or not at all. They grant nothing.

A button's id is `signoff:VERB:TARGET:REVISION:PAGE`: what was pressed, on which request or batch, and what was on the
card when it was drawn. An id that leaves anything out is not ours. A form's id names the request, and for an edit the
arguments that were in it, so that it can be handled by a process that never opened it. Knows no Discord.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from signoff.cards.model import Action, Verb

MAX_ID = 100
DIGEST = 32
"""So much of a digest is in a form's id."""

_TARGET = "(?P<target>[0-9a-z]{8,40})"
_NUMBER = "0|[1-9][0-9]{0,4}"
CUSTOM_ID = re.compile(
    rf"signoff:(?P<verb>{'|'.join(Verb)}):{_TARGET}:(?P<revision>{_NUMBER}):(?P<page>0|[1-9][0-9]?)\Z",
)
FORM_ID = re.compile(
    rf"signoff-form:(?P<kind>edit|reason):{_TARGET}:(?P<page>0|[1-9][0-9]?):(?P<digest>[0-9a-f]{{0,{DIGEST}}})\Z"
)


@dataclass(frozen=True, slots=True)
class Locator:
    verb: Verb
    target: str
    revision: int
    page: int


class FormKind(StrEnum):
    EDIT = "edit"
    REASON = "reason"


@dataclass(frozen=True, slots=True)
class FormLocator:
    kind: FormKind
    target: str
    page: int
    digest: str = ""

    def __str__(self) -> str:
        return f"signoff-form:{self.kind}:{self.target}:{self.page}:{self.digest[:DIGEST]}"


def custom_id(action: Action) -> str:
    return f"signoff:{action.verb}:{action.target}:{action.revision}:{action.page}"


def parse(found: object) -> Locator | None:
    """What a button's id says, or None if it is not one of ours to the letter."""
    match = CUSTOM_ID.fullmatch(found) if isinstance(found, str) and len(found) <= MAX_ID else None
    return located(match) if match else None


def located(match: re.Match[str]) -> Locator:
    return Locator(Verb(match["verb"]), match["target"], int(match["revision"]), int(match["page"]))


def parse_form(found: object) -> FormLocator | None:
    match = FORM_ID.fullmatch(found) if isinstance(found, str) and len(found) <= MAX_ID else None
    if match is None:
        return None
    return FormLocator(FormKind(match["kind"]), match["target"], int(match["page"]), match["digest"])

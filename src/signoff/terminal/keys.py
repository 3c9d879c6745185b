"""The key for each button, and the line that names the keys. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.text import Text

from signoff.cards.model import Action, Verb
from signoff.dataclass import dataclass

VIEW = "[v]iew the whole call"
BACK = "[b]ack"
OTHERS = "[o]ther calls, which need no approval"
_KEY = re.compile(r"\[(.)\]")

_OWN = {
    Verb.ACCEPT: "[a]ccept",
    Verb.REJECT: "[r]eject",
    Verb.REASON: "[R]eject with a reason",
    Verb.EDIT: "[e]dit",
    Verb.REMEMBER: "re[m]ember",
    Verb.RAN: "it [r]an",
    Verb.RERUN: "run [a]gain",
    Verb.SKIP: "[s]kip",
    Verb.FILL: "[a]nswer",
    Verb.ANSWER: "[c]onfirm",
    Verb.DECLINE: "[d]ecline",
    Verb.ACCEPT_HERE: "accept, remember [h]ere",
    Verb.ACCEPT_ALWAYS: "accept al[w]ays",
    Verb.REJECT_HERE: "reject, remember [H]ere",
    Verb.REJECT_ALWAYS: "reject al[W]ays",
}
_INQUIRY = {**_OWN, Verb.REASON: "[D]ecline with a reason"}


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    """Our own wording, with the key in brackets."""
    action: Action | None = None
    """None for an option that decides nothing, such as viewing."""

    @property
    def key(self) -> str:
        match = _KEY.search(self.label)
        return match[1] if match else ""

    def takes(self, typed: str) -> bool:
        """Whether the typed text is the key itself or the whole label, which scripts may prefer."""
        return typed in (self.key, self.words)

    @property
    def words(self) -> str:
        """The label without the brackets."""
        return _KEY.sub(r"\1", self.label)


def for_call(actions: Iterable[Action]) -> list[Option]:
    actions = list(actions)
    labels = _INQUIRY if any(action.verb is Verb.DECLINE for action in actions) else _OWN
    return [Option(labels[action.verb], action) for action in actions if action.verb in labels]


def for_all(actions: Iterable[Action]) -> list[Option]:
    """Return the options for all calls at once. Accept covers only the calls that the button names."""
    labels = {Verb.ACCEPT: "[A]{}", Verb.REJECT: "[X] {}"}
    labelled = [(action, action.label[:1].lower() + action.label[1:]) for action in actions if action.verb in labels]
    return [
        Option(labels[action.verb].format(words[1:] if action.verb is Verb.ACCEPT else words), action)
        for action, words in labelled
    ]


def explain(options: Sequence[Option]) -> str:
    """Say which keys there are to somebody who typed another one, such as y or n, which decide nothing."""
    named = ", ".join(f"{option.key} for {option.words.removeprefix('X ')}" for option in options)
    return f"That is not one of the keys. Nothing was decided. Type {named}."


def line_of(options: Sequence[Option]) -> Text:
    line = Text()
    for number, option in enumerate(options):
        line.append("   " if number else "")
        for part in re.split(r"(\[.\])", option.label):
            line.append(part, "bold" if _KEY.fullmatch(part) else "")
    return line

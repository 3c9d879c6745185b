"""The questions about one call, as a generator without input or output.

The generator yields steps, receives typed lines, and returns the choice. So two callers can ask the same questions: the
chat, which waits for keys and the deadline at once, and a plain program, which blocks. The generator decides nothing:
the desk or the calling program does.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import field

from rich.console import RenderableType
from rich.text import Text

from signoff.approvals.inquiries import Inquiry
from signoff.approvals.model import JsonObject
from signoff.cards.forms import WHOLE, Field, Form, NotReadable
from signoff.cards.model import Action, CardFile, Verb
from signoff.dataclass import dataclass
from signoff.terminal import keys
from signoff.terminal.answer_form import fill_in
from signoff.terminal.editing import written
from signoff.terminal.keys import Option, line_of
from signoff.terminal.steps import Ask, Rewrite, Show, Step, View
from signoff.text.secrets.masker import Masker

FIRST_SEE = "The card does not show the whole call. View it to the end before you can {} it."
UNCHANGED = "Nothing was changed."
REASON = "reason> "
WHICH = "number of the call to look at, or Enter to go back> "


@dataclass(frozen=True, slots=True)
class Chosen:
    action: Action
    note: str = ""
    args: JsonObject | None = None
    """The new arguments, if the action is an edit."""
    answer: JsonObject | None = None
    """The answer to an inquiry: name of each field -> its value."""


Dialogue = Generator[Step, str, Chosen]


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that needs no approval: the person may look at it and reject it."""

    tool: str
    """Text with hidden characters made visible."""
    card: RenderableType
    actions: Sequence[Action]


@dataclass(frozen=True, slots=True)
class Subject:
    """One open request, and the possible actions."""

    args: JsonObject
    actions: Sequence[Action]
    for_all: Sequence[Action] = ()
    """If there are several calls: the actions that settle them together."""
    file: CardFile | None = None
    """The whole call, if the card shows only a part of it."""
    files: Sequence[CardFile] = ()
    """The files of all calls that `for_all` would accept."""
    remember: Sequence[Action] = ()
    covered: Sequence[RenderableType] = ()
    """The lines that say exactly what would be remembered."""
    held: Sequence[HeldCall] = ()
    """The calls of the card that need no approval and are still open."""
    seen: set[str] = field(default_factory=set[str])
    """Hashes of the files that the person has seen to the end; shared between questions."""
    inquiry: Inquiry | None = None
    """What the call asks, if it needs an answer."""
    masker: Masker | None = None
    """Masks secrets in what the call asks, as on the card."""

    def options(self) -> list[Option]:
        own = keys.for_call(_reachable(self.actions, [self.file] if self.file else [], self.seen))
        view = [Option(keys.VIEW)] if self.file else []
        others = [Option(keys.OTHERS)] if self.held else []
        return [*own, *view, *keys.for_all(_reachable(self.for_all, self.files, self.seen)), *others]

    @property
    def unseen(self) -> bool:
        return self.file is not None and self.file.sha256 not in self.seen


def choose(subject: Subject) -> Dialogue:
    """Ask until something is chosen. A line that is not one of the keys chooses nothing."""
    while True:
        options = subject.options()
        if subject.unseen:
            yield Show(Text(FIRST_SEE.format("answer" if subject.inquiry else "accept"), "yellow"))
        option = yield from _pick(options)
        if option.label == keys.OTHERS:
            if chosen := (yield from _look_at_held(subject.held)):
                return chosen
            continue
        if option.action is None:
            assert subject.file
            if (yield View(subject.file.data.decode("utf-8"))):
                subject.seen.add(subject.file.sha256)
            continue
        match option.action.verb:
            case Verb.REASON:
                if note := (yield Ask(REASON)).strip():
                    return Chosen(option.action, note)
            case Verb.EDIT:
                if args := (yield from _edit(subject.args)):
                    return Chosen(option.action, args=args)
            case Verb.FILL:
                assert subject.inquiry
                answer = yield from fill_in(subject.inquiry, subject.masker)
                if answer is not None:
                    return Chosen(option.action, answer=answer)
            case Verb.ANSWER:
                return Chosen(option.action, answer={})
            case Verb.REMEMBER:
                for part in subject.covered:
                    yield Show(part)
                chosen = yield from _pick([*keys.for_call(subject.remember), Option(keys.BACK)])
                if chosen.action:
                    return Chosen(chosen.action)
            case _:
                return Chosen(option.action)


def _look_at_held(calls: Sequence[HeldCall]) -> Generator[Step, str, Chosen | None]:
    """Show one held call, and let the person reject it. Return None if nothing was chosen."""
    for number, call in enumerate(calls, start=1):
        yield Show(Text.assemble(f"{number}. ", (call.tool, "bold")))
    typed = (yield Ask(WHICH)).strip()
    if not typed.isascii() or not typed.isdecimal() or not 1 <= int(typed) <= len(calls):
        return None
    call = calls[int(typed) - 1]
    yield Show(call.card)
    option = yield from _pick([*keys.for_call(call.actions), Option(keys.BACK)])
    return Chosen(option.action) if option.action else None


def _pick(options: Sequence[Option]) -> Generator[Step, str, Option]:
    while True:
        yield Show(line_of(options))
        typed = (yield Ask()).strip()
        for option in options:
            if option.takes(typed):
                return option
        if typed:
            yield Show(Text(keys.explain(options)))


def _edit(args: JsonObject) -> Generator[Step, str, JsonObject | None]:
    form = Form((Field(WHOLE, "Arguments", written(args), long=True),), ())
    text = form.fields[0].text
    while True:
        typed = yield Rewrite(text)
        if not typed.strip() or typed.strip() == text.strip():
            yield Show(Text(UNCHANGED))
            return None
        try:
            return form.read({WHOLE: typed}, args)
        except NotReadable as error:
            yield Show(Text(f"{error} Nothing was changed."))
            text = typed


def _reachable(actions: Sequence[Action], files: Sequence[CardFile], seen: set[str]) -> list[Action]:
    """Leave out accepting, answering and remembering until the person has seen every file to its end."""
    whole = all(file.sha256 in seen for file in files)
    runs = (Verb.ACCEPT, Verb.RERUN, Verb.REMEMBER, Verb.FILL, Verb.ANSWER)
    return [action for action in actions if whole or action.verb not in runs]

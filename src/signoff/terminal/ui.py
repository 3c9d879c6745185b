"""TerminalUI asks the questions of `dialogue` in your own program, as the `ui` of `run_with_approval`.

It blocks while it asks, as a synchronous UI may. It has no desk and no store: it returns the decision to the caller.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from typing import Literal, TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import (
    ApprovalDecision,
    ApprovalRequest,
    Batch,
    Edit,
    JsonObject,
    Place,
    Remember,
    RequestState,
)
from signoff.cards.actions import Offers, further_actions, remember_actions
from signoff.cards.build import build_card
from signoff.cards.model import Card, Verb
from signoff.terminal.console import JSON, NEW_ARGUMENTS, Ended, Screen
from signoff.terminal.dialogue import Chosen, Dialogue, Subject, choose
from signoff.terminal.editing import Draft, editor_command, on_one_line
from signoff.terminal.front_end import CARD_SPACE, COLUMNS, person_at_terminal
from signoff.terminal.render import covered_call, draw_card
from signoff.terminal.sanitize import Block
from signoff.terminal.steps import Ask, Rewrite, Show, Step, View
from signoff.text.secrets.masker import Masker

DECIDE = "decide> "
ANSWER = "answer> "
REMEMBERED = (
    "This remembers exactly this tool with exactly these arguments, if the program has a memory.",
    "Here: while the program keeps it. Always: in the memory's file, if it has one.",
)
_HERE = Place("local", "local", "local")
_REMEMBER: dict[Remember, Literal["none", "session", "always"]] = {
    Remember.NONE: "none",
    Remember.SESSION: "session",
    Remember.ALWAYS: "always",
}


class TerminalUI:
    """Asks the person at the terminal. `masker` hides secrets on the card; masked arguments cannot be edited."""

    def __init__(
        self,
        *,
        edit: bool = True,
        remember: bool = True,
        masker: Masker | None = None,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        self._stdin = stdin or sys.stdin
        self._typed = self._stdin.isatty()
        self._screen = Screen(
            Console(file=stdout or sys.stdout, markup=False, emoji=False, highlight=False), typed=self._typed
        )
        self._offers = Offers(edit, GrantTerms(Remember.ALWAYS if remember else Remember.NONE), masker)

    def choose(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask for a decision. Raises CardFailed if the call cannot be shown, and Ended if the input ends."""
        override: JsonObject | None = None
        seen: set[str] = set()
        shown = replace(request, state=RequestState.PENDING, settlement=None, quorum=1, four_eyes=False, held=False)
        while True:
            batch = _batch(shown)
            now, offers = time.time(), self._offers
            card = replace(build_card(batch, now=now, budget=CARD_SPACE, offers=offers, columns=COLUMNS), about=())
            self._screen.show(draw_card(card, time.time()))
            prompt = ANSWER if request.inquiry else DECIDE
            chosen = self._perform(choose(self._subject(batch, card, seen)), prompt)
            if chosen.args is None:
                return _decision(chosen, override)
            override = chosen.args
            before = request.call.args
            edit = Edit(before, request.call.digest, batch.asker, time.time())
            # Drop the tool's own text, which is about the earlier arguments.
            shown = replace(shown, call=replace(shown.call, args=override), edit=edit, preview="", metadata={})

    def _subject(self, batch: Batch, card: Card, seen: set[str]) -> Subject:
        request = batch.requests[0]
        lines: list[RenderableType] = [Text(line) for line in REMEMBERED]
        return Subject(
            args=request.call.args,
            actions=[*card.actions, *further_actions(batch, request, self._offers, 0)],
            file=next(iter(card.files), None),
            remember=remember_actions(batch, request, self._offers, 0),
            covered=[*lines, *covered_call(request, self._offers)],
            seen=seen,
            inquiry=request.inquiry,
            masker=self._offers.masker,
        )

    def _perform(self, dialogue: Dialogue, prompt: str) -> Chosen:
        try:
            step = next(dialogue)
            while True:
                step = dialogue.send(self._do(step, prompt))
        except StopIteration as end:
            return end.value

    def _do(self, step: Step, prompt: str) -> str:
        match step:
            case Show(what=what):
                self._screen.show(what)
                return ""
            case Ask(prompt=own):
                return self._line(own or prompt)
            case View(text=text):
                self._screen.show(Block(text))
                return "seen"
            case Rewrite(text=text):
                return self._rewrite(text)

    def _rewrite(self, text: str) -> str:
        command = editor_command() if self._typed else []
        if not command:
            self._screen.show(Text(NEW_ARGUMENTS), Block(on_one_line(text)))
            return self._line(JSON)
        with Draft(text) as draft:
            ended = subprocess.run([*command, str(draft.path)], check=False)
            return draft.read() if ended.returncode == 0 else ""

    def _line(self, prompt: str) -> str:
        self._screen.prompt(prompt)
        line = self._stdin.readline()
        if not line:
            self._screen.withdraw()
            raise Ended
        self._screen.answered(line.rstrip("\r\n"))
        return line.rstrip("\r\n")


def _batch(request: ApprovalRequest) -> Batch:
    """Build a batch of one request without a real deadline. The person who runs the program is the asker."""
    now = time.time()
    return Batch(request.id, "", _HERE, person_at_terminal(_HERE.server), (request,), now, now + GrantTerms().seconds)


def _decision(chosen: Chosen, override: JsonObject | None) -> ApprovalDecision:
    verb = chosen.action.verb
    if chosen.answer is not None:
        return ApprovalDecision(True, answer=chosen.answer)
    approved = verb in (Verb.ACCEPT, Verb.ACCEPT_HERE, Verb.ACCEPT_ALWAYS, Verb.RERUN)
    remember = _REMEMBER[verb.remember]
    return ApprovalDecision(approved, chosen.note, override if approved else None, remember)

"""The settings of the library's gate, checked when they are made, and the gate that one run gets from them.

Everything that can be wrong about a setting is said here, before any agent runs. Knows no agent.
"""

from __future__ import annotations

import inspect
import secrets
import sys
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, get_args

from signoff.approvals.model import Place
from signoff.approvals.policy import Policy
from signoff.dataclass import dataclass
from signoff.gate.book import MemoryBook
from signoff.gate.inline import USER, InlineGate, Round
from signoff.gate.tool_slots import ToolShares, ToolSlots
from signoff.library.claim import Claim
from signoff.library.decider import Decider, OnNoApprover, Subscriber
from signoff.library.memory import ApprovalMemory
from signoff.library.store import ApprovalStore
from signoff.library.stored_gate import LaterDecider, StoredBook, StoredGate
from signoff.library.ui import AnyApprovalUI, ApprovalMode

BatchRule = Literal["hold", "split"]
NativeTools = Literal["refuse", "allow"]


class Options(TypedDict, total=False):
    """The settings as keyword arguments. Those that are not given have the defaults of `Settings`."""

    ui: AnyApprovalUI | None
    mode: ApprovalMode
    memory: ApprovalMemory | None
    policy: Policy | None
    on_no_approver: OnNoApprover
    on_event: Subscriber | Sequence[Subscriber]
    batch: BatchRule
    native_tools: NativeTools
    max_rounds: int


class SignoffOptions(Options, total=False):
    """Those of `Signoff`, which also lets runs wait."""

    store: ApprovalStore | None
    timeout: float | None


@dataclass(frozen=True)
class Resumed:
    """A stored run that goes on."""

    run: str
    position: int
    rounds: frozenset[Round]
    claim: Claim


@dataclass(frozen=True)
class Settings:
    ui: AnyApprovalUI | None = None
    mode: ApprovalMode = "interactive"
    memory: ApprovalMemory | None = None
    policy: Policy | None = None
    on_no_approver: OnNoApprover = "reject"
    on_event: Subscriber | Sequence[Subscriber] = ()
    batch: BatchRule = "hold"
    native_tools: NativeTools = "refuse"
    max_rounds: int = 25
    store: ApprovalStore | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        # A misspelt option must not turn a safeguard off.
        _check("batch", self.batch, BatchRule)
        _check("native_tools", self.native_tools, NativeTools)
        if self.ui is not None and not callable(getattr(self.ui, "choose", None)):
            raise TypeError(
                f"A UI has a method choose(request), and {described(self.ui)} has none. "
                "Pass an object with that method, such as TerminalUI()."
            )
        for rule in self.judge.rules:
            if rule.quorum > 1 or rule.four_eyes:
                raise ValueError(
                    f"The rule for {rule.subject} wants more than one person (quorum or four_eyes), but one UI "
                    "asks one. Nothing was run. Take the rule out of this policy, or serve the agent with the bot."
                )
        if self.store and self.ui:
            raise ValueError("A UI decides now, a store lets people decide later: give one of ui and store, not both.")
        if self.timeout is not None and (self.store is None or self.timeout <= 0):
            raise ValueError("timeout is how many seconds a stored request waits: give a store, and more than 0.")
        self.decider()

    @property
    def judge(self) -> Policy:
        return self.policy or Policy()

    def decider(self) -> Decider:
        return Decider(self.ui, self.mode, self.memory, self.on_no_approver, self.on_event)

    def gate(self, resumed: Resumed | None = None) -> InlineGate:
        """Return a new gate for one run."""
        conversation = resumed.run if resumed else secrets.token_hex(8)
        if self.store is None:
            book = MemoryBook()
            return InlineGate(**self._common(conversation), book=book, decisions=book, decider=self.decider())
        book = StoredBook(store=self.store)
        return StoredGate(
            **self._common(conversation),
            book=book,
            decisions=book,
            decider=LaterDecider(None, self.mode, self.memory, self.on_no_approver, self.on_event),
            store=self.store,
            timeout=self.timeout,
            responses=resumed.position if resumed else 0,
            claim=resumed.claim if resumed else None,
            _rounds=set(resumed.rounds) if resumed else set[Round](),
        )

    def _common(self, conversation: str) -> dict[str, Any]:
        """Parameter of every gate of the library -> its value."""
        return {
            "policy": self.judge,
            "place": Place("local", "local", conversation),
            "asker": USER,
            "slots": ToolSlots(None, ToolShares(sys.maxsize), threads=None),
            "hold": self.batch == "hold",
            "contains_failures": False,
            "native_allowed": self.native_tools == "allow",
            "max_rounds": self.max_rounds,
        }


def described(thing: Any) -> str:
    """Return the name of a class, or of an object's class."""
    return f"the class {thing.__name__}" if inspect.isclass(thing) else f"a {type(thing).__name__}"


def _check(name: str, value: object, allowed: Any) -> None:
    if value not in get_args(allowed):
        raise ValueError(f"unknown {name} {value!r}: use {' or '.join(get_args(allowed))}")

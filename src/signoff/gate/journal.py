"""The book of calls in the store, so that a call runs at most once even if the process is killed.

One transaction reads the turn, the journal and the desk's newest decision about the call, and writes *started*.
Nothing else lets a call start. Results are stored, so a call that comes again after a restart gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from signoff.approvals.digest import canonical
from signoff.approvals.model import ApprovalRequest, CallKey, JsonObject, ToolCall
from signoff.approvals.ports import Clock
from signoff.dataclass import dataclass
from signoff.errors import TurnFailed
from signoff.gate.book import Answered, Ask, CallBook, Entry, Go, Replay, Settled, entry_of, packed
from signoff.gate.result_line import result_line
from signoff.turns.model import CallRecord, CallState, KnownCalls, Turn
from signoff.turns.ports import TurnStore, TurnTx


@dataclass(frozen=True)
class Journal(CallBook):
    store: TurnStore
    clock: Clock
    turn: Turn
    mask: Callable[[JsonObject], JsonObject] = lambda args: args
    """Masks the arguments for the record."""
    known: KnownCalls | None = None
    """What the store knew when the step began. Only this step changes it, so it need not be read again."""
    _changed: set[CallKey] = field(default_factory=set[CallKey])
    """The calls that this step has started or ended."""

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        """Return the record of a call and the newest request about it, if there are any."""
        if self.known and self.known.are_about(key) and key not in self._changed:
            return self.known.of(key)
        return await self.store.run(lambda tx: (tx.call(key), tx.decision_for(key, self.turn.id)))

    async def enter(self, call: ToolCall, *, asks: bool, held: bool, read_only: bool) -> Entry:
        if self.known and self.known.has_none(call.key) and call.key not in self._changed:
            entry = entry_of(call, None, None, asks=asks, held=held, read_only=read_only)
            if isinstance(entry, Ask):
                return entry  # nothing starts, so there is nothing to store: the batch is stored with the question
        self._changed.add(call.key)
        now = self.clock.now()

        def work(tx: TurnTx) -> Entry:
            if not tx.is_running(self.turn.id):
                raise TurnFailed("Nothing further was run: the turn was stopped.")
            record, request = tx.call(call.key), tx.decision_for(call.key, self.turn.id)
            # The tool may be run again if it runs agents: what they did is in the journal.
            goes_on = record is not None and tx.has_inner_runs(call.key)
            entry = entry_of(call, record, request, asks=asks, held=held, read_only=read_only or goes_on)
            match entry:
                case Settled(decided, changed=True):
                    self._record(tx, "arguments_changed", call, now, decided.id, approved=decided.call.digest)
                case Ask(again=True) if request:
                    self._record(tx, "operands_changed", call, now, request.id)
                case Go(used):
                    id = used.id if used else ""
                    since = record.started if record and goes_on else now
                    started = CallRecord(call.key, call.tool, call.digest, CallState.STARTED, request=id, started=since)
                    tx.put_call(started, self.turn.id, now)
                    if not goes_on:
                        self._record(tx, "started", call, now, id)
                case Answered():
                    line = result_line(*packed(entry.shown(self.mask)), lambda masked: masked)
                    ended = replace(entry.record(call, now), line=line)
                    tx.put_call(ended, self.turn.id, now)
                    return Replay(ended)
                case _:
                    pass
            return entry

        return await self.store.run(work)

    async def done(self, call: ToolCall, result: Any) -> Any:
        """Store the result, and return it as it was stored. A result that cannot be serialized becomes text."""
        result, kept = packed(result)
        await self._end(call, CallState.DONE, kept, result)
        return result

    async def failed(self, call: ToolCall, words: str, *, unknown: bool = False) -> None:
        state = CallState.UNKNOWN if unknown else CallState.FAILED
        await self._end(call, state, words.encode(errors="backslashreplace"), words)

    async def withdraw(self, call: ToolCall) -> None:
        """Take back the start: the tool asked before it did anything, or the server was paused just now."""
        now = self.clock.now()

        def work(tx: TurnTx) -> None:
            tx.drop_call(call.key)
            self._record(tx, "withdrawn", call, now)

        await self.store.run(work)

    async def _end(self, call: ToolCall, state: CallState, result: bytes, said: Any) -> None:
        line = result_line(said, result, self.mask)
        record = CallRecord(call.key, call.tool, call.digest, state, result, line=line)
        self._changed.add(call.key)  # a call that went on while people answered was entered in an earlier step
        now = self.clock.now()

        def work(tx: TurnTx) -> None:
            started = tx.call(call.key) or record
            ended = replace(record, request=started.request, started=started.started)
            tx.put_call(ended, self.turn.id, now)
            kind = "ran" if state is CallState.DONE else "failed"
            details = {"outcome": "unknown"} if state is CallState.UNKNOWN else {}
            self._record(tx, kind, call, now, started.request, **details)

        await self.store.run(work)

    def _record(self, tx: TurnTx, kind: str, call: ToolCall, now: float, request: str = "", **data: str) -> None:
        found = {"turn": self.turn.id, "request": request, "digest": call.digest, **data}
        text = canonical(self.mask(call.args))
        server, subject = self.turn.place.server, request or self.turn.id
        tx.audit(kind, server, subject, "signoff", found, now, tool=call.tool, text=text)

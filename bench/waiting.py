"""Runs that wait for a click, written into the database of a bot that is not running."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, UserPromptPart

from signoff.agent.history import entry_of
from signoff.approvals.digest import bind
from signoff.approvals.model import Actor, ApprovalRequest, Batch, CallKey, Place, ToolCall
from signoff.store import Store
from signoff.store.store import Tx
from signoff.turns.model import Turn, TurnState

LIFE = 86_400.0
CHUNK = 500
ARGS = {"service": "web", "reason": "it answers slowly"}


async def let_wait(folder: Path, many: int) -> None:
    """Let so many runs wait, each of another person in another thread, with its conversation, card and record."""
    now = time.time()
    history = [
        entry_of(0, ModelRequest([UserPromptPart("restart web")])),
        entry_of(1, ModelResponse([ToolCallPart("restart", ARGS, "call_1")])),
    ]

    def add(tx: Tx, number: int) -> None:
        asker = Actor(f"7{number:017}", f"Person {number}", "8" * 18)
        place = Place(asker.server, f"9{number:017}", f"9{number:017}")
        call = bind(ToolCall(CallKey(place.conversation, 1, "call_1"), "restart", ARGS, "0" * 64), place)
        turn, batch = f"waiting-{number}", f"{number:016x}"
        tx.insert_turn(Turn(turn, place, turn, asker, "restart web", now, TurnState.WAITING, True, 1, batch))
        tx.save_history(place.conversation, history)
        request = ApprovalRequest(f"f{number:015x}", call, "the tool always asks", ("manage_server",))
        tx.insert_batch(Batch(batch, turn, place, asker, (request,), now, now + LIFE, card_message=f"6{number:017}"))
        tx.audit("asked", place.server, request.id, asker.id, {"turn": turn}, now, tool="restart", text=str(ARGS))

    async with await Store.open(f"sqlite:///{folder}/data/signoff.db") as store:
        for first in range(0, many, CHUNK):
            numbers = range(first, min(first + CHUNK, many))
            await store.run(lambda tx, numbers=numbers: [add(tx, number) for number in numbers])

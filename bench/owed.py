"""The in-memory bot in Signoff's frame (see `least.py`), with all of Signoff's output: rows, cards and log lines.

It runs the same statements on the same tables, by nothing but `sqlite3`; it writes the same objects as JSON, hashes the
same rows of the record, logs as many lines, and draws the cards by the same code, from what was noted of a round
(see `rows.py`). What leads to that is missing: it checks nobody, has no rules, no queue and no deadlines, compares no
digest, and makes no object of a row. It is what remains of Signoff if all of that took no time. It is not the fastest
bot that could write and show the same: it draws cards by Signoff's code, uses its writer, and streams words as it does.

BENCH_PROMISES may name what makes it faster than any real bot of this output, in place of `stream`:

- `drawn`: each card is drawn once, and sent again in every round.
- `inline`: statements and commits run on the event loop. No trip to a thread, but a slow disk would stop everything.
- `model`: only the model is streamed, not the run. What a stopped reply used would not be counted.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import discord
import least
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from rows import KINDS, ROWS, NotedRound, Statement, read_round

from signoff.approvals.audit import START, chain
from signoff.bot.card_view import render
from signoff.store.audit_rows import APPEND
from signoff.store.database import Database
from signoff.store.sqlite import open_sqlite
from signoff.store.writer import Writer

ROUNDS = 2_000
"""For how many rounds parameters are made at the start."""
MOMENTS = (least.ASKED, least.DECIDED, least.ENDED)
LOGGED = ("mention", "asked", "decided", "ended", "reply")
"""The jobs after which Signoff logs a line."""
LINE = "decision request=%s state=approved choice=accept tool=restart server=%s person=%s seconds=%.3f"

log = logging.getLogger("owed")


class OnLoop:
    """Runs jobs on the thread that submits them."""

    def __init__(self, db: Database) -> None:
        self.db = db

    async def submit(self, work: Callable[[Database], object], /) -> None:
        self.db.begin()
        work(self.db)
        self.db.commit()


class ModelStreamingGate(least.Gate):
    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        model, asked = request_context.model, request_context
        async with model.request_stream(
            asked.messages, asked.model_settings, asked.model_request_parameters, ctx
        ) as streamed:
            async for _ in streamed:
                pass
        return streamed.get()


class Bot(least.Bot):
    gate = ModelStreamingGate if "model" in least.PROMISES else least.Bot.gate
    noted: NotedRound

    async def setup_hook(self) -> None:
        notes = Path(os.environ["BENCH_ROUND"])
        self.noted = read_round(notes)
        shutil.copy(notes / ROWS, "owed.db")
        self.late = set()
        self.rounds = iter([self.noted.again(number) for number in range(1, ROUNDS)])
        self.statements: dict[int, dict[str, Sequence[Statement]]] = {}
        self.messages = {kind: _messages(self.noted.values(kind)) for kind in KINDS}
        self.objects = {kind: _objects(self.noted.values(kind)) for kind in KINDS}
        self.views: dict[int, least.ApprovalView] = {}
        self.drawn: dict[str, discord.ui.LayoutView] = {}
        opener = partial(open_sqlite, Path("owed.db"))
        self.writer = OnLoop(opener()) if "inline" in least.PROMISES else await Writer.start(opener)

    async def keep(self, key: int, kind: str) -> None:
        """Return when the rows are on the disk."""
        if kind == "mention":
            self.statements[key] = next(self.rounds)
        statements = self.statements[key][kind]
        for message in self.messages[kind]:
            ModelMessagesTypeAdapter.dump_json([message])

        def run(db: Database) -> None:
            connection: Any = vars(db)["_connection"]
            for written in self.objects[kind]:
                json.dumps(written)
            for sql, each in statements:
                for params in each:
                    if sql == APPEND:
                        columns: Any = params[:-1]
                        chain(START.hash, columns)
                    connection.execute(sql, params).fetchall()

        await self.writer.submit(run)
        if kind in LOGGED:
            log.info(LINE, key, key, key, 1.0)

    async def look(self, key: int) -> None:
        await self.keep(key, "looked")

    def card(self, view: least.ApprovalView, title: str) -> discord.ui.LayoutView:
        self.views[view.key] = view
        drawn = self.drawn.get(title) or render(*self.noted.cards[MOMENTS.index(title)]).view
        drawn.stop()  # the press is read from the event, as Signoff does
        if "drawn" in least.PROMISES and title not in self.drawn:
            components = drawn.to_components()
            drawn.to_components = lambda: components
            self.drawn[title] = drawn
        return drawn

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        assert interaction.channel_id is not None
        await self.views[interaction.channel_id].decide(interaction, True)


def _messages(values: Sequence[str | bytes]) -> list[ModelMessage]:
    """Return the messages among the parameters of a job."""
    bodies = [value for value in values if isinstance(value, bytes) and b'"kind":"re' in value]
    return [message for body in bodies for message in ModelMessagesTypeAdapter.validate_json(body)]


def _objects(values: Sequence[str | bytes]) -> list[Any]:
    """Return the other objects that a job writes as JSON."""
    return [json.loads(value) for value in values if isinstance(value, str) and value[:1] in ("{", "[")]


if __name__ == "__main__":
    Bot(intents=discord.Intents(guilds=True, guild_messages=True)).run(os.environ["DISCORD_TOKEN"], root_logger=True)

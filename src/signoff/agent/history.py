"""The stored conversation: saves it during a run, and closes calls that will never get a result."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import takewhile
from typing import Any, cast

from pydantic_ai import AgentRunResult, CallToolsNode, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext

from signoff.agent.prompt import storable
from signoff.approvals.ports import Clock
from signoff.dataclass import dataclass
from signoff.errors import StoreError
from signoff.gate.passing_events import PassesEvents
from signoff.gate.transcript import is_prompt
from signoff.turns.model import CallRecord, CallState, HistoryEntry, ModelUse, Turn
from signoff.turns.ports import TurnStore, TurnTx

log = logging.getLogger(__name__)


@dataclass
class Saver(PassesEvents):
    """Saves the new messages of the conversation before the tool calls of a response are run.

    It keeps its own copy of the conversation, because an agent that shortens its history also changes the run's copy.
    """

    store: TurnStore
    turn: Turn
    history: list[ModelMessage]
    clock: Clock
    size: int = 0
    """About how many bytes the conversation has."""
    saved: int = field(init=False)
    uses: list[Callable[[], ModelUse]] = field(default_factory=list[Callable[[], ModelUse]])
    """What the newest responses used. It is stored together with what follows a response, to save a commit."""
    _heard: ModelResponse | None = None
    """The newest response as the model gave it, until its calls are run."""

    def __post_init__(self) -> None:
        self.history = list(self.history)
        self.saved = len(self.history)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        # Replace the requests at the end by those that this run sent: after a crash they may be sent a second time.
        asked = [*takewhile(lambda message: isinstance(message, ModelRequest), reversed(ctx.messages))]
        while self.history and isinstance(self.history[-1], ModelRequest):
            self.history.pop()
        self.saved = min(self.saved, len(self.history))
        self._heard = response = writable(response)
        self.history += [*reversed(asked), response]
        self.uses.append(partial(use_of, response, self.clock.now()))
        return response

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        if isinstance(node, CallToolsNode):
            if self._heard not in (None, node.model_response):
                self.history[-1] = writable(node.model_response)  # a capability of the agent has changed it meanwhile
            self._heard = None
            if self.must_save(node.model_response):
                await self.save(self.unsaved())
        elif self.uses:
            await self.save(())  # the response was not the last one: the next request counts what it used
        return cast(Any, node)

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        """Store what a run used that failed or was stopped. If the store fails too, the end of the run matters more."""
        try:
            await self.save(())
        except StoreError as failure:
            log.warning("what turn %s used is not stored: %s", self.turn.id, failure)
        raise error

    def must_save(self, response: ModelResponse) -> bool:
        """Whether the conversation is stored before this response is handled. The last one is stored with the reply."""
        return bool(response.tool_calls)

    async def save(self, entries: Sequence[HistoryEntry]) -> None:
        """Store these messages, and what the responses used so far."""
        uses = tuple(self.uses)

        def work(tx: TurnTx) -> None:
            if entries:
                self._write(tx, entries)
            for use in uses:
                tx.add_use(self.turn, use())

        if entries or uses:
            await self.store.run(work)
        del self.uses[: len(uses)]
        if entries:
            self.saved = entries[-1].position + 1
            self.size += sum(len(entry.body) for entry in entries)

    def note_results(self, messages: Sequence[ModelMessage]) -> None:
        """Take over the results behind the last response. There are some if an output tool ended the run."""
        results = [*takewhile(lambda message: isinstance(message, ModelRequest), reversed(messages))]
        if self.history and isinstance(self.history[-1], ModelResponse):
            self.history += reversed(results)

    def unsaved(self) -> tuple[HistoryEntry, ...]:
        return tuple(entry_of(position, self.history[position]) for position in range(self.saved, len(self.history)))

    @property
    def conversation(self) -> str:
        """The key of the messages in the store."""
        return self.turn.place.conversation

    def _write(self, tx: TurnTx, entries: Sequence[HistoryEntry]) -> None:
        tx.save_history(self.conversation, entries)
        tx.set_prompted(self.turn.id)


@dataclass(frozen=True)
class Conversation:
    """A conversation as it is stored."""

    entries: Sequence[HistoryEntry]
    messages: list[ModelMessage]
    beginning: Sequence[ModelMessage] = ()
    """What a run reads instead of the first messages, if there is a summary of them."""
    summarised: int = 0
    """How many messages the summary stands for."""

    @property
    def shown(self) -> list[ModelMessage]:
        """The messages as a run reads them."""
        return [*self.beginning, *self.messages[self.summarised :]] if self.summarised else self.messages

    @property
    def size(self) -> int:
        """How many bytes are stored."""
        return sum(len(entry.body) for entry in self.entries)

    @property
    def tokens(self) -> int:
        """About how many tokens a run reads, without the summary."""
        return sum(tokens_of(entry) for entry in self.entries[self.summarised :])


def tokens_of(entry: HistoryEntry) -> int:
    """Estimate the tokens of a stored message: most providers count about one for four bytes."""
    return len(entry.body) // 4


def use_of(response: ModelResponse, at: float) -> ModelUse:
    """Return what a model response used. The first price takes a moment to find, so call this in a thread."""
    usage = response.usage
    try:
        # A provider that does not say what was used leaves zeros, which must not count as a response for nothing.
        cost = float(response.cost().total_price) if response.model_name and usage.total_tokens else None
    except Exception:
        cost = None  # no price is known for this model
    return ModelUse(response.model_name or "", usage.input_tokens, usage.output_tokens, cost, at)


def load_messages(entries: Sequence[HistoryEntry]) -> list[ModelMessage]:
    return [message for entry in entries for message in ModelMessagesTypeAdapter.validate_json(entry.body)]


def entry_of(position: int, message: ModelMessage) -> HistoryEntry:
    return HistoryEntry(position, ModelMessagesTypeAdapter.dump_json([storable(message)]))


def responses_in(history: Sequence[ModelMessage]) -> int:
    return sum(isinstance(message, ModelResponse) for message in history)


def requests_made(history: Sequence[ModelMessage]) -> int:
    """Count the model responses since the newest prompt."""
    return responses_in([*takewhile(lambda message: not is_prompt(message), reversed(history))])


def close_open_calls(
    messages: Sequence[ModelMessage], words: str, record: Callable[[str], CallRecord | None]
) -> ModelRequest | None:
    """Return results for calls that would never get one, so that the conversation can go on. None: no call is open."""
    parts = [_closing(call, words, record(call.tool_call_id)) for call in open_calls(messages)]
    return ModelRequest(parts=parts) if parts else None


def open_calls(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    last = messages[-1] if messages else None
    return last.tool_calls if isinstance(last, ModelResponse) else ()


def _closing(call: ToolCallPart, words: str, record: CallRecord | None) -> ToolReturnPart:
    content = words
    if record and record.state is CallState.STARTED:
        content = "The turn ended with an error during this call: it may have run."
    elif record:
        content = f"The turn ended with an error; before that the call was {record.state}: {record.words}"
    return ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome="failed")


def writable(response: ModelResponse) -> ModelResponse:
    """Return the same response without lone surrogates, which cannot be stored.

    In arguments a lone surrogate becomes a JSON escape. Validation then refuses it with an error that the model can act
    on.
    """
    return replace(response, parts=[_writable(part) for part in response.parts])


def _writable(part: ModelResponsePart) -> ModelResponsePart:
    if isinstance(part, TextPart) and not _is_text(part.content):
        return replace(part, content=part.content.encode(errors="backslashreplace").decode())
    if (
        isinstance(part, ToolCallPart)
        and isinstance(part.args, dict)
        and not _is_text(json.dumps(part.args, ensure_ascii=False))
    ):
        return replace(part, args=json.dumps(part.args))
    if isinstance(part, ToolCallPart) and isinstance(part.args, str) and not _is_text(part.args):
        return replace(part, args=part.args.encode(errors="backslashreplace").decode())
    return part


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

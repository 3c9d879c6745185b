"""Lets an MCP server ask people while one of its tools runs (elicitation), and limits how long it may be silent.

Each question becomes a card of the call that caused it. In the protocol of 2026 the question is part of the call's own
result, so its call is known. In the older protocol the server sends a request that does not name a call, and all runs
share the connection. Then the question belongs to the only running call. While there are several, it waits, and then it
is refused: it must not reach the wrong conversation. Knows nothing of cards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from fastmcp import Client
from mcp.client.session import ClientRequestContext
from mcp_types import INVALID_REQUEST, ElicitRequestFormParams, ElicitRequestParams, ElicitResult, ErrorData
from pydantic_ai.exceptions import ModelRetry, ToolFailed

from signoff.approvals.answer_forms import Unaskable, inquire
from signoff.approvals.inquiries import AnswerField, FieldKind, Inquiry
from signoff.approvals.model import ApprovalRequest, RequestState
from signoff.dataclass import dataclass
from signoff.gate.live_calls import LiveCall, NobodyAnswers, current_call
from signoff.gate.lost_calls import is_lost

log = logging.getLogger(__name__)

QUESTIONS = 20
"""How many questions a server may ask in one call."""
ROUNDS = 10_000
"""How often the client may continue a call of the newer protocol. Time and number of questions are limited here."""
WAIT_SHARE = 0.5
"""The part of the time limit for which a question waits until its call is known."""
URL_REFUSED = "Only a form can be shown to people. Links (URL mode) are refused."
NO_CALL = "None of this server's calls is running, so nobody can be asked."
UNCLEAR = (
    "Several calls of this server are running, and the question does not say which of them it belongs to. "
    "Nobody was asked. Call the tool again when the other calls have ended."
)
TOO_MANY = f"At most {QUESTIONS} questions are asked in one call."


class Refused(Exception):
    """The question is not put to anybody. The server is told this text."""


class ServerSilent(TimeoutError):
    """The server has not answered in time."""


class ServerGone(Exception):
    """The server could not be reached again in the middle of a call."""


@dataclass(eq=False)
class RunningCall:
    live: LiveCall | None
    """The way to people. None: nobody can be asked in this call."""
    session: object
    """The session that was open before the call began."""
    seconds: float
    limit: asyncio.Timeout
    asked: int = 0
    """How many questions it has asked."""
    open: int = 0
    """How many of them are not answered yet."""
    is_over: bool = False
    """Whether nobody waits for its result any more, although the server may still be at it."""

    @contextmanager
    def held(self) -> Generator[None]:
        """Stop the clock while people think, and start it anew afterwards."""
        self.open += 1
        self.limit.reschedule(None)
        try:
            yield
        finally:
            self.open -= 1
            if not self.open and not self.is_over:
                self.limit.reschedule(asyncio.get_running_loop().time() + self.seconds)


_here: ContextVar[RunningCall | None] = ContextVar("_here", default=None)
"""The call whose task this is."""


@dataclass(eq=False)
class ServerCalls:
    """The calls that are running at one server, and the questions that the server asks in them."""

    server: str
    seconds: float
    """How long the server may be silent in a call."""
    running: list[RunningCall] = field(default_factory=list[RunningCall])
    """Also the calls that were given up before the server answered: they may still ask."""
    _waiting: list[object] = field(default_factory=list[object])
    """A token for each question whose call is not known yet, in order of arrival."""
    _spoilt: object = None
    """The session on which a question came that may have been one of a call that was given up."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self, client: Client[Any]) -> None:
        """Let the server ask.

        The client's own way would first make a Python class of the server's schema, which can take seconds.
        """
        connect = client.transport.connect_session

        def connect_session(**options: Any) -> Any:
            return connect(**{**options, "elicitation_callback": self.answer})

        client.transport.connect_session = connect_session
        client.input_required_max_rounds = ROUNDS

    @asynccontextmanager
    async def call(self, session: object) -> AsyncGenerator[None]:
        """Run one call here. Raises ServerSilent if the server takes too long, not counting the time of people."""
        limit = asyncio.timeout(self.seconds)
        call = RunningCall(current_call(), session, self.seconds, limit)
        self.running = [one for one in self.running if one.session is session or not one.is_over]
        try:
            async with limit:
                self.running.append(call)
                token = _here.set(call)
                try:
                    yield
                finally:
                    _here.reset(token)
                    call.is_over = True
        except Exception as error:
            self.running.remove(call)
            if isinstance(error, TimeoutError) and limit.expired():
                raise ServerSilent(f"it did not answer within {self.seconds:g} seconds") from error
            if call.asked and not isinstance(error, ModelRetry | ToolFailed) and not is_lost(error):
                # Not sent, but only the last part of the call: the server got the first one.
                raise ServerGone("it could not be reached with the answer") from error
            raise
        except BaseException:
            raise  # it was given up
        else:
            self.running.remove(call)
        finally:
            self._tell()

    def is_spoilt(self, session: object) -> bool:
        """Whether the session is free and should be replaced: calls that were given up still ask on it."""
        return session is self._spoilt and all(call.is_over for call in self.running if call.session is session)

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Ask people what the server wants to know."""
        try:
            return await self._answer(context.session, params)
        except (Refused, Unaskable) as refusal:
            log.warning("a question of the MCP server %s was refused: %s", self.server, refusal)
            return ErrorData(code=INVALID_REQUEST, message=f"Elicitation is refused: {refusal}")

    async def _answer(self, session: object, params: ElicitRequestParams) -> ElicitResult:
        if not isinstance(params, ElicitRequestFormParams):
            raise Refused(URL_REFUSED)
        inquiry = inquiry_of_server(params, self.server)
        call = await self._call_of(session)
        if call.live is None or call.is_over or call.limit.expired():
            raise Refused(NO_CALL)
        if call.asked >= QUESTIONS:
            raise Refused(TOO_MANY)
        call.asked += 1
        log.info("the MCP server %s asks people something", self.server)
        with call.held():
            self._tell()
            try:
                return _result(await call.live.ask(inquiry))
            except NobodyAnswers:
                return ElicitResult(action="cancel")
            finally:
                self._tell()

    async def _call_of(self, session: object) -> RunningCall:
        """Return the call to which a question belongs that came now. Raises Refused if that stays unclear."""
        here = _here.get()
        # A session that was opened inside a call has that call's variables, so this call's own must be older.
        if here and here.session is session and here in self.running:
            return here
        mine = object()
        self._waiting.append(mine)
        try:
            async with asyncio.timeout(self.seconds * WAIT_SHARE):
                while True:
                    calls = [call for call in self.running if call.session is session]
                    if not calls:
                        raise Refused(NO_CALL)
                    if len(calls) == 1:
                        return calls[0]
                    # If each of these calls waits for people or for a question, none will end: refuse the newest one.
                    if self._waiting[-1] is mine and len(self._waiting) >= sum(not call.open for call in calls):
                        raise Refused(UNCLEAR)
                    await self._changed.wait()
        except TimeoutError as error:
            raise Refused(UNCLEAR) from error
        finally:
            self._waiting.remove(mine)
            if any(call.is_over for call in self.running if call.session is session):
                self._spoilt = session
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def inquiry_of_server(params: ElicitRequestFormParams, server: str) -> Inquiry:
    """Return what the server asks. Raises Unaskable."""
    inquiry = inquire(params.message, params.requested_schema, server=server)
    if inquiry.only:
        raise Unaskable("its schema is not that of an object")
    for each in inquiry.fields:
        if not _is_flat(each):
            raise Unaskable(f"its field {each.name[:100]} is no text, number, choice, or yes or no")
    return inquiry


def _is_flat(each: AnswerField) -> bool:
    """Whether the protocol can carry an answer to this field."""
    several = each.kind is FieldKind.CHOICES or each.listed
    return each.kind is not FieldKind.JSON and not (
        several and any(not isinstance(one.value, str) for one in each.options)
    )


def _result(request: ApprovalRequest) -> ElicitResult:
    end = request.settlement
    if request.state is RequestState.APPROVED and end:
        return ElicitResult(action="accept", content=dict(end.answer or {}))
    is_declined = request.state is RequestState.REJECTED and end is not None and end.by is not None
    return ElicitResult(action="decline" if is_declined else "cancel")

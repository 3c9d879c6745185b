"""`resume`: decides a stored request and, if nothing else is left to decide, lets its run go on.

The decision is stored first, and then the run continues here. If the process dies in between, the same call continues
the run: the book of calls in the store keeps each tool from running twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Unpack, cast

from pydantic_ai import AgentRunResult
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.output import OutputDataT
from pydantic_ai.tools import DeferredToolRequests

from signoff.approvals.digest import canonical
from signoff.approvals.errors import Refused
from signoff.approvals.inquiries import BadAnswer
from signoff.approvals.model import Actor, ApprovalDecision, ApprovalRequest, Edit, RequestState, Verdict
from signoff.gate.dry_run import DryRun
from signoff.gate.inline import USER, Decided
from signoff.gate.transcript import said
from signoff.library.capability import parts_of, settings_of
from signoff.library.claim import Claim
from signoff.library.decider import checked
from signoff.library.run import Deps, RunOptions
from signoff.library.settings import Resumed, Settings
from signoff.library.store import ApprovalStore
from signoff.library.stored_gate import pending_of
from signoff.library.stored_rows import AlreadyDecided, StoredRequest, place_of

RETRY_SECONDS = 0.05
GOES_ON = " Its run goes on in another process."
HAS_ENDED = " Its run has ended."
STOPPED = " Its run has not gone on since: call resume without a decision to let it."


async def resume(
    agent: AbstractAgent[Deps, OutputDataT],
    request_id: str,
    decision: ApprovalDecision | bool | None = None,
    *,
    store: ApprovalStore | None = None,
    by: str = "",
    **options: Unpack[RunOptions[Deps]],
) -> AgentRunResult[OutputDataT]:
    """Decide a stored request. When the last one of its run is decided, the run goes on, here.

    The output of the result is a `Pending` as long as somebody has to decide. `by` is the name of the person. Without a
    `decision`, the run only goes on if it can: see `ApprovalStore.ready`. `store` is needed if the agent has no
    `Signoff` with one. The other parameters are those of `agent.run`; give the same ones as at the start of the run.

    Raises AlreadyDecided if the request was decided before, and Refused if the tool does not take edited arguments or
    the answer does not fit the form. The request is then still open.
    """
    settings = _settings(agent, store)
    store = settings.store
    assert store is not None
    said_so = (
        None if decision is None else checked(ApprovalDecision(decision) if isinstance(decision, bool) else decision)
    )
    claim = await _claimed(store, request_id)
    has_ended = False
    try:
        stored = await asyncio.to_thread(store.get, request_id)
        if said_so is not None:
            await _decide(agent, settings, stored, said_so, by, options.get("deps"))
        else:
            await _expire(settings, stored.run)
        if left := await asyncio.to_thread(store.open_requests, stored.run):
            pending = pending_of(stored.run, [one.request for one in left], DeferredToolRequests())
            return cast(AgentRunResult[OutputDataT], AgentRunResult(pending))
        run = await asyncio.to_thread(store.load, stored.run)
        if run.state == "ended":
            raise AlreadyDecided(stored.request, HAS_ENDED)
        parts = parts_of(settings, Resumed(stored.run, run.position, run.rounds, claim))
        passed: dict[str, Any] = {**options, "capabilities": [*parts, *(options.get("capabilities") or ())]}
        result = await agent.run(message_history=run.messages, **passed)
        has_ended = not isinstance(result.output, DeferredToolRequests)
        return result
    finally:
        claim.release(remove=has_ended)


def resume_sync(
    agent: AbstractAgent[Deps, OutputDataT],
    request_id: str,
    decision: ApprovalDecision | bool | None = None,
    *,
    store: ApprovalStore | None = None,
    by: str = "",
    **options: Unpack[RunOptions[Deps]],
) -> AgentRunResult[OutputDataT]:
    """Do the same as `resume` without an event loop."""
    try:
        loop = asyncio.get_event_loop()  # the one that `run_sync` uses: clients of the model stay bound to it
    except RuntimeError:
        loop = None
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    return loop.run_until_complete(resume(agent, request_id, decision, store=store, by=by, **options))


def _settings(agent: AbstractAgent[Any, Any], store: ApprovalStore | None) -> Settings:
    settings = settings_of(agent) or Settings()
    if store is not None:
        settings = replace(settings, store=store, ui=None)
    if settings.store is None:
        raise ValueError("resume needs a store: pass store=, or give the agent Signoff(store=...).")
    return settings


async def _claimed(store: ApprovalStore, request_id: str) -> Claim:
    """Return the claim on the run of this request. Raises AlreadyDecided if it ended, or goes on elsewhere."""
    while True:
        stored = await asyncio.to_thread(store.get, request_id)
        if (await asyncio.to_thread(store.load, stored.run)).state == "ended":
            raise AlreadyDecided(stored.request, HAS_ENDED)
        if claim := Claim.take(store.path, stored.run):
            return claim
        if stored.request.state is not RequestState.PENDING:
            raise AlreadyDecided(stored.request, GOES_ON)
        # Somebody is just deciding another request of the same run.
        await asyncio.sleep(RETRY_SECONDS)


async def _decide(
    agent: AbstractAgent[Any, Any], settings: Settings, stored: StoredRequest, said_so: Decided, by: str, deps: Any
) -> None:
    """Store the decision, then remember and announce it. Does nothing if this decision was stored and cut off."""
    store = settings.store
    assert store is not None
    expired = await _expire(settings, stored.run)
    request = next((one for one in expired if one.id == stored.id), stored.request)
    run = await asyncio.to_thread(store.load, stored.run)
    if request.state is not RequestState.PENDING:
        if run.state == "going" and _is_same(said_so.decision, request):
            return
        raise AlreadyDecided(request, {"ended": HAS_ENDED, "going": STOPPED}.get(run.state, ""))
    try:
        said_so = said_so.answer_to(request)
    except BadAnswer as error:
        raise Refused(f"{error} The request is still open.") from error
    person, now = Actor(USER.id, by, USER.server), store.clock()
    if said_so.approved and said_so.decision.override_args is not None:
        given = asyncio.sleep(0, deps)
        dry_run = DryRun(agent, settings.judge, place_of(stored.run), USER, said(run.messages), make_deps=lambda: given)
        revised = await dry_run.call(request.call.tool, said_so.decision.override_args, request.call)
        if revised.ruling.verdict is Verdict.DENY:
            raise Refused(f"These arguments are not allowed: {revised.ruling.reason}. The request is still open.")
        edit = Edit(request.call.args, request.call.digest, person, now)
        request = replace(request, call=revised.call, edit=edit, preview=revised.preview, diff_of=revised.diff_of)
        said_so = replace(said_so, decision=replace(said_so.decision, override_args=dict(revised.call.args)))
    settled = said_so.settle(request)
    assert settled.settlement
    settled = replace(settled, settlement=replace(settled.settlement, by=person, at=now))
    await asyncio.to_thread(store.decide, settled, stored.run)
    settings.decider().settle(request, said_so)


async def _expire(settings: Settings, run: str) -> list[ApprovalRequest]:
    """Reject what has expired, and announce it."""
    assert settings.store is not None
    expired = await asyncio.to_thread(settings.store.expire, run)
    for request in expired:
        settings.decider().announce(request, Decided(ApprovalDecision(False), "expired"))
    return expired


def _is_same(decision: ApprovalDecision, request: ApprovalRequest) -> bool:
    """Whether the request was settled by a decision like this one."""
    if request.inquiry and decision.approved:
        answer = request.settlement.answer if request.settlement else None
        try:
            return answer is not None and canonical(request.inquiry.check(decision.answer or {})) == canonical(answer)
        except BadAnswer:
            return False
    args = decision.override_args
    same_args = args is None or canonical(dict(args)) == canonical(dict(request.call.args))
    return decision.approved == (request.state is RequestState.APPROVED) and (same_args or not decision.approved)

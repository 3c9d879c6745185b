"""Builds the parts that every front end needs: masking, the rulebook, the runner, the desk and the editor.

Only `commands/` uses it. It knows no front end: a command passes its directory in.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import replace
from zoneinfo import ZoneInfo

from signoff.agent.runner import AgentRunner
from signoff.agent.setup import Brain, Mask, build_terms
from signoff.approvals.automatic import Modes
from signoff.approvals.decision_log import log_decision
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.events import aside
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import JsonObject, Remember
from signoff.approvals.ports import Clock, Directory
from signoff.approvals.retention import Retention
from signoff.approvals.server_rules import Rulebook
from signoff.approvals.todays_rules import TodaysRules
from signoff.config.schema import Config
from signoff.dataclass import dataclass
from signoff.store import Store
from signoff.text.secrets.masker import DEFAULT, Masker, MaskingFilter
from signoff.turns.activity import Activity
from signoff.turns.activity_log import ActivityLog
from signoff.turns.budgets import Budget, Budgets, Unit
from signoff.turns.driver import QueueLimits
from signoff.turns.schedules import ScheduleTerms

FAREWELL = 3.0
"""Seconds for the rest of a shutdown, after running tools had their `[limits] shutdown_grace`."""
UNREADABLE = {"arguments": "not kept: they cannot be masked without becoming ambiguous"}


@dataclass(frozen=True)
class Core:
    masker: Masker
    mask: Mask
    rulebook: Rulebook
    runner: AgentRunner
    desk: Desk
    editor: Editor
    retention: Retention
    activity: Activity
    """Tells what happens to turns: to the log, and to those who add a listener."""

    @classmethod
    async def build(
        cls, config: Config, brain: Brain, store: Store, clock: Clock, directory: Directory | None = None
    ) -> Core:
        masker = await build_masker(config, store)
        mask = _careful(masker)
        rulebook = Rulebook(brain.policy, store, clock)
        activity = Activity([ActivityLog()])
        budgets = build_budgets(config)
        runner = replace(
            brain.runner(config, store, clock, rulebook, mask),
            activity=activity,
            budgets=budgets if budgets.limits else None,
        )
        asking = config.approvals
        desk = Desk(
            store,
            clock,
            Modes(
                asking.mode, asking.on_no_approver, frozenset(config.schedules.modes if config.schedules.allow else ())
            ),
            GrantTerms(Remember(asking.remember), asking.grant_lifetime, asking.grant_uses),
            directory,
            mask,
            subscribers=[log_decision, *(aside(listener) for listener in brain.listeners)],
        )
        desk.todays = TodaysRules(runner, build_terms(config), clock.now())
        editor = Editor(desk, runner, build_terms(config))
        retention = Retention(store, config.audit.keep_text)
        return cls(masker, mask, rulebook, runner, desk, editor, retention, activity)


async def build_masker(config: Config, store: Store) -> Masker:
    """Return a masker with this installation's own key. From now on the log is masked too."""
    key = await store.run(lambda tx: tx.key("masks"))
    masker = Masker(key, (*DEFAULT, *config.secrets.names), config.secrets.patterns)
    for handler in logging.getLogger().handlers:
        handler.addFilter(MaskingFilter(masker))
    return masker


async def build_mask(config: Config, store: Store) -> Mask:
    """Return the mask for the record, for commands that do not build everything."""
    return _careful(await build_masker(config, store))


def build_budgets(config: Config) -> Budgets:
    written = config.budgets
    limits = {
        (Budget.THREAD, Unit.TOKENS): written.tokens_per_thread,
        (Budget.PERSON, Unit.TOKENS): written.tokens_per_person_per_day,
        (Budget.SERVER, Unit.TOKENS): written.tokens_per_server_per_day,
        (Budget.THREAD, Unit.DOLLARS): written.cost_per_thread,
        (Budget.PERSON, Unit.DOLLARS): written.cost_per_person_per_day,
        (Budget.SERVER, Unit.DOLLARS): written.cost_per_server_per_day,
    }
    set_limits = {key: float(limit) for key, limit in limits.items() if limit is not None}
    return Budgets(set_limits, written.overage_percent / 100, ZoneInfo(written.timezone))


def build_schedule_terms(config: Config) -> ScheduleTerms:
    written = config.schedules
    modes, zone = frozenset[str](written.modes), ZoneInfo(written.timezone)
    return ScheduleTerms(written.allow, modes, written.per_server, written.minimum_interval, written.grace, zone)


def queue_limits(config: Config) -> QueueLimits:
    limits = config.limits
    return QueueLimits(
        limits.turns_per_person, limits.queue_per_person, limits.queue_per_conversation, limits.rejected_cards
    )


def leave_for_certain(grace: float, code: int = 0) -> None:
    """End the process `FAREWELL` seconds after `grace`, even if a tool still runs in a thread that nothing can stop."""
    watchdog = threading.Timer(grace + FAREWELL, os._exit, (code,))
    watchdog.daemon = True
    watchdog.start()


def _careful(masker: Masker) -> Mask:
    """Return a mask that never fails, because the record must take every call."""

    def mask(args: JsonObject) -> JsonObject:
        try:
            return masker.mask_args(args)
        except (ValueError, RecursionError):
            return UNREADABLE

    return mask

"""The approval settings of signoff.toml reach the desk."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from signoff.agent.setup import Brain
from signoff.approvals.automatic import Modes
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Remember
from signoff.config.schema import parse_config
from signoff.core import Core
from signoff.store import Store
from tests.conftest import HandClock

TEXT = """
[approvals]
mode = "auto_deny"
on_no_approver = "approve"
remember = "always"
grant_lifetime = "2h"
grant_uses = 7
"""


@pytest.fixture(autouse=True)
def the_log_as_before() -> Iterator[None]:
    """Remove the log's masking after each test: building the parts adds it for the rest of the process."""
    before = {handler: list(handler.filters) for handler in logging.getLogger().handlers}
    yield
    for handler, filters in before.items():
        handler.filters[:] = filters


async def test_the_terms_of_the_configuration_are_those_of_the_desk(store: Store, clock: HandClock) -> None:
    config = parse_config(TEXT)
    core = await Core.build(config, Brain.build(config, "demo"), store, clock)
    assert core.desk.modes == Modes("auto_deny", "approve")
    assert core.desk.grants == GrantTerms(Remember.ALWAYS, 7200.0, 7)

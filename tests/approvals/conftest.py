"""A desk whose directory a test sets."""

from __future__ import annotations

import pytest

from signoff.approvals.desk import Desk
from signoff.store import Store
from tests.conftest import HandClock
from tests.rigs.people import HandDirectory


@pytest.fixture
def directory() -> HandDirectory:
    return HandDirectory()


@pytest.fixture
def desk(store: Store, clock: HandClock, directory: HandDirectory) -> Desk:
    return Desk(store, clock, directory=directory)

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from signoff.store import Store

DIALECTS = ["sqlite"]
"""Every test that takes `store` runs on each of these; PostgreSQL will be added here."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "signoff.db"


@pytest.fixture(params=DIALECTS)
def url(request: pytest.FixtureRequest, database: Path) -> str:
    assert request.param == "sqlite"
    return f"sqlite:///{database}"


@pytest.fixture
async def store(url: str, database: Path, new_database: Path) -> AsyncIterator[Store]:
    database.parent.mkdir()
    shutil.copy(new_database, database)
    async with await Store.open(url) as store:
        yield store

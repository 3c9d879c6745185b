"""The audit commands read the same database files as the store's tests."""

from tests.store.conftest import database, url  # noqa: F401 - fixtures

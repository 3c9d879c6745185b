from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.approvals.audit import AuditRow, text_digest
from signoff.approvals.retention import Retention
from signoff.store import Store
from signoff.store.migrate import migrate, shipped
from signoff.store.sqlite import open_sqlite
from signoff.store.store import Tx
from tests.rigs.audit_samples import look

FILTERS = [{}, {"actor": "u7"}, {"tool": "t3"}, {"kind": "expired"}, {"subject": "q79"}, {"actor": "nobody"}]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tx]:
    kinds = ["opened"] * 50 + ["approved"] * 45 + ["expired"]
    db = open_sqlite(tmp_path_factory.mktemp("large") / "signoff.db")
    migrate(db, shipped("sqlite"), place="here")
    db.begin()
    tx = Tx(db)
    for n in range(10_000):
        tx.audit(kinds[n * 7 % 96], f"s{n % 4}", f"q{n}", f"u{n % 50}", {}, float(n), tool=f"t{n % 9}")
    db.commit()
    yield tx
    db.close()


async def test_a_row_comes_back_as_it_was_written(store: Store) -> None:
    data = {"note": 'ends "here"\x00', "n": 1}
    await store.run(lambda tx: tx.audit("approved", "s1", "q1", '"u1', data, 5, tool="\ud800", text="ls -l"))
    (row,) = await store.run(lambda tx: tx.audit_page("s1"))
    assert row == AuditRow(1, 5.0, "approved", "s1", "q1", '"u1', "\ud800", row.data, text_digest("ls -l"), row.hash)
    assert row.details == data
    assert await store.run(lambda tx: tx.audit_text(row.text)) == "ls -l"
    assert await store.run(lambda tx: tx.audit_text("")) is None


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", '"', "é\u2028" * 1000])
@pytest.mark.parametrize("at", [0, -0.0, 1e-9, 1.7976931348623157e308, 2**53 + 1])
async def test_whatever_is_written_verifies(database: Path, text: str, at: float) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: tx.audit(text, text, text, text, {text: [text, at]}, at, tool=text, text=text))
    assert look(database).intact


async def test_a_time_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(ValueError):
        await store.run(lambda tx: tx.audit("k", "s", "q", "u", {}, float("nan")))
    assert await store.run(lambda tx: tx.audit_page("s")) == []


async def test_rows_of_work_that_failed_leave_no_gap(store: Store) -> None:
    def failing(tx: Tx) -> None:
        tx.audit("lost", "s1", "q", "u", {}, 1.0)
        raise RuntimeError

    await store.run(lambda tx: tx.audit("kept", "s1", "q", "u", {}, 1.0))
    with pytest.raises(RuntimeError):
        await store.run(failing)
    await store.run(lambda tx: tx.audit("kept", "s1", "q", "u", {}, 1.0))
    assert [(r.seq, r.kind) for r in await store.run(lambda tx: tx.audit_page("s1"))] == [(2, "kept"), (1, "kept")]


@pytest.mark.slow
@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_pages_are_newest_first_without_holes_and_take_milliseconds(large: Tx, wanted: dict[str, str]) -> None:
    everything = large.audit_page("s3", limit=100_000)
    assert len(everything) == 2500
    right = [row for row in everything if all(getattr(row, name) == value for name, value in wanted.items())]
    paged: list[AuditRow] = []
    slowest = 0.0
    while True:
        before = paged[-1].seq if paged else None
        started = time.thread_time()
        page = large.audit_page("s3", before=before, limit=500, **wanted)
        slowest = max(slowest, time.thread_time() - started)
        if not page:
            break
        paged += page
    assert paged == right
    assert slowest < 0.1, "generous: it takes a few milliseconds of processor time"


async def test_retention_takes_texts_and_leaves_the_chain(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        for at, text in ((1.0, "old"), (2.0, "shared"), (5000.0, "shared"), (5001.0, "new")):
            await store.run(lambda tx, at=at, text=text: tx.audit("k", "s1", "q", "u", {}, at, text=text))
        retention = Retention(store, keep=4000.0)
        assert await retention.prune(6000.0) == 1
        assert await retention.prune(6001.0) == 0, "an hour has not passed"
        kept = [await store.run(lambda tx, t=t: tx.audit_text(text_digest(t))) for t in ("old", "shared", "new")]
        assert kept == [None, "shared", "new"]
        (row,) = await store.run(lambda tx: tx.audit_page("", kind="texts_pruned"))
        assert (row.at, row.details) == (6000.0, {"before": 2000.0, "texts": 1})
        assert await retention.prune(9600.0) == 2
        assert await retention.prune(99999.0) == 0
        assert len(await store.run(lambda tx: tx.audit_page(""))) == 2, "nothing pruned, nothing recorded"
    assert look(database).intact


async def test_a_kept_text_cannot_be_changed_through_the_store(store: Store) -> None:
    await store.run(lambda tx: tx.audit("k", "s1", "q", "u", {}, 1.0, text="ls"))
    with pytest.raises(Exception, match="kept"):
        await store.run(lambda tx: tx.db.change("UPDATE audit_texts SET text = 'rm'"))

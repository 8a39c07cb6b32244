"""Statistics by day: sums over days and servers, days that are deleted, files that cannot be used."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest

from lsp_server.workspace import usage_by_day
from lsp_server.workspace.measurements import bucket_of, usage_summary
from lsp_server.workspace.usage_by_day import NUM_DAYS, UsageByDay, UsageRecorder

DAY = date(2026, 3, 31)


def test_days_are_summed_over_all_servers(tmp_path: Path) -> None:
    path = tmp_path / "state" / "usage.sqlite3"
    UsageByDay(path).add(DAY - timedelta(days=1), {"num_accepted": 2})
    UsageByDay(path).add(DAY, {"num_accepted": 3, "num_answered": 7})
    assert UsageByDay(path).since(DAY) == {"num_accepted": 3, "num_answered": 7}
    assert UsageByDay(path).since(DAY - timedelta(days=6)) == {"num_accepted": 5, "num_answered": 7}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "usage.sqlite3"
    UsageByDay(file).add(DAY, {"num_keys": 1})
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_old_days_are_deleted(tmp_path: Path) -> None:
    usage = UsageByDay(tmp_path / "usage.sqlite3")
    usage.add(DAY, {"num_accepted": 1})
    usage.add(DAY + timedelta(days=NUM_DAYS - 1), {"num_accepted": 1})
    assert usage.since(date.min) == {"num_accepted": 2}
    usage.add(DAY + timedelta(days=NUM_DAYS), {"num_accepted": 1})
    assert usage.since(date.min) == {"num_accepted": 2}


def test_servers_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"

    def add(_: int) -> None:
        while True:
            with contextlib.suppress(sqlite3.OperationalError):  # busy: as a recorder does, try again later
                return UsageByDay(path).add(DAY, {"num_accepted": 1})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(40)))
    assert UsageByDay(path).since(DAY) == {"num_accepted": 40}


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + bytes(4000)])
def test_a_damaged_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "usage.sqlite3"
    path.write_bytes(content)
    usage = UsageByDay(path)
    usage.add(DAY, {"num_accepted": 1})
    assert usage.since(DAY) == {"num_accepted": 1}


def test_nothing_is_created_to_read(tmp_path: Path) -> None:
    assert not UsageByDay(tmp_path / "state" / "usage.sqlite3").since(DAY)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("times", "p50_ms", "p95_ms"),
    [((), None, None), ((0.2,), 1.0, 1.0), ((8.0,) * 19 + (90.0,), 8.0, 90.5), ((1e9,), 27554.5, 27554.5)],
)
def test_percentiles_are_the_upper_ends_of_buckets(
    times: tuple[float, ...], p50_ms: float | None, p95_ms: float | None
) -> None:
    found = usage_summary(Counter(bucket_of(ms) for ms in times))
    assert (found["p50_ms"], found["p95_ms"]) == (p50_ms, p95_ms)


def test_each_acceptance_costs_a_key() -> None:
    counts = {"num_accepted_chars": 50, "num_accepted": 2, "num_partially_accepted": 3, "source_ngram": 4}
    found = usage_summary(counts)
    assert (found["num_keys_saved"], found["num_accepted"]) == (45, 5)
    assert found["tokens_by_source"] == {"ngram": 4}


def test_counts_that_cannot_be_written_are_kept_for_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite3"
    path.mkdir()
    total = Counter({"num_accepted_chars": 5})

    async def use() -> None:
        recorder = UsageRecorder(total.copy, UsageByDay(path))
        assert await recorder.summaries() is None
        path.rmdir()
        total["num_accepted_chars"] += 1
        for _ in range(2):
            found = await recorder.summaries()
            assert found is not None
            assert (found["today"]["num_keys_saved"], found["week"]["num_keys_saved"]) == (6, 6)

    asyncio.run(use())


@pytest.mark.parametrize("gives_up", ["times out", "is cancelled"])
async def test_counts_that_are_written_late_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gives_up: str
) -> None:
    monkeypatch.setattr(usage_by_day, "_MAX_WAIT_S", 0.05 if gives_up == "times out" else 60.0)
    usage, may_write, is_writing = (
        UsageByDay(tmp_path / "usage.sqlite3"),
        threading.Event(),
        threading.Event(),
    )
    total, add = Counter({"num_accepted_chars": 100}), usage.add

    def add_slowly(day: date, counts: Counter[str]) -> None:
        is_writing.set()
        assert may_write.wait(60)
        add(day, counts)

    monkeypatch.setattr(usage, "add", add_slowly)
    recorder = UsageRecorder(total.copy, usage)
    recording = asyncio.create_task(recorder.record())
    await asyncio.to_thread(is_writing.wait, 60)
    if gives_up == "is cancelled":
        recording.cancel()
    await asyncio.wait([recording])
    total["num_accepted_chars"] += 1
    may_write.set()
    monkeypatch.setattr(usage_by_day, "_MAX_WAIT_S", 60.0)
    await recorder.record()
    assert usage.since(date.min) == {"num_accepted_chars": 101}

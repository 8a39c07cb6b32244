"""Folders are indexed beside the event loop: the tokenizer starts them, buffers are shown when still."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.workspace import folder_indexes
from lsp_server.workspace.folder_indexes import FolderIndexes
from lsp_server.workspace.folder_worker import MAX_FAILURES, MAX_PAUSE_S, FolderReport, FolderWorker
from ngram_cache import snapshot
from ngram_cache.indexing import Indexer
from ngram_cache.overlays import TokenSource
from ngram_cache.planning import IndexSummary
from ngram_cache.repository import Repository, RepositoryOptions
from ngram_cache.walk import FolderWalk
from tests.clock import Clock
from tests.waiting import until

CODE = "def fresh(value):\n    return value * 2\n"
ENABLED = RepositoryOptions()
QUIET_S = 600.0
PATIENCE_S = 60.0  # longest time of a busy machine


def encode_many(texts: list[str]) -> list[list[int]]:
    return [list(text.encode()) for text in texts]


BYTES = TokenSource("bytes", encode_many)


class Place:
    """Indexing jobs and all that they reported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.is_engine_busy = False
        self.reports: list[FolderReport] = []
        self.jobs = FolderIndexes(self.reports.append, lambda: self.is_engine_busy)

    def folder(self, name: str = "a") -> Path:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        (folder / "code.py").write_text(CODE)
        return folder

    async def until_ready(self, num_files: int = 1) -> None:
        await until(lambda: [(r.state, r.num_files) for r in self.jobs.reports()] == [("ready", num_files)])


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(tmp_path / "index"))
    place = Place(tmp_path)
    yield place
    assert place.jobs.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("index ")]


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock by which alone a buffer becomes still."""
    monkeypatch.setattr(folder_indexes, "BUFFER_QUIET_S", QUIET_S)
    return Clock()


async def test_nothing_is_indexed_before_the_tokens_are_known(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_folders({folder: ENABLED})
    assert [report.state for report in place.jobs.reports()] == ["waiting"]
    assert place.jobs.index_of(folder) is None
    place.jobs.set_tokens(BYTES)
    await place.until_ready()
    index = place.jobs.index_of(folder)
    assert index
    assert index.paths == ["code.py"]


async def test_another_tokenizer_builds_another_index(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    doubled = TokenSource("doubled", lambda texts: [[2 * i for i in ids] for ids in encode_many(texts)])
    before = place.jobs.index_of(folder)
    place.jobs.set_tokens(doubled)
    await until(lambda: place.jobs.index_of(folder) not in {None, before})
    await place.until_ready()


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
@pytest.mark.parametrize("name", ["a", "link"])
async def test_our_own_watch_follows_what_changes_and_the_rules_wherever_they_lie(
    place: Place, name: str
) -> None:
    (place.root / ".git/info").mkdir(parents=True)
    (place.root / "link").symlink_to(place.folder("a"))
    folder = place.root / name
    seen: set[Path] = set()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    place.jobs.watch_files(seen.update)
    await place.until_ready()
    await until(lambda: folder in seen)
    (folder / "new.py").write_text(CODE)
    await place.until_ready(num_files=2)
    (place.root / ".git/info/exclude").write_text("new.py\n")
    await place.until_ready(num_files=1)
    (place.root / "beside.py").write_text(CODE)
    (place.root / ".gitignore").write_text("*.py\n")
    await place.until_ready(num_files=0)
    await until(lambda: place.root / ".gitignore" in seen)
    assert place.root / "beside.py" not in seen


async def test_no_index_is_handed_out_under_the_tokens_of_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    seen: list[object] = []
    begin = Indexer.__init__

    def beginning(*arguments: Any, **named: Any) -> None:
        seen.append(place.jobs.index_of(folder))
        begin(*arguments, **named)

    monkeypatch.setattr(Indexer, "__init__", beginning)
    place.jobs.set_tokens(TokenSource("other", encode_many))
    await until(lambda: place.jobs.index_of(folder) is not None)
    assert seen == [None]


async def test_a_buffer_waits_for_one_change_of_files_however_many_come(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    worker = place.jobs._workers[folder]
    done: list[str] = []
    both_wait = threading.Event()

    def reconcile(_indexer: Indexer, _paths: object) -> IndexSummary:
        both_wait.wait(PATIENCE_S)
        done.append("files")
        if len(done) < 6:
            worker.files_changed([folder / "code.py"])
        return IndexSummary()

    monkeypatch.setattr(Indexer, "reconcile", reconcile)
    monkeypatch.setattr(Indexer, "set_overlay", lambda *_: done.append("buffer"))
    worker.files_changed([folder / "code.py"])
    worker.buffer_changed(folder / "open.py", ["x = 1\n"])
    worker.buffer_changed(folder / "other.py", ["y = 1\n"])
    both_wait.set()
    await until(lambda: len(done) >= 6 and not worker._paths)
    assert [at for at, what in enumerate(done) if what == "buffer"] in ([0, 2], [1, 3])


async def test_buffers_that_come_and_go_before_they_are_looked_at_leave_nothing(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_folders({folder: ENABLED})
    worker = place.jobs._workers[folder]
    for number in range(50):
        worker.buffer_changed(folder / f"never open {number}.py", None)
        worker.buffer_changed(folder / f"{number}.py", ["x = 1\n"])
        worker.buffer_changed(folder / f"{number}.py", None)
    assert not worker._buffers


async def test_a_disabled_folder_has_no_index_and_changed_rules_make_a_new_one(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({})
    assert place.jobs.reports() == []
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.set_folders({folder: RepositoryOptions(exclude=("code.py",))})
    await place.until_ready(num_files=0)


async def test_a_buffer_is_shown_once_when_typing_pauses_and_hidden_when_it_is_closed(
    place: Place, clock: Clock
) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    lines = ["first\r\n"]
    path = folder / "open.py"
    for number in range(20):
        lines.append(f"line{number}\r\n")
        place.jobs.document_changed(folder, path, lines.copy)
        await clock.turn(0.9 * QUIET_S)
        assert place.jobs.reports()[0].num_files == 1
    await clock.turn(QUIET_S)
    await place.until_ready(num_files=2)
    index = place.jobs.index_of(folder)
    assert index
    found = index.lookup(list(b"line18\n"), max_nodes=4, max_depth=4)
    assert found.match_length >= len("line18\n")
    place.jobs.document_closed(path)
    await place.until_ready(num_files=1)


async def test_a_buffer_that_is_larger_than_any_indexed_file_is_not_shown(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.document_changed(folder, folder / "open.py", lambda: ["x = 1\n"])
    await place.until_ready(num_files=2)
    place.jobs.document_changed(folder, folder / "open.py", lambda: ["x = 1\n"] * 200_000)
    await place.until_ready(num_files=1)


async def test_a_document_closed_at_once_is_never_shown(place: Place, clock: Clock) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.document_changed(folder, folder / "open.py", lambda: ["x = 1\n"])
    place.jobs.document_closed(folder / "open.py")
    await clock.turn(2 * QUIET_S)
    place.jobs.document_changed(folder, folder / "later.py", lambda: ["y = 1\n"])
    await clock.turn(2 * QUIET_S)
    await place.until_ready(num_files=2)
    place.jobs.document_closed(folder / "later.py")
    await place.until_ready(num_files=1)


async def test_indexing_makes_way_for_a_completion_but_not_forever(place: Place) -> None:
    folder = place.folder()
    place.is_engine_busy = True
    begin = time.monotonic()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    assert time.monotonic() - begin >= MAX_PAUSE_S


async def test_what_git_writes_is_not_followed(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    num_reports = len(place.reports)
    place.jobs.files_changed([folder / ".git" / "index.lock", place.root / "elsewhere.py"])
    await asyncio.sleep(0.1)
    assert len(place.reports) == num_reports


async def test_a_tokenizer_that_fails_is_a_report_and_the_folder_lives_on(place: Place) -> None:
    folder = place.folder()

    def fail(_texts: list[str]) -> list[list[int]]:
        raise ValueError("no tokens")

    place.jobs.set_tokens(TokenSource("broken", fail))
    place.jobs.set_folders({folder: ENABLED})
    await until(lambda: place.jobs.reports()[0].state == "error")
    assert "no tokens" in place.jobs.reports()[0].problem
    place.jobs.set_tokens(BYTES)
    await place.until_ready()


class Panic(BaseException):
    """As a native library ends: no Exception."""


async def test_a_panic_of_the_tokenizer_costs_the_file_that_it_comes_from(place: Place) -> None:
    folder = place.folder()
    (folder / "hostile.py").write_text("boom = 1\n")

    def encode(texts: list[str]) -> list[list[int]]:
        if any("boom" in text for text in texts):
            raise Panic("index out of bounds")
        return encode_many(texts)

    place.jobs.set_tokens(TokenSource("fragile", encode))
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.document_changed(folder, folder / "open.py", lambda: ["boom\n"])
    place.jobs.document_changed(folder, folder / "other.py", lambda: ["x = 1\n"])
    await place.until_ready(num_files=2)
    index = place.jobs.index_of(folder)
    assert index
    assert index.paths == ["code.py"]


async def test_a_folder_whose_index_fails_again_and_again_is_left_alone_and_told_of_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folder()
    ends: list[None] = []

    def fail(_indexer: Indexer) -> IndexSummary:
        ends.append(None)
        raise Panic("no index")

    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "build", fail)
        place.jobs.set_tokens(BYTES)
        place.jobs.set_folders({folder: ENABLED})
        await until(lambda: place.jobs.reports()[0].state == "error")
        place.jobs.files_changed([folder / "code.py"])
        assert len(ends) == MAX_FAILURES
        problems = [report.problem for report in place.reports if report.problem]
        assert len(problems) == 1
        assert "no index" in problems[0]
    await place.jobs.purge([folder])
    await place.until_ready()


async def test_an_error_between_two_tasks_ends_no_worker(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[BaseException] = [Panic("between two tasks")]
    choose = FolderWorker._next

    def fail_once(worker: FolderWorker) -> object:
        if errors:
            raise errors.pop()
        return choose(worker)

    monkeypatch.setattr(FolderWorker, "_next", fail_once)
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({place.folder(): ENABLED})
    await place.until_ready()
    assert errors == []


async def test_a_purge_is_answered_whatever_becomes_of_the_worker(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_folder: Path) -> int:
        raise Panic("no disk")

    monkeypatch.setattr("lsp_server.workspace.folder_worker.forget", fail)
    worker = FolderWorker(place.folder(), RepositoryOptions(), place.reports.append, lambda: False)
    with pytest.raises(Panic):
        worker.purge().result(timeout=PATIENCE_S)
    worker.stop()
    assert worker.join(PATIENCE_S)
    assert worker.purge().cancelled()


async def test_a_purge_that_is_cancelled_leaves_later_ones_answered(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client cancels purges while the thread is busy with another task."""
    begins, may_end = threading.Event(), threading.Event()

    def forget(_folder: Path) -> int:
        begins.set()
        assert may_end.wait(PATIENCE_S)
        return 1

    monkeypatch.setattr("lsp_server.workspace.folder_worker.forget", forget)
    worker = FolderWorker(place.folder(), RepositoryOptions(), place.reports.append, lambda: False)
    running = worker.purge()
    assert begins.wait(PATIENCE_S)
    running.cancel()
    waiting = [worker.purge() for _ in range(3)]
    waiting[1].cancel()
    may_end.set()
    assert [purge.result(timeout=PATIENCE_S) for purge in (waiting[0], waiting[2], worker.purge())] == [1] * 3
    worker.stop()
    assert worker.join(PATIENCE_S)
    assert not [report for report in place.reports if report.state == "error"]


async def test_a_folder_for_which_there_is_no_thread_is_told_of_and_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (place.folder(name) for name in ("first", "second", "third"))
    start = threading.Thread.start

    def fail_for_second(thread: threading.Thread) -> None:
        if thread.name == "index second":
            raise RuntimeError("can't start new thread")
        start(thread)

    place.jobs.set_tokens(BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail_for_second)
        place.jobs.set_folders({first: ENABLED, second: ENABLED, third: ENABLED})
    await until(lambda: bool(place.jobs.index_of(first) and place.jobs.index_of(third)))
    problems = [report.problem for report in place.reports if report.folder == second]
    assert problems == [f"{second} is not indexed: can't start new thread."]
    place.jobs.set_folders({first: ENABLED, second: ENABLED})
    await until(lambda: place.jobs.index_of(second) is not None)
    assert place.jobs.index_of(third) is None


async def test_changed_rules_keep_open_buffers_and_save_nothing_of_what_is_left_out_now(place: Place) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready()
    place.jobs.document_changed(folder, folder / "open.py", lambda: ["x = 1\n"])
    place.jobs.document_changed(folder, folder / "hidden.py", lambda: ["y = 1\n"])
    await place.until_ready(num_files=3)
    (folder / "secret.py").write_text("hidden = 1\n")
    place.jobs.files_changed([folder / "secret.py"])
    await place.until_ready(num_files=4)
    place.jobs.set_folders({folder: RepositoryOptions(exclude=("secret.py", "hidden.py"))})
    await place.until_ready(num_files=2)
    assert place.jobs.stop()
    stored = next((place.root / "index").glob("*.index"))
    loaded = snapshot.load(stored, fingerprint="bytes", root=str(folder.resolve()))
    assert sorted(loaded.files) == ["code.py"]


async def test_a_document_that_moves_to_another_folder_is_shown_in_that_one_alone(place: Place) -> None:
    outer = place.folder("outer")
    inner = outer / "inner"
    inner.mkdir()
    path = inner / "open.py"
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({outer: ENABLED, inner: ENABLED})
    place.jobs.document_changed(outer, path, lambda: ["x = 1\n"])
    await until(lambda: overlaid(place, outer) == ["inner/open.py"])
    place.jobs.document_changed(inner, path, lambda: ["x = 1\n"])
    await until(lambda: overlaid(place, inner) == ["open.py"])
    await until(lambda: overlaid(place, outer) == [])
    place.jobs.document_closed(path)
    await until(lambda: overlaid(place, inner) == [])


def overlaid(place: Place, folder: Path) -> list[str] | None:
    index = place.jobs.index_of(folder)
    return list(index.overlaid) if index else None


async def test_a_document_that_was_open_before_its_folder_is_shown_when_that_comes(
    place: Place,
) -> None:
    folder = place.folder()
    place.jobs.set_tokens(BYTES)
    place.jobs.document_changed(folder, folder / "open.py", lambda: ["x = 1\n"])
    place.jobs.set_folders({folder: ENABLED})
    await place.until_ready(num_files=2)


async def test_folders_come_and_go_while_the_tokens_become_known(place: Place) -> None:
    folders = [place.folder(f"f{number}") for number in range(8)]
    failed: list[BaseException] = []

    def set_tokens() -> None:
        try:
            for number in range(300):
                place.jobs.set_tokens(TokenSource(f"t{number % 2}", encode_many))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=set_tokens)
    thread.start()
    number = 0
    while thread.is_alive():
        number += 1
        place.jobs.set_folders(dict.fromkeys(folders[: number % 8], ENABLED))
    assert failed == []


async def test_nothing_is_begun_after_the_end(place: Place) -> None:
    assert place.jobs.stop()
    place.jobs.set_folders({place.folder(): ENABLED})
    assert place.jobs.reports() == []


@pytest.mark.parametrize("when", ["walking", "reading", "encoding"])
async def test_a_folder_of_any_size_is_left_when_it_is_told_to(
    place: Place, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It is caught in the middle, and what is left to do is not done."""
    folder = place.root / "large"
    for number in range(40):
        (folder / f"d{number}").mkdir(parents=True)
        for name in range(100):
            (folder / f"d{number}" / f"f{name}.py").write_text("x = 1\n")
    reached, go_on = threading.Event(), threading.Event()
    calls: list[None] = []
    owner, method = {
        "walking": (FolderWalk, "_take"),
        "reading": (Repository, "check_text"),
        "encoding": (Indexer, "_encode_batch"),
    }[when]
    original = getattr(owner, method)

    def counted(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == 20:
            reached.set()
            go_on.wait(10)
        return original(*arguments)

    monkeypatch.setattr(owner, method, counted)
    place.jobs.set_tokens(BYTES)
    place.jobs.set_folders({folder: ENABLED})
    await asyncio.to_thread(reached.wait, 10)
    stopping = asyncio.create_task(asyncio.to_thread(place.jobs.stop))
    await until(lambda: place.jobs.has_stopped)
    go_on.set()
    assert await stopping
    assert len(calls) <= 21

"""The indexed folders are watched, and no others: not through a link, not more than a bound."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lsp_server.workspace import watching
from lsp_server.workspace.watching import FolderWatches

PATIENCE_S = 60.0


class Heard:
    """The paths that a watch reported."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.paths: set[Path] = set()

    def add(self, paths: set[Path]) -> None:
        with self._changed:
            self.paths |= paths
            self._changed.notify_all()

    def until(self, path: Path) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: path in self.paths, PATIENCE_S)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def watches(heard: Heard) -> Iterator[FolderWatches]:
    watches = FolderWatches(heard.add)
    yield watches
    assert watches.stop(PATIENCE_S)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("watch ")]


def num_watches() -> int:
    """Number of folders that this process watches."""
    num_found = 0
    for path in Path("/proc/self/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # another thread has closed it
            num_found += path.read_text().count("inotify wd")
    return num_found


def test_what_changes_is_told_and_what_changed_before_the_watch_too(
    watches: FolderWatches, heard: Heard, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    watches.follow(tmp_path, {"", "inner"})
    assert heard.until(tmp_path), "what was missed is looked for from the top"
    assert inner not in heard.paths
    (inner / "a.py").touch()
    assert heard.until(inner / "a.py")


def test_a_folder_that_comes_is_watched_beside_the_others(
    watches: FolderWatches, heard: Heard, tmp_path: Path
) -> None:
    watches.follow(tmp_path, {""})
    assert heard.until(tmp_path)
    late = tmp_path / "late"
    late.mkdir()
    watches.follow(tmp_path, {"", "late"})
    assert heard.until(late)
    (late / "a.py").touch()
    assert heard.until(late / "a.py")
    (tmp_path / "b.py").touch()
    assert heard.until(tmp_path / "b.py")


def test_a_watch_whose_thread_does_not_start_is_tried_again(
    watches: FolderWatches, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError):
        watches.follow(tmp_path, {""})
    monkeypatch.setattr(threading.Thread, "start", start)
    watches.follow(tmp_path, {""})
    assert heard.until(tmp_path)


def refused(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="the system does not tell its watches")
def test_no_more_folders_are_watched_than_the_bound_and_none_behind_a_link(
    watches: FolderWatches, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MAX_FOLDERS", 5)
    monkeypatch.setattr(watching, "FOLDERS_AT_ONCE", 2)
    before = num_watches()
    root, outside = tmp_path / "root", tmp_path / "outside"
    for number in range(20):
        (root / f"{number}").mkdir(parents=True)
        (outside / f"{number}").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    watches.follow(root, {f"{number}" for number in range(20)} | {""})
    assert heard.until(root)
    assert heard.until(root / "10"), "a batch of its own"
    assert 0 < num_watches() - before <= 5


def test_many_late_folders_take_no_more_threads_than_the_bound(
    watches: FolderWatches, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MAX_THREADS", 3)
    inner = {""}
    for number in range(12):
        (tmp_path / f"{number}").mkdir()
        inner.add(f"{number}")
        watches.follow(tmp_path, inner)
        assert len(watches._watched[tmp_path].threads) <= 3
    assert heard.until(tmp_path)


def test_a_folder_of_no_interest_is_watched_no_more(
    watches: FolderWatches, heard: Heard, tmp_path: Path
) -> None:
    watches.follow(tmp_path, {""})
    assert heard.until(tmp_path)
    watches.keep([])
    assert not watches._watched
    assert watches.stop(PATIENCE_S)
    watches.follow(tmp_path, {""})
    assert not watches._watched, "nothing is begun after the end"


def edited(path: Path, heard: Heard) -> bool:
    """Whether a file that is written now is reported."""
    heard.paths.discard(path)
    path.write_text("x = 1\n")
    return heard.until(path)


def test_a_folder_that_goes_and_comes_again_is_watched_again(
    watches: FolderWatches, heard: Heard, tmp_path: Path
) -> None:
    inner, folders = tmp_path / "inner", {"", "inner", "inner/deep"}
    (inner / "deep").mkdir(parents=True)
    watches.follow(tmp_path, folders)
    assert heard.until(tmp_path)
    assert edited(inner / "deep/a.py", heard)
    shutil.rmtree(inner)
    assert heard.until(inner)
    heard.paths.clear()
    (inner / "deep").mkdir(parents=True)
    assert heard.until(inner)
    heard.paths.clear()
    watches.follow(tmp_path, folders)
    assert heard.until(inner), "what came before the watch is looked for"
    assert edited(inner / "deep/a.py", heard)
    assert edited(inner / "a.py", heard)


def test_a_workspace_folder_that_goes_and_comes_again_is_watched_again(
    watches: FolderWatches, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FIRST_PAUSE_S", 0.01)
    root = tmp_path / "root"
    root.mkdir()
    watches.follow(root, {""})
    assert heard.until(root)
    heard.paths.clear()
    root.rmdir()
    assert heard.until(root)
    watches.follow(root, {""})
    heard.paths.clear()
    root.mkdir()
    assert heard.until(root)
    assert edited(root / "a.py", heard)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of any bytes")
def test_a_name_that_is_no_utf_8_costs_a_new_look_and_not_the_watch(
    watches: FolderWatches, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FIRST_PAUSE_S", 0.01)
    watches.follow(tmp_path, {""})
    assert heard.until(tmp_path)
    heard.paths.clear()
    (tmp_path / os.fsdecode(b"caf\xe9.py")).touch()
    assert heard.until(tmp_path), "what was missed is looked for from the top"
    assert edited(tmp_path / "a.py", heard)


def test_a_watch_that_ends_again_and_again_is_told_of_once_and_waits_longer_each_time(
    heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float | None] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return len(pauses) == 9

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no watch")

    monkeypatch.setattr(watching.watchfiles, "watch", fail)
    watched = watching._Watched(tmp_path, stop=Stop())
    FolderWatches(heard.add)._run(watched, [tmp_path])
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert len(caplog.records) == 1


def test_the_same_folders_again_are_not_gone_through(
    watches: FolderWatches, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = frozenset({"", "a", "b"})
    watches.follow(tmp_path, folders, {tmp_path.parent})
    monkeypatch.delattr(watching, "_nearest")
    watches.follow(tmp_path, folders, {tmp_path.parent})
    assert heard.until(tmp_path)


@pytest.mark.parametrize("name", [".git/info", "node_modules", ".venv"])
def test_what_is_asked_for_is_watched_whatever_it_is_called(
    watches: FolderWatches, heard: Heard, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir(parents=True)
    watches.follow(tmp_path, {""}, {tmp_path / name})
    assert heard.until(tmp_path)
    assert edited(tmp_path / name / "exclude", heard)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of any bytes")
def test_a_folder_whose_name_is_no_utf_8_is_left_unwatched(watches: FolderWatches, tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    root.mkdir()
    watches.follow(root, {"", "inner"})
    assert not watches._watched[root].threads

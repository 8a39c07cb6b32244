"""A saved index comes back whole or not at all."""

from __future__ import annotations

import importlib
import os
import shutil
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ngram_cache import NgramIndex, snapshot
from ngram_cache.snapshot import (
    OF_FILES,
    OF_TEXT,
    FileRecord,
    Snapshot,
    SnapshotError,
)
from tests.ngram_cache.integrity import check_integrity

PACKAGE = Path(snapshot.__file__).parent
TEXTS = {"a.py": [1, 2, 3, 1, 2, 4], "lib/b.py": [5, 1, 2, 3, 9], "empty.py": []}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    index = NgramIndex(list(TEXTS.items())[:2])
    index.update(*list(TEXTS.items())[2])
    stored = index.stored()
    files = {path: FileRecord(10, 20, path.encode()) for path in stored.paths.values()}
    path = tmp_path / "own" / "x.index"
    snapshot.save(path, Snapshot("tokenizer", "/root", stored, files))
    return path


def load(path: Path) -> Snapshot:
    return snapshot.load(path, fingerprint="tokenizer", root="/root")


def test_what_was_saved_comes_back(saved: Path) -> None:
    loaded = load(saved)
    index = NgramIndex()
    index.restore(loaded.stored)
    check_integrity(index)
    assert index.paths == sorted(TEXTS)
    assert loaded.files["a.py"] == FileRecord(10, 20, b"a.py")
    found = index.lookup([1, 2], max_nodes=3, max_depth=2)
    assert (found.num_occurrences, found.nodes[0].token) == (3, 3)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_only_the_user_can_read_it(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert stat.S_IMODE(saved.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_folder_that_others_may_enter_stays_as_it_is(tmp_path: Path, saved: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    snapshot.save(shared / saved.name, load(saved))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
    assert stat.S_IMODE((shared / saved.name).stat().st_mode) == 0o600


def test_nothing_but_the_file_is_left(saved: Path) -> None:
    assert list(saved.parent.iterdir()) == [saved]


def test_a_save_that_fails_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    stored = NgramIndex([("a", [1])]).stored()
    with pytest.raises(KeyError):
        snapshot.save(saved, Snapshot("tokenizer", "/root", stored, {}))
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_what_a_killed_process_left_is_cleared_away(saved: Path) -> None:
    leftover = saved.with_name(saved.name + ".zzz.tmp")
    leftover.write_bytes(b"half")
    os.utime(leftover, (1, 1))
    snapshot.save(saved, load(saved))
    assert list(saved.parent.iterdir()) == [saved]


def test_a_file_cut_short_anywhere_is_refused(saved: Path) -> None:
    data = saved.read_bytes()
    for length in range(len(data)):
        saved.write_bytes(data[:length])
        with pytest.raises(SnapshotError):
            load(saved)


def test_a_file_that_is_too_long_is_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"x")
    with pytest.raises(SnapshotError, match="checksum"):
        load(saved)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_anywhere_is_noticed(saved: Path, data: st.DataObject) -> None:
    original = saved.read_bytes()
    at = data.draw(st.integers(0, 8 * len(original) - 1))
    broken = bytearray(original)
    broken[at // 8] ^= 1 << at % 8
    path = saved.with_name("broken.index")
    path.write_bytes(broken)
    with pytest.raises(SnapshotError):
        load(path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=300))
def test_any_other_file_is_refused(tmp_path: Path, noise: bytes) -> None:
    path = tmp_path / "noise.index"
    path.write_bytes(noise)
    with pytest.raises(SnapshotError):
        load(path)


@pytest.mark.parametrize(
    ("fingerprint", "root", "message"),
    [("other", "/root", "another tokenizer"), ("tokenizer", "/elsewhere", "another folder")],
)
def test_a_foreign_index_is_refused(saved: Path, fingerprint: str, root: str, message: str) -> None:
    with pytest.raises(SnapshotError, match=message):
        snapshot.load(saved, fingerprint=fingerprint, root=root)


def test_another_version_is_refused(saved: Path) -> None:
    data = saved.read_bytes()
    saved.write_bytes(struct.pack(">16sI", snapshot.MAGIC, snapshot.VERSION + 1) + data[20:])
    with pytest.raises(SnapshotError, match=f"format {snapshot.VERSION}"):
        load(saved)


def test_purge_forgets_a_folder_under_every_tokenizer(tmp_path: Path) -> None:
    stored = NgramIndex([("a", [1, 2])]).stored()
    for root in ("one", "two"):
        for fingerprint in ("x", "y"):
            path = snapshot.snapshot_path(tmp_path, tmp_path / root, fingerprint)
            snapshot.save(path, Snapshot(fingerprint, root, stored, {"a": FileRecord(1, 1, b"")}))
    assert snapshot.purge(tmp_path, tmp_path / "one") == 2
    assert len(list(tmp_path.glob("*.index"))) == 2
    assert snapshot.purge(tmp_path / "missing", tmp_path) == 0


def test_a_missing_file_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


def test_an_index_made_under_other_rules_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "rules_fingerprint", lambda: "better rules")
    with pytest.raises(SnapshotError, match="other rules"):
        load(saved)


def test_the_rules_are_named_by_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any change of a module is a change of its name."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rulebook").mkdir()
    (tmp_path / "rulebook/__init__.py").write_text("")
    shutil.copy(PACKAGE / "snapshot.py", tmp_path / "rulebook/snapshot.py")
    (tmp_path / "rulebook/rules.py").write_text("A = 1\n")
    named = importlib.import_module("rulebook.snapshot").digest_of
    before = named("rules")
    assert named("rules") == before
    (tmp_path / "rulebook/rules.py").write_text("A = 2\n")
    assert named("rules") != before
    modules = {".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    assert {*OF_FILES, *OF_TEXT} <= modules
    assert {module for module in modules if module.startswith("redaction.")} == {*OF_TEXT}


CUT_SHORT = """
import os, sys
from pathlib import Path
from ngram_cache import NgramIndex, snapshot
index = NgramIndex()
index.restore(snapshot.load(Path(sys.argv[1]), fingerprint="tokenizer", root="/root").stored)
os.truncate(sys.argv[1], 0)
print(index.lookup([1, 2], max_nodes=3, max_depth=2).nodes[0].token)
"""


def test_a_file_that_is_cut_short_while_it_is_used_changes_nothing(saved: Path) -> None:
    """In a process of its own, which a mapped file would end."""
    ran = subprocess.run([sys.executable, "-c", CUT_SHORT, str(saved)], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, b"3")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_an_index_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.index")
    with pytest.raises(SnapshotError, match="not a regular file"):
        load(tmp_path / "x.index")


def test_many_may_save_and_clean_at_once(saved: Path) -> None:
    loaded = load(saved)
    failed: list[BaseException] = []

    def save_often() -> None:
        try:
            for _ in range(30):
                leftover = saved.with_name(f"{saved.name}.{threading.get_ident()}.tmp")
                leftover.write_bytes(b"half")
                os.utime(leftover, (1, 1))
                snapshot.save(saved, loaded)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=save_often) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    snapshot.save(saved, loaded)
    assert list(saved.parent.iterdir()) == [saved]
    assert load(saved).files == loaded.files


@pytest.mark.parametrize("num_steps", [1, 3])
def test_a_save_that_is_given_up_leaves_the_old_file(saved: Path, num_steps: int) -> None:
    before = saved.read_bytes()
    asked: list[None] = []

    def checkpoint() -> None:
        asked.append(None)
        if len(asked) == num_steps:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        snapshot.save(saved, load(saved), checkpoint)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]

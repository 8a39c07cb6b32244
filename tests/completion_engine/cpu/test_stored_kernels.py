"""Compiled kernels on disk: files that other users could have written are never loaded."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from completion_engine.checksum import with_checksum
from completion_engine.cpu.kernels.stored_kernels import _PrivateFiles
from tests.completion_engine.cpu.kernel_process import run_kernel

SOMEBODY = 12_345  # another user
CODE = ".nbc"  # a kernel's machine code, and what it was compiled for
COMPLETE = """
import sys
from pathlib import Path
from completion_engine.config import EngineConfig
from completion_engine.load_engine import load_engine_from
from completion_engine.request import CompletionRequest
config = EngineConfig("tiny", drafters=(), device="cpu", dtype="float32")
engine = load_engine_from(Path(sys.argv[1]), config)
print(engine.complete(CompletionRequest("a.py", "def f(x):\\n    return ", "", "python")).stats.num_tokens)
"""

on_unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes: caches are per user")
as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files to another user"
)


class Trap:
    """A pickle that leaves a mark when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.mark),)


@dataclass(frozen=True)
class Cache:
    """A cache folder of its own, in which a kernel has been compiled."""

    root: Path

    @property
    def mark(self) -> Path:
        return self.root.parent / "loaded"

    @property
    def owned(self) -> Path:
        """The first folder that is ours alone."""
        return self.root / "slipstream"

    @property
    def kernels(self) -> Path:
        """The folder that is named after the sources."""
        (found,) = (self.owned / "kernels").iterdir()
        return found

    @property
    def files(self) -> list[Path]:
        found = list(self.owned.rglob(f"*{CODE}"))
        assert found
        return found

    def run(self, umask: int = 0o022) -> str:
        """Compile or load a kernel in a process of its own; what it says."""
        messages = self.root.parent / "messages"
        code = run_kernel(self.root, umask, messages)
        said = messages.read_text()
        assert code == 0, said
        return said

    def plant(self) -> None:
        """Each file becomes a trap."""
        for path in self.files:
            path.write_bytes(with_checksum(pickle.dumps(Trap(self.mark))))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    cache = Cache(tmp_path_factory.mktemp("compiled") / "cache")
    assert cache.run(0o000) == ""
    return cache


@pytest.fixture
def cache(compiled: Cache, tmp_path: Path) -> Cache:
    return Cache(shutil.copytree(compiled.root, tmp_path / "cache"))


def write_by_group(cache: Cache) -> None:
    cache.kernels.chmod(0o770)


def write_by_all(cache: Cache) -> None:
    cache.kernels.chmod(0o777)


def give_away(cache: Cache) -> None:
    os.chown(cache.kernels, SOMEBODY, -1)


def give_away_all(cache: Cache) -> None:
    os.chown(cache.owned, SOMEBODY, -1)


def link(cache: Cache) -> None:
    place = cache.kernels
    place.symlink_to(place.rename(cache.root / "elsewhere"))


def link_all(cache: Cache) -> None:
    cache.owned.symlink_to(cache.owned.rename(cache.root / "elsewhere"))


def let_group_write(path: Path) -> None:
    path.chmod(0o660)


def give_file_away(path: Path) -> None:
    os.chown(path, SOMEBODY, -1)


def link_file(path: Path) -> None:
    path.symlink_to(path.rename(path.with_suffix(".moved")))


@on_unix
def test_a_file_in_a_safe_folder_is_loaded(cache: Cache) -> None:
    """Otherwise none of the tests below could fail."""
    cache.plant()
    cache.run()
    assert cache.mark.exists()


@on_unix
@pytest.mark.parametrize(
    "spoil",
    [
        write_by_group,
        write_by_all,
        link,
        link_all,
        pytest.param(give_away, marks=as_root),
        pytest.param(give_away_all, marks=as_root),
    ],
)
def test_nothing_is_loaded_from_a_folder_that_others_may_write(
    cache: Cache, spoil: Callable[[Cache], None]
) -> None:
    cache.plant()
    spoil(cache)
    told = cache.run()
    assert not cache.mark.exists()
    assert told.count("Move that folder away") == told.count("slipstream") == 1


@on_unix
@pytest.mark.parametrize("spoil", [let_group_write, link_file, pytest.param(give_file_away, marks=as_root)])
def test_a_file_that_others_may_write_is_not_loaded_but_replaced(
    cache: Cache, spoil: Callable[[Path], None]
) -> None:
    cache.plant()
    for path in cache.files:
        spoil(path)
    assert cache.run() == ""
    assert not cache.mark.exists()
    for path in cache.files:
        status = path.lstat()
        assert (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)) == (stat.S_IFREG, 0o600)
        assert status.st_uid == os.geteuid()


def cut_short(content: bytes) -> bytes:
    return content[:20]


def zero_the_code(content: bytes) -> bytes:
    """The machine code is most of the file, in its middle."""
    third = len(content) // 3
    return content[:third] + bytes(third) + content[2 * third :]


@pytest.mark.parametrize("damaged", [cut_short, zero_the_code])
def test_a_damaged_file_is_compiled_anew(cache: Cache, damaged: Callable[[bytes], bytes]) -> None:
    before = {path: path.read_bytes() for path in cache.files}
    for path, content in before.items():
        path.write_bytes(damaged(content))
    assert cache.run() == ""
    assert all(path.stat().st_size == len(content) for path, content in before.items())


@on_unix
def test_what_is_stored_is_private_whatever_the_umask(compiled: Cache) -> None:
    found = [compiled.owned, *compiled.owned.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600, 0o700}


@on_unix
def test_folders_above_are_taken_from_others_and_what_is_private_there_is_used(cache: Cache) -> None:
    """A generous umask made them; no other user can have made a private folder of this user's."""
    cache.owned.chmod(0o777)
    cache.kernels.parent.chmod(0o775)
    cache.plant()
    cache.run()
    assert cache.mark.exists()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache.owned, cache.kernels.parent)] == [0o755] * 2


@on_unix
def test_a_completion_comes_where_nothing_can_be_stored(cache: Cache, tiny_model_dir: Path) -> None:
    cache.plant()
    write_by_group(cache)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache.root)}
    command = sys.executable, "-P", "-c", COMPLETE, str(tiny_model_dir)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    assert done.stderr.count("Move that folder away") == 1
    assert not cache.mark.exists()


FOUR_BITS, EIGHT_BITS = ("task", ("x86", "+avx2"), "4 bits"), ("task", ("x86", "+avx2"), "8 bits")


def files_in(folder: Path) -> _PrivateFiles:
    return _PrivateFiles(str(folder), "product.multiply-1.py311", ("time", "size"))


def test_kernels_that_two_processes_store_at_once_are_both_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, others = files_in(tmp_path), files_in(tmp_path)
    write = mine._open_for_write

    def write_late(path: str) -> Any:
        monkeypatch.undo()
        others.save(EIGHT_BITS, "code for 8 bits")
        return write(path)

    monkeypatch.setattr(mine, "_open_for_write", write_late)
    mine.save(FOUR_BITS, "code for 4 bits")
    found = files_in(tmp_path)
    assert (found.load(FOUR_BITS), found.load(EIGHT_BITS)) == ("code for 4 bits", "code for 8 bits")


def test_machine_code_of_another_kernel_is_not_taken(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.save(FOUR_BITS, "code for 4 bits")
    (four,) = tmp_path.glob(f"*{CODE}")
    content = four.read_bytes()
    files.save(EIGHT_BITS, "code for 8 bits")
    for path in tmp_path.glob(f"*{CODE}"):
        path.write_bytes(content)
    assert (files.load(FOUR_BITS), files.load(EIGHT_BITS)) == ("code for 4 bits", None)


@pytest.mark.parametrize("what", ["_version", "_source_stamp"])
def test_what_another_numba_or_another_source_made_is_not_taken(tmp_path: Path, what: str) -> None:
    before, files = files_in(tmp_path), files_in(tmp_path)
    setattr(before, what, "other")
    before.save(FOUR_BITS, "other code")
    assert files.load(FOUR_BITS) is None
    files.save(FOUR_BITS, "code")
    assert files.load(FOUR_BITS) == "code"
    assert len(list(tmp_path.iterdir())) == 1


def test_all_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    def sync(number: int) -> None:
        kept.append((os.fstat(number).st_size, list(tmp_path.glob(f"*{CODE}"))))

    monkeypatch.setattr(os, "fsync", sync)
    files_in(tmp_path).save(FOUR_BITS, "code for 4 bits")
    (path,) = tmp_path.glob(f"*{CODE}")
    assert kept == [(path.stat().st_size, [])]

"""The first start on a machine: kernels compile during the download, and failures do no harm."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

from completion_engine import compile_kernels
from completion_engine.compile_kernels import TARGET, write_toy_model
from completion_engine.config import EngineConfig
from completion_engine.cpu.block_packing import pack_blocks
from completion_engine.cpu.kernels import kernel_cache, stored_kernels
from completion_engine.cpu.kernels.language import kernel
from completion_engine.cpu.kernels.packing import RECORDS
from completion_engine.cpu.linear import can_quantise
from completion_engine.gpu import machine
from completion_engine.gpu.machine import Gpu
from completion_engine.loading import warmup
from completion_engine.loading.warmup import compiled_meanwhile
from completion_engine.models.job import WorkerProgram
from completion_engine.request import CancelledError
from completion_engine.target_model.model_files import open_weights
from tests import own_folders

needs_bytes = pytest.mark.skipif(
    not can_quantise(torch.device("cpu")), reason="this machine does not multiply bytes fast"
)
COMPLETE = (str(Path(sys.executable).with_name("slipstream")), "complete")
WAITING = """
import pathlib, time
while not pathlib.Path({may_end!r}).exists():
    time.sleep(0.05)
time.sleep(0.2)
pathlib.Path({mark!r}).touch()
"""


class Started(list[int]):
    """Ids of the processes that were started to compile; they run `code` instead."""

    code = "pass"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    found = Started()

    def program(*_: Any) -> WorkerProgram:
        return WorkerProgram((sys.executable, "-c", found.code), os.environ, stall_s=60.0)

    class Watched(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            found.append(self.pid)

    monkeypatch.setattr(warmup, "worker", program)
    monkeypatch.setattr(warmup.subprocess, "Popen", Watched)
    monkeypatch.setattr(warmup, "are_compiled", lambda _: False)
    yield found
    for pid in found:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_fails_stops_nothing(started: Started) -> None:
    started.code = "raise SystemExit(1)"
    with compiled_meanwhile(EngineConfig()):
        assert len(started) == 1


def test_it_is_waited_for_and_told(started: Started, tmp_path: Path) -> None:
    may_end, mark = tmp_path / "may end", tmp_path / "done"
    started.code = WAITING.format(may_end=str(may_end), mark=str(mark))
    told: set[str] = set()
    with compiled_meanwhile(EngineConfig(), lambda what, *_: told.add(what)):
        assert not mark.exists()
        may_end.touch()
    assert mark.exists()
    assert len(told) == 1


def test_whoever_stops_waiting_stops_it(started: Started) -> None:
    started.code = "import time; time.sleep(600)"
    with pytest.raises(CancelledError), compiled_meanwhile(EngineConfig(), should_stop=lambda: True):
        pass


def test_an_error_beside_it_ends_it(started: Started) -> None:
    started.code = "import time; time.sleep(600)"
    with pytest.raises(OSError, match="no network"), compiled_meanwhile(EngineConfig()):
        raise OSError("no network")


@pytest.mark.parametrize("config", [EngineConfig(device="cuda"), EngineConfig(dtype="float32")])
def test_nothing_is_compiled_that_would_not_run(started: Started, config: EngineConfig) -> None:
    with compiled_meanwhile(config):
        pass
    assert not started


@pytest.mark.parametrize(("name", "found"), [("are_compiled", True), ("can_store", False)])
def test_nothing_is_compiled_twice_or_in_vain(
    started: Started, monkeypatch: pytest.MonkeyPatch, name: str, found: bool
) -> None:
    monkeypatch.setattr(warmup, name, lambda *_: found)
    with compiled_meanwhile(EngineConfig()):
        pass
    assert not started


def test_a_cache_folder_that_cannot_be_made_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(kernel_cache, "KERNEL_FOLDER", tmp_path / "file" / "kernels")
    assert not kernel_cache.can_store()
    monkeypatch.setattr(kernel_cache, "KERNEL_FOLDER", tmp_path / "kernels")
    assert kernel_cache.can_store()


@needs_bytes
def test_the_toy_model_has_weights_of_every_number_of_bits(tmp_path: Path) -> None:
    write_toy_model(tmp_path)
    weights = open_weights(tmp_path / TARGET, torch.bfloat16)
    found = [weight for name in weights if (weight := weights.quantised(name))]
    assert {pack_blocks([weight]).record.bits for weight in found} == set(RECORDS)


@needs_bytes
@pytest.mark.real_model
def test_a_first_completion_has_nothing_left_to_compile(real_model_dir: Path, tmp_path: Path) -> None:
    """All that the default target and its drafter call was compiled by a target in miniature."""
    source = tmp_path / "area.py"
    source.write_text("def area(width, height):\n    area = width * height\n    ret\n", encoding="utf-8")
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "SLIPSTREAM_MODEL_DIR": str(real_model_dir.parents[1]),
    }

    def machine_code() -> set[Path]:
        return set((tmp_path / "cache").rglob("*.nbc"))

    if own_folders.COMPILED_ALONE.is_dir():
        shutil.copytree(own_folders.COMPILED_ALONE, tmp_path / "cache")
    own_folders.compile_kernels(tmp_path / "cache")
    compiled = machine_code()
    assert compiled
    command = [*COMPLETE, f"{source}:3:8"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert machine_code() == compiled


@pytest.mark.parametrize(
    ("name", "days", "stays"),
    [
        ("0123456789abcdef", 61, False),
        ("0123456789abcdef", 59, True),
        ("fedcba9876543210", 61, True),
        ("somebody's", 61, True),
    ],
    ids=["long unused", "used of late", "this version's", "no folder of ours"],
)
def test_what_other_versions_kept_is_forgotten_when_long_unused(
    name: str, days: int, stays: bool, tmp_path: Path
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "kernel.nbc").touch()
    now = max(entry.stat().st_mtime for entry in (folder, *folder.iterdir())) + days * 86_400
    kernel_cache.forget_unused(tmp_path / "fedcba9876543210", now)
    assert folder.is_dir() == stays


def test_a_start_that_finds_everything_compiled_counts_as_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "KERNEL_FOLDER", tmp_path)
    kernel_cache.mark_compiled("cpu")
    (mark,) = tmp_path.iterdir()
    os.utime(mark, (0, 0))
    assert kernel_cache.are_compiled("cpu")
    assert mark.stat().st_mtime > 0


@pytest.fixture
def kernel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's kernels."""
    folder = tmp_path / "slipstream" / "kernels" / ("0" * 16)
    for module in (kernel_cache, compile_kernels):
        monkeypatch.setattr(module, "KERNEL_FOLDER", folder)
    monkeypatch.setattr(stored_kernels, "_unstored", set())
    assert kernel_cache.can_store()
    return folder


def add_one(number: int) -> int:
    return number + 1


@pytest.mark.parametrize(
    ("is_full", "are_stored"), [(False, True), (True, False)], ids=["room on the disk", "a full disk"]
)
def test_kernels_count_as_compiled_where_all_were_stored(
    kernel_folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_full: bool, are_stored: bool
) -> None:
    def save(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def load(*_: object) -> None:
        assert kernel(add_one)(1) == 2

    if is_full:
        monkeypatch.setattr(stored_kernels._PrivateFiles, "save", save)
    monkeypatch.setattr(compile_kernels, "load_engine_from", load)
    compile_kernels.compile_all("cpu")
    assert kernel_cache.are_compiled("cpu") == are_stored
    assert bool(list(kernel_folder.rglob("*.nbc"))) == are_stored


def test_one_of_several_first_starts_compiles(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one folder, so that the files of a killed process do not stay."""
    (kernel_folder / "toy" / "target").mkdir(parents=True)
    starts: list[Path] = []
    monkeypatch.setattr(compile_kernels, "load_engine_from", lambda at, _: starts.append(at))
    threads = [Thread(target=compile_kernels.compile_all, args=("cpu",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert starts == [kernel_folder / "toy" / "target"]
    assert not (kernel_folder / "toy").exists()


def test_where_there_was_a_gpu_nothing_is_compiled_for_the_cpu(
    kernel_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu("A card", (8, 9), 8_000_000_000)
    monkeypatch.setattr(machine, "find_gpu", lambda: gpu)
    compile_kernels.compile_all("auto")
    assert (kernel_cache.are_compiled("auto"), kernel_cache.are_compiled("cpu")) == (True, False)


@pytest.mark.parametrize("name", ["NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"])
def test_what_was_compiled_for_a_processor_named_by_hand_is_for_no_other(
    kernel_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kernel_cache.mark_compiled("cpu")
    assert kernel_cache.are_compiled("cpu")
    monkeypatch.setenv(name, "generic")
    assert not kernel_cache.are_compiled("cpu")


def test_what_another_numba_compiled_is_not_there(
    kernel_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_cache.mark_compiled("cpu")
    assert kernel_cache.are_compiled("cpu")
    monkeypatch.setattr(kernel_cache.metadata, "version", lambda _: "999")
    assert not kernel_cache.are_compiled("cpu")

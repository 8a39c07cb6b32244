"""Packed weights on disk: the same weights as from memory, whatever lies there already."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from completion_engine.cpu import packed_file
from completion_engine.cpu.kernels.packing import PackedWeight, unpack
from completion_engine.cpu.linear import packed
from completion_engine.cpu.packed_file import Source, load_packed, packed_path

SIZES = {"wide": (40, 64), "narrow": (16, 100)}


@pytest.fixture(autouse=True)
def small_is_worth_storing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_file, "_WORTH_BYTES", 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "packed" / ("0" * 16) / "model.safetensors"


class Weights:
    """Weights to pack, and how often that was done."""

    def __init__(self) -> None:
        drawn = torch.Generator().manual_seed(1)
        self.weights = {name: torch.randn(size, generator=drawn) for name, size in SIZES.items()}
        self.num_packed = 0

    def sources(self) -> dict[str, Source]:
        return {name: Source(SIZES[name], self._pack(name)) for name in SIZES}

    def _pack(self, name: str) -> Callable[[], PackedWeight]:
        def make() -> PackedWeight:
            self.num_packed += 1
            return packed(self.weights[name])

        return make


@pytest.fixture
def weights() -> Weights:
    return Weights()


def numbers(found: dict[str, PackedWeight]) -> Iterator[np.ndarray]:
    for name, size in SIZES.items():
        yield unpack(found[name], np.arange(size[0]))


def are_equal(found: dict[str, PackedWeight], weights: Weights) -> bool:
    wanted = load_packed(None, weights.sources())
    return all(np.array_equal(a, b) for a, b in zip(numbers(found), numbers(wanted), strict=True))


def test_the_second_load_packs_nothing_and_finds_the_same(path: Path, weights: Weights) -> None:
    first = load_packed(path, weights.sources())
    assert weights.num_packed == len(SIZES)
    second = load_packed(path, weights.sources())
    assert weights.num_packed == len(SIZES)
    assert are_equal(first, weights)
    assert are_equal(second, weights)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_weights_begin_at_a_cache_line(path: Path, weights: Weights) -> None:
    first, *_ = load_packed(path, weights.sources()).values()
    assert first.records.ctypes.data % 64 == 0


def test_engines_that_load_at_once_leave_one_whole_file(path: Path, weights: Weights) -> None:
    """Another engine of the same process begins and ends while the first one packs."""
    others = Weights()
    sources = weights.sources()
    make = sources["narrow"].make

    def make_late() -> PackedWeight:
        assert are_equal(load_packed(path, others.sources()), others)
        return make()

    found = load_packed(path, sources | {"narrow": Source(SIZES["narrow"], make_late)})
    assert are_equal(found, weights)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    num_packed = weights.num_packed
    load_packed(path, weights.sources())
    assert weights.num_packed == num_packed


def cut_short(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()  # the first load has it mapped
    path.write_bytes(content[:-100])


def fill_with_rubbish(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"\xff" * 1000)


def rename_a_weight(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content.replace(b'"wide.units"', b'"side.units"', 1))


def claim_fewer_bits(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content.replace(b'wide\\": 8', b'wide\\": 4', 1))


def zero_a_weight(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-300] + bytes(300))


def exchange_bytes(path: Path) -> None:
    content = bytearray(path.read_bytes())
    path.unlink()
    content[-2000:-1000] = content[-1000:]
    path.write_bytes(content)


def let_others_write(path: Path) -> None:
    path.chmod(0o666)


@pytest.mark.parametrize(
    "spoil",
    [
        cut_short,
        fill_with_rubbish,
        rename_a_weight,
        claim_fewer_bits,
        zero_a_weight,
        exchange_bytes,
        let_others_write,
    ],
)
def test_what_cannot_be_trusted_is_made_anew(
    path: Path, weights: Weights, spoil: Callable[[Path], None]
) -> None:
    load_packed(path, weights.sources())
    path.chmod(0o600)
    before = path.read_bytes()
    spoil(path)
    assert are_equal(load_packed(path, weights.sources()), weights)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600


def test_weights_of_another_size_are_not_taken(path: Path, weights: Weights) -> None:
    load_packed(path, {"wide": Source((48, 64), lambda: packed(torch.ones(48, 64)))})
    assert are_equal(load_packed(path, weights.sources()), weights)


def test_where_nothing_can_be_stored_weights_are_held_in_memory(
    path: Path, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_file, "_SPARE_BYTES", 1 << 60)
    assert are_equal(load_packed(path, weights.sources()), weights)
    assert not list(path.parent.iterdir())


def test_the_path_follows_the_files_and_the_dtype_they_are_read_in(tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    model.write_bytes(b"one")
    first = packed_path([model], torch.bfloat16, ())
    assert packed_path([model], torch.bfloat16, ()) == first
    wide = packed_path([model], torch.float32, ())
    status = model.stat()
    model.write_bytes(b"two")
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    second = packed_path([model], torch.bfloat16, ())
    assert len({first, wide, second}) == 3
    assert len({path.parent for path in (first, wide, second)}) == 1


PACKING = ["packing", "language", "vectors"]


def test_all_that_packing_is_made_of_is_known() -> None:
    """But for what keeps compiled code, which changes no number."""
    found, open_ = set(), {"packing"}
    while open_:
        module = open_.pop()
        found.add(module)
        source = (Path(packed_file.packing.__file__).parent / f"{module}.py").read_text("utf-8")
        open_ |= set(re.findall(r"from completion_engine\.cpu\.kernels\.(\w+) import", source)) - found
    assert found - {"stored_kernels", "kernel_cache"} == set(PACKING)


@pytest.mark.parametrize("module", PACKING)
def test_the_path_follows_what_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    before = packed_path([], torch.float32, ())
    other = tmp_path / "other.py"
    other.touch()
    monkeypatch.setattr(getattr(packed_file, module), "__file__", str(other))
    assert packed_path([], torch.float32, ()) != before


def test_the_path_follows_what_says_which_weights_are_packed_together(tmp_path: Path) -> None:
    paths = set()
    for source in ("gate, up", "up, gate"):
        composer = ModuleType("composer")
        composer.__file__ = str(tmp_path / "composer.py")
        Path(composer.__file__).write_text(source, encoding="ascii")
        paths.add(packed_path([], torch.float32, (composer,)))
    assert len(paths) == 2


def age(file: Path, days: float) -> None:
    written = file.stat().st_mtime - days * 86_400
    os.utime(file, (written, written))


def test_versions_that_start_in_turn_keep_what_each_has_packed(path: Path, weights: Weights) -> None:
    other = path.with_name("other.safetensors")
    for _ in range(2):
        for place in (path, other):
            load_packed(place, weights.sources())
            age(place, 6)
    assert weights.num_packed == 2 * len(SIZES)


@pytest.mark.parametrize("is_packed", [True, False], ids=["at a load", "at a load that packs"])
@pytest.mark.parametrize(
    ("name", "days", "stays"),
    [
        ("other.safetensors", 6, True),
        ("other.safetensors", 8, False),
        ("other-0123.json", 6, True),
        ("other-0123.json", 8, False),
        ("other.0123.part", 0.01, True),
        ("other.0123.part", 0.1, False),
        ("model.safetensors", 8, True),
    ],
)
def test_what_is_long_unused_is_removed(
    path: Path, weights: Weights, name: str, days: float, *, stays: bool, is_packed: bool
) -> None:
    load_packed(path, weights.sources())
    file = path.with_name(name)
    file.touch()
    age(file, days)
    if not is_packed:
        path.unlink()
    load_packed(path, weights.sources())
    assert file.exists() == stays


def test_where_the_disk_is_short_what_other_versions_packed_makes_room(
    path: Path, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = path.with_name("other.safetensors")
    load_packed(other, weights.sources())
    age(other, 1)

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=0 if other.exists() else 1 << 60)

    monkeypatch.setattr(packed_file.shutil, "disk_usage", usage)
    load_packed(path, weights.sources())
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_all_is_on_the_disk_before_it_gets_its_name(
    path: Path, weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []

    def sync(number: int) -> None:
        kept.append((os.fstat(number).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    load_packed(path, weights.sources())
    assert kept == [(path.stat().st_size, False)]

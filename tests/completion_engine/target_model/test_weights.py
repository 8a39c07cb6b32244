"""The tensors of a GGUF file are the numbers that the format's own library reads, to the bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from completion_engine.errors import DataError
from completion_engine.models.gguf_layout import BLOCK_SIZES, GgufLayout, TensorLayout
from completion_engine.target_model.gguf_blocks import QUANTISED, decoded, quantised
from completion_engine.target_model.weights import GgufWeights

# Where the float16 numbers of a block lie, which may be infinite in random bytes.
HALVES_AT = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def drawn(kind: str, num_rows: int, num_inputs: int, seed: int = 0) -> NDArray[np.uint8]:
    """Rows of random blocks, with scales as models have them."""
    rng = np.random.default_rng(seed)
    num_values, num_bytes = BLOCK_SIZES[kind]
    raw = rng.integers(0, 256, (num_rows, num_inputs // num_values, num_bytes), np.uint8)
    for at in HALVES_AT.get(kind, (0,)) if kind in QUANTISED else ():
        scales = rng.uniform(-0.01, 0.01, (*raw.shape[:2], 1)).astype(np.float16)
        raw[..., at : at + 2] = scales.view(np.uint8)
    return raw.reshape(num_rows, -1)


def by_library(raw: NDArray[np.uint8], kind: str) -> NDArray[np.float32]:
    found: NDArray[np.float32] = gguf.dequantize(raw, gguf.GGMLQuantizationType[kind])
    return found


@pytest.mark.parametrize("kind", BLOCK_SIZES)
def test_numbers_of_every_type_are_the_librarys(kind: str) -> None:
    raw = drawn(kind, 5, 1024)
    with np.errstate(all="ignore"):
        assert np.array_equal(decoded(raw, kind), by_library(raw, kind), equal_nan=True)


@pytest.mark.parametrize("kind", QUANTISED)
def test_levels_and_scales_give_the_numbers(kind: str) -> None:
    """The levels of random bytes reach both ends of what the type can hold."""
    raw = drawn(kind, 64, 1024)
    found = quantised(raw, kind)
    assert np.array_equal(found.values(3, 9), by_library(raw, kind)[3:9])
    assert found.block_size == (16 if kind == "Q6_K" else 32)
    assert (found.levels.min(), found.levels.max()) == (found.lowest, found.highest)


class Make:
    """Writes a file of some tensors, in order, and opens it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.layouts: dict[str, TensorLayout] = {}
        self.raw: dict[str, NDArray[np.uint8]] = {}

    def add(self, name: str, kind: str, shape: tuple[int, ...], num_interleaved: int = 0) -> None:
        raw = drawn(kind, shape[0] if len(shape) > 1 else 1, shape[-1], len(self.raw))
        end = sum(tensor.num_bytes for tensor in self.layouts.values())
        self.layouts[name] = TensorLayout(kind, shape, end + 100, num_interleaved)
        self.raw[name] = raw

    def open(self, dtype: torch.dtype = torch.float32) -> GgufWeights:
        self.path.write_bytes(bytes(100) + b"".join(raw.tobytes() for raw in self.raw.values()))
        layout = GgufLayout(self.path, self.path.stat().st_size, self.layouts)
        assert layout.flaw() == ""
        return GgufWeights(layout, dtype)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return Make(tmp_path / "x.gguf")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensors_are_read_from_their_places(
    make: Make, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("completion_engine.target_model.weights._MAX_ROWS", 5)
    sizes = {"a": ("F32", (7,)), "b": ("Q8_0", (12, 64)), "c": ("F16", (3, 4)), "d": ("Q4_K", (2, 256))}
    for name, (kind, shape) in sizes.items():
        make.add(name, kind, shape)
    weights = make.open(dtype)
    assert list(weights) == list(sizes)
    assert "b" in weights
    assert "e" not in weights
    for name, (kind, shape) in sizes.items():
        wanted = by_library(make.raw[name], kind).reshape(shape)
        found = weights[name]
        assert weights.shape_of(name) == found.shape == shape
        assert np.array_equal(
            found.float().numpy(), torch.from_numpy(wanted).to(dtype).float().numpy(), equal_nan=True
        )
        assert (weights.quantised(name) is not None) == (kind in QUANTISED)


def test_rows_of_interleaved_heads_get_their_order_back(make: Make) -> None:
    """The file holds 0 3 1 4 2 5 for two heads with six rows each."""
    order = [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
    make.add("weight", "Q8_0", (12, 32), 2)
    make.add("bias", "F32", (12,), 2)
    weights = make.open()
    stored = by_library(make.raw["weight"], "Q8_0")
    assert np.array_equal(weights["weight"].numpy(), stored[order])
    found = weights.quantised("weight")
    assert found
    assert np.array_equal(found.values(0, 12), stored[order])
    assert np.array_equal(
        weights["bias"].numpy(), by_library(make.raw["bias"], "F32")[0][order], equal_nan=True
    )


def test_rows_of_a_table_are_decoded_when_they_are_first_used(make: Make) -> None:
    make.add("other", "Q5_0", (3, 64))
    make.add("embedding", "Q5_0", (40, 64))
    weights = make.open(torch.bfloat16)
    table, wanted = weights.table("embedding"), weights["embedding"]
    assert (table.dtype, table.device.type, table.nbytes) == (torch.bfloat16, "cpu", 40 * 44)
    for rows in ([3], [5, 3, 39, 5], [[0, 1], [2, 3]]):
        assert torch.equal(table[torch.tensor(rows)], wanted[torch.tensor(rows)])
    assert table.nbytes == 40 * 44 + 6 * 64 * 2
    for row in range(40):
        assert torch.equal(table[torch.tensor([row])], wanted[row : row + 1])
    assert table.nbytes == 40 * 44 + wanted.nbytes


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def write_into(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data)
    os.utime(path, (1, 1))


@pytest.mark.parametrize("change", [shorten, write_into])
def test_a_file_that_is_changed_while_it_is_open_is_an_error(
    make: Make, change: Callable[[Path], None]
) -> None:
    make.add("embedding", "Q5_0", (40, 64))
    weights = make.open()
    table, wanted = weights.table("embedding"), weights["embedding"]
    change(make.path)
    with pytest.raises(OSError, match="was changed while it was in use"):
        weights["embedding"]
    assert torch.equal(table[torch.arange(40)], wanted)


def test_a_file_that_is_replaced_stays_readable(make: Make) -> None:
    make.add("embedding", "Q5_0", (40, 64))
    weights = make.open()
    wanted = weights["embedding"]
    other = make.path.with_name("other")
    other.write_bytes(b"x")
    other.replace(make.path)
    assert torch.equal(weights["embedding"], wanted)


@pytest.mark.parametrize("kind", QUANTISED)
def test_scales_that_are_not_finite_are_damage(make: Make, kind: str) -> None:
    make.add("weight", kind, (2, 256))
    at = HALVES_AT.get(kind, (0,))[-1]
    make.raw["weight"][1, at : at + 2] = np.array([np.inf], np.float16).view(np.uint8)
    with pytest.raises(DataError, match="weight has scales that are not finite"):
        make.open().quantised("weight")


def test_a_file_that_does_not_fit_its_layout_is_refused(make: Make) -> None:
    make.add("embedding", "Q5_0", (40, 64))
    make.open()
    shorten(make.path)
    with pytest.raises(ValueError, match="bytes instead of"):
        GgufWeights(GgufLayout(make.path, make.path.stat().st_size + 1, make.layouts), torch.float32)

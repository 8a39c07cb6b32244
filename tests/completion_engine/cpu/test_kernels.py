"""The CPU's kernels: each gives what its formula says, and a row the same bits beside any others."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from completion_engine import checksum
from completion_engine.cpu.kernels import heads, rows, top_k
from completion_engine.cpu.kernels.language import array_of, kernel, narrowed, widened
from completion_engine.cpu.kernels.language import exponential as exponential_of
from completion_engine.cpu.kernels.packing import BLOCK, ROW_BYTES, ZERO_LEVELS
from completion_engine.cpu.kernels.rounded import RoundedRows, of_gate, of_norm, of_numbers
from completion_engine.target_model import threads

EPS = 1e-6
TYPES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
NUM_ROWS, HIDDEN, NUM_HEADS, NUM_KV, HEAD_SIZE = 11, 96, 6, 2, 16


@kernel
def round_all(x: np.ndarray, stored: np.ndarray) -> None:
    for at in range(x.shape[0]):
        stored[at] = narrowed(x[at], stored)


@kernel
def widen_all(stored: np.ndarray, x: np.ndarray) -> None:
    for at in range(x.shape[0]):
        x[at] = widened(stored[at])


@kernel
def exponentials(x: np.ndarray, y: np.ndarray) -> None:
    for at in range(x.shape[0]):
        y[at] = exponential_of(x[at])


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def near(found: Tensor, exact: Tensor, dtype: torch.dtype) -> bool:
    step = 2**-8 if dtype == torch.bfloat16 else 1e-5
    return bool((found.float() - exact.float()).abs().max() <= step * exact.float().abs().max())


def unpacked(rounded: RoundedRows) -> tuple[Tensor, Tensor]:
    """The numbers of levels and the steps between them, [num_rows, num_blocks, BLOCK] and [..., 1]."""
    memory, (num_blocks, group_size, num_before, last_size) = rounded.parts
    floats, integers = memory.view(np.float32), memory.view(np.int32)
    found = torch.empty(rounded.num_rows, num_blocks, BLOCK), torch.empty(rounded.num_rows, num_blocks, 1)
    for row in range(rounded.num_rows):
        first, size = (
            (row // group_size * group_size, group_size) if row < num_before else (num_before, last_size)
        )
        for block in range(num_blocks):
            start = (first * num_blocks + block * size) * ROW_BYTES
            levels = memory[start:].view(np.int8)[(row - first) * BLOCK :][:BLOCK]
            behind = start // 4 + size * BLOCK // 4 + row - first
            scale, total = floats[behind], int(levels.sum(dtype=np.int32))
            zeros = [integers[behind + number * size] for number in (1, 2)]
            assert zeros == [-level * total for level in ZERO_LEVELS]
            assert floats[behind + 3 * size] == np.float32(scale * total)
            found[0][row, block], found[1][row, block] = torch.from_numpy(levels * scale), float(scale)
    return found


def stands_for(rounded: RoundedRows, exact: Tensor) -> bool:
    """Whether levels are the nearest to the exact numbers of their block."""
    found, steps = unpacked(rounded)
    filled = functional.pad(exact.float(), (0, found[0].numel() - exact.shape[1])).view(found.shape)
    return bool(((found - filled).abs() <= 0.501 * steps + 1e-30).all())


@settings(deadline=None)  # the first call compiles
@given(
    st.integers(1, 40),
    st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=70),
    st.floats(2**-10, 2**10, width=32),
)
def test_levels_stand_for_the_nearest_values(num_rows: int, values: list[float], factor: float) -> None:
    x = torch.tensor([values, [value * factor for value in values]]).repeat(20, 1)[:num_rows]
    rounded = RoundedRows(*x.shape)
    of_numbers(x, rounded).run()
    assert stands_for(rounded, x)


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.floats(-(2.0**126), 2.0**126, width=32), min_size=1, max_size=70))
def test_numbers_are_rounded_to_bf16_as_torch_does(numbers: list[float]) -> None:
    x = torch.tensor(numbers)
    stored, back = torch.empty(len(x), dtype=torch.bfloat16), np.empty(len(x), np.float32)
    round_all(x.numpy(), array_of(stored))
    assert torch.equal(stored, x.to(torch.bfloat16))
    widen_all(array_of(stored), back)
    assert torch.equal(torch.from_numpy(back), stored.float())


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.floats(-200, 200, width=32), min_size=1, max_size=70))
def test_the_exponential_is_right_to_the_last_bits(numbers: list[float]) -> None:
    found = np.empty(len(numbers), np.float32)
    exponentials(np.array(numbers, np.float32), found)
    for x, y in zip(numbers, found, strict=True):
        bounded = min(max(x, -126 * math.log(2)), 126 * math.log(2))
        # Near the ends the rounding of x itself counts.
        assert y == pytest.approx(math.exp(bounded), rel=1e-6 + 1.2e-7 * abs(bounded))


@TYPES
def test_the_stream_sums_up_and_is_normed(dtype: torch.dtype) -> None:
    x, added = random(NUM_ROWS, HIDDEN), random(NUM_ROWS, HIDDEN, seed=1, dtype=dtype)
    weight, normed = random(HIDDEN, seed=2, dtype=dtype), torch.empty(NUM_ROWS, HIDDEN, dtype=dtype)
    total = x + added.float()
    rows.add_norm(x.numpy(), array_of(added), array_of(weight), EPS, array_of(normed))
    assert torch.equal(x, total)
    assert near(normed, functional.rms_norm(total, (HIDDEN,), weight.float(), EPS), dtype)


def test_the_stream_sums_up_and_is_normed_in_bytes() -> None:
    x, added = random(NUM_ROWS, HIDDEN), random(NUM_ROWS, HIDDEN + 16, seed=1)
    weight, total, rounded = random(HIDDEN, seed=2), x + added[:, :HIDDEN], RoundedRows(NUM_ROWS, HIDDEN)
    of_norm(x, added, weight.numpy(), EPS, rounded).run()
    assert torch.equal(x, total)
    assert stands_for(rounded, functional.rms_norm(total, (HIDDEN,), weight, EPS))


@TYPES
def test_rows_are_normed(dtype: torch.dtype) -> None:
    x, normed = random(NUM_ROWS, HIDDEN, dtype=dtype), torch.empty(NUM_ROWS, HIDDEN, dtype=dtype)
    rows.norm(array_of(x), EPS, array_of(normed))
    assert near(normed, functional.rms_norm(x.float(), (HIDDEN,), None, EPS), dtype)


def test_the_gate_is_silu_times_up() -> None:
    gate_up, rounded = 3 * random(NUM_ROWS, 2 * HIDDEN), RoundedRows(NUM_ROWS, HIDDEN)
    of_gate(functional.pad(gate_up, (0, 16)), HIDDEN, rounded).run()
    gate, up = gate_up.chunk(2, 1)
    assert stands_for(rounded, functional.silu(gate) * up)


def heads_of(dtype: torch.dtype) -> heads.Heads:
    angles = random(40, HEAD_SIZE // 2, seed=1).repeat(1, 2)
    sign = torch.tensor([-1.0, 1.0]).repeat_interleave(HEAD_SIZE // 2)
    q = torch.empty(NUM_ROWS, NUM_HEADS, HEAD_SIZE, dtype=dtype)
    k, v = (torch.empty(NUM_KV, NUM_ROWS, HEAD_SIZE, dtype=dtype) for _ in range(2))
    cos, signed_sin = angles.cos().to(dtype), (angles.sin() * sign).to(dtype)
    return heads.Heads(q, k, v, cos, signed_sin, torch.arange(NUM_ROWS) * 3)


@TYPES
@pytest.mark.parametrize("has_norms", [True, False])
def test_heads_are_normed_turned_and_split(dtype: torch.dtype, has_norms: bool) -> None:
    qkv, into = random(NUM_ROWS, NUM_HEADS + 2 * NUM_KV, HEAD_SIZE), heads_of(dtype)
    weights = [random(HEAD_SIZE, seed=seed) for seed in (1, 2)]
    norms = heads.HeadNorms(*(weight.numpy() for weight in weights)) if has_norms else None
    wide, end = qkv.clone(), NUM_HEADS + NUM_KV
    heads.split_step(qkv.view(NUM_ROWS, -1), into, norms, EPS).run()
    if has_norms:
        for weight, part in zip(weights, (slice(NUM_HEADS), slice(NUM_HEADS, end)), strict=True):
            wide[:, part] = functional.rms_norm(wide[:, part], (HEAD_SIZE,), weight, EPS)
    turn, lift = (table[into.positions, None].float() for table in (into.cos, into.signed_sin))
    turned = wide * turn + wide.roll(HEAD_SIZE // 2, -1) * lift
    assert near(into.q, turned[:, :NUM_HEADS], dtype)
    assert near(into.k.transpose(0, 1), turned[:, NUM_HEADS:end], dtype)
    assert torch.equal(into.v.transpose(0, 1), wide[:, end:].to(dtype))


@settings(deadline=None)
@given(st.data(), st.sampled_from([torch.bfloat16, torch.float32]))
def test_the_largest_of_the_first_so_many_is_found_and_of_equal_ones_the_first(
    data: st.DataObject, dtype: torch.dtype
) -> None:
    width = data.draw(st.integers(1, 700))
    few = data.draw(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=5))
    seed, num_tokens = data.draw(st.integers(0, 2**31)), data.draw(st.integers(1, width))
    picks = torch.randint(0, len(few), (3, width), generator=torch.Generator().manual_seed(seed))
    logits, places = torch.tensor(few)[picks].to(dtype), np.empty(3, np.int64)
    top_k.largest(array_of(logits), num_tokens, places)
    for row, place in zip(logits[:, :num_tokens].tolist(), places.tolist(), strict=True):
        assert place == row.index(max(row))


@TYPES
@pytest.mark.parametrize("num_tokens", [5, 256, 1000])
def test_the_likeliest_tokens_come_with_their_shares(dtype: torch.dtype, num_tokens: int) -> None:
    logits = 4 * random(3, num_tokens, dtype=dtype)
    places, shares = np.empty((3, 5), np.int64), np.empty((3, 5), np.float32)
    top_k.likeliest(array_of(logits), 0.8, places, shares)
    exact = (logits.float() / 0.8).softmax(-1)
    found = torch.from_numpy(shares)
    assert torch.allclose(exact.gather(1, torch.from_numpy(places)), found, rtol=1e-4)
    assert torch.allclose(exact.topk(5).values, found, rtol=1e-4)
    assert all(len(set(row)) == 5 for row in places.tolist())


@TYPES
@pytest.mark.parametrize("first", [0, 3, NUM_ROWS - 1])
def test_a_row_does_not_feel_the_rows_beside_it(dtype: torch.dtype, first: int) -> None:
    x = random(NUM_ROWS, 2 * HIDDEN, dtype=dtype)
    weight = random(2 * HIDDEN, seed=1, dtype=dtype)

    def run(part: Tensor) -> Tensor:
        normed, total = torch.empty(part.shape, dtype=dtype), np.zeros(tuple(part.shape), np.float32)
        rows.add_norm(total, array_of(part), array_of(weight), EPS, array_of(normed))
        return normed

    assert torch.equal(run(x)[first:], run(x[first:]))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with the kernels' package alone."""
    package = tmp_path / "one" / "completion_engine"
    shutil.copytree(Path(rows.__file__).parent, package / "cpu" / "kernels")
    shutil.copy(checksum.__file__, package)  # it tells damaged files
    for folder in (package, package / "cpu", package / "target_model"):
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
    shutil.copy(threads.__file__, package / "target_model")  # kernels ask it how many they run on
    return package.parent


def norm_in(place: Path) -> float:
    """Run a kernel of the package in a folder, in a process of its own, with its cache beside that folder."""
    program = (
        "import numpy as np; from completion_engine.cpu.kernels import rows;"
        "y = np.empty((1, 2), np.float32);"
        "rows.norm(np.ones((1, 2), np.float32), 0.0, y); print(float(y[0, 0]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env={**os.environ, "XDG_CACHE_HOME": str(place.parent / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(found.stdout)


def test_a_change_in_any_of_their_files_compiles_kernels_anew(copied: Path) -> None:
    """numba's own cache goes on with what it inlined from a file that has changed since."""
    assert norm_in(copied) == 1.0
    language = copied / "completion_engine" / "cpu" / "kernels" / "language.py"
    text = language.read_text()
    assert "return lambda number: number\n" in text
    language.write_text(text.replace("return lambda number: number\n", "return lambda number: _F32(0)\n"))
    assert norm_in(copied) == 0.0


def test_the_same_kernels_in_another_place_are_compiled_already(copied: Path, tmp_path: Path) -> None:
    def compiled() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nbc")}

    value = norm_in(copied)
    before = compiled()
    assert before
    other = shutil.copytree(copied, tmp_path / "two", copy_function=shutil.copyfile)  # with times of its own
    shutil.rmtree(copied)
    assert norm_in(other) == value
    assert compiled() == before


@TYPES
@pytest.mark.parametrize(("num_tokens", "num_best"), [(1000, 20), (1000, 1), (33, 40), (5, 5)])
def test_the_best_logits_are_worked_out_and_the_others_left(
    dtype: torch.dtype, num_tokens: int, num_best: int
) -> None:
    states = random(NUM_ROWS, HIDDEN, dtype=dtype)
    weight = torch.randint(-127, 128, (num_tokens, HIDDEN), dtype=torch.int8)
    scales = random(num_tokens, seed=1).abs()
    exact = states.float() @ weight.float().T * scales
    rough = exact + 0.1 * random(NUM_ROWS, num_tokens, seed=2)
    logits = rough.clone()
    top_k.score_promising(logits.numpy(), array_of(states), weight.numpy(), scales.numpy(), num_best)
    places = rough.topk(min(num_best, num_tokens)).indices
    assert near(logits.gather(1, places), exact.gather(1, places), torch.float32)
    is_left = logits == rough
    assert near(logits[~is_left], exact[~is_left], torch.float32)
    assert is_left.sum() >= NUM_ROWS * (num_tokens - 16 * num_best)

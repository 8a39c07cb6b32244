"""Results of kernels for the same random numbers on every machine: digests, equal on all processors.

`python -m tests.completion_engine.cpu.golden` writes them to `golden_bits.json`.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from completion_engine.compile_kernels import TARGET, write_toy_model
from completion_engine.cpu.attention import attend
from completion_engine.cpu.block_packing import pack_blocks
from completion_engine.cpu.int8_decoder import Int8Decoder
from completion_engine.cpu.kernels import heads, rows, top_k
from completion_engine.cpu.kernels.dot import instruction_sets
from completion_engine.cpu.kernels.language import Array, array_of, exponential, kernel
from completion_engine.cpu.kernels.packing import BLOCK, PackedWeight, pack, unpack
from completion_engine.cpu.kernels.product import Product
from completion_engine.cpu.kernels.rounded import RoundedRows, of_gate, of_norm
from completion_engine.cpu.kernels.vectors import sum_of, sum_of_products
from completion_engine.cpu.linear import quantise_rows
from completion_engine.target_model.gguf_blocks import QuantisedWeight
from completion_engine.target_model.kv_cache import CacheShape, KVCache
from completion_engine.target_model.llama_family import FamilyModel, read_family_config, rotary_tables
from completion_engine.target_model.model_files import open_weights
from tests.completion_engine.cpu.passes import CAPACITY, new_cache, run

FILE = Path(__file__).with_name("golden_bits.json")
EPS = 1e-6
TYPES = {"bf16": torch.bfloat16, "float": torch.float32}
BITS, NUM_ROWS = (4, 5, 8), (1, 2, 4, 8, 16, 19)
NUM_HEADS, NUM_KV = 6, 2


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers between -4 and 4: whole ones times a power of two, which are exact in float32."""
    whole = np.random.default_rng(seed).integers(-(1 << 20), 1 << 20, shape)
    return torch.from_numpy((whole / (1 << 18)).astype(np.float32)).to(dtype)


def digest(*found: Tensor | Array) -> str:
    """Digest of all bits."""
    arrays = [array_of(x.contiguous()) if isinstance(x, Tensor) else x for x in found]
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)).hexdigest()[:16]


@kernel
def _exponentials(x: Array, y: Array) -> None:
    for at in range(x.shape[0]):
        y[at] = exponential(x[at])


@kernel
def _sums(x: Array, y: Array, sums: Array) -> None:
    for end in range(x.shape[0]):
        sums[0, end], sums[1, end] = sum_of(x[:end]), sum_of_products(x[:end], y[:end])


def exponentials() -> str:
    x = drawn(1001)
    y = np.empty(1001, np.float32)
    _exponentials(20 * x.numpy(), y)
    return digest(y)


def sums() -> str:
    found = np.zeros((2, 100), np.float32)
    of_types = []
    for left, right in product((torch.float32, torch.bfloat16), (torch.float32, torch.int8)):
        _sums(array_of(drawn(100, dtype=left)), array_of((30 * drawn(100, seed=1)).to(right)), found)
        of_types.append(found.copy())
    return digest(*of_types)


def held_in(bits: int, num_outputs: int = 41, num_blocks: int = 9) -> PackedWeight:
    """A weight in this number of bits; its last tile is not full, and in 8 bits its last block neither."""
    if bits == 8:
        return pack(array_of(drawn(num_outputs, num_blocks * BLOCK - 1, seed=bits)))
    rng = np.random.default_rng(bits)
    lowest = 0 if bits == 4 else -(2 ** (bits - 1))
    levels = rng.integers(lowest, lowest + 2**bits, (num_outputs, num_blocks * BLOCK)).astype(np.int8)
    scales = (rng.integers(1, 1 << 10, (num_outputs, num_blocks)) / (1 << 10)).astype(np.float32)
    floors = -3 * scales if bits == 4 else None
    found = pack_blocks([QuantisedWeight(levels, scales, lowest, lowest + 2**bits - 1, floors)])
    assert found.record.bits == bits
    return found


def packed(bits: int) -> str:
    weight = held_in(bits)
    return digest(weight.records, weight.units, unpack(weight, np.arange(41)))


def multiplied(bits: int, num_rows: int) -> str:
    """The same by all instruction sets of the machine."""
    weight = held_in(bits)
    x = quantise_rows(drawn(num_rows, weight.shape[1], seed=1))
    bias = drawn(len(weight.units), seed=2).numpy()
    found = {digest(Product(weight, bias, number)(x)) for number in instruction_sets()}
    assert len(found) == 1
    return found.pop()


def rounded(num_rows: int) -> str:
    x, added, weight = drawn(num_rows, 96), drawn(num_rows, 112, seed=1), drawn(96, seed=2)
    normed, gated = RoundedRows(num_rows, 96), RoundedRows(num_rows, 48)
    of_norm(x, added, weight.numpy(), EPS, normed).run()
    of_gate(added, 48, gated).run()
    return digest(normed.parts[0], gated.parts[0], x)


def headed(dtype: torch.dtype) -> str:
    """Heads normed, turned and split, and rows normed."""
    qkv = drawn(5, (NUM_HEADS + 2 * NUM_KV) * 16)
    norms = heads.HeadNorms(*(drawn(16, seed=seed).numpy() for seed in (1, 2)))
    cos, sin = (table[:, 0] for table in rotary_tables({"rope_theta": 1e6}, 16, 4096, dtype))
    positions = torch.tensor([0, 1, 7, 4000, 4095])
    q = torch.empty(5, NUM_HEADS, 16, dtype=dtype)
    k, v = (torch.empty(NUM_KV, 5, 16, dtype=dtype) for _ in range(2))
    into = heads.Heads(q, k, v, cos.contiguous(), sin.contiguous(), positions)
    heads.split_step(qkv, into, norms, EPS).run()
    x, normed = drawn(5, 96, dtype=dtype), torch.empty(5, 96, dtype=dtype)
    rows.norm(array_of(x), EPS, array_of(normed))
    return digest(cos, sin, qkv, q, k, v, normed)


def attended(dtype: torch.dtype, head_size: int) -> str:
    found = []
    for num_rows, num_keys in ((1, 33), (8, 100), (19, 200)):
        shape = CacheShape(
            1, NUM_KV, head_size, 8, num_keys, dtype, torch.device("cpu"), keys_by_channel=True
        )
        cache = KVCache(shape)
        cache.keys[0], cache.values[0] = (
            drawn(NUM_KV, num_keys, head_size, seed=seed, dtype=dtype) for seed in range(2)
        )
        q = drawn(num_rows, NUM_HEADS, head_size, seed=2, dtype=dtype)
        seen = torch.arange(num_rows) + num_keys - num_rows + 1
        found.append(attend(q, (cache.keys[0], cache.values[0]), seen, 0.25))
    return digest(*found)


def ranked(dtype: torch.dtype) -> str:
    logits = drawn(3, 700, dtype=dtype)
    places, shares = np.empty((3, 8), np.int64), np.empty((3, 8), np.float32)
    found = []
    top_k.likeliest(array_of(logits), 0.8, places, shares)
    found += [places.copy(), shares.copy()]
    return digest(*found)


def written(dtype: torch.dtype) -> str:
    """A prompt and the likeliest tokens after it, by a whole model: all logits, keys and values."""
    with tempfile.TemporaryDirectory() as folder:
        write_toy_model(Path(folder))
        place = Path(folder, TARGET)
        family = FamilyModel(read_family_config(place), open_weights(place, dtype))
        decoder = Int8Decoder(family, CAPACITY)
    cache, tokens = new_cache(decoder, dtype), [*b"def add(first, second):\n    return"]
    found = []
    for _ in range(24):
        found.append(run(decoder, cache, tokens))
        tokens = [int(found[-1][-1].argmax())]
    return digest(*found, cache.keys, cache.values)


def cases() -> Iterator[tuple[str, Callable[[], str]]]:
    """Names, and what computes the digest of each."""
    yield from (("exponentials", exponentials), ("sums", sums))
    for bits in BITS:
        yield f"packed in {bits} bits", lambda bits=bits: packed(bits)
        for num in NUM_ROWS:
            yield f"{num} rows times {bits} bits", lambda bits=bits, num=num: multiplied(bits, num)
    for num in (1, 3, 19):
        yield f"{num} rows rounded", lambda num=num: rounded(num)
    for name, dtype in TYPES.items():
        yield f"heads in {name}", lambda dtype=dtype: headed(dtype)
        yield f"ranks in {name}", lambda dtype=dtype: ranked(dtype)
        for size in (16, 48, 64):
            yield (
                f"attention in {name}, heads of {size}",
                lambda dtype=dtype, size=size: attended(dtype, size),
            )
        yield f"a text in {name}", lambda dtype=dtype: written(dtype)


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: case() for name, case in cases()}, indent=1) + "\n", encoding="ascii")

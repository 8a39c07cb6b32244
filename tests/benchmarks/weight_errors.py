"""The difference between packed weights and a model's GGUF file, by the type of its blocks.

Run as `python -m tests.benchmarks.weight_errors --target ID`. Compares two ways to pack a sample of the
tensors with the numbers that the format's own library reads: with the file's levels and scales, as models are
loaded, and with bf16 numbers that are rounded to 8 bits, as safetensors are.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass, field

import gguf
import numpy as np
import torch
from numpy.typing import NDArray

from completion_engine.config import DEFAULT_TARGET
from completion_engine.cpu.block_packing import pack_blocks
from completion_engine.cpu.kernels.packing import PackedWeight, unpack
from completion_engine.cpu.linear import packed
from completion_engine.models import ModelStore
from completion_engine.models.gguf_layout import read_layout
from completion_engine.target_model.weights import GgufWeights

_EVERY = 6  # one of this number of layers is sampled
_MAX_ROWS = 8192


@dataclass
class Errors:
    """Sums of squares of numbers and of errors, and the largest error relative to its tensor's top number."""

    squares: float = 0.0
    error_squares: float = 0.0
    largest: float = 0.0
    bits: set[int] = field(default_factory=set)

    def add(self, weight: PackedWeight, wanted: NDArray[np.float32]) -> None:
        """Count one tensor; `wanted` [num_rows, num_inputs] are its first rows."""
        off = unpack(weight, np.arange(len(wanted))) - wanted
        self.squares += float((wanted.astype(np.float64) ** 2).sum())
        self.error_squares += float((off.astype(np.float64) ** 2).sum())
        self.largest = max(self.largest, float(np.abs(off).max() / np.abs(wanted).max()))
        self.bits.add(weight.record.bits)

    @property
    def relative(self) -> float:
        """Root mean square of the errors relative to that of the numbers."""
        return math.sqrt(self.error_squares / self.squares)

    def __str__(self) -> str:
        """The figures in one line."""
        bits = ", ".join(map(str, sorted(self.bits)))
        return f"{bits} bits, error {self.relative:.1e} in the mean, {self.largest:.1e} at most"


def measure(model_id: str) -> dict[str, dict[str, Errors]]:
    """By type of block: errors with the file's levels, and of rounding to 8 bits."""
    layout = read_layout(ModelStore().ensure(model_id))
    if layout is None:
        raise SystemExit(f"{model_id} is not stored as a GGUF file.")
    data, weights = np.memmap(layout.file, np.uint8, "r"), GgufWeights(layout, torch.float32)
    found: dict[str, dict[str, Errors]] = {}
    for name, tensor in layout.tensors.items():
        layer = next(map(int, filter(str.isdigit, name.split("."))), 0)
        quantised = None if layer % _EVERY or tensor.num_interleaved else weights.quantised(name)
        if quantised is None:
            continue
        num_rows = min(tensor.shape[0], _MAX_ROWS)
        raw = data[tensor.offset : tensor.offset + num_rows * tensor.row_bytes].reshape(num_rows, -1)
        wanted = gguf.dequantize(raw, gguf.GGMLQuantizationType[tensor.kind])
        errors = found.setdefault(tensor.kind, {"own": Errors(), "rounded": Errors()})
        errors["own"].add(pack_blocks([quantised]), wanted)
        errors["rounded"].add(packed(torch.from_numpy(wanted).to(torch.bfloat16)), wanted)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--target", default=DEFAULT_TARGET, help="a model of the catalogue that is stored")
    found = measure(parser.parse_args().target)
    for kind, errors in found.items():
        for levels, summed in errors.items():
            sys.stdout.write(f"{kind:<6}{levels:<8} levels: {summed}\n")
    figures = {kind: {name: summed.relative for name, summed in pair.items()} for kind, pair in found.items()}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()

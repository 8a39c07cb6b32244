"""The block types of GGUF files: levels, scales and floors as a file states them, and the numbers they mean.

The layouts are those of ggml. All functions take rows of raw bytes and use numpy on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ScaleCodes:
    """Scales and floors as whole numbers times a unit for each super-block of 256 inputs.

    Units [num_outputs, num_inputs / 256] are float16 numbers; codes [num_outputs, num_blocks] are whole
    numbers of 6 or 8 bits. Floors are 0 where the weight has none.
    """

    units: Floats
    scales: NDArray[np.int8]
    floor_units: Floats
    floors: NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class QuantisedWeight:
    """A weight as its file quantises it: `levels * scale + floor`.

    levels [num_outputs, num_inputs] int8 from `lowest` to `highest`; scales and floors
    [num_outputs, num_inputs / block_size]. Without floors, level 0 is the number 0. Without `codes`, scales
    and floors are float16 numbers.
    """

    levels: NDArray[np.int8]
    scales: Floats
    lowest: int
    highest: int
    floors: Floats | None = None
    codes: ScaleCodes | None = None

    @property
    def block_size(self) -> int:
        """Inputs that share a scale: 16 or 32."""
        return int(self.levels.shape[1]) // int(self.scales.shape[1])

    def values(self, first: int, end: int) -> Floats:
        """The numbers of outputs `first` to `end`, [end - first, num_inputs]."""
        num_blocks = self.scales.shape[1]
        found = self.levels[first:end].reshape(-1, num_blocks, self.block_size).astype(np.float32)
        found *= self.scales[first:end, :, None]
        if self.floors is not None:
            found += self.floors[first:end, :, None]
        return found.reshape(len(found), -1)


@np.errstate(over="ignore", invalid="ignore")  # scales of a damaged file may be infinite
def quantised(raw: Bytes, kind: str) -> QuantisedWeight:
    """Rows of blocks [num_rows, row_bytes] of one of the types in `QUANTISED`."""
    return QUANTISED[kind](raw)


@np.errstate(over="ignore", invalid="ignore")  # as above
def decoded(raw: Bytes, kind: str) -> Floats:
    """The numbers of rows of any type [num_rows, row_bytes], [num_rows, num_inputs]."""
    if kind == "F32":
        return np.ascontiguousarray(raw).view(np.float32)
    if kind == "F16":
        return np.ascontiguousarray(raw).view(np.float16).astype(np.float32)
    if kind == "BF16":
        high = np.ascontiguousarray(raw).view(np.uint16).astype(np.uint32)
        return (high << np.uint32(16)).view(np.float32)
    return quantised(raw, kind).values(0, len(raw)) if kind in QUANTISED else _decoded_by_library(raw, kind)


def _decoded_by_library(raw: Bytes, kind: str) -> Floats:
    """Numbers of a type that is rare in files of code models."""
    from gguf import GGMLQuantizationType, dequantize  # noqa: PLC0415 - a fifth of a second

    found: Floats = dequantize(np.ascontiguousarray(raw), GGMLQuantizationType[kind])
    return found


def _blocks(raw: Bytes, num_bytes: int) -> Bytes:
    return raw.reshape(len(raw), -1, num_bytes)


def _rows(levels: NDArray[Any]) -> NDArray[np.int8]:
    return levels.astype(np.int8, copy=False).reshape(len(levels), -1)


def _halves(raw: Bytes) -> Floats:
    """Numbers that are stored as float16, whose two bytes are the last axis."""
    found: Floats = np.ascontiguousarray(raw).view(np.float16)[..., 0].astype(np.float32)
    return found


def _nibbles(raw: Bytes) -> Bytes:
    """The low halves of some bytes, then their high halves, [..., 2 * num_bytes]."""
    return np.concatenate([raw & 15, raw >> 4], axis=-1)


def _fifth_bits(raw: Bytes) -> Bytes:
    """16 or 0 for each bit of some bytes, the lowest bit first, [..., 8 * num_bytes]."""
    return np.unpackbits(np.ascontiguousarray(raw), axis=-1, bitorder="little") << np.uint8(4)


def _q4_0(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 18)
    levels = _nibbles(blocks[..., 2:]).view(np.int8) - np.int8(8)
    return QuantisedWeight(_rows(levels), _halves(blocks[..., :2]), -8, 7)


def _q4_1(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 20)
    scales, floors = _halves(blocks[..., :2]), _halves(blocks[..., 2:4])
    return QuantisedWeight(_rows(_nibbles(blocks[..., 4:])), scales, 0, 15, floors)


def _q5_0(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 22)
    levels = (_nibbles(blocks[..., 6:]) | _fifth_bits(blocks[..., 2:6])).view(np.int8) - np.int8(16)
    return QuantisedWeight(_rows(levels), _halves(blocks[..., :2]), -16, 15)


def _q5_1(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 24)
    scales, floors = _halves(blocks[..., :2]), _halves(blocks[..., 2:4])
    levels = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks[..., 4:8])
    return QuantisedWeight(_rows(levels), scales, 0, 31, floors)


def _q8_0(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 34)
    levels = np.ascontiguousarray(blocks[..., 2:]).view(np.int8)
    return QuantisedWeight(_rows(levels), _halves(blocks[..., :2]), -128, 127)


def _q4_k(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 144)
    return _of_super(_nibbles_of_super(blocks[..., 16:]), 15, _scale_codes(blocks))


def _q5_k(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 176)
    fifth = blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & np.uint8(1)
    levels = _nibbles_of_super(blocks[..., 48:]) | (fifth << np.uint8(4))
    return _of_super(levels, 31, _scale_codes(blocks))


def _of_super(levels: Bytes, highest: int, codes: ScaleCodes) -> QuantisedWeight:
    scales, floors = _times(codes.units, codes.scales), _times(codes.floor_units, codes.floors)
    return QuantisedWeight(_rows(levels), scales, 0, highest, floors, codes)


def _times(units: Floats, codes: NDArray[np.int8]) -> Floats:
    """Each unit times its codes, [num_rows, num_blocks]."""
    by_unit = codes.reshape(*units.shape, -1).astype(np.float32)
    return (units[..., None] * by_unit).reshape(codes.shape)


def _scale_codes(blocks: Bytes) -> ScaleCodes:
    """The scales and floors of super-blocks of eight blocks: two float16, then 8 scales and 8 floors in 6
    bits each.
    """
    low, middle, high = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 2) & 48)], axis=-1)
    floors = np.concatenate([middle & 63, (high >> 4) | ((middle >> 2) & 48)], axis=-1)
    return ScaleCodes(_halves(blocks[..., :2]), _rows(scales), -_halves(blocks[..., 2:4]), _rows(floors))


def _nibbles_of_super(raw: Bytes) -> Bytes:
    """The halves of bytes, each 32 low ones before the 32 high ones, [..., 8, 32]."""
    quarters = raw.reshape(*raw.shape[:-1], 4, 32)
    return _nibbles(quarters).reshape(*raw.shape[:-1], 8, 32)


def _q6_k(raw: Bytes) -> QuantisedWeight:
    blocks = _blocks(raw, 210)
    low = _nibbles(blocks[..., :128].reshape(*blocks.shape[:2], 2, 64))
    shifts = np.array([[0], [2], [4], [6]], np.uint8)
    high = blocks[..., 128:192].reshape(*blocks.shape[:2], 2, 1, 32) >> shifts & np.uint8(3)
    levels = (low | (high << np.uint8(4)).reshape(low.shape)).view(np.int8) - np.int8(32)
    units, steps = _halves(blocks[..., 208:]), _rows(blocks[..., 192:208].view(np.int8))
    codes = ScaleCodes(units, steps, np.zeros_like(units), np.zeros_like(steps))
    return QuantisedWeight(_rows(levels), _times(units, steps), -32, 31, codes=codes)


QUANTISED: Mapping[str, Callable[[Bytes], QuantisedWeight]] = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0,
    "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k,
}  # fmt: skip

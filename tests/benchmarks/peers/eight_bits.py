"""A GGUF file again with its weights of 5 bits held in 8: the same levels, the same scales, more bytes.

For readers that support Q8_0 and not Q5_0. Knows the file format, and no peer. File and blocks are as the
format's own description has them (ggml-org/ggml).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from completion_engine.models.gguf_worker import read_header

_Q5_0, _Q8_0 = 6, 8
_BLOCK = 32  # values to a scale in both


def has_five_bits(source: Path) -> bool:
    """Whether any weights of a GGUF file are of the type Q5_0."""
    return any(tensor.type_number == _Q5_0 for tensor in read_header(source).tensors)


def in_eight_bits(source: Path, out: Path) -> None:
    """Write the GGUF file `source` to `out` with each Q5_0 tensor as Q8_0, which loses nothing."""
    from gguf import GGUFReader

    read: Any = GGUFReader(source)
    infos, chunks = bytearray(), []
    num_bytes = 0
    for tensor in read.tensors:
        kind, data = int(tensor.tensor_type), np.ascontiguousarray(tensor.data).view(np.uint8).ravel()
        if kind == _Q5_0:
            kind, data = _Q8_0, _widened(data)
        name = str(tensor.name).encode()
        shape = [int(size) for size in tensor.shape]
        infos += struct.pack("<Q", len(name)) + name
        infos += struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, num_bytes)
        gap = -len(data) % read.alignment
        chunks.append((data, gap))
        num_bytes += len(data) + gap
    begin = read.tensors[0].field.offset  # all in front of it, the number of tensors too, stays as it is
    with out.open("wb") as file:
        file.write(read.data[:begin].tobytes())
        file.write(infos)
        file.write(bytes(-file.tell() % read.alignment))
        for data, gap in chunks:
            file.write(data.tobytes())
            file.write(bytes(gap))


def _widened(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Blocks of a scale, 32 high bits and 32 low halves, as blocks of the scale and 32 signed bytes."""
    blocks = data.reshape(-1, 2 + _BLOCK // 8 + _BLOCK // 2)
    high = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    halves = blocks[:, 6:]
    low = np.concatenate([halves & 15, halves >> 4], axis=1)
    levels = (low | high << 4).astype(np.int8) - np.int8(16)
    return np.concatenate([blocks[:, :2], levels.view(np.uint8)], axis=1).ravel()

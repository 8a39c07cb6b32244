"""Damaged GGUF files. The oracle: a header and a layout within the file, or a ValueError; in bounded time.

Owns how such a file is damaged.
"""

from __future__ import annotations

import contextlib
import random
import struct
from functools import cache

import gguf
import numpy as np

from completion_engine.models.gguf_worker import layout_of, read_header
from tests.fuzz.places import own_folder

_COUNTS = (0, 1, 2, 1 << 16, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


@cache
def _sound() -> bytes:
    path = own_folder("gguf") / "sound.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_block_count(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_head_count(2)
    writer.add_token_list([f"t{number}" for number in range(30)])
    writer.add_token_types([1] * 30)
    writer.add_token_merges(["a b", "b c"])
    parts = (
        "attn_norm",
        "attn_q",
        "attn_k",
        "attn_v",
        "attn_output",
        "ffn_norm",
        "ffn_gate",
        "ffn_up",
        "ffn_down",
    )
    for name in ("token_embd", "output_norm", *(f"blk.0.{part}" for part in parts)):
        writer.add_tensor(f"{name}.weight", np.ones((4, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def check(rng: random.Random) -> None:
    """One file, read whole."""
    path = own_folder("gguf") / "x.gguf"
    path.write_bytes(_damaged(_sound(), rng))
    try:
        header = read_header(path)
    except ValueError:
        return
    num_values = sum(len(field.values()) for field in header.fields.values())
    assert num_values + 24 * len(header.tensors) <= path.stat().st_size, "each takes so many bytes at least"
    with contextlib.suppress(ValueError):
        layout = layout_of(path, header, 1)
        assert layout.flaw() == layout.missing(1) == ""


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """A few of its words are others, mostly in the header; or it is cut."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(changed) if rng.random() < 0.2 else min(len(changed), 900))
        match rng.randrange(5):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                changed[at : at + 8] = struct.pack("<Q", rng.choice(_COUNTS))
            case 2:
                changed[at : at + 4] = struct.pack("<I", rng.randrange(14))
            case 3:
                changed[at:at] = rng.randbytes(rng.randrange(1, 9))
            case _:
                del changed[at : at + rng.randrange(1, 9)]
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.1 else changed)

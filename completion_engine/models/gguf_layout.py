"""Where the tensors of a GGUF file lie, by the names that a model folder uses, in a small JSON file.

The worker that reads a GGUF header writes this layout once; later loads map the file and read blocks
directly. A layout is checked against the file before anything is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from completion_engine.runtime import parse_json

LAYOUT = "gguf-layout.json"
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
_MAX_LAYOUT_BYTES = 16 << 20
_MAX_DIMENSIONS = 2

# Values and bytes of one block, by the format's name of the type.
BLOCK_SIZES: Mapping[str, tuple[int, int]] = {
    "F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22),
    "Q5_1": (32, 24), "Q8_0": (32, 34), "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144),
    "Q5_K": (256, 176), "Q6_K": (256, 210), "IQ1_S": (256, 50), "IQ1_M": (256, 56), "IQ2_XXS": (256, 66),
    "IQ2_XS": (256, 74), "IQ2_S": (256, 82), "IQ3_XXS": (256, 98), "IQ3_S": (256, 110), "IQ4_NL": (32, 18),
    "IQ4_XS": (256, 136), "TQ1_0": (256, 54), "TQ2_0": (256, 66), "MXFP4": (32, 17),
}  # fmt: skip

_OUTSIDE_LAYERS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OPTIONAL = frozenset({"self_attn.q_norm", "self_attn.k_norm"})
_NAME = re.compile(r"(?:blk\.(?P<layer>\d{1,4})\.)?(?P<part>\w+)\.(?P<kind>weight|bias)")


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """One tensor: its type, its shape [num_outputs, num_inputs] or [num_outputs], and its first byte.

    The rows of each of `num_interleaved` heads are stored in the order 0, n/2, 1, n/2 + 1, ...; with 0 heads,
    rows are stored in their own order. `checksum` is that of its bytes.
    """

    kind: str
    shape: tuple[int, ...]
    offset: int
    num_interleaved: int = 0
    checksum: str = ""

    @property
    def num_bytes(self) -> int:
        """Size in the file."""
        num_values, num_bytes = BLOCK_SIZES[self.kind]
        return prod(self.shape) // num_values * num_bytes

    @property
    def row_bytes(self) -> int:
        """Size of one row in the file."""
        return self.num_bytes // (self.shape[0] if len(self.shape) == _MAX_DIMENSIONS else 1)

    @property
    def row_order(self) -> NDArray[np.int64]:
        """For each row of an interleaved tensor the row of the file that holds it."""
        rows = np.arange(self.shape[0]).reshape(self.num_interleaved, -1, 2)
        return rows.swapaxes(1, 2).reshape(-1)

    def flaw(self, num_file_bytes: int) -> str:
        """The reason why such a tensor cannot be read from a file of this size, or ""."""
        if self.kind not in BLOCK_SIZES:
            return f"weights of the type {self.kind} cannot be read"
        if not 1 <= len(self.shape) <= _MAX_DIMENSIONS or not all(0 < size < 1 << 24 for size in self.shape):
            return f"a tensor has the shape {self.shape}"
        if self.shape[-1] % BLOCK_SIZES[self.kind][0]:
            return f"a row of {self.shape[-1]} values is not made of whole {self.kind} blocks"
        if self.num_interleaved < 0 or (self.num_interleaved and self.shape[0] % (2 * self.num_interleaved)):
            return f"{self.shape[0]} rows do not belong to {self.num_interleaved} heads"
        return (
            "" if 0 <= self.offset <= num_file_bytes - self.num_bytes else "a tensor lies outside of the file"
        )


@dataclass(frozen=True, slots=True)
class GgufLayout:
    """A GGUF file and its tensors by the names that a model folder uses."""

    file: Path
    num_bytes: int
    tensors: Mapping[str, TensorLayout]

    def flaw(self) -> str:
        """The reason why the file is not the one that the layout was written for, or ""."""
        if not self.file.is_file():
            return f"{self.file.name} is missing"
        num_bytes = self.file.stat().st_size
        if num_bytes != self.num_bytes:
            return f"{self.file.name} has {num_bytes} bytes instead of {self.num_bytes}"
        flaw = next((flaw for tensor in self.tensors.values() if (flaw := tensor.flaw(num_bytes))), "")
        return flaw or ("two tensors overlap" if self._has_overlap() else "")

    def _has_overlap(self) -> bool:
        """Whether two tensors share bytes: a small file could then name weights of any size."""
        spans = sorted((tensor.offset, tensor.num_bytes) for tensor in self.tensors.values())
        return any(first + size > second for (first, size), (second, _) in pairwise(spans))

    def missing(self, num_layers: int) -> str:
        """The reason why a model with this number of layers cannot be built from these tensors, or ""."""
        parts = (part for part in _IN_LAYER.values() if part not in _OPTIONAL)
        in_layers = (f"model.layers.{index}.{part}.weight" for part in parts for index in range(num_layers))
        wanted = (EMBEDDING, "model.norm.weight", *in_layers)
        return next((f"it has no {name}" for name in wanted if name not in self.tensors), "")


def folder_name(gguf_name: str) -> str:
    """The name of a tensor of the Llama family in a model folder; "" for a tensor that is not needed."""
    found = _NAME.fullmatch(gguf_name)
    if found is None:
        return ""
    names = _OUTSIDE_LAYERS if found["layer"] is None else _IN_LAYER
    part = names.get(found["part"])
    if part is None:
        return ""
    where = part if found["layer"] is None else f"model.layers.{found['layer']}.{part}"
    return f"{where}.{found['kind']}"


def write_layout(folder: Path, layout: GgufLayout, *, is_beside: bool) -> None:
    """Write `layout` into `folder`; a file that `is_beside` the folder is named relative to it."""
    entries = {
        "file": layout.file.name if is_beside else str(layout.file),
        "is_beside": is_beside,
        "num_bytes": layout.num_bytes,
        "tensors": {name: asdict(tensor) for name, tensor in layout.tensors.items()},
    }
    (folder / LAYOUT).write_text(json.dumps(entries), encoding="utf-8")


def read_layout(folder: Path) -> GgufLayout | None:
    """The layout in `folder`, or None where there is none. Raises ValueError for a damaged one."""
    path = folder / LAYOUT
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_LAYOUT_BYTES:
        raise ValueError(f"{LAYOUT} is too large")
    entries = parse_json(path.read_text(encoding="utf-8"))
    try:
        tensors = {name: _tensor(entry) for name, entry in entries["tensors"].items()}
        file = folder.parent / Path(entries["file"]).name if entries["is_beside"] else Path(entries["file"])
        return GgufLayout(file, int(entries["num_bytes"]), tensors)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{LAYOUT} is damaged") from error


def _tensor(entry: Mapping[str, Any]) -> TensorLayout:
    shape = tuple(int(size) for size in entry["shape"])
    fields = str(entry["kind"]), shape, int(entry["offset"]), int(entry["num_interleaved"])
    return TensorLayout(*fields, str(entry["checksum"]))

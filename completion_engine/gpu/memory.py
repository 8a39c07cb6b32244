"""Which models our GPU kernels can run, and a target's memory on a GPU, predicted before anything is loaded.

Numbers in, a plan out; reads a model's configuration and layout alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from completion_engine.gpu.blocks import form_of_kind
from completion_engine.gpu.weights import Bits
from completion_engine.models.gguf_layout import EMBEDDING, HEAD, GgufLayout, read_layout
from completion_engine.runtime import parse_json
from completion_engine.target_model.gguf_blocks import QUANTISED
from completion_engine.target_model.llama_family import is_of_family
from completion_engine.target_model.model_files import Config
from completion_engine.target_model.weights import WeightKind

WIDEST_PASS = 256
CHUNK = 256
_FIXED_BYTES = 900_000_000  # bytes of the CUDA context, kernels and captured graphs; not measured yet
_SLACK = 1.03  # an allocator cannot use every byte
BITS: dict[WeightKind, Bits] = {"float": 16, "int8": 8}


@dataclass(frozen=True, slots=True)
class Geometry:
    """The sizes of a model of the Llama family that decide over memory and speed.

    `num_file_bytes` are those of the layers' and the head's weights with the levels of the model's file, 0
    for files of plain numbers.
    """

    num_layers: int
    hidden_size: int
    mlp_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    vocab_size: int
    is_tied: bool
    num_file_bytes: int = 0

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> Geometry:
        """From a `config.json`. Raises KeyError where it is of another family."""
        heads = config["num_attention_heads"]
        return cls(
            config["num_hidden_layers"],
            config["hidden_size"],
            config["intermediate_size"],
            heads,
            config.get("num_key_value_heads") or heads,
            config.get("head_dim") or config["hidden_size"] // heads,
            config["vocab_size"],
            bool(config.get("tie_word_embeddings", True)),
        )

    @property
    def num_layer_weights(self) -> int:
        """Weights of all layers' matrices."""
        heads = (self.num_heads + 2 * self.num_kv_heads) * self.head_size
        attention = self.hidden_size * (heads + self.num_heads * self.head_size)
        return self.num_layers * (attention + 3 * self.hidden_size * self.mlp_size)

    def pass_bytes(self, bits: Bits = 16) -> int:
        """Bytes of weights that one pass has to read: every layer and the head."""
        if self.num_file_bytes and bits < 16:
            return self.num_file_bytes
        return (self.num_layer_weights + self.vocab_size * self.hidden_size) * bits // 8

    def weight_bytes(self, bits: Bits = 16) -> int:
        """Memory of the weights: those of a pass, and the embedding in 16 bits if it is not the head."""
        is_head = self.is_tied and bits == 16
        return self.pass_bytes(bits) + (0 if is_head else 2 * self.vocab_size * self.hidden_size)

    def cache_bytes(self, capacity: int) -> int:
        """Memory of one document's keys, values and hidden states in 16 bits."""
        per_position = 2 * self.num_layers * self.num_kv_heads * self.head_size + self.hidden_size
        return 2 * per_position * capacity

    def work_bytes(self, capacity: int) -> int:
        """Memory of the static buffers: attention's chunks, the parts of products, logits, rows."""
        chunks = -(-capacity // CHUNK) * self.num_heads * (self.head_size + 2)
        parts = 8 * (2 * self.hidden_size + (self.num_heads + 2 * self.num_kv_heads) * self.head_size)
        rows = 2 * self.hidden_size + 2 * self.num_heads * self.head_size + self.mlp_size + self.vocab_size
        return WIDEST_PASS * (4 * (chunks + parts) + 2 * rows)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes by use, for one way to run a model: weights in `bits`, `num_slots` caches of `capacity`."""

    bits: Bits
    capacity: int
    num_slots: int
    num_weight_bytes: int
    num_cache_bytes: int
    num_work_bytes: int

    @property
    def num_bytes(self) -> int:
        """All of it, with what CUDA itself takes."""
        used = self.num_weight_bytes + self.num_cache_bytes + self.num_work_bytes
        return int(used * _SLACK) + _FIXED_BYTES

    def shortage(self, free_bytes: int) -> str:
        """A sentence about what it needs and what is free, or "" if it fits."""
        if self.num_bytes <= free_bytes:
            return ""
        caches = f"{self.num_slots} caches of {self.capacity} positions {_gigabytes(self.num_cache_bytes)}"
        parts = f"weights {_gigabytes(self.num_weight_bytes)}, {caches}"
        return (
            f"The model needs {_gigabytes(self.num_bytes)} of GPU memory and {_gigabytes(free_bytes)} "
            f"are free ({parts}, work space {_gigabytes(self.num_work_bytes)})."
        )


def plan_memory(geometry: Geometry, bits: Bits, capacity: int, num_slots: int) -> MemoryPlan:
    """The memory of a model that runs this way."""
    return MemoryPlan(
        bits,
        capacity,
        num_slots,
        geometry.weight_bytes(bits),
        num_slots * geometry.cache_bytes(capacity),
        geometry.work_bytes(capacity),
    )


def read_geometry(folder: Path) -> Geometry | None:
    """The geometry of the model in `folder`; None where it is of another family or cannot be read."""
    try:
        found = Geometry.of_config(parse_json((folder / "config.json").read_text(encoding="utf-8")))
        layout = read_layout(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return replace(found, num_file_bytes=_file_bytes(layout)) if layout else found


def _file_bytes(layout: GgufLayout) -> int:
    """Bytes of the layers' and the head's weights with the levels of a file, 0 if it quantises none of them.

    Others are held in 8 bits.
    """
    head = HEAD if HEAD in layout.tensors else EMBEDDING
    read = {
        name: tensor
        for name, tensor in layout.tensors.items()
        if len(tensor.shape) > 1 and (name == head or name.startswith("model.layers."))
    }
    if not any(tensor.kind in QUANTISED for tensor in read.values()):
        return 0
    return sum(
        form_of_kind(tensor.kind).num_bytes(*tensor.shape) if tensor.kind in QUANTISED else prod(tensor.shape)
        for tensor in read.values()
    )


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"


def why_not_model(config: Config) -> str:
    """Why our kernels cannot run a model of this configuration anywhere; empty where they can."""
    if not is_of_family(config):
        return f"models of the kind {config.get('model_type')!r} have no kernels"
    if config.get("attention_bias") or config.get("mlp_bias"):
        return "the model has biases that the kernels do not add"
    head_size = int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])
    if head_size < 16 or head_size & (head_size - 1):
        return f"heads of {head_size} numbers do not fill matrix instructions"
    return ""

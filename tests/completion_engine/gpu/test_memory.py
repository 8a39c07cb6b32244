"""The memory plan: a fitting model is accepted, another one is refused with the reason."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from completion_engine.gpu.blocks import STEP
from completion_engine.gpu.memory import (
    BITS,
    Geometry,
    plan_memory,
    read_geometry,
    why_not_model,
)
from completion_engine.loading.backends import choose_precision
from completion_engine.models.gguf_layout import EMBEDDING, HEAD, GgufLayout, TensorLayout, write_layout
from scripts.random_model import GEOMETRIES

GB = 1_000_000_000
QWEN: dict[str, object] = {
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 64,
    "num_attention_heads": 4,
}
NUM_PARAMETERS = {"0.5B": 0.49, "1.5B": 1.54, "3B": 3.09, "7B": 7.62, "14B": 14.8, "32B": 32.8}


@pytest.mark.parametrize("size", GEOMETRIES)
def test_geometries_are_those_of_the_published_models(size: str) -> None:
    billions = GEOMETRIES[size].weight_bytes() / 2 / GB
    assert billions == pytest.approx(NUM_PARAMETERS[size], rel=0.01)


@pytest.mark.parametrize("size", GEOMETRIES)
def test_files_of_every_size_have_kernels(size: str) -> None:
    """A file that the user downloaded is a target: its heads and inputs fill the kernels' steps."""
    geometry = GEOMETRIES[size]
    config = QWEN | {"hidden_size": geometry.hidden_size, "num_attention_heads": geometry.num_heads}
    assert why_not_model(config) == ""
    attended = geometry.num_heads * geometry.head_size
    assert all(inputs % STEP == 0 for inputs in (geometry.hidden_size, geometry.mlp_size, attended))


def test_larger_models_and_longer_caches_take_more() -> None:
    sizes = [plan_memory(geometry, 16, 8192, 4).num_bytes for geometry in GEOMETRIES.values()]
    assert all(left < right for left, right in pairwise(sizes))
    geometry = GEOMETRIES["7B"]
    by_bits = [plan_memory(geometry, bits, 8192, 4).num_bytes for bits in (8, 16)]
    assert all(left < right for left, right in pairwise(by_bits))
    assert plan_memory(geometry, 16, 2048, 4).num_bytes < plan_memory(geometry, 16, 8192, 4).num_bytes


def test_what_does_not_fit_is_refused_with_the_reason() -> None:
    plan = plan_memory(GEOMETRIES["7B"], 16, 8192, 4)
    assert "needs 19.1 GB of GPU memory and 18.0 GB are free" in plan.shortage(18 * GB)
    assert plan.shortage(plan.num_bytes) == "" != plan.shortage(plan.num_bytes - 1)


MEGABYTES = {
    "0.5B": {16: 988, 8: 494},
    "1.5B": {16: 3087, 8: 1544},
}


@pytest.mark.parametrize("size", MEGABYTES)
def test_bytes_of_a_pass_are_those_of_the_layers_and_the_head(size: str) -> None:
    """The table of docs/gpu.md."""
    found = {bits: GEOMETRIES[size].pass_bytes(bits) for bits in (16, 8)}
    assert {bits: round(num_bytes / 1e6) for bits, num_bytes in found.items()} == MEGABYTES[size]


# The types in the catalogue's files: in all layers, in half of them, and of the head.
FILES = {
    "0.5B": (dict.fromkeys(("q", "k", "o", "gate", "up"), "Q5_0"), {"v": "Q8_0", "down": "Q6_K"}, "Q8_0"),
    "1.5B": (dict.fromkeys(("q", "k", "o", "gate", "up"), "Q4_K"), {"v": "Q6_K", "down": "Q6_K"}, "Q6_K"),
}
OTHER_HALF = {"0.5B": {"v": "Q5_0", "down": "Q4_K"}, "1.5B": {"v": "Q4_K", "down": "Q4_K"}}
FILE_MEGABYTES = {"0.5B": 397, "1.5B": 1000}


@pytest.mark.parametrize("size", FILES)
def test_a_pass_reads_the_levels_of_a_file(size: str, tmp_path: Path) -> None:
    """The catalogue's files with their own levels: the table of docs/gpu.md."""
    geometry, (every, half, head) = GEOMETRIES[size], FILES[size]
    hidden, mlp = geometry.hidden_size, geometry.mlp_size
    attended, kept = geometry.num_heads * geometry.head_size, geometry.num_kv_heads * geometry.head_size
    shapes = {
        "q": (attended, hidden), "k": (kept, hidden), "v": (kept, hidden), "o": (hidden, attended),
        "gate": (mlp, hidden), "up": (mlp, hidden), "down": (hidden, mlp),
    }  # fmt: skip
    tensors = {
        f"model.layers.{layer}.{part}_proj.weight": TensorLayout(kind, shapes[part], 0)
        for layer in range(geometry.num_layers)
        for part, kind in (every | (half if layer % 2 else OTHER_HALF[size])).items()
    }
    vocabulary = (geometry.vocab_size, hidden)
    tensors |= {HEAD: TensorLayout(head, vocabulary, 0), EMBEDDING: TensorLayout("F16", vocabulary, 0)}
    write_layout(tmp_path, GgufLayout(tmp_path / "model.gguf", 1, tensors), is_beside=False)
    config = {
        "num_hidden_layers": geometry.num_layers, "hidden_size": hidden, "intermediate_size": mlp,
        "num_attention_heads": geometry.num_heads, "num_key_value_heads": geometry.num_kv_heads,
        "vocab_size": geometry.vocab_size,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = read_geometry(tmp_path)
    assert found is not None
    assert round(found.pass_bytes(8) / 1e6) == FILE_MEGABYTES[size]
    assert found.pass_bytes(16) == geometry.pass_bytes(16)


def test_a_geometry_is_read_from_a_model_folder(tiny_model_dir: Path, tmp_path: Path) -> None:
    told = json.loads((tiny_model_dir / "config.json").read_text(encoding="utf-8"))
    found = read_geometry(tiny_model_dir)
    assert found == Geometry(2, 64, 160, 4, 2, 16, told["vocab_size"], is_tied=False)
    assert read_geometry(tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"model_type": "gpt2"}, "no kernels"),
        ({"mlp_bias": True}, "biases"),
        ({"head_dim": 96}, "matrix instructions"),
    ],
)
def test_models_without_kernels_are_named(changes: dict[str, object], reason: str) -> None:
    found = why_not_model(QWEN | changes)
    assert (reason in found) if reason else not found


@pytest.mark.parametrize("name", ["auto", "int8"])
def test_a_gpu_reads_bytes(name: str) -> None:
    found = choose_precision(name, torch.device("cuda"))
    assert (found.name, found.dtype, BITS[found.kind]) == ("int8", torch.bfloat16, 8)

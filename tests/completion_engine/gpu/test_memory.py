"""The memory plan: a fitting model is accepted, another one is refused with an alternative."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from completion_engine.errors import MachineError, UserError
from completion_engine.gpu.loading import BITS, why_not_model
from completion_engine.gpu.memory import (
    GEOMETRIES,
    Geometry,
    check_fits,
    largest_fitting,
    plan_memory,
    read_geometry,
)
from completion_engine.gpu.weights import Bits
from completion_engine.loading.rungs import choose_precision

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


def test_larger_models_and_longer_caches_take_more() -> None:
    sizes = [plan_memory(geometry, 16, 8192, 4).num_bytes for geometry in GEOMETRIES.values()]
    assert all(left < right for left, right in pairwise(sizes))
    geometry = GEOMETRIES["7B"]
    by_bits = [plan_memory(geometry, bits, 8192, 4).num_bytes for bits in (4, 8, 16)]
    assert all(left < right for left, right in pairwise(by_bits))
    assert plan_memory(geometry, 16, 2048, 4).num_bytes < plan_memory(geometry, 16, 8192, 4).num_bytes


@pytest.mark.parametrize(
    ("size", "bits", "free", "advice"),
    [
        ("7B", 16, 18 * GB, "a cache of"),
        ("7B", 16, 12 * GB, "dtype int8"),
        ("7B", 16, 9 * GB, "dtype int4"),
        ("32B", 16, 10 * GB, "a model of 3B"),
        ("0.5B", 16, GB, "device to cpu"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(size: str, bits: Bits, free: int, advice: str) -> None:
    geometry = GEOMETRIES[size]
    plan = plan_memory(geometry, bits, 8192, 4)
    with pytest.raises(MachineError, match="of GPU memory") as caught:
        check_fits(plan, geometry, free, "The model")
    assert advice in caught.value.advice


def test_the_largest_that_fits_is_named() -> None:
    assert largest_fitting(80 * GB) == {16: "32B", 8: "32B", 4: "32B"}
    assert largest_fitting(GB) == {}


MEGABYTES = {
    "0.5B": {16: 988, 8: 494, 4: 326},
    "1.5B": {16: 3087, 8: 1544, 4: 929},
}


@pytest.mark.parametrize("size", MEGABYTES)
def test_bytes_of_a_pass_are_those_of_the_layers_and_the_head(size: str) -> None:
    """The table of docs/gpu.md."""
    found = {bits: GEOMETRIES[size].pass_bytes(bits) for bits in (16, 8, 4)}
    assert {bits: round(num_bytes / 1e6) for bits, num_bytes in found.items()} == MEGABYTES[size]


def test_what_fits_is_let_through() -> None:
    plan = plan_memory(GEOMETRIES["1.5B"], 16, 8192, 4)
    check_fits(plan, GEOMETRIES["1.5B"], plan.num_bytes, "The model")


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


def test_four_bits_are_for_gpus() -> None:
    with pytest.raises(UserError, match="GPU"):
        choose_precision("int4", torch.device("cpu"))
    assert choose_precision("int4", torch.device("cuda")).kind == "int4"
    assert BITS[choose_precision("int8", torch.device("cuda")).kind] == 8


def test_auto_reads_bytes_on_a_gpu() -> None:
    found = choose_precision("auto", torch.device("cuda"))
    assert (found.name, found.dtype, BITS[found.kind]) == ("int8", torch.bfloat16, 8)

"""The measurement for GPUs, tried out on a CPU: it runs, tables are whole, aims are judged rightly."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from completion_engine.errors import MachineError
from completion_engine.gpu.memory import Geometry
from scripts.random_model import GEOMETRIES
from tests.benchmarks.gpu.ceilings import Ceilings, measure_ceilings
from tests.benchmarks.gpu.measure import GpuRun, measure_gpu
from tests.benchmarks.gpu.plot import write_gpu_plot
from tests.benchmarks.gpu.random_models import HandedOver, random_model
from tests.benchmarks.gpu.report import (
    AIM_COLUMNS,
    MEMORY_COLUMNS,
    SPEED_COLUMNS,
    aim_rows,
    aims,
    memory_rows,
    speed_rows,
)
from tests.benchmarks.peers.reference import COMPILED


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    run = GpuRun("cpu", sizes=("1.5B",), num_tokens=4)
    return measure_gpu(run, lambda *_: None)


def test_a_trial_run_measures_every_stage(found: dict[str, Any]) -> None:
    (row,) = found["geometries"]
    assert {"8 rows", "16 rows", "16 rows, a tree", "8 rows without the head"} <= set(row["stages_ms"])
    assert all(ms > 0 for ms in row["stages_ms"].values())
    assert row["plain_ms"] > row["floor_ms"] > 0
    assert row["peers"]["transformers greedy"] > 0
    assert found["read_gb_per_s"] > 0


def test_tables_have_a_cell_for_every_column(found: dict[str, Any]) -> None:
    absent = found | {"geometries": [{"name": "32B", "dtype": "int8", "absent": "too large"}]}
    for columns, rows in (
        (MEMORY_COLUMNS, memory_rows()),
        (SPEED_COLUMNS, speed_rows(found)),
        (SPEED_COLUMNS, speed_rows(absent)),
        (AIM_COLUMNS, aim_rows(found["aims"])),
    ):
        assert rows
        assert all(len(row) == len(columns) for row in rows)
    assert [row[0] for row in memory_rows()] == list(GEOMETRIES)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(MachineError, match="no GPU"):
        measure_gpu(GpuRun("cuda"), lambda *_: None)


def test_aims_are_judged() -> None:
    row = {"name": "7B", "dtype": "bfloat16", "price_of_16": 1.04, "share_of_bandwidth": 0.6}
    peers = [
        {"name": "Slipstream plain", "ms_per_token_overall": 1.1, "over_plain": {"p1": 1.0}},
        {"name": "Slipstream default", "ms_per_token_overall": 0.4, "over_plain": {"p1": 0.9}},
        {"name": COMPILED, "ms_per_token_overall": 3.0},
    ]
    judged = aims({"geometries": [row], "peers": {"peers": peers}})
    assert {aim["name"]: aim["met"] for aim in judged} == {
        "7B: price of 16 rows": True,
        "7B: share of bandwidth": False,
        "tokens a second": True,
        "times compiled transformers": True,
        "first percentile against plain": False,
    }


def test_the_floor_is_bytes_over_the_better_bandwidth() -> None:
    assert Ceilings(2e12, 4e12, 1.0).floor_ms(8 * 10**9) == pytest.approx(2.0)
    measured = measure_ceilings(torch.device("cpu"))
    assert measured.bytes_per_s >= measured.copy_bytes_per_s > 0


def test_a_random_model_is_handed_over_layer_by_layer() -> None:
    model = random_model(Geometry(2, 32, 32, 2, 1, 16, 40, is_tied=True), torch.device("cpu"), torch.float32)
    wanted = model.model.layers[1].mlp.down_proj.weight.clone()
    taken = HandedOver(model)
    assert all(weight.is_meta for weight in model.parameters())
    assert torch.equal(taken.layer(1).down[0], wanted)
    with pytest.raises(KeyError):
        taken.layer(1)


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is an extra")
def test_the_picture_is_drawn(found: dict[str, Any], tmp_path: Path) -> None:
    write_gpu_plot(found, tmp_path / "gpu.svg")
    text = (tmp_path / "gpu.svg").read_text(encoding="utf-8")
    assert text.startswith("<?xml")


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_tiles_are_tried_and_the_best_is_named() -> None:
    from tests.benchmarks.gpu.tuning import tune

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tiny = Geometry(1, 32, 32, 2, 1, 16, 40, is_tied=True)
    rows = tune(tiny, 8, device, Ceilings(1e3, 1e3, 1.0), limit=2)
    assert [row["product"] for row in rows] == ["qkv", "out", "gate or up", "down", "head"]
    assert all(row["best"] >= row["now"] > 0 for row in rows)
    assert all(row["best_tiles"]["part_inputs"] % row["best_tiles"]["input_block"] == 0 for row in rows)

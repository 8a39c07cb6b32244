"""The script for a card's first half hour runs to its end in miniature, and one failure hides no other."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed: the GPU kernels are NOT tested here", allow_module_level=True)

from scripts import gpu_first
from tests.completion_engine.gpu.interpreter import interpreted


@pytest.fixture(scope="module")
def lines() -> list[dict[str, object]]:
    """Every line of a run in miniature, without a model."""
    found: list[str] = []
    with interpreted():
        trial = gpu_first.trial_of(is_small=True, model=None)
        assert gpu_first.run(trial, list(gpu_first.STAGES), found.append)
    return [json.loads(line) for line in found]


def test_every_stage_says_what_it_found(lines: list[dict[str, object]]) -> None:
    assert {line["stage"] for line in lines} == set(gpu_first.STAGES)
    assert all(line["ok"] for line in lines)
    assert {line["bits"] for line in lines if line["stage"] == "kernels"} == {16, 8, "file"}
    (machine,) = [line for line in lines if line["stage"] == "machine"]
    assert "carry" in str(machine["model"])


def test_exactness_and_layers_are_measured(lines: list[dict[str, Any]]) -> None:
    (exactness,) = [line for line in lines if line["stage"] == "exactness"]
    assert set(exactness["rows"].values()) == {True}
    assert (exactness["trees"], exactness["exactness"]) == (True, "row-invariant")
    (layers,) = [line for line in lines if line["stage"] == "layers"]
    assert layers["is_real"] is False


def test_a_failure_is_a_line_and_the_next_stage_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(_trial: gpu_first.Trial) -> Iterator[gpu_first.Facts]:
        raise AssertionError("libcuda.so cannot found!")
        yield {}

    stages = {"first": fails, "chain": gpu_first.chain}
    monkeypatch.setattr(gpu_first, "STAGES", stages)
    found: list[str] = []
    trial = gpu_first.trial_of(is_small=True, model=None)
    assert not gpu_first.run(trial, list(stages), found.append)
    first, second = map(json.loads, found)
    assert first == {"stage": "first", "ok": False, "error": "AssertionError: libcuda.so cannot found!"}
    assert second["ok"]
    assert second["backends"][-1].startswith("CPU")

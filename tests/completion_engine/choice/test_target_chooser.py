"""The facts of this machine reach the choice: the store's models, measurements, and settings."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
import torch

from completion_engine.choice import target_chooser
from completion_engine.choice.choice import HEADROOM_BYTES
from completion_engine.choice.target_chooser import TargetChooser
from completion_engine.config import EngineConfig
from completion_engine.gpu.machine import Gpu
from completion_engine.loading.backends import plan_backends
from completion_engine.models import ModelStore

SMALL, LARGE = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
CPU = EngineConfig(device="cpu", dtype="float32")
QUICK = {"device": "cpu", "dtype": "float32", "pass_ms": {"1": 0.5, "8": 1.0}}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TargetChooser:
    """A machine of a size that all tests know, with an empty store."""
    monkeypatch.setattr(target_chooser, "num_free_bytes", lambda _device: 40 * HEADROOM_BYTES)
    monkeypatch.setattr(target_chooser, "_num_free_disk_bytes", lambda _folder: 40 * HEADROOM_BYTES)
    return TargetChooser(ModelStore(tmp_path))


def test_a_machine_that_was_never_measured_begins_with_the_smallest_that_writes_code(
    here: TargetChooser,
) -> None:
    choice = here.choose(CPU)
    assert (choice.target, choice.start) == (SMALL, SMALL)
    assert choice.next_up and (choice.next_up.target, choice.next_up.p95_ms) == (LARGE, None)


def test_passes_of_a_load_are_heard_in_the_same_setting_alone(here: TargetChooser) -> None:
    here.record({"target": SMALL, **QUICK})
    choice = here.choose(CPU)
    assert (choice.target, choice.start, choice.next_up) == (LARGE, SMALL, None)
    assert here.choose(EngineConfig(device="cpu", dtype="bfloat16")).target == SMALL


@pytest.mark.parametrize(("dtype", "wanted"), [("auto", LARGE), ("bfloat16", SMALL)])
def test_a_card_of_six_gigabytes_holds_the_larger_model_in_bytes(
    here: TargetChooser, monkeypatch: pytest.MonkeyPatch, dtype: str, wanted: str
) -> None:
    card = Gpu("a card", (8, 9), 6_000_000_000, device=torch.device("cuda"))
    monkeypatch.setattr(target_chooser, "plan_here", lambda device, dtype: plan_backends(device, dtype, card))
    monkeypatch.setattr(target_chooser, "num_free_bytes", lambda _device: card.num_total_bytes)
    name = {"auto": "int8"}.get(dtype, dtype)
    here.record({"target": SMALL, "device": "cuda", "dtype": name, "pass_ms": {"8": 2.0}})
    choice = here.choose(EngineConfig(dtype=dtype))
    assert choice.target == wanted
    assert wanted == LARGE or "of memory is free" in choice.next_summary


def test_passes_of_a_model_that_is_not_catalogued_are_not_kept(here: TargetChooser) -> None:
    here.record({"target": "/some/folder", **QUICK})
    assert here.choose(CPU).target == SMALL


def test_a_draft_model_is_for_a_target_that_is_named(here: TargetChooser) -> None:
    here.record({"target": SMALL, **QUICK})
    choice = here.choose(EngineConfig(device="cpu", dtype="float32", draft_model="smollm2-135m"))
    assert choice.target == SMALL
    assert "draftModel" in choice.next_summary


def test_a_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    assert target_chooser._num_allowed_bytes(tmp_path) is None
    for name, content in {
        "memory.max": "1000\n",
        "memory.current": "700\n",
        "memory.stat": "anon 1\ninactive_file 50\n",
    }.items():
        (tmp_path / name).write_text(content)
    assert target_chooser._num_allowed_bytes(tmp_path) == 350
    (tmp_path / "memory.max").write_text("max\n")
    assert target_chooser._num_allowed_bytes(tmp_path) is None


@pytest.mark.parametrize("error", [FileNotFoundError(2, "no power supplies"), PermissionError(13, "no")])
def test_a_container_that_shows_no_power_supplies_is_not_on_battery(
    monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def ask() -> None:
        raise error

    monkeypatch.setattr(psutil, "sensors_battery", ask, raising=False)
    assert not target_chooser.is_on_battery()

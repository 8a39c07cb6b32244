"""Pass times are remembered by model and setting, and a damaged file counts as empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from completion_engine.choice.choice import RECENT_LOADS, TRUSTED_LOADS, Passes
from completion_engine.choice.pass_log import FILE_NAME, MAX_LOADS, PassLog


@pytest.fixture
def log(tmp_path: Path) -> PassLog:
    return PassLog(tmp_path / "models")


def test_the_quickest_of_the_last_loads_speaks(log: PassLog) -> None:
    log.record("small", "cpu", {1: 2.0, 8: 3.0, 16: 5.0})
    for ms in range(40, 40 - RECENT_LOADS, -1):
        log.record("small", "cpu", {8: ms})
    assert log.of("cpu") == {"small": Passes(41 - RECENT_LOADS, RECENT_LOADS)}


def test_models_and_settings_are_kept_apart(log: PassLog) -> None:
    log.record("small", "cpu", {8: 3.0})
    log.record("small", "battery", {8: 6.0})
    log.record("large", "cpu", {8: 9.0})
    assert log.of("cpu") == {"small": Passes(3.0, 1), "large": Passes(9.0, 1)}
    assert log.of("battery") == {"small": Passes(6.0, 1)}


def test_a_model_that_is_not_loaded_any_more_is_not_called_slow_for_ever(log: PassLog) -> None:
    """Its times may be those of a busy machine, and no load would correct them."""
    for _ in range(TRUSTED_LOADS):
        log.record("large", "cpu", {8: 1000.0})
    log.record("large", "battery", {8: 2000.0})
    for _ in range(MAX_LOADS - TRUSTED_LOADS):
        log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu")["large"] == Passes(1000.0, TRUSTED_LOADS)
    log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu")["large"].num_loads < TRUSTED_LOADS
    assert log.of("battery") == {"large": Passes(2000.0, 1)}


def test_passes_too_narrow_to_judge_by_are_left_out(log: PassLog) -> None:
    log.record("small", "cpu", {1: 2.0, 4: 3.0})
    assert log.of("cpu") == {}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"loads": 3}', '{"loads": [[1, 2, 3]]}', '{"loads": [["a", "b", NaN]]}'],
)
def test_a_damaged_memory_is_none_and_is_written_anew(log: PassLog, tmp_path: Path, content: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / FILE_NAME).write_text(content)
    assert log.of("cpu") == {}
    log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu") == {"small": Passes(3.0, 1)}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    log = PassLog(tmp_path / "models")
    log.record("small", "cpu", {8: 3.0})
    assert log.of("cpu") == {}

"""The file of what was learned: added to, forgotten, and never trusted further than it reads well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from completion_engine.calibration import NUM_BINS, SHIPPED
from lsp_server.workspace.learned import Learned, forget_learned, read_learned

ZEROS = [0.0] * NUM_BINS
MANY = [9_000.0] * NUM_BINS


def told(right: object = MANY, wrong: object = ZEROS, version: object = 1, target: str = "model") -> str:
    return json.dumps({"version": version, "targets": {target: {"right": right, "wrong": wrong}}})


async def test_what_was_learned_is_there_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "state" / "learned.json"
    first, second = Learned(path), Learned(path)
    for learned in (first, second):
        for _ in range(20):
            learned.add("model", 0.5, is_right=True)
        await learned.store()
    both = Learned(path)
    assert read_learned(path)["model"].num_tokens == 40
    assert both.calibration_of("model").of(0.5) > first.calibration_of("model").of(0.5) > SHIPPED.of(0.5)
    assert both.calibration_of("another") == SHIPPED
    assert path.stat().st_mode & 0o077 == 0
    assert list(path.parent.iterdir()) == [path]


async def test_what_is_forgotten_does_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    learned = Learned(path)
    learned.add("model", 0.5, is_right=True)
    await learned.store()
    assert forget_learned(path)
    assert not forget_learned(path)
    learned.add("model", 0.5, is_right=True)
    await learned.store()
    assert read_learned(path)["model"].num_tokens == 1


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 60_000,
        told(version=2),
        told(right=ZEROS[1:]),
        told(right=["many"] * NUM_BINS),
        told(right=[-1.0] * NUM_BINS),
        told(right=[1e9] * NUM_BINS),
        told().replace("9000.0", "NaN"),
        told(target="x" * 70_000),
    ],
)
async def test_a_damaged_file_is_a_quiet_start(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "learned.json"
    path.write_text(damaged, encoding="utf-8")
    learned = Learned(path)
    assert learned.calibration_of("model") == SHIPPED
    learned.add("model", 0.5, is_right=True)
    await learned.store()
    assert read_learned(path)["model"].num_tokens == 1


async def test_a_file_that_cannot_be_written_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    learned = Learned(tmp_path / "file" / "learned.json")
    learned.add("model", 0.5, is_right=False)
    await learned.store()
    assert learned.calibration_of("model").of(0.5) < SHIPPED.of(0.5)

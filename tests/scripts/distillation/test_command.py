"""`python -m scripts.distillation` as it is called: a folder of code in, a drafter with its card out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from completion_engine.errors import UserError

SIZES = ("--tokens", "1500", "--steps", "4", "--window", "96", "--places", "1", "--vocabulary", "200")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code") / "project-1.0"
    folder.mkdir()
    for number in range(40):
        lines = [f"def part_{number}_{at}(value):\n    return value * {at}\n" for at in range(30)]
        (folder / f"module_{number}.py").write_text("\n".join(lines))
    return folder.parent


def call(*arguments: str | Path) -> Result:
    from scripts.distillation.__main__ import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_code_becomes_a_drafter_with_a_card(code: Path, tiny_model_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "drafter"
    done = call(code, "--target", tiny_model_dir, "--out", out, *SIZES, "--json")
    assert done.exception is None
    told = json.loads(done.stdout.splitlines()[-1])
    assert 0 < told["num_positions"] <= 16 * 96
    assert len(told["survival_by_depth"]) == len(told["temperatures"])
    files = {"config.json", "drafter.safetensors", "README.md"}
    assert {place.name for place in out.iterdir() if place.is_file()} == files
    assert "project-1.0" in (out / "README.md").read_text()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    done = call(tmp_path / "nowhere", "--out", tmp_path / "out")
    assert isinstance(done.exception, UserError)
    assert "nowhere" in done.exception.message

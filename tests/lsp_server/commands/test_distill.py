"""`slipstream distill` as it is called: a folder of code in, a drafter with its card and picture out."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from completion_engine.errors import UserError

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
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
    from lsp_server.commands.distill import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("plot", [pytest.param(True, marks=pytest.mark.skipif(
    not HAS_MATPLOTLIB, reason="matplotlib is an extra")), False])  # fmt: skip
def test_code_becomes_a_drafter_with_a_card(
    code: Path, tiny_model_dir: Path, tmp_path: Path, plot: bool
) -> None:
    out = tmp_path / "drafter"
    shown = "--plot" if plot else "--no-plot"
    done = call(code, "--target", tiny_model_dir, "--out", out, *SIZES, shown, "--json")
    assert done.exception is None
    told = json.loads(done.stdout.splitlines()[-1])
    assert 0 < told["num_positions"] <= 16 * 96
    assert len(told["survival_by_depth"]) == len(told["temperatures"])
    files = {"config.json", "drafter.safetensors", "README.md", *(("acceptance.svg",) if plot else ())}
    assert {place.name for place in out.iterdir() if place.is_file()} == files
    assert "project-1.0" in (out / "README.md").read_text()
    assert ("acceptance.svg" in (out / "README.md").read_text()) == plot


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    done = call(tmp_path / "nowhere", "--out", tmp_path / "out")
    assert isinstance(done.exception, UserError)
    assert "nowhere" in done.exception.message


def test_a_picture_that_cannot_be_drawn_is_told_before_the_work(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else find(name, *rest)
    )
    done = call(code, "--out", tmp_path / "out")
    assert "matplotlib" in str(done.exception)
    assert not (tmp_path / "out" / "work").exists()


@pytest.mark.skipif(not HAS_MATPLOTLIB, reason="matplotlib is an extra")
def test_the_same_figures_give_the_same_picture(tmp_path: Path) -> None:
    from tests.benchmarks.acceptance_plot import write_acceptance_plot

    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        write_acceptance_plot([0.5, 0.25], "Drafts", picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert b"<svg" in pictures[0].read_bytes()

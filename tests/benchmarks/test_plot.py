"""The picture of a comparison."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from completion_engine.errors import MachineError, UserError
from tests.benchmarks.plot import check_plot, write_plot

has_matplotlib = importlib.util.find_spec("matplotlib") is not None


def found_of(*names: str) -> dict[str, Any]:
    rows = [
        {
            "name": name,
            "ms_per_token": {"median": 20.0 + at, "low": 15.0, "high": 30.0 + at, "p1": 14.0},
            "tokens_per_pass": 2.5,
        }
        for at, name in enumerate(names)
    ]
    facts = {"target": "tiny", "dtype": "bfloat16", "device": "cpu", "num_prompts": 3, "tokens_asked": 8}
    return facts | {"peers": [*rows, {"name": "silent", "ms_per_token": None, "tokens_per_pass": 0.0}]}


@pytest.mark.skipif(not has_matplotlib, reason="needs the extra `bench`")
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_picture_is_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"peers.{suffix}"
    write_plot(found_of("transformers greedy", "llama.cpp", "Slipstream plain"), path)
    assert path.stat().st_size > 1000


@pytest.mark.skipif(not has_matplotlib, reason="needs the extra `bench`")
def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        write_plot(found_of("llama.cpp"), tmp_path / name)
    write_plot(found_of("llama.cpp", "Slipstream plain"), tmp_path / "c.svg")
    first, second, other = ((tmp_path / name).read_bytes() for name in ("a.svg", "b.svg", "c.svg"))
    assert first == second != other


@pytest.mark.parametrize(("name", "message"), [("peers.txt", "not a picture"), ("no/peers.svg", "no folder")])
def test_a_picture_that_cannot_be_written_is_refused_beforehand(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        check_plot(tmp_path / name)


def test_without_matplotlib_the_reader_learns_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MachineError, match="matplotlib is not installed") as caught:
        check_plot(tmp_path / "peers.svg")
    assert "extra `bench`" in caught.value.advice

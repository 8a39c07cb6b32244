"""The demonstration: suggestions appear with what they took and where they come from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lsp_server import cli
from scripts import demo
from tests.calls import Call


@pytest.fixture(autouse=True)
def _demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "app", demo.app)


def test_suggestions_are_shown_with_their_cost_and_origin(
    run_cli: Call, repository: Path, tmp_path_factory: Any
) -> None:
    source = tmp_path_factory.mktemp("typed") / "circle.py"
    source.write_text("class Circle:\n    def __init__(self, radius):\n        self.radius = radius\n")
    done = run_cli("--repository", repository, "--source", source, "--name", "circle.py")
    assert done.code == 0, done.err
    assert re.search(r"^ +\d+ ms +\d+ in \d+  .*▏.*   (target|ngram)", done.out, re.MULTILINE)
    assert "characters were not typed" in done.out
    assert "\x1b[" not in done.out
    assert not (repository / "circle.py").exists()


def test_without_a_repository_to_show_nothing_is_fetched(
    run_cli: Call, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIPSTREAM_MODEL_DIR", str(tmp_path / "models"))
    done = run_cli()
    assert done.code == 1
    assert "There is no folder docs/sample_repository here." in done.err
    assert "--repository" in done.err
    assert list(tmp_path.iterdir()) == []

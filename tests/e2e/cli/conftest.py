"""The program as a person calls it, on the tiny target, away from the person's own settings and caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server import cli
from tests.calls import Call, caller
from tests.prices import make_rows_free_in_later_loads


@pytest.fixture
def run_cli(
    tiny_model_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Call:
    """Call `slipstream` with arguments; config.toml names the tiny target, whose rows cost nothing."""
    make_rows_free_in_later_loads(monkeypatch)
    return caller(cli.main, tmp_path_factory.mktemp("home"), tiny_model_dir, monkeypatch, capfd)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small repository with something to find and something to keep out."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "shapes.py").write_text(
        "class Square:\n    def __init__(self, side):\n        self.side = side\n\n"
        "    def area(self):\n        return self.side * self.side\n"
    )
    (tmp_path / "sizes.py").write_text("def largest(values):\n    return max(values, key=abs)\n")
    (tmp_path / ".env").write_text("TOKEN=abc\n")
    return tmp_path

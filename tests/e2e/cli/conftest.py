"""The program as a person calls it, on the tiny target, away from the person's own settings and caches."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lsp_server import cli
from tests.prices import make_rows_free_in_later_loads

REPOSITORY_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Outcome:
    """How a call ended and what it said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


RunCli = Callable[..., Outcome]


@pytest.fixture
def run_cli(
    tiny_model_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> RunCli:
    """Call `slipstream` with arguments; config.toml names the tiny target, whose rows cost nothing."""
    home = tmp_path_factory.mktemp("home")
    config = home / "slipstream" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'target = "{tiny_model_dir}"\ndevice = "cpu"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(home / "index"))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY_ROOT))
    make_rows_free_in_later_loads(monkeypatch)

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["slipstream", *map(str, arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        out, err = capfd.readouterr()
        assert isinstance(code, int | None)
        return Outcome(code or 0, out, err)

    return run


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

"""A command as a person calls it, in this process: how it ended and what it printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Outcome:
    """How a call ended and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


Call = Callable[..., Outcome]


def caller(
    main: Callable[[], object],
    home: Path,
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Call:
    """Return what calls `main` with arguments; settings, which name the target, and indexes are in `home`."""
    config = home / "slipstream" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'target = "{target}"\ndevice = "cpu"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("SLIPSTREAM_INDEX_DIR", str(home / "index"))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY_ROOT))

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["slipstream", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        out, err = capfd.readouterr()
        assert isinstance(code, int | None)
        return Outcome(code or 0, out, err)

    return call

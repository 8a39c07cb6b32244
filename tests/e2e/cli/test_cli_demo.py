"""`slipstream demo`: suggestions appear with what they took and where they come from."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

RunCli = Callable[..., Any]


def test_suggestions_are_shown_with_their_cost_and_origin(
    run_cli: RunCli, repository: Path, tmp_path_factory: Any
) -> None:
    source = tmp_path_factory.mktemp("typed") / "circle.py"
    source.write_text("class Circle:\n    def __init__(self, radius):\n        self.radius = radius\n")
    done = run_cli("demo", "--repository", repository, "--source", source, "--name", "circle.py")
    assert done.code == 0, done.err
    assert re.search(r"^ +\d+ ms +\d+ in \d+  .*▏.*   (target|ngram)", done.out, re.MULTILINE)
    assert "characters were not typed" in done.out
    assert "\x1b[" not in done.out
    assert not (repository / "circle.py").exists()

"""The editors' own code passes its tools: types, lint and unit tests."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors.programs import ROOT
from tests.editors.vscode import extension


@pytest.mark.timeout(1200)
def test_the_vscode_extension_passes_its_own_checks(program: Callable[[str, str], Path]) -> None:
    program("node", "npm")
    program("extension-packages", "node_modules")
    said = extension.run_npm("run", "check")
    assert re.search(r"\bfail 0\b", said), said


def test_the_neovim_plugin_passes_luacheck(program: Callable[[str, str], Path]) -> None:
    luacheck = program("luacheck", "luacheck")
    done = subprocess.run(
        [str(luacheck), "."],
        cwd=ROOT / "editors" / "neovim",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

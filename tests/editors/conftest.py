"""The common part of the tests of all editors: the programs that `make editors` set up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.editors import programs


@pytest.fixture(scope="session")
def program() -> Callable[[str, str], Path]:
    """Finds a program of a part, `program("neovim-0.12", "nvim")`; skips the test where there is none."""

    def find(part: str, name: str) -> Path:
        try:
            return programs.find(part, name)
        except programs.MissingError as error:
            pytest.skip(str(error))

    return find

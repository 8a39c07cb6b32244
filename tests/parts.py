"""Where real programs lie that a set-up leaves for the tests, and the reason why one is not there.

Owns the layout of such a folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


class MissingError(Exception):
    """This machine does not have the program; the message says why."""


@dataclass(frozen=True)
class Parts:
    """The parts that `make COMMAND` sets up, each in a folder of its name under FOLDER."""

    folder: Path
    command: str

    def find(self, part: str, program: str) -> Path:
        """The program of a part, such as `find("neovim-0.12", "nvim")`. Raises MissingError."""
        path = self.folder / part / program
        reason = self.folder / f"{part}.missing"
        if reason.is_file():
            raise MissingError(f"{part} could not be set up: {reason.read_text().strip()}")
        if not path.exists():
            raise MissingError(f"{part} is not set up; run: make {self.command}")
        return path


FLEET = Parts(ROOT / ".fleet", "test-fleet")

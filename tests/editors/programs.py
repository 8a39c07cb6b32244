"""Where the real editors lie that `make editors` set up.

Owns the folder's layout, and the reason why something is not there. Must not know how it was made, nor
what it is used for.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".editors"


class MissingError(Exception):
    """This machine does not have the program; the message says why."""


def find(part: str, program: str) -> Path:
    """The program of a part, such as `find("neovim-0.12", "nvim")`. Raises MissingError."""
    path = FOLDER / part / program
    reason = FOLDER / f"{part}.missing"
    if reason.is_file():
        raise MissingError(f"{part} could not be set up: {reason.read_text().strip()}")
    if not path.exists():
        raise MissingError(f"{part} is not set up; run: make editors")
    return path

"""What others are told of a folder's index. Must not know how it is built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

IndexState = Literal["waiting", "building", "ready", "error"]


@dataclass(frozen=True, slots=True)
class FolderReport:
    """A folder's index as others see it: `done` of `total` files while it is built."""

    folder: Path
    state: IndexState = "waiting"
    path: str = ""
    done: int = 0
    total: int = 0
    num_files: int = 0
    num_tokens: int = 0
    problem: str = ""

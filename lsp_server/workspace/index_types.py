"""The values that enter and leave the indexes of folders: their tokenizer, and the state of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

IndexState = Literal["waiting", "building", "ready", "error"]


@dataclass(frozen=True, slots=True)
class FolderReport:
    """The published state of a folder's index: `done` of `total` files while it is built."""

    folder: Path
    state: IndexState = "waiting"
    path: str = ""
    done: int = 0
    total: int = 0
    num_files: int = 0
    num_tokens: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A tokenizer: ids of texts, and bytes of ids. Equal fingerprints mean equal ids."""

    fingerprint: str
    encode_many: Callable[[list[str]], list[list[int]]]
    spell: Callable[[list[int]], bytes] = lambda _: b""

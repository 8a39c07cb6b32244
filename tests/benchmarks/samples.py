"""Prompts for benchmarks: positions in any source tree, and infilling tasks from a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from completion_engine.errors import UserError
from lsp_server.commands.local_engine import ENDINGS, Sample, drawn_samples
from ngram_cache import NgramIndex

T = TypeVar("T")


class Position(NamedTuple):
    """A cursor in a project, which is a folder below `root`; what it counts for is `language`."""

    language: str
    sample: Sample
    root: Path


@dataclass(frozen=True, slots=True)
class InfillingTask:
    """A hole in a function, and the program that tests the function called `entry_point`."""

    sample: Sample
    entry_point: str
    test: str


def infilling_tasks(path: Path) -> list[InfillingTask]:
    """Infilling tasks (JSON lines, gzip) with the fields task_id, prompt, suffix, canonical_solution.

    The line of the hole gets a line end of its own, as it has in an editor.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            tasks = [json.loads(line) for line in lines]
        return [
            InfillingTask(
                Sample(
                    t["task_id"],
                    t["task_id"],
                    "python",
                    t["prompt"],
                    "\n" + t["suffix"],
                    t["canonical_solution"].rstrip("\n"),
                ),
                t.get("entry_point", ""),
                t.get("test", ""),
            )
            for t in tasks
        ]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{path} holds no infilling tasks: {error!r}.", advice="Name a .jsonl.gz file of tasks."
        ) from error


def from_tasks(path: Path) -> list[Sample]:
    """The holes of infilling tasks."""
    return [task.sample for task in infilling_tasks(path)]


def from_folder(
    root: Path, num_samples: int, seed: int = 0, endings: Collection[str] = ENDINGS
) -> list[Sample]:
    """Positions inside code lines of the source files under `root`; see `drawn_samples`.

    `endings` bound which files they lie in.
    """
    return drawn_samples(source_files(root, endings), root, num_samples, seed)


def source_files(root: Path, endings: Collection[str] = ENDINGS) -> list[Path]:
    """The files under `root` whose names end so, in the order of their names; none is left out."""
    return sorted(path for path in root.rglob("*") if path.suffix in endings and path.is_file())


def repository_index(root: Path, encode_many: Callable[[list[str]], list[list[int]]]) -> NgramIndex:
    """An n-gram index of all source files under `root`, which is not saved."""
    files = source_files(root)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    names = (path.relative_to(root).as_posix() for path in files)
    encoded = (np.asarray(tokens, dtype=np.int32) for tokens in encode_many(texts))
    return NgramIndex(zip(names, encoded, strict=True))


def interleaved(*groups: list[T]) -> Iterator[T]:
    """One of each group in turn, until all are used."""
    for at in range(max(map(len, groups), default=0)):
        yield from (group[at] for group in groups if at < len(group))

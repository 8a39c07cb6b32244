"""Real prompts for measurements: positions in real source trees.

Owns where prompts come from and how positions are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from completion_engine.context.repository_view import RepositoryView
from completion_engine.context.snippet_choice import INGREDIENTS, CursorLocation, choose
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.request import CompletionRequest, RepositoryContext
from completion_engine.text_window import TextWindow
from lsp_server.workspace.context_jobs import CHARS_OF_TOKEN
from ngram_cache import NgramIndex

_LANGUAGES = {
    ".py": "python", ".ts": "typescript", ".js": "javascript", ".go": "go", ".rs": "rust",
    ".c": "c", ".h": "c",
}  # fmt: skip
T = TypeVar("T")
_MIN_BYTES = 2_000
_MAX_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One cursor in one real file. `expected` is what stood there: the rest of the line, or the hole.

    `document` names the file as `repository_index` does, so that it is not drafted from itself.
    """

    name: str
    document: str
    language: str
    prefix: str
    suffix: str
    expected: str


class Position(NamedTuple):
    """A cursor in a project, which is a folder below `root`; what it counts for is `language`."""

    language: str
    sample: Sample
    root: Path


def from_folder(
    root: Path, num_samples: int, seed: int = 0, endings: Collection[str] | None = None
) -> list[Sample]:
    """Positions inside code lines of the source files under `root`; the rest of the line is the hole.

    The same seed draws the same positions, and the first of more. `endings` bound which files they lie in.
    """
    files = [path for path in source_files(root, endings or _LANGUAGES) if _is_fit(path)]
    if not files:
        raise UserError(f"No source files under {root}.", advice="Name a folder with source code.")
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    samples: list[Sample] = []
    while len(samples) < num_samples:
        path = rng.choice(files)
        sample = _draw(path, path.relative_to(root), rng)
        if sample is not None:
            samples.append(sample)
    return samples


def source_files(root: Path, suffixes: Collection[str] = _LANGUAGES) -> list[Path]:
    """The files under `root` whose names end so, in the order of their names; none is left out."""
    return sorted(path for path in root.rglob("*") if path.suffix in suffixes and path.is_file())


def repository_index(root: Path, encode_many: Callable[[list[str]], list[list[int]]]) -> NgramIndex:
    """The n-gram index of the source files under `root`, as an editor open there would have it."""
    files = source_files(root)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    names = (path.relative_to(root).as_posix() for path in files)
    encoded = (np.asarray(tokens, dtype=np.int32) for tokens in encode_many(texts))
    return NgramIndex(zip(names, encoded, strict=True))


def _is_fit(path: Path) -> bool:
    return _MIN_BYTES <= path.stat().st_size <= _MAX_BYTES


def _draw(path: Path, name: Path, rng: random.Random) -> Sample | None:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
    start = rng.choice(starts[10:] or starts)
    end = text.find("\n", start)
    line = text[start:end] if end >= 0 else ""
    body = line.strip()
    if len(body) < 8 or body.startswith(("#", "//", "*", '"""')):
        return None
    column = rng.randrange(len(line) - len(line.lstrip()) + 1, len(line) - 2)
    cursor = start + column
    return Sample(
        f"{name}:{text.count(chr(10), 0, cursor)}:{column}",
        name.as_posix(),
        _LANGUAGES[path.suffix],
        text[:cursor],
        text[end:],
        line[column:],
    )


def interleaved(*groups: list[T]) -> Iterator[T]:
    """One of each group in turn, until all are used."""
    for at in range(max(map(len, groups), default=0)):
        yield from (group[at] for group in groups if at < len(group))


def context_of(
    engine: CompletionEngine,
    request: CompletionRequest,
    repository: str,
    ingredients: Collection[str] = INGREDIENTS,
) -> RepositoryContext | None:
    """Snippets that stand in front of a document after a moment of rest; None without an index."""
    if request.index is None:
        return None
    path, tokenizer = request.indexed_as or request.document, engine.tokenizer
    view = RepositoryView(request.index, tokenizer.encode_many, tokenizer.spell, repository, path)
    described = engine.describe()
    window = TextWindow(*described["window_chars"])
    location = CursorLocation(path, request.language, request.prefix, request.suffix, window)
    return choose(location, view, int(described["num_context_tokens"] * CHARS_OF_TOKEN), ingredients)

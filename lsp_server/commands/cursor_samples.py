"""Cursor positions in real source files, as prompts for measurements."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from completion_engine.context.snippet_choice import INGREDIENTS, CursorLocation, RepositoryView, choose
from completion_engine.errors import UserError
from completion_engine.request import CompletionRequest, RepositoryContext
from completion_engine.text_window import TextWindow
from lsp_server.commands.local_engine import language_id
from lsp_server.workspace.prefetch import CHARS_OF_TOKEN
from ngram_cache.repository import Repository

if TYPE_CHECKING:
    from completion_engine.engine import CompletionEngine

ENDINGS = frozenset({".py", ".ts", ".js", ".go", ".rs", ".c", ".h"})
_MIN_BYTES, _MAX_BYTES = 2_000, 200_000
_MAX_TRIES = 1_000  # per sample: lines that are too short or not code are drawn again


@dataclass(frozen=True, slots=True)
class Sample:
    """One cursor in one real file. `expected` is the original text: the rest of the line.

    `document` names the file as the index does, so that no draft is read from the file itself.
    """

    name: str
    document: str
    language: str
    prefix: str
    suffix: str
    expected: str


def repository_samples(root: Path, num_samples: int) -> list[Sample]:
    """Cursor positions in the source files of a repository that an index may hold. Raises UserError."""
    found = sorted(root / file.path for file in Repository(root).walk().files)
    return drawn_samples([path for path in found if path.suffix in ENDINGS], root, num_samples)


def drawn_samples(files: Sequence[Path], root: Path, num_samples: int, seed: int = 0) -> list[Sample]:
    """Cursor positions within code lines of `files` below `root`. Raises UserError if there are none.

    The same seed draws the same positions, and more samples begin with those of fewer.
    """
    fit = [path for path in files if _MIN_BYTES <= path.stat().st_size <= _MAX_BYTES]
    if not fit:
        raise UserError(f"No source files under {root}.", advice="Name a folder with source code.")
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    drawn = (_draw(rng.choice(fit), root, rng) for _ in range(_MAX_TRIES * num_samples))
    found = list(islice(filter(None, drawn), num_samples))
    if len(found) < num_samples:
        raise UserError(f"Too little code under {root}.", advice="Name a folder with source code.")
    return found


def _draw(path: Path, root: Path, rng: random.Random) -> Sample | None:
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
    cursor, name = start + column, path.relative_to(root).as_posix()
    shown = f"{name}:{text.count(chr(10), 0, cursor)}:{column}"
    return Sample(shown, name, language_id(path), text[:cursor], text[end:], line[column:])


def context_of(
    engine: CompletionEngine,
    request: CompletionRequest,
    repository: str,
    ingredients: Collection[str] = INGREDIENTS,
) -> RepositoryContext | None:
    """Snippets in front of a document after a moment of rest; None without an index."""
    if request.index is None:
        return None
    path, tokenizer = request.indexed_as or request.document, engine.tokenizer
    view = RepositoryView(request.index, tokenizer.encode_many, tokenizer.spell, repository, path)
    described = engine.describe()
    window = TextWindow(*described["window_chars"])
    location = CursorLocation(path, request.language, request.prefix, request.suffix, window)
    return choose(location, view, int(described["num_context_tokens"] * CHARS_OF_TOKEN), ingredients)

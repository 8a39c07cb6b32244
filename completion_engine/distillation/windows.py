"""What a drafter learns from: windows of real code, laid out as prompts and what follows them.

Owns which files count, which are held out, and where a window is cut. Knows tokens and text, no model.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from completion_engine.errors import UserError
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import Progress
from ngram_cache.repository import Repository, RepositoryOptions, SkippedFileError

MAX_FILES = 20_000
_HELD_OUT = 20  # one of this number of files is never trained on
_MIN_CHARS = 600
_CHARS_PER_TOKEN = 4.5  # characters of code, generously, so that a window is filled
_HOLE = (0.3, 0.85)  # part of a window that stands in the middle, between prefix and suffix
_SUFFIX = (0.05, 0.25)
_MAX_TRIES = 1000


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts to train on and texts to measure with; no file is in both."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]

    @property
    def num_chars(self) -> int:
        """Characters to train on."""
        return sum(map(len, self.train))


@dataclass(frozen=True, slots=True)
class Window:
    """`tokens` of one text; those before `num_prompt` stand before the hole that the target fills."""

    tokens: tuple[int, ...]
    num_prompt: int


def read_corpus(folder: Path, held_out: Path | None, report: Progress) -> Corpus:
    """The source files below `folder` to train on, those below `held_out` to measure with.

    Without `held_out`, some files below `folder` are measured with, chosen by a hash of their path. Raises
    UserError where too few are found.
    """
    found = _read(folder, report)
    if held_out is None:
        train = [text for path, text in found.items() if not is_held_out(path)]
        measured = [text for path, text in found.items() if is_held_out(path)]
    else:
        train, measured = list(found.values()), list(_read(held_out, report).values())
    if not train or not measured:
        raise UserError(
            f"There is too little source code in {folder if not train else held_out or folder}.",
            advice="Name a folder with a few hundred source files.",
        )
    return Corpus(tuple(train), tuple(measured))


def _read(folder: Path, report: Progress) -> dict[str, str]:
    """Texts by path, of all files that may be indexed and are long enough."""
    repository = Repository(folder, RepositoryOptions(max_files=MAX_FILES))
    files = sorted(repository.walk().files, key=lambda file: file.path)
    found: dict[str, str] = {}
    for at, file in enumerate(files):
        report("Reading code", at, len(files))
        try:
            text = repository.read(file)
        except SkippedFileError:
            continue
        if len(text) >= _MIN_CHARS:
            found[file.path] = text
    report("Reading code", len(files), len(files))
    return found


def is_held_out(path: str) -> bool:
    """Whether the file at `path`, relative to its folder, is for measuring only."""
    return hashlib.blake2b(path.encode(), digest_size=4).digest()[0] % _HELD_OUT == 0


def draw_windows(
    texts: Sequence[str], tokenizer: Tokenizer, num_tokens: int, rng: random.Random
) -> Iterator[Window]:
    """Endless windows of at most `num_tokens` tokens out of texts drawn at random."""
    while True:
        yield _draw(texts, tokenizer, num_tokens, rng)


def _draw(texts: Sequence[str], tokenizer: Tokenizer, num_tokens: int, rng: random.Random) -> Window:
    room = num_tokens - len(tokenizer.leading_ids) - 4
    for _ in range(_MAX_TRIES):
        text = rng.choice(texts)
        num_chars = int(num_tokens * _CHARS_PER_TOKEN)
        start = _line_start(text, rng.randrange(max(1, len(text) - num_chars // 2)))
        chunk = text[start : start + num_chars]
        hole = _line_start(chunk, int(len(chunk) * rng.uniform(1 - _HOLE[1], 1 - _HOLE[0])))
        end = len(chunk) - int(len(chunk) * rng.uniform(*_SUFFIX))
        pieces = tokenizer.encode_many([chunk[:hole], chunk[hole:end], chunk[end:]])
        window = _lay_out(tokenizer, pieces, room)
        if len(window.tokens) - window.num_prompt >= 2 and len(window.tokens) <= num_tokens:
            return window  # a suffix of dense text may fill more than a window by itself
    raise UserError("The code has no text to learn from.", advice="Name a folder with source code.")


def _lay_out(tokenizer: Tokenizer, pieces: Sequence[list[int]], room: int) -> Window:
    """Prefix, suffix and middle as the target was taught to infill; one after the other where it was not."""
    prefix, middle, suffix = pieces
    surplus = max(0, sum(map(len, pieces)) - room)
    cut = min(surplus, max(0, len(middle) - 2))
    middle = middle[: len(middle) - cut]  # an end token would be wrong after a middle that was cut
    prefix = prefix[surplus - cut :]
    fim = tokenizer.fim
    if fim is None:
        prompt = [*tokenizer.leading_ids, *prefix]
        return Window((*prompt, *middle), len(prompt))
    prompt = [*tokenizer.leading_ids, fim.prefix, *prefix, fim.suffix, *suffix, fim.middle]
    ends = sorted(tokenizer.end_ids)[:1] if not cut else []
    return Window((*prompt, *middle, *ends), len(prompt))


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1

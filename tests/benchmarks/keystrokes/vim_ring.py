"""The ring of text chunks that llama.vim sends as extra context, chosen from the files that the user visits.

Follows the behaviour of llama.vim at a1c8e6e. Has no access to the server.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

NUM_CHUNKS = 16
NUM_CHUNK_LINES = 64
_NUM_QUEUED = 16
_HALF = NUM_CHUNK_LINES // 2
_SCOPE = 1024  # lines above the cursor from which a chunk is taken
_MIN_LINES = 3
_SAME, _NEAR_CURSOR = 0.9, 0.5  # similarity from which a chunk gives way
_WORD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines of a file."""

    lines: tuple[str, ...]
    file_name: str

    def as_extra(self) -> dict[str, str]:
        """The chunk as a part of `input_extra`."""
        return {"text": "\n".join(self.lines) + "\n", "filename": self.file_name}


def similarity(left: Sequence[str], right: Sequence[str]) -> float:
    """Share of words that two chunks have in common: 0 for none, 1 for all."""
    words, others = _WORD.findall("\n".join(left)), _WORD.findall("\n".join(right))
    if not words and not others:
        return 1.0
    known = set(words)
    return 2.0 * sum(word in known for word in others) / (len(words) + len(others))


@dataclass(slots=True)
class Ring:
    """The chunks in use, and those that wait until the user pauses."""

    seed: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    queued: list[Chunk] = field(default_factory=list)
    _rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311 - a reproducible script, not a secret

    def pick(self, lines: Sequence[str], file_name: str, *, evicts: bool) -> None:
        """Queue a part of `lines`; `evicts` removes similar chunks, otherwise `lines` are left out."""
        if len(lines) < _MIN_LINES:
            return
        chunk = tuple(lines) if len(lines) + 1 < NUM_CHUNK_LINES else self._part_of(lines)
        if any(chunk == other.lines for other in (*self.chunks, *self.queued)):
            return
        for kept in (self.queued, self.chunks):
            similar = [other for other in kept if similarity(other.lines, chunk) > _SAME]
            if similar and not evicts:
                return
            kept[:] = [other for other in kept if other not in similar]
        self.queued[:] = [*self.queued, Chunk(chunk, file_name)][-_NUM_QUEUED:]

    def pick_around(self, lines: Sequence[str], row: int, file_name: str) -> None:
        """Queue a part of the file above and below a cursor, as after a long move."""
        first, last = max(0, row - _SCOPE), max(0, row - 256)
        self.pick(lines[first : last + 1], file_name, evicts=False)
        first, last = (min(len(lines) - 1, row + num) for num in (64, 64 + NUM_CHUNK_LINES))
        self.pick(lines[first : last + 1], file_name, evicts=False)

    def pick_at_entry(self, lines: Sequence[str], row: int, file_name: str) -> None:
        """Queue a part of the surroundings of the cursor, as when a file is opened."""
        self.pick(lines[max(0, row - _HALF) : row + _HALF + 1], file_name, evicts=True)

    def use_next(self) -> bool:
        """Take the first queued chunk into use; False if none waits."""
        if not self.queued:
            return False
        self.chunks[:] = [*self.chunks, self.queued.pop(0)][-NUM_CHUNKS:]
        return True

    def drop_near(self, lines: Sequence[str], row: int) -> None:
        """Drop the chunks that resemble the surroundings of the cursor."""
        near = self._part_of(lines[max(0, row - _HALF) : row + _HALF + 1])
        self.chunks[:] = [chunk for chunk in self.chunks if similarity(chunk.lines, near) <= _NEAR_CURSOR]

    def _part_of(self, lines: Sequence[str]) -> tuple[str, ...]:
        first = self._rng.randint(0, max(0, len(lines) - _HALF))
        return tuple(lines[first : first + _HALF + 1])

"""Drafts from Jacobi trajectories that run in the spare rows of passes. Does not depend on text.

Lookahead decoding (Fu et al. 2024, "Break the Sequential Dependency of LLM Inference"): guesses of later
tokens run beside the draft, and the target's picks after them are the next guesses. The n-grams along such
guesses are kept as drafts. Where the paper's lookahead branch has rows of its own, this one takes what the
draft left of a multiple of eight. Where passes may have any number of rows, these are not free: with it alone
decoding is slower than plain there.
"""

from __future__ import annotations

from collections.abc import Sequence

from completion_engine.drafting.drafts import Allowed, Draft, DraftToken, Pass
from completion_engine.drafting.scopes import ScopedTable
from completion_engine.request import DraftScope
from completion_engine.target_model.kv_cache import KVCache

Gram = tuple[int, ...]

_NUM_GRAM = 6  # tokens of a gram, its key included
_MAX_KEY = 2
_MAX_GRAMS = 6  # continuations kept for a key, the newest ones
_MAX_KEYS = 8192
_MAX_GUESSES = 24


class LookaheadDrafter:
    """Keeps a trajectory of guesses after the text, and the pool of n-grams that it has passed through.

    A guess is kept as the gram that led to it: the tokens that earlier passes put before it, and itself last.
    """

    step_ms = 0.0
    num_bytes = 0

    def __init__(self) -> None:
        self._pool = ScopedTable[list[Gram]]()
        self._path: list[int] = []
        self._seeds: list[Gram] = []
        self._guesses: list[Gram] = []
        self._spare: list[Gram] = []

    def enter(self, scope: DraftScope) -> None:
        """See `DrafterWithMemory.enter`."""
        self._pool.enter(scope.recent)

    def forget(self, document: str) -> None:
        """See `DrafterWithMemory.forget`."""
        self._pool.forget(document)

    def discard(self) -> None:
        """See `DrafterWithMemory.discard`."""
        self._pool.discard()

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:  # noqa: ARG002 - tokens suffice here
        """See `Drafter.begin`. The end of the prompt is as good a first guess as any."""
        self._path = list(prompt[-_NUM_GRAM:])
        self._seeds = [(token,) for token in prompt[-_MAX_GUESSES:]]
        self._guesses, self._spare = [], []
        self._pool.begin()

    def extend(self, tokens: Sequence[int]) -> None:
        """See `Drafter.extend`."""
        self._path = [*self._path, *tokens][-_NUM_GRAM:]

    def spare_rows(self, num_rows: int) -> list[int]:
        """See `Drafter.spare_rows`."""
        self._spare = [*self._guesses, *self._seeds[len(self._guesses) :]][:num_rows]
        return [gram[-1] for gram in self._spare]

    def observe(self, done: Pass) -> None:
        """See `Drafter.observe`. A row's pick prolongs the gram that led to the row."""
        first_spare = len(done.tokens) - len(self._spare)
        grams: list[Gram] = []
        for row, (token, parent) in enumerate(zip(done.tokens, done.parents, strict=True)):
            above = grams[parent][:-1] if parent >= 0 else tuple(self._path[:-1])
            led = self._spare[row - first_spare] if row >= first_spare else (*above, token)
            grams.append((*led, done.picked[row])[-_NUM_GRAM:])
        for gram in grams:
            self._remember(gram)
        self._advance(grams, done)

    def drafts(
        self,
        max_tokens: int,
        allowed: Allowed,
        min_probability: float,  # noqa: ARG002 - steps cost next to nothing
    ) -> list[Draft]:
        """See `Drafter.drafts`. Return the grams that go on from the last tokens, as one tree."""
        for length in range(min(_MAX_KEY, len(self._path)), 0, -1):
            grams = self._pool.get(tuple(self._path[-length:])) or []
            tree = _tree([gram[:max_tokens] for gram in grams if allowed(gram[0])], length)
            if tree:
                return [tree]
        return []

    def end(self) -> None:
        """See `Drafter.end`. Nothing to do: the pool lives on."""

    def _advance(self, grams: list[Gram], done: Pass) -> None:
        """Take the picks along the last row's path as the next guesses, from where the text now ends."""
        run: list[Gram] = []
        row = len(done.tokens) - 1
        while row >= 0:
            run.append(grams[row])
            row = done.parents[row]
        run.reverse()
        self._guesses = [gram[-_NUM_GRAM + 1 :] for gram in run[len(done.accepted_rows) :]]

    def _remember(self, gram: Gram) -> None:
        for start in range(len(gram) - 1):
            for end in range(start + 1, min(start + _MAX_KEY, len(gram) - 1) + 1):
                key = gram[start:end]
                self._pool.put(key, _with(self._pool.get(key) or [], gram[end:]))
        self._pool.shrink(_MAX_KEYS)


def _with(grams: list[Gram], new: Gram) -> list[Gram]:
    """Return the newest grams, `new` last; a gram that another one begins with is dropped."""
    longest = max((gram for gram in grams if gram[: len(new)] == new), key=len, default=new)
    others = [gram for gram in grams if longest[: len(gram)] != gram]
    return [*others, longest][-_MAX_GRAMS:]


def _tree(grams: Sequence[Gram], match_length: int) -> Draft:
    """Merge equal beginnings into paths; a probability is the share of a node's grams that go on so."""
    count: dict[Gram, int] = {(): len(grams)}
    for gram in reversed(grams):
        for end in range(1, len(gram) + 1):
            count[gram[:end]] = count.get(gram[:end], 0) + 1
    paths = sorted(count, key=lambda path: (len(path), -count[path]))[1:]
    place = {path: at for at, path in enumerate(paths)}
    return tuple(
        DraftToken(
            path[-1],
            "recycled",
            "lookahead",
            match_length + len(path) - 1,
            count[path] / count[path[:-1]],
            place.get(path[:-1], -1),
        )
        for path in paths
    )

"""Drafts from n-grams that the target predicts in the spare rows of passes (lookahead decoding).

Lookahead decoding (Fu et al. 2024, "Break the Sequential Dependency of LLM Inference"): guesses of later
tokens run in the same pass as the draft, and the target's pick after each guess is the next guess for the
position after it. The n-grams along such guesses are stored and drafted when their first tokens occur again.

The guesses run in spare rows only. CPU kernels compute rows in groups of eight, so the rows that a draft
leaves in its last group cost nothing. Where each row costs time, this drafter alone makes decoding slower
than plain.

Example of one pass after the text `... a b`, with the draft `c` and the guesses `x y`.

- Row 0 is `b`, the last written token. The target picks `c` after it; the n-gram `a b c` is stored.
- Row 1 is the draft `c`. The target picks `d`; `a b c d` is stored.
- Row 2 is the spare row `x`, attached to row 1. The target picks `p`; the n-gram that led to `x` is stored
  with `p` after it.
- Row 3 is the spare row `y`, attached to row 2. The target picks `q`, which is stored in the same way.

Rows 0 and 1 are accepted, so the pass writes `c d`. The next guesses are `p q`, the picks after the rows that
follow the accepted ones. If the pick after row 0 were `e`, only row 0 would be accepted, and the next guesses
would be `d p q`.
"""

from __future__ import annotations

from collections.abc import Sequence

from completion_engine.drafting.drafts import Allowed, Draft, DraftToken, Pass, TableDrafter
from completion_engine.target_model.kv_cache import KVCache

Gram = tuple[int, ...]

_NUM_GRAM = 6  # tokens of an n-gram with its key
_MAX_KEY = 2
_MAX_GRAMS = 6  # continuations per key; the newest are kept
_MAX_KEYS = 8192
_MAX_GUESSES = 24


class LookaheadDrafter(TableDrafter[list[Gram]]):
    """Holds the guesses of the tokens after the text, and a table of n-grams that the target predicted.

    Each guess is stored as an n-gram that ends with it; the tokens before it are those that the target saw
    when it picked the guess. Tokens of the prompt (seeds) fill the spare rows until there are enough guesses.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seeds: list[Gram] = []
        self._guesses: list[Gram] = []
        self._spare: list[Gram] = []

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """See `Drafter.begin`. The last tokens of the prompt are the first guesses."""
        super().begin(prompt, cache)
        self._seeds = [(token,) for token in prompt[-_MAX_GUESSES:]]
        self._guesses, self._spare = [], []

    def spare_rows(self, num_rows: int) -> list[int]:
        """See `Drafter.spare_rows`."""
        self._spare = [*self._guesses, *self._seeds[len(self._guesses) :]][:num_rows]
        return [gram[-1] for gram in self._spare]

    def observe(self, done: Pass) -> None:
        """See `Drafter.observe`. Each row's n-gram is extended by the target's pick after the row."""
        first_spare = len(done.tokens) - len(self._spare)
        grams: list[Gram] = []
        for row, (token, parent) in enumerate(zip(done.tokens, done.parents, strict=True)):
            above = grams[parent][:-1] if parent >= 0 else tuple(self._path[-_NUM_GRAM:-1])
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
        """See `Drafter.drafts`. Return the continuations of the last tokens in the table, as one tree."""
        for length in range(min(_MAX_KEY, len(self._path)), 0, -1):
            grams = self._table.get(tuple(self._path[-length:])) or []
            tree = _tree([gram[:max_tokens] for gram in grams if allowed(gram[0])], length)
            if tree:
                return [tree]
        return []

    def _advance(self, grams: list[Gram], done: Pass) -> None:
        """Take as next guesses the picks along the path to the last row, without those that are written."""
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
                self._table.put(key, _with(self._table.get(key) or [], gram[end:]))
        self._table.shrink(_MAX_KEYS)


def _with(grams: list[Gram], new: Gram) -> list[Gram]:
    """Return the newest continuations, `new` last, without those that are a prefix of a longer one."""
    longest = max((gram for gram in grams if gram[: len(new)] == new), key=len, default=new)
    others = [gram for gram in grams if longest[: len(gram)] != gram]
    return [*others, longest][-_MAX_GRAMS:]


def _tree(grams: Sequence[Gram], match_length: int) -> Draft:
    """Merge common prefixes into a tree; a probability is a share of the n-grams through the parent."""
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

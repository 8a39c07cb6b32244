"""Drafts, and the protocol of drafters: small trees of tokens, each token with the evidence for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from completion_engine.request import DraftScope
from completion_engine.target_model.kv_cache import KVCache

Allowed = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class DraftToken:
    """One guessed token, a node of a draft.

    `parent` is the index of the guess before it, -1 for one that follows the written text. `source` is
    `ngram`, `recycled` or `neural`; `read_from` is `index`, `prompt`, `recent`, `successors`, `lookahead`,
    `distilled` or `model`. `match_length` counts the tokens of context that agreed there. `probability` is
    the share of the sampled occurrences that continue like this, or the value that a model gave it.
    `document` and `offset` are the position in the repository index; document is -1 elsewhere.
    """

    token: int
    source: str
    read_from: str
    match_length: int
    probability: float
    parent: int = -1
    document: int = -1
    offset: int = 0


Draft = tuple[DraftToken, ...]
"""A tree, parents before their children. In a chain each guess follows the one before."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One verification pass of the target, for drafters to learn from.

    `tokens` and `parents` [num_rows] are the rows that were run, parent -1 for the first one. Rows after the
    draft are spare: they may hold the tokens of a drafter. `logits` [num_rows, vocab_size]; `picked`
    [num_rows] is what the target would write after each row. `path` lists the rows that turned out true; the
    first row always does.
    """

    tokens: Sequence[int]
    parents: Sequence[int]
    logits: Tensor
    picked: Sequence[int]
    path: Sequence[int]


class Drafter(Protocol):
    """A source of guesses about the next tokens.

    `step_ms` is the measured cost of one more depth of its draft; 0 where a draft costs next to nothing.
    `num_bytes` is the memory of its weights and caches, without small tables of tokens.
    """

    @property
    def step_ms(self) -> float:
        """See the class."""
        ...

    @property
    def num_bytes(self) -> int:
        """See the class."""
        ...

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """Start a completion after `prompt`; `cache` is the target's, and follows what is written."""
        ...

    def extend(self, tokens: Sequence[int]) -> None:
        """Append `tokens`, which the target wrote."""
        ...

    def observe(self, done: Pass) -> None:
        """Learn from a verification pass; called before `extend` with what it wrote."""
        ...

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        """Return possible continuations as trees, at most `max_tokens` deep; the first tokens are `allowed`.

        A drafter whose steps cost something stops when its likeliest path falls below `min_probability`.
        """
        ...

    def spare_rows(self, num_rows: int) -> Sequence[int]:
        """Return at most `num_rows` tokens to run in spare rows: a chain after the likeliest path.

        Called before every pass, with 0 where no row is spare or another drafter has them.
        """
        ...

    def end(self) -> None:
        """End the completion; its text may serve the next one."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A drafter that remembers completions for the next ones: in a scope, and not beyond it."""

    def enter(self, scope: DraftScope) -> None:
        """Draft the next completions from `scope` alone, and remember them there."""
        ...

    def forget(self, document: str) -> None:
        """Drop what is remembered in a closed document's own scope, or is known to come from it."""
        ...

    def discard(self) -> None:
        """Remember nothing of this completion; called instead of `Drafter.end`."""
        ...

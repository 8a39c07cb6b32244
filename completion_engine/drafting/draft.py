"""What drafters propose and what they may learn from: small trees of tokens, each token with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from completion_engine.request import CompletionRequest
from completion_engine.target_model.kv_cache import KVCache
from ngram_cache import NgramIndex

Allowed = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class DraftToken:
    """One guessed token, a node of a draft.

    `parent` is the index of the guess it follows, -1 where it follows what is written. `source` is `ngram`,
    `recycled` or `neural`; `origin` the kind of place it was read from (`index`, `prompt`, `recent`,
    `successors`, `lookahead`, `distilled`, `model`). `match_length` counts the tokens of context that
    agreed there; `share` is the part of the sampled occurrences that continue like this, or the
    probability that a model gave it. `document` and `offset` name the place in the repository index;
    document is -1 elsewhere.
    """

    token: int
    source: str
    origin: str
    match_length: int
    share: float
    parent: int = -1
    document: int = -1
    offset: int = 0


Draft = tuple[DraftToken, ...]
"""A tree; parents stand before their children. A chain is the tree in which each follows the one before."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One verification pass of the target, as drafters may learn from it.

    `tokens` and `parents` [num_rows] are the rows that were run, parent -1 for the first one; rows behind
    the draft were idle and may have been lent to a drafter. `logits` [num_rows, vocab_size]; `picked`
    [num_rows] is what the target would write after each row. `path` lists the rows that turned out
    true, the first row for certain.
    """

    tokens: Sequence[int]
    parents: Sequence[int]
    logits: Tensor
    picked: Sequence[int]
    path: Sequence[int]


@dataclass(frozen=True, slots=True)
class DraftScope:
    """What the completions of a document are drafted from: its repository, and what was written lately.

    Documents with the same `recent` draft from each other's completions. `index` holds the document under the
    name `indexed_as`.
    """

    recent: str
    document: str
    index: NgramIndex | None = None
    indexed_as: str = ""

    @classmethod
    def of(cls, request: CompletionRequest) -> DraftScope:
        """Return the scope of a request's document; by itself it shares with no other."""
        document = request.document
        return cls(request.recent_scope or document, document, request.index, request.indexed_as or document)


class Drafter(Protocol):
    """Anything that can guess the next tokens.

    `step_ms` is what one more depth of its draft costs, as measured; 0 where a draft costs next to nothing.
    `num_bytes` is the memory of its weights and caches; small tables of tokens do not count.
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
        """A new completion starts behind `prompt`; `cache` is the target's, and follows what is written."""
        ...

    def extend(self, tokens: Sequence[int]) -> None:
        """The target wrote `tokens`."""
        ...

    def observe(self, done: Pass) -> None:
        """The target ran a verification pass; called before `extend` tells what it wrote."""
        ...

    def drafts(self, max_tokens: int, allowed: Allowed, min_survival: float) -> list[Draft]:
        """Trees that may come next, at most `max_tokens` deep; the first tokens of each are `allowed`.

        A drafter whose steps cost something stops where its likeliest path falls under `min_survival`.
        """
        ...

    def lend(self, num_rows: int) -> Sequence[int]:
        """At most `num_rows` tokens to run beside the draft: a chain behind the likeliest path.

        Asked before every pass; 0 where no row is idle, or another drafter has them.
        """
        ...

    def end(self) -> None:
        """The completion is over; what was written may serve the next one."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A drafter that remembers completions for the next ones: in a scope, and not beyond it."""

    def enter(self, scope: DraftScope) -> None:
        """Draft the next completions from `scope` alone, and remember them there."""
        ...

    def forget(self, document: str) -> None:
        """A document is closed: what was kept in its own scope, or is known to come from it, goes."""
        ...

    def discard(self) -> None:
        """Keep nothing of this completion; called in place of `Drafter.end`."""
        ...

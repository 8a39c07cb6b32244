"""Drafts as small trees of proposed tokens, each token with its evidence, and the base of drafters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from completion_engine.target_model.kv_cache import KVCache
from ngram_cache import NgramIndex

Allowed = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class DraftToken:
    """One proposed token, a node of a draft.

    `parent` is the index in the draft of the token before it, -1 for a token right after the written text.
    `source` is `ngram` or `neural`; `read_from` is `index`, `prompt`, `recent` or `distilled`.
    `match_length` is the number of context tokens that matched where the token was found; for `neural`
    sources it is the token's depth in the draft, from 0. `probability` is the share of the sampled
    occurrences that continue with the token, or the probability that a model assigns.
    `document` and `offset` locate the token in the repository index. Elsewhere `document` is -1; tokens read
    from the prompt then have their position in the prompt as `offset`.
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
"""A tree of proposed tokens, parents before their children. In a chain, each token's parent is the one
before.
"""


@dataclass(frozen=True, slots=True)
class DraftScope:
    """The sources of drafts for a document: recent completions of its scope, and its repository.

    A scope is a group of documents that are drafted from each other's completions: those with the same
    `recent`. `index` holds the document itself under the name `indexed_as`, so that lookups can exclude it.
    """

    recent: str
    document: str
    index: NgramIndex | None = None
    indexed_as: str = ""


class Drafter:
    """Proposes the next tokens of a completion.

    Calls per completion: `enter` and `begin`; then for each pass `extend` with the tokens written since, and
    `drafts`; at last `end`, unless the completion seems to hold a secret.
    `step_ms` is the measured time of one more depth of a draft; 0 where a draft costs next to nothing.
    `num_bytes` is the memory of weights and caches, without small tables of tokens.
    """

    step_ms: float = 0.0
    num_bytes: int = 0

    def __init__(self) -> None:
        self._path: list[int] = []

    def enter(self, scope: DraftScope) -> None:
        """Use `scope` from now on: draft only from its completions, and store new ones in it."""

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:  # noqa: ARG002 - most need the tokens only
        """Start a completion after `prompt`; `cache` is the target's KV cache, which grows as it writes."""
        self._path = list(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append `tokens`, which the target wrote."""
        self._path.extend(tokens)

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:  # noqa: ARG002 - for others
        """Return drafts at most `max_tokens` deep, whose first tokens are `allowed`.

        A drafter with `step_ms` > 0 stops when the probability of its likeliest path falls below
        `min_probability`.
        """
        return []

    def end(self) -> None:
        """End the completion, and store what later completions may be drafted from."""

    def forget(self, document: str) -> None:
        """Drop the scope of a closed document, and entries of other scopes that name it as their origin."""

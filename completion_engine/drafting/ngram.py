"""Drafts by longest match: from the prompt, from recent completions, from the repository's index."""

from __future__ import annotations

from collections.abc import Sequence

from completion_engine.drafting.draft import Allowed, Draft, DraftToken
from ngram_cache import DraftNode, Lookup, NgramIndex, TokenBuffer

_MAX_NODES = 32
_CONTEXT = 32
_RECENT_TOKENS = 4096


class NgramDrafter:
    """Guesses what followed the same tokens elsewhere."""

    def __init__(self) -> None:
        self._recent = TokenBuffer()
        self._prompt = TokenBuffer()
        self._written: list[int] = []
        self._path: list[int] = []
        self.index: NgramIndex | None = None
        self.document = ""

    def begin(self, prompt: Sequence[int]) -> None:
        """See `Drafter.begin`."""
        self._prompt = TokenBuffer(prompt)
        self._path = list(prompt[-_CONTEXT:])
        self._written = []

    def extend(self, tokens: Sequence[int]) -> None:
        """See `Drafter.extend`."""
        self._prompt.extend(tokens)
        self._path.extend(tokens)
        self._written.extend(tokens)

    def end(self) -> None:
        """See `Drafter.end`."""
        self._recent.extend(self._path[-(_CONTEXT // 2 + len(self._written)) :])
        if len(self._recent) > 2 * _RECENT_TOKENS:
            self._recent = TokenBuffer(self._recent.tokens[-_RECENT_TOKENS:])

    def drafts(self, max_tokens: int, allowed: Allowed) -> list[Draft]:
        """See `Drafter.drafts`."""
        context = self._path[-_CONTEXT:]
        found = [
            ("recent", self._recent.lookup(context, max_nodes=_MAX_NODES, max_depth=max_tokens)),
            ("prompt", self._prompt.lookup(context, max_nodes=_MAX_NODES, max_depth=max_tokens)),
        ]
        if self.index is not None:
            lookup = self.index.lookup(
                context, max_nodes=_MAX_NODES, max_depth=max_tokens, exclude=self.document
            )
            found.append(("index", lookup))
        chains = (_best_chain(origin, lookup, allowed) for origin, lookup in found)
        return [chain for chain in chains if chain]


def _best_chain(origin: str, lookup: Lookup, allowed: Allowed) -> Draft:
    """The likeliest path through a lookup's tree that begins with an allowed token."""
    chain: list[DraftToken] = []
    parent, weight = -1, max(1, sum(node.count for node in lookup.nodes if node.parent == -1))
    for at, node in enumerate(lookup.nodes):  # best first, parents before children
        if node.parent == parent and (chain or allowed(node.token)):
            chain.append(_token(origin, lookup, node, weight))
            parent, weight = at, node.count
    return tuple(chain)


def _token(origin: str, lookup: Lookup, node: DraftNode, weight: int) -> DraftToken:
    return DraftToken(
        token=node.token,
        source="ngram",
        origin=origin,
        match_length=lookup.match_length + node.depth,
        share=min(1.0, node.count / max(1, weight)),
        document=node.document,
        offset=node.offset,
    )

"""What was written lately, kept apart by scope: a scope's documents draft from each other, others never.

Owns which document each piece came from, so that it is forgotten with it. Knows tokens, no text.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ngram_cache import TokenBuffer

_NUM_TOKENS = 4096  # of a scope; twice as many before the oldest are dropped
_MAX_SCOPES = 32


@dataclass(slots=True)
class _Scope:
    pieces: deque[tuple[str, list[int]]] = field(default_factory=deque)
    buffer: TokenBuffer = field(default_factory=TokenBuffer)

    def rebuild(self) -> None:
        self.buffer = TokenBuffer([token for _, tokens in self.pieces for token in tokens])


class RecentText:
    """Pieces of text by scope; of scopes the ones that were used last."""

    def __init__(self) -> None:
        self._scopes: OrderedDict[str, _Scope] = OrderedDict()

    def of(self, scope: str) -> TokenBuffer:
        """What the documents of a scope wrote, oldest first."""
        return self._enter(scope).buffer

    def add(self, scope: str, document: str, tokens: Sequence[int]) -> None:
        """A document of a scope wrote `tokens`."""
        entered = self._enter(scope)
        entered.pieces.append((document, list(tokens)))
        entered.buffer.extend(tokens)
        if len(entered.buffer) > 2 * _NUM_TOKENS:
            num_tokens = len(entered.buffer)
            while num_tokens > _NUM_TOKENS:
                num_tokens -= len(entered.pieces.popleft()[1])
            entered.rebuild()

    def forget(self, document: str) -> None:
        """A document is closed: nothing that it wrote is drafted any more."""
        for scope in self._scopes.values():
            kept = deque(piece for piece in scope.pieces if piece[0] != document)
            if len(kept) < len(scope.pieces):
                scope.pieces = kept
                scope.rebuild()

    def _enter(self, scope: str) -> _Scope:
        entered = self._scopes.setdefault(scope, _Scope())
        self._scopes.move_to_end(scope)
        while len(self._scopes) > _MAX_SCOPES:
            self._scopes.popitem(last=False)
        return entered

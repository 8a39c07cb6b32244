"""Stores of earlier completions for drafters; a document is drafted from those of its own scope only.

A scope is a group of documents that may be drafted from each other's completions. A document without a group
is a scope of its own.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from completion_engine.drafting.drafts import DrafterWithMemory, DraftScope
from completion_engine.target_model.kv_cache import KVCache
from ngram_cache import TokenBuffer

_MAX_TABLES = 4
_NUM_TOKENS = 4096  # a scope with twice as many drops its oldest texts down to this number
_MAX_RECENT_SCOPES = 32

Key = tuple[int, ...]
_V = TypeVar("_V")


class ScopedTable(Generic[_V]):
    """A table for each scope, with the last few tokens as keys; methods use the table that was entered last.

    `discard` removes the entries that were put since `begin`.
    """

    def __init__(self) -> None:
        self._tables: OrderedDict[str, OrderedDict[Key, _V]] = OrderedDict()
        self._new: set[Key] = set()
        self.enter("")

    def enter(self, scope: str) -> None:
        """Use the table of this scope. Only the `_MAX_TABLES` most recently used tables are kept."""
        self._table = self._tables.setdefault(scope, OrderedDict())
        self._tables.move_to_end(scope)
        while len(self._tables) > _MAX_TABLES:
            self._tables.popitem(last=False)

    def forget(self, scope: str) -> None:
        """Drop the table of a scope; a document without a group is a scope under its own name."""
        if (table := self._tables.pop(scope, None)) is not None:
            table.clear()  # it may be the entered one, which is still in use

    def begin(self) -> None:
        """Begin a completion: `discard` removes the entries that are put from now on."""
        self._new = set()

    def discard(self) -> None:
        """Remove the entries that were put since `begin`."""
        for key in self._new:
            self._table.pop(key, None)

    def get(self, key: Key) -> _V | None:
        """Return the entry at a key."""
        return self._table.get(key)

    def put(self, key: Key, value: _V) -> None:
        """Set the entry at a key, which becomes the newest."""
        self._table[key] = value
        self._table.move_to_end(key)
        self._new.add(key)

    def shrink(self, max_entries: int) -> None:
        """Remove the oldest entries of the scope beyond `max_entries`."""
        while len(self._table) > max_entries:
            self._table.popitem(last=False)


class TableDrafter(DrafterWithMemory, Generic[_V]):
    """A drafter that stores what it learns from passes in a table for each scope."""

    def __init__(self) -> None:
        super().__init__()
        self._table = ScopedTable[_V]()

    def enter(self, scope: DraftScope) -> None:
        """See `DrafterWithMemory.enter`."""
        self._table.enter(scope.recent)

    def forget(self, document: str) -> None:
        """See `DrafterWithMemory.forget`."""
        self._table.forget(document)

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """See `Drafter.begin`."""
        super().begin(prompt, cache)
        self._table.begin()

    def discard(self) -> None:
        """See `DrafterWithMemory.discard`."""
        self._table.discard()


@dataclass(slots=True)
class _RecentScope:
    texts: deque[tuple[str, list[int]]] = field(default_factory=deque)
    buffer: TokenBuffer = field(default_factory=TokenBuffer)

    def rebuild(self) -> None:
        self.buffer = TokenBuffer([token for _, tokens in self.texts for token in tokens])


class RecentText:
    """The tokens of recent completions, for the scopes that were used last."""

    def __init__(self) -> None:
        self._scopes: OrderedDict[str, _RecentScope] = OrderedDict()

    def of(self, scope: str) -> TokenBuffer:
        """Return the tokens of the recent completions of a scope, oldest first."""
        return self._enter(scope).buffer

    def add(self, scope: str, document: str, tokens: Sequence[int]) -> None:
        """Store `tokens`, a completion in a document of a scope."""
        entered = self._enter(scope)
        entered.texts.append((document, list(tokens)))
        entered.buffer.extend(tokens)
        if len(entered.buffer) > 2 * _NUM_TOKENS:
            num_tokens = len(entered.buffer)
            while num_tokens > _NUM_TOKENS:
                num_tokens -= len(entered.texts.popleft()[1])
            entered.rebuild()

    def forget(self, document: str) -> None:
        """Drop the completions of a closed document."""
        for scope in self._scopes.values():
            kept = deque(text for text in scope.texts if text[0] != document)
            if len(kept) < len(scope.texts):
                scope.texts = kept
                scope.rebuild()

    def _enter(self, scope: str) -> _RecentScope:
        entered = self._scopes.setdefault(scope, _RecentScope())
        self._scopes.move_to_end(scope)
        while len(self._scopes) > _MAX_RECENT_SCOPES:
            self._scopes.popitem(last=False)
        return entered

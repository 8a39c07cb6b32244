"""What was seen behind the last few tokens, a table for each scope: entries that are old or unwanted go.

Owns which scopes and which entries are kept. Must not know what an entry says.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

_MAX_SCOPES = 4

Key = tuple[int, ...]
_V = TypeVar("_V")


class ScopedTable(Generic[_V]):
    """Entries by key, in one scope at a time; those that were put there since `begin` can be taken back."""

    def __init__(self) -> None:
        self._tables: OrderedDict[str, OrderedDict[Key, _V]] = OrderedDict()
        self._new: set[Key] = set()
        self.enter("")

    def enter(self, scope: str) -> None:
        """From now on entries are of this scope. The ones that were used last keep their tables."""
        self._table = self._tables.setdefault(scope, OrderedDict())
        self._tables.move_to_end(scope)
        while len(self._tables) > _MAX_SCOPES:
            self._tables.popitem(last=False)

    def forget(self, scope: str) -> None:
        """Nothing of a scope is kept."""
        if (table := self._tables.pop(scope, None)) is not None:
            table.clear()

    def begin(self) -> None:
        """A completion begins: what is put from now on is its own."""
        self._new = set()

    def discard(self) -> None:
        """What the completion put goes."""
        for key in self._new:
            self._table.pop(key, None)

    def get(self, key: Key) -> _V | None:
        """The entry at a key."""
        return self._table.get(key)

    def put(self, key: Key, value: _V) -> None:
        """The entry at a key, which is the newest one then."""
        self._table[key] = value
        self._table.move_to_end(key)
        self._new.add(key)

    def shrink(self, max_entries: int) -> None:
        """The oldest entries of the scope go until so many are left."""
        while len(self._table) > max_entries:
            self._table.popitem(last=False)

"""Drafts as small trees of proposed tokens, each token with its evidence, and the bases of drafters.

A drafter with a store of earlier completions drafts a document from those of its own scope only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import Tensor

from completion_engine.target_model.kv_cache import KVCache
from ngram_cache import NgramIndex, TokenBuffer

Allowed = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class DraftToken:
    """One proposed token, a node of a draft.

    `parent` is the index in the draft of the token before it, -1 for a token right after the written text.
    `source` is `ngram`, `recycled` or `neural`; `read_from` is `index`, `prompt`, `recent`, `successors`,
    `lookahead`, `distilled` or `model`. `match_length` is the number of context tokens that matched where the
    token was found; for `neural` sources it is the token's depth in the draft, from 0. `probability` is the
    share of the sampled occurrences that continue with the token, or the probability that a model assigns.
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
class Pass:
    """One verification pass of the target, for drafters to learn from.

    Row 0 holds the last written token, the rows after it the draft, and the last rows may be spare rows,
    filled with tokens of a drafter. `tokens` and `parents` [num_rows] describe the rows that ran, with parent
    -1 for row 0. `logits` is [num_rows, vocab_size]; `picked` [num_rows] is the target's token after each
    row. `accepted_rows` lists row 0 and the accepted draft rows after it, in order.
    """

    tokens: Sequence[int]
    parents: Sequence[int]
    logits: Tensor
    picked: Sequence[int]
    accepted_rows: Sequence[int]


class Drafter:
    """Proposes the next tokens of a completion.

    Calls per completion: `begin`; then for each pass `extend` with the tokens written since, `drafts`,
    `spare_rows` and `observe`; at last `end`.
    `step_ms` is the measured time of one more depth of a draft; 0 where a draft costs next to nothing.
    `num_bytes` is the memory of weights and caches, without small tables of tokens.
    """

    step_ms: float = 0.0
    num_bytes: int = 0

    def __init__(self) -> None:
        self._path: list[int] = []

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:  # noqa: ARG002 - most need the tokens only
        """Start a completion after `prompt`; `cache` is the target's KV cache, which grows as it writes."""
        self._path = list(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append `tokens`, which the target wrote."""
        self._path.extend(tokens)

    def observe(self, done: Pass) -> None:
        """Learn from a verification pass; `extend` with the tokens that it wrote follows later."""

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:  # noqa: ARG002 - for others
        """Return drafts at most `max_tokens` deep, whose first tokens are `allowed`.

        A drafter with `step_ms` > 0 stops when the probability of its likeliest path falls below
        `min_probability`.
        """
        return []

    def spare_rows(self, num_rows: int) -> Sequence[int]:  # noqa: ARG002 - most want none
        """Return at most `num_rows` tokens to run in spare rows, as a chain attached to the last row of the
        pass.

        Called before every pass; `num_rows` is 0 if there are no spare rows or another drafter uses them.
        """
        return ()

    def end(self) -> None:
        """End the completion, and store what later completions may be drafted from."""


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


class DrafterWithMemory(Drafter, ABC):
    """A drafter that stores completions, and drafts later completions of the same scope from them."""

    @abstractmethod
    def enter(self, scope: DraftScope) -> None:
        """Use `scope` from now on: draft only from its completions, and store new ones in it."""

    @abstractmethod
    def forget(self, document: str) -> None:
        """Drop the scope of a closed document, and entries of other scopes that name it as their origin."""

    @abstractmethod
    def discard(self) -> None:
        """End the completion and store nothing of it; called instead of `Drafter.end`."""


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

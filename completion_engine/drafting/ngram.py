"""Drafts by longest match in the prompt, in recent completions, and in the repository's index."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DraftScope, DraftToken
from completion_engine.target_model.kv_cache import KVCache
from ngram_cache import Lookup, TokenBuffer

_MAX_NODES = 32
_CONTEXT = 32
NUM_REMEMBERED_BEFORE = 16  # prompt tokens that are stored with a completion, as its context
_NUM_TOKENS = 4096  # a scope with twice as many drops its oldest texts down to this number
_MAX_RECENT_SCOPES = 32


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


class NgramDrafter(Drafter):
    """Drafts the tokens that followed the longest match of the last tokens elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._recent = RecentText()
        self._scope = DraftScope("", "")
        self._prompt = TokenBuffer()
        self._num_prompt = 0

    def share_recent(self, other: NgramDrafter) -> None:
        """Use and extend the recent completions of `other`, whose target has the same tokens."""
        self._recent = other._recent

    def enter(self, scope: DraftScope) -> None:
        """See `Drafter.enter`."""
        self._scope = scope

    def forget(self, document: str) -> None:
        """See `Drafter.forget`."""
        self._recent.forget(document)
        if document == self._scope.document:
            self._scope = replace(self._scope, index=None)  # the index may belong to a folder that is closed

    def begin(self, prompt: Sequence[int], cache: KVCache) -> None:
        """See `Drafter.begin`."""
        super().begin(prompt, cache)
        self._prompt, self._num_prompt = TokenBuffer(prompt), len(prompt)

    def extend(self, tokens: Sequence[int]) -> None:
        """See `Drafter.extend`."""
        super().extend(tokens)
        self._prompt.extend(tokens)

    def end(self) -> None:
        """See `Drafter.end`."""
        first = max(0, self._num_prompt - NUM_REMEMBERED_BEFORE)
        self._recent.add(self._scope.recent, self._scope.document, self._path[first:])

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:  # noqa: ARG002 - lookups cost next to nothing
        """See `Drafter.drafts`."""
        context, scope = self._path[-_CONTEXT:], self._scope
        found = [
            (
                "recent",
                self._recent.of(scope.recent).lookup(context, max_nodes=_MAX_NODES, max_depth=max_tokens),
            ),
            ("prompt", self._prompt.lookup(context, max_nodes=_MAX_NODES, max_depth=max_tokens)),
        ]
        if scope.index is not None:
            lookup = scope.index.lookup(
                context, max_nodes=_MAX_NODES, max_depth=max_tokens, exclude=scope.indexed_as
            )
            found.append(("index", lookup))
        trees = (_tree(read_from, lookup, allowed) for read_from, lookup in found)
        return [tree for tree in trees if tree]


def _tree(read_from: str, lookup: Lookup, allowed: Allowed) -> Draft:
    """Return a lookup as a draft, without the branches whose first token is not allowed."""
    tree: list[DraftToken] = []
    row_of: dict[int, int] = {}
    for at, node in enumerate(lookup.nodes):  # parents before children
        is_first = node.parent == -1
        if (is_first and not allowed(node.token)) or not (is_first or node.parent in row_of):
            continue
        row_of[at] = len(tree)
        above = 1.0 if is_first else lookup.nodes[node.parent].probability
        parent = -1 if is_first else row_of[node.parent]
        tree.append(
            DraftToken(
                token=node.token,
                source="ngram",
                read_from=read_from,
                match_length=node.match_length + node.depth,
                probability=node.probability / above,
                parent=parent,
                document=node.document,
                offset=node.offset,
            )
        )
    return tuple(tree)

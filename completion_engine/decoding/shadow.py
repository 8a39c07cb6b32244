"""Shadow checks: some completions are written again without drafts, in the background, and compared.

The checks have a KV cache of their own, which only plain decoding fills. So they also find errors in the
reuse of the other caches.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

from completion_engine.decoding.loop import Decoding, DecodingSetup
from completion_engine.decoding.picking import RepositoryBias
from completion_engine.decoding.reuse import Slot
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest, CompletionStats
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel

logger = logging.getLogger(__name__)

# While the user types without a pause there is no time to check; then the oldest completions are dropped.
MAX_WAITING = 8


@dataclass(frozen=True, slots=True)
class DraftedCompletion:
    """Tokens that were written with drafts, and all inputs that determine them."""

    request: CompletionRequest
    prompt: Prompt
    tokens: tuple[int, ...]
    bias: RepositoryBias | None


class ShadowChecks:
    """The shadow checks of one engine, used on its thread. The first check allocates the cache.

    A target without drafting is not checked: its tokens depend on the number of rows in its passes.
    """

    def __init__(self, target: LanguageModel, tokenizer: Tokenizer) -> None:
        self.num_checked = 0
        self.num_different = 0
        self._target, self._tokenizer = target, tokenizer
        self._cache: KVCache | None = None
        self._waiting: deque[DraftedCompletion] = deque(maxlen=MAX_WAITING)
        self._current: tuple[DraftedCompletion, Decoding] | None = None
        self._due = 0.0

    @property
    def num_bytes(self) -> int:
        """Memory of the cache."""
        return self._cache.shape.num_bytes if self._cache else 0

    def describe(self) -> dict[str, int]:
        """Return the counts, for `stats`."""
        return {"num_checked": self.num_checked, "num_different": self.num_different}

    @property
    def is_waiting(self) -> bool:
        """Whether there is a completion to check."""
        return bool(self._waiting) or self._current is not None

    def take(self, drafted: DraftedCompletion) -> None:
        """Queue the share of completions that the request's `shadow` names."""
        if not drafted.tokens or not self._target.verifies_drafts:
            return
        self._due += drafted.request.shadow
        if self._due >= 1:
            self._due %= 1
            self._waiting.append(drafted)

    def forget(self, document: str) -> None:
        """Drop the completions of a closed document."""
        kept = [drafted for drafted in self._waiting if drafted.request.document != document]
        self._waiting = deque(kept, MAX_WAITING)
        if self._current is not None and self._current[0].request.document == document:
            self._current = None

    def step(self) -> bool:
        """Run one pass of the target. Return False when nothing is left to check."""
        if self._current is None:
            if not self._waiting:
                return False
            drafted = self._waiting.popleft()
            self._current = drafted, self._begin(drafted)
        drafted, decoding = self._current
        decoding.step()
        if self._compare(drafted, decoding.tokens):
            self._current = None
        return self.is_waiting

    def _begin(self, drafted: DraftedCompletion) -> Decoding:
        """Begin plain decoding after the same prompt, in the cache of the checks."""
        self._cache = self._cache or KVCache(self._target.cache_shape)
        setup = DecodingSetup(
            self._target,
            self._tokenizer.num_tokens,
            (),
            AcceptanceTable(),
            drafts_trees=False,
            bias=drafted.bias,
            scores=False,
        )
        written = Written(self._tokenizer, drafted.prompt.healed)
        return Decoding(setup, Slot(self._cache), drafted.prompt, written, CompletionStats())

    def _compare(self, drafted: DraftedCompletion, tokens: list[int]) -> bool:
        """Compare the tokens so far. If the check is decided, count it, log a difference and return True."""
        num_both = min(len(tokens), len(drafted.tokens))
        differing = (at for at in range(num_both) if tokens[at] != drafted.tokens[at])
        first = next(differing, None)
        if first is None and num_both < len(drafted.tokens):
            return False
        self.num_checked += 1
        if first is not None:
            self.num_different += 1
            logger.error(
                "Request %s: with drafts token %d of %d differs from plain decoding",
                drafted.request.id or "without a name", first, len(drafted.tokens),
            )  # fmt: skip
        return True

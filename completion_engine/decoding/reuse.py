"""KV caches of a few cursors, each with its last completion, for the next request to reuse.

A prompt gets the cache with the longest common beginning. If the user types a prefix of a completion, its
remaining tokens are returned without a pass. They are still the target's picks, because the typed text only
narrows the set of allowed tokens. This holds for equally likely tokens too, because the lowest id is picked
everywhere.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from completion_engine.probability import TokenProbability
from completion_engine.prompting.prompt import HealingConstraint, Prompt, Written
from completion_engine.target_model.passes import ChunkRule

if TYPE_CHECKING:  # a window on remote servers starts without torch
    from completion_engine.decoding.picking import RepositoryBias
    from completion_engine.drafting.drafts import DraftToken
    from completion_engine.target_model.kv_cache import CacheShape, KVCache

MAX_PAST = 16
_MAX_UNKNOWN = 0.25  # beyond this share a pass scores a token again
_MIN_COPIED = 32  # tokens; computing fewer takes no longer than copying their keys and values


@dataclass(frozen=True, slots=True)
class Continuation:
    """Reused tokens that follow a prompt, with their sources and probabilities.

    With `has_ended` the completion ends after them.
    """

    tokens: Sequence[int] = ()
    sources: Sequence[DraftToken | None] = ()
    probabilities: Sequence[TokenProbability] = ()
    has_ended: bool = False


@dataclass(slots=True)
class PastCompletion:
    """A prompt, `path[:num_forced]`, and the tokens written after it. Their first bytes are `healed`.

    `bias` was mixed in. `is_scored` means that servers were asked for all probabilities. The lists grow while
    the completion is being written.
    """

    path: list[int] = field(default_factory=list)
    num_forced: int = 0
    healed: bytes = b""
    sources: list[DraftToken | None] = field(default_factory=list)
    probabilities: list[TokenProbability] = field(default_factory=list)
    bias: RepositoryBias | None = None
    is_scored: bool = False
    has_ended: bool = False  # with an end token, so no more tokens follow

    def continuation(self, prompt: Prompt, written: Written, *, needs_scores: bool) -> Continuation:
        """Return the tokens after `prompt`; with `needs_scores`, up to one whose probability is not known."""
        reused = self._tokens_after(prompt, written)
        num_typed = len(prompt.tokens) - self.num_forced
        probabilities = _narrowed(reused, self.probabilities[num_typed:], written.healing()) if reused else []
        known = takewhile(lambda one: one.is_scored and one.unknown <= _MAX_UNKNOWN, probabilities)
        num_usable = sum(1 for _ in known) if needs_scores else len(reused)
        return Continuation(
            reused[:num_usable],
            self.sources[num_typed:][:num_usable],
            probabilities[:num_usable],
            has_ended=self.has_ended and num_usable == len(reused),
        )

    def _tokens_after(self, prompt: Prompt, written: Written) -> list[int]:
        num_prompt = len(prompt.tokens)
        if num_prompt < self.num_forced or self.path[:num_prompt] != list(prompt.tokens):
            return []
        typed = written.spell(self.path[self.num_forced : num_prompt]) + prompt.healed
        reused = self.path[num_prompt:]
        return reused if typed.startswith(self.healed) and written.follows(reused) else []


class PastCompletions:
    """The last completions of all documents, up to `MAX_PAST`, the newest last."""

    def __init__(self) -> None:
        self._past: OrderedDict[tuple[str, tuple[int, ...]], PastCompletion] = OrderedDict()

    def commit(self, document: str, past: PastCompletion) -> None:
        """Store a completion of a document; it replaces one after the same prompt."""
        key = document, tuple(past.path[: past.num_forced])
        self._past[key] = past
        self._past.move_to_end(key)
        while len(self._past) > MAX_PAST:
            self._past.popitem(last=False)

    def forget(self, document: str) -> None:
        """Drop the completions of a closed document."""
        for key in [key for key in self._past if key[0] == document]:
            del self._past[key]

    def continuation(
        self, document: str, prompt: Prompt, written: Written, *, needs_scores: bool
    ) -> Continuation:
        """Return the tokens after `prompt` in the document's newest completion that begins with it."""
        for (name, _), past in reversed(self._past.items()):
            if name == document:
                needs = needs_scores and not past.is_scored
                found = past.continuation(prompt, written, needs_scores=needs)
                if found.tokens:
                    return found
        return Continuation()

    def written_after(self, prompt: Sequence[int]) -> list[int]:
        """Return the tokens that follow `prompt` in any stored completion; empty if none matches."""
        return path_after((past.path for past in self._past.values()), prompt)

    def num_missing(self, prompt: Sequence[int]) -> int:  # noqa: ARG002 - see `CachedPrompts`
        """Return 0: the servers compute the prompts."""
        return 0


def path_after(paths: Iterable[Sequence[int]], prompt: Sequence[int]) -> list[int]:
    """Return the tokens after `prompt` in the first path that begins with it; empty if none does."""
    num_prompt, tokens = len(prompt), list(prompt)
    longer = (path for path in paths if len(path) > num_prompt)
    return next((list(path[num_prompt:]) for path in longer if list(path[:num_prompt]) == tokens), [])


def _narrowed(
    tokens: Sequence[int], probabilities: Sequence[TokenProbability], healing: HealingConstraint
) -> list[TokenProbability]:
    """Return the probabilities of `tokens` among the tokens that the new `healing` still allows."""
    found: list[TokenProbability] = []
    for token, probability in zip(tokens, probabilities, strict=True):
        found.append(probability.among(healing.allows) if healing.bytes else probability)
        healing = healing.after(token)
    return found


@dataclass(slots=True)
class Slot:
    """A KV cache, and the last completion that the target wrote in it."""

    cache: KVCache
    document: str = ""
    past: PastCompletion = field(default_factory=PastCompletion)
    last_used: int = 0

    def continuation(
        self,
        prompt: Prompt,
        written: Written,
        bias: RepositoryBias | None,
        chunks: ChunkRule,
        *,
        needs_scores: bool,
    ) -> Continuation:
        """Return the tokens of the slot's past completion that follow `prompt`, so that no pass need write
        them.

        Empty if the past tokens were picked with the bias of another index, or without one, or if their
        prompt was computed in other chunks: then the logits may differ in bits.
        """
        num_chunked = chunks.num_chunked(len(prompt.tokens))
        indexes = [None if it is None else it.source for it in (bias, self.past.bias)]
        if indexes[0] != indexes[1] or num_chunked != chunks.num_chunked(self.past.num_forced):
            return Continuation()
        return self.past.continuation(prompt, written, needs_scores=needs_scores)


class SlotPool:
    """At most `num_slots` slots, one for each of the latest cursors; a new cursor evicts the least recently
    used.

    Two prompts count as the same cursor if they share more than half of the shorter one. With `max_missing`
    they do if at most this number of tokens of the later one are not cached.
    """

    def __init__(self, shape: CacheShape, num_slots: int, max_missing: int | None = None) -> None:
        self._shape = shape
        self._num_slots = num_slots
        self._max_missing = max_missing
        self._clock = 0
        self._slots: list[Slot] = []

    def acquire(self, document: str, prompt: Sequence[int]) -> Slot:
        """Return the slot for `prompt`, with as much of it cached as any slot holds; see `_choose`."""
        self._clock += 1
        slot = self._choose(prompt)
        slot.document, slot.last_used = document, self._clock
        return slot

    def num_missing(self, prompt: Sequence[int]) -> int:
        """Return how many tokens of `prompt` no slot has cached, without the last, which is never cached."""
        num_shared = max((slot.cache.num_shared(prompt) for slot in self._slots), default=0)
        return max(0, len(prompt) - 1 - num_shared)

    def written_after(self, prompt: Sequence[int]) -> list[int]:
        """Return the tokens after `prompt` in the past completion of any slot; empty if none matches."""
        return path_after((slot.past.path for slot in self._slots), prompt)

    def copy_from(self, other: SlotPool, document: str, prompt: Sequence[int]) -> None:
        """Copy the cached part of `prompt` from the best slot of `other`, which has the same target."""
        best = other._closest(prompt)
        if best is not None:
            slot = self.acquire(document, prompt)
            slot.cache.copy_from(best.cache, best.cache.num_shared(prompt))
            slot.past = PastCompletion()

    def forget(self, document: str) -> None:
        """Release the slots of a closed document, and drop their past completions."""
        for slot in self._slots:
            if slot.document == document:
                slot.document, slot.last_used, slot.past = "", 0, PastCompletion()

    def clear(self) -> None:
        """Release all slots and their caches."""
        self._slots.clear()

    @property
    def num_bytes(self) -> int:
        """Memory of all slots when they are full."""
        return len(self._slots) * self._shape.num_bytes

    def _choose(self, prompt: Sequence[int]) -> Slot:
        """Return the slot of the cursor of `prompt`, or a free one with the shared part copied into it.

        If the closest slot is of the same cursor, it is returned: the rest of its cache will be overwritten.
        """
        best = self._closest(prompt)
        num_shared = best.cache.num_shared(prompt) if best else 0
        if best is not None:
            is_same_cursor = 2 * num_shared > min(len(prompt), best.cache.num_cached)
            if self._max_missing is not None:
                is_same_cursor = len(prompt) - num_shared <= self._max_missing
            if is_same_cursor:
                return best
        slot = self._free()
        if best is not None and best is not slot and num_shared >= _MIN_COPIED:
            slot.cache.copy_from(best.cache, num_shared)
            slot.past = PastCompletion()
        return slot

    def _closest(self, prompt: Sequence[int]) -> Slot | None:
        """Return the slot with the longest cached prefix of `prompt`; None without slots."""
        return max(self._slots, key=lambda slot: slot.cache.num_shared(prompt), default=None)

    def _free(self) -> Slot:
        """Return an empty slot, else a new one if there are fewer than `num_slots`, else the least recently
        used.
        """
        if empty := [slot for slot in self._slots if not slot.cache.num_cached]:
            return empty[0]
        if len(self._slots) < self._num_slots:
            self._slots.append(Slot(self._shape.new_cache()))
            return self._slots[-1]
        return min(self._slots, key=lambda slot: slot.last_used)

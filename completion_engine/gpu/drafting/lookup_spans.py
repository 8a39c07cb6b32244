"""Other text that a device looks up in: possible continuations from the repository and recent text.

A span is a run of tokens that agreed with the written text, and the tokens after it. The device checks by
itself whether it still agrees. Owns the slot of each span; uses no device.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from completion_engine.drafting.drafts import Draft, DraftToken

NUM_SLOTS = 16
SLOT_TOKENS = 64
NOTHING = -1  # a token that no text has: spans end with it
_MAX_CONTEXT = 32

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LookupSpan:
    """The likeliest chain of a draft after the tokens that agreed; `first` is its place in all slots."""

    first: int
    context: tuple[int, ...]
    chain: tuple[DraftToken, ...]

    @property
    def tokens(self) -> list[int]:
        """All of its slot, [SLOT_TOKENS]."""
        text = [*self.context, *(guess.token for guess in self.chain)]
        return [NOTHING, *text, *[NOTHING] * (SLOT_TOKENS - 1 - len(text))]

    def guess_at(self, place: int) -> DraftToken | None:
        """The draft token at a place in all slots."""
        at = place - self.first - 1 - len(self.context)
        return self.chain[at] if 0 <= at < len(self.chain) else None


class LookupSpans:
    """The latest span of each document, of few of them; the least recently renewed one makes room."""

    def __init__(self) -> None:
        self._slots: OrderedDict[Key, LookupSpan] = OrderedDict()

    def add(self, path: Sequence[int], draft: Draft) -> LookupSpan | None:
        """Add a draft after `path`; None if it has nothing new."""
        chain = _likeliest_chain(draft)
        if not chain:
            return None
        key = (chain[0].read_from, chain[0].document)
        known = self._slots.pop(key, None)
        first = known.first if known else self._free()
        context = tuple(path[-min(max(1, chain[0].match_length), _MAX_CONTEXT) :])
        span = LookupSpan(first, context, chain[: SLOT_TOKENS - 2 - len(context)])
        self._slots[key] = span
        return None if known == span else span

    def now(self) -> dict[int, LookupSpan]:
        """The spans by slot, as they stand; later changes do not show in it."""
        return {span.first // SLOT_TOKENS: span for span in self._slots.values()}

    def _free(self) -> int:
        """The slot of a new span."""
        if len(self._slots) == NUM_SLOTS:
            return self._slots.popitem(last=False)[1].first
        taken = {span.first for span in self._slots.values()}
        return next(at for at in range(0, NUM_SLOTS * SLOT_TOKENS, SLOT_TOKENS) if at not in taken)


def _likeliest_chain(draft: Draft) -> tuple[DraftToken, ...]:
    """From the best first token always on to the best that follows."""
    best: dict[int, int] = {}
    for at, guess in enumerate(draft):
        if guess.parent not in best or guess.probability > draft[best[guess.parent]].probability:
            best[guess.parent] = at
    chain: list[DraftToken] = []
    at = -1
    while at in best:
        at = best[at]
        chain.append(draft[at])
    return tuple(chain)

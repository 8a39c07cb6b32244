"""Steps that a device takes by itself, drafting included; what decoding needs to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from completion_engine.drafting.draft import Draft, DraftToken
from completion_engine.target_model.kv_cache import KVCache


@dataclass(frozen=True, slots=True)
class DeviceStep:
    """What one step came to: the tokens of `accepted` are true, then the target writes `next_token`."""

    accepted: tuple[DraftToken, ...]
    next_token: int
    num_drafted: int

    @property
    def written(self) -> list[int]:
        """All that the step wrote."""
        return [*(guess.token for guess in self.accepted), self.next_token]


class DeviceDecoder(Protocol):
    """Greedy decoding of one cache after the other, step by step. All calls belong to one thread."""

    max_depth: int

    def can_step(self, cache: KVCache) -> bool:
        """Whether a step may follow what is cached: there is something, and there is room."""
        ...

    def is_at(self, run: int, cache: KVCache) -> bool:
        """Whether the run of that number goes on where `cache` ends."""
        ...

    def begin(self, cache: KVCache, path: Sequence[int]) -> int:
        """Start a run behind `path`, all of which but the last token `cache` holds, and at least one.

        Returns the run's number. Whatever ran before is given up.
        """
        ...

    def step(self) -> DeviceStep:
        """One pass of the target more. What it accepted is in the cache, in line; the caller keeps it."""
        ...

    def hint(self, path: Sequence[int], drafts: Sequence[Draft]) -> None:
        """What others would draft behind `path`: serves later steps, where it still agrees."""
        ...

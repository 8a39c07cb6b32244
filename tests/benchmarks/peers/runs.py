"""A peer, one measured run of it, and the order of peers.

The clock is the same for every peer. It starts when the first pass after the prompt has returned its tokens,
and stops when the call returns. So the prompt's prefill counts for no peer, and all work between two passes
counts for all. Tokens and passes are counted over the same stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Run:
    """One prompt continued by one peer.

    `tokens` end at the limit or after the first end token. The first pass handed `num_first` of them over,
    `first_ms` after the start; the others took `decode_ms` and `num_passes` passes of the target.
    """

    tokens: tuple[int, ...]
    num_first: int
    first_ms: float
    decode_ms: float
    num_passes: int

    @property
    def num_decoded(self) -> int:
        """Tokens written after the first pass."""
        return max(0, len(self.tokens) - self.num_first)

    @property
    def ms_per_token(self) -> float:
        """Milliseconds per token after the first pass; 0 without one."""
        return self.decode_ms / self.num_decoded if self.num_decoded else 0.0

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Run:
        """The run that a worker process reported."""
        return cls(
            tuple(map(int, found["tokens"])),
            int(found["num_first"]),
            float(found["first_ms"]),
            float(found["decode_ms"]),
            int(found["num_passes"]),
        )


@dataclass(frozen=True, slots=True)
class Absent:
    """A peer that cannot run here, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerTask:
    """The token ids that every peer continues; `document` names the file they are from, as an index does."""

    tokens: tuple[int, ...]
    document: str = ""


class Peer(Protocol):
    """One way to continue a prompt greedily. The first word of `name` says whose it is."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def write(self, task: PeerTask, max_tokens: int) -> Run:
        """Continue the task's tokens up to an end token or `max_tokens`."""
        ...


def up_to_end(tokens: Sequence[int], max_tokens: int, end_ids: Collection[int]) -> tuple[int, ...]:
    """The tokens that count: at most `max_tokens`, and none after the first end token."""
    kept = tokens[:max_tokens]
    end = next((at for at, token in enumerate(kept, 1) if token in end_ids), len(kept))
    return tuple(kept[:end])


def take_turns(
    peers: Sequence[Peer],
    tasks: Sequence[PeerTask],
    max_tokens: int,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, list[Run]]:
    """Every peer on every task, another one beginning each time. Runs by peer, in the tasks' order."""
    runs: dict[str, list[Run]] = {peer.name: [] for peer in peers}
    for at, task in enumerate(tasks):
        first = at % len(peers)
        for peer in (*peers[first:], *peers[:first]):
            runs[peer.name].append(peer.write(task, max_tokens))
            progress(sum(map(len, runs.values())), len(peers) * len(tasks))
    return runs

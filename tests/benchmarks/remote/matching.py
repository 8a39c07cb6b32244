"""The share of equal texts from a team's servers and the target on this machine, for the same requests.

One position after another, both in turn. Bits are not the same: weights are rounded here, and sums are taken
in another order there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from completion_engine.engine import CompletionEngine
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.request import Completion, CompletionRequest
from lsp_server.commands.local_engine import Sample
from lsp_server.workspace.measurements import percentiles

PATIENCE_MS = 120_000.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Match:
    """Both texts at one place, and how long each took."""

    here: str
    there: str
    here_ms: float
    there_ms: float

    @property
    def num_same_chars(self) -> int:
        """Characters up to the first that differs."""
        pairs = zip(self.here, self.there, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def matches(
    here: CompletionEngine,
    there: RemoteCompleter,
    samples: Sequence[Sample],
    num_tokens: int,
    progress: Progress,
) -> Iterator[Match]:
    """Both sides at every place, without deadline, context, index and memory. Raises RemoteError."""
    for at, sample in enumerate(samples):
        (ours, ours_ms), (theirs, theirs_ms) = (
            _asked(side, sample, num_tokens) for side in (here.complete, there.complete)
        )
        yield Match(ours.text, theirs.text, ours_ms, theirs_ms)
        here.forget(sample.name)
        there.forget(sample.name)
        progress(at + 1, len(samples))


def summary(found: Sequence[Match]) -> dict[str, Any]:
    """The figures; times in ms."""
    num_chars = sum(len(match.here) for match in found)
    same = sum(match.num_same_chars for match in found)
    return {
        "num_places": len(found),
        "num_equal": sum(match.here == match.there for match in found),
        "share_of_chars_before_the_first_difference": round(same / max(1, num_chars), 3),
        "here_ms": percentiles(match.here_ms for match in found),
        "there_ms": percentiles(match.there_ms for match in found),
    }


def _asked(
    side: Callable[[CompletionRequest], Completion], sample: Sample, num_tokens: int
) -> tuple[Completion, float]:
    request = CompletionRequest(
        sample.prefix,
        sample.suffix,
        sample.language,
        document=sample.name,
        max_tokens=num_tokens,
        deadline_ms=0,
        patience_ms=PATIENCE_MS,
        repository_memory="off",
        may_leave=True,
    )
    begin_s = time.perf_counter()
    return side(request), (time.perf_counter() - begin_s) * 1e3

"""The cost of one completion, and the sources of its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

STAGES = ("queue", "prompt", "prefill", "draft", "verify", "postprocess", "total")
SOURCES = ("ngram", "neural", "recycled")


@dataclass(slots=True)
class CompletionStats:
    """Counters of one completion; times in `ms` are milliseconds per stage.

    `num_forwards` counts target passes in decoding, `num_written` the tokens that these wrote. Some of the
    `num_tokens` that are shown may be older. `num_cached_tokens` of the `num_prompt_tokens` were in the KV
    cache. An answer `is_provisional` where a better one is prepared for the same cursor: there was not enough
    time for the whole prompt, or a smaller model wrote it. A token that several sources guessed counts in
    `accepted_by_source` for the likeliest guess (`policy.credited`).
    """

    num_tokens: int = 0
    num_written: int = 0
    num_forwards: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    accepted_by_source: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    is_provisional: bool = False
    ms: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    finish_reason: str = ""
    device: str = ""
    target: str = ""

    @property
    def is_unfinished(self) -> bool:
        """Whether a whole answer, or a better one, is prepared in the background."""
        return self.finish_reason == "deadline" or self.is_provisional

    def accept(self, source: str) -> None:
        """Count a token that `source` drafted and the target accepted."""
        self.num_accepted += 1
        self.accepted_by_source[source] += 1

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that clients read, as plain JSON values."""
        return {
            "num_tokens": self.num_tokens,
            "num_written": self.num_written,
            "num_forwards": self.num_forwards,
            "num_drafted": self.num_drafted,
            "num_accepted": self.num_accepted,
            "accepted_by_source": dict(self.accepted_by_source),
            "num_prompt_tokens": self.num_prompt_tokens,
            "num_cached_tokens": self.num_cached_tokens,
            "is_provisional": self.is_provisional,
            "ms": {stage: round(value, 3) for stage, value in self.ms.items()},
            "finish_reason": self.finish_reason,
            "device": self.device,
            "target": self.target,
        }


@dataclass(frozen=True, slots=True)
class CompletionSegment:
    """A run of suggested characters with one source.

    `source` is `target`, `ngram`, `recycled` or `neural`. An n-gram draft was read from a file of the index
    (`path` as the index names it, `line` from 0) or from another `place`.
    """

    text: str
    source: str
    place: str = ""
    path: str = ""
    line: int = 0

    @property
    def attribution(self) -> tuple[str, str, str, int]:
        """All but the text."""
        return (self.source, self.place, self.path, self.line)

    @property
    def evidence(self) -> str:
        """Where the draft was read, for users: `path:line` with lines from 1, or the place."""
        return f"{self.path}:{self.line + 1}" if self.path else self.place

    def joined(self, text: str) -> CompletionSegment:
        """Return this segment with more characters of the same source."""
        return replace(self, text=self.text + text)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The tokens that the target wrote at a cursor, shown or not, with their probabilities.

    Token i ends after `ends[i]` characters of `text`; `probabilities[i]` is the target's, 1 where it is
    unknown; `is_scored` where all are known. `num_chars` of the text count; the rest was too unlikely to be
    right.
    """

    text: str = ""
    ends: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    num_chars: int = 0
    is_scored: bool = True


@dataclass(frozen=True, slots=True)
class Completion:
    """The engine's answer.

    `text` is to be inserted at the cursor and replaces the first `num_replaced` characters of the
    suffix (an auto-closed bracket, an overlapping rest of the line). It is empty when there is nothing
    worth showing; `rule` then names why. `forecast` is all that was written for it. `alternatives` are other
    texts for the same place, the likeliest first; there are none unless the request wants several candidates.
    """

    text: str
    num_replaced: int
    stats: CompletionStats
    segments: tuple[CompletionSegment, ...] = ()
    rule: str = ""
    alternatives: tuple[Completion, ...] = ()
    forecast: Forecast = Forecast()

    def with_alternatives(self, others: Iterable[Completion], num_candidates: int) -> Completion:
        """Return this completion with others that differ from it and each other, `num_candidates` in all."""
        known = {"", self.text}
        found: list[Completion] = []
        for other in others:
            if other.text not in known:
                known.add(other.text)
                found.append(other)
            if len(found) + 1 >= num_candidates:
                break
        return replace(self, alternatives=tuple(found))

"""The input and the output of the engine: one cursor with its limits, and the completion there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from completion_engine.text_window import Multiline, without_surrogates

if TYPE_CHECKING:  # the program's help must not load numpy
    from ngram_cache import NgramIndex

Progress = Callable[[str, int, int], None]  # the present step, and how far it is: `done`, `total`
ShouldStop = Callable[[], bool]  # whether the caller no longer wants the result
MemorySetting = Literal["auto", "on", "off"]
Surroundings = Literal["code", "comment", "string"]

STAGES = ("queue", "prompt", "prefill", "draft", "verify", "postprocess", "total")
SOURCES = ("ngram", "neural")


class Cancellation:
    """Flags that any thread may set and the engine reads before every step."""

    __slots__ = ("_calls", "_event", "_gives_way", "instead")

    def __init__(self) -> None:
        self._event = threading.Event()
        self._gives_way = False
        self._calls: list[Callable[[], None]] = []
        self.instead: CompletionRequest | None = None  # the request that replaces the cancelled work

    def give_way(self, *, must: bool = True) -> None:
        """Let another window have the engine: the work ends with what it has once its turn is over.

        If it no longer `must`, its turn has no end.
        """
        self._gives_way = must

    @property
    def gives_way(self) -> bool:
        """Whether another window waits for the engine."""
        return self._gives_way

    def cancel(self, instead: CompletionRequest | None = None) -> None:
        """Ask the work to stop at its next step; `instead` may be the request that replaces it."""
        self.instead = instead
        self._event.set()
        for call in tuple(self._calls):
            call()

    def wait(self, seconds: float) -> None:
        """Pause. Raises CancelledError as soon as the work is cancelled."""
        self._event.wait(seconds)
        self.check()

    def when_cancelled(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` when the work is cancelled, at once if it is already; the result undoes that.

        It runs on the cancelling thread, maybe twice, and must not wait.
        """
        self._calls.append(call)
        if self.is_cancelled:
            call()
        return lambda: self._calls.remove(call)

    @property
    def is_cancelled(self) -> bool:
        """Whether the work is cancelled."""
        return self._event.is_set()

    def check(self) -> None:
        """Check whether to go on. Raises CancelledError once the work is cancelled."""
        if self.is_cancelled:
            raise CancelledError


class CancelledError(Exception):
    """The request was cancelled while the engine worked on it. Not an error: the client no longer waits."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A few lines of a file of the repository, or signatures out of it."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class RepositoryContext:
    """Snippets of a repository that the target sees in front of a document, in this order.

    Equal contexts share the keys and values that are cached for them.
    """

    repository: str
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One completion to write.

    `prefix` and `suffix` are the document's text before and after the cursor, with `\\n` line ends; the
    engine chooses its own window of them. `document` is any stable name (a path or URI): it picks the KV
    slot. `index` is the repository to draft from, if there is one; it holds the document as `indexed_as`, or
    under the same name where that is empty. `context` is shown to the target once it is computed in the
    background; no request waits for it. Documents of one `recent_scope` draft from each other's last
    completions; without one a document drafts from its own alone. With `num_candidates` above 1 a user waits
    to choose: alternatives are written until `patience_ms`. A user asked by a key where it `is_explicit`, and
    waits for the best prompt too. It `is_repeated` if the same cursor was answered before: a better prompt
    that is computed by now may change the answer. `waited_ms` of the deadline passed before the
    engine could begin: less time is left, for the same prompt. `repository_memory` turns repository bias on
    or off; `auto` follows what is usual for the target. Text is shown while its probability of being right is
    at least 1 - `eagerness`, by the target's own calibrated estimate; with 1 all of it is. No text is written
    where the cursor is in one of `suppressed_in`. The text leaves this machine only where it `may_leave`:
    nothing excludes the document.
    """

    prefix: str
    suffix: str
    language: str = ""
    document: str = ""
    index: NgramIndex | None = None
    indexed_as: str = ""
    context: RepositoryContext | None = None
    recent_scope: str = ""
    max_tokens: int = 64
    deadline_ms: float = 100.0
    waited_ms: float = 0.0
    patience_ms: float = 1500.0
    multiline: Multiline = "auto"
    num_candidates: int = 1
    is_explicit: bool = False
    is_repeated: bool = False
    repository_memory: MemorySetting = "auto"
    eagerness: float = 1.0
    suppressed_in: frozenset[Surroundings] = frozenset()
    may_leave: bool = False
    cancellation: Cancellation = field(default_factory=Cancellation)

    @property
    def text_before(self) -> str:
        """The text before the cursor, as any tokenizer takes it."""
        return without_surrogates(self.prefix)

    @property
    def text_after(self) -> str:
        """The text after the cursor, as any tokenizer takes it."""
        return without_surrogates(self.suffix)

    @property
    def filters_by_confidence(self) -> bool:
        """Whether text that is too unlikely to be right is left out."""
        return self.eagerness < 1

    def is_at(self, other: CompletionRequest) -> bool:
        """Return whether both are for the same cursor in the same text."""
        mine, theirs = ((it.document, it.prefix, it.suffix) for it in (self, other))
        return mine == theirs

    def typed_since(self, other: CompletionRequest) -> str | None:
        """Return the text that was typed at the cursor since `other`; None after any other change."""
        is_behind = self.document == other.document and self.prefix.startswith(other.prefix)
        return self.prefix[len(other.prefix) :] if is_behind and self.suffix == other.suffix else None


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
        return {**asdict(self), "ms": {stage: round(value, 3) for stage, value in self.ms.items()}}


@dataclass(frozen=True, slots=True)
class CompletionSegment:
    """A run of suggested characters with one source.

    `source` is `target`, `ngram` or `neural`. An n-gram draft was read from a file of the index
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

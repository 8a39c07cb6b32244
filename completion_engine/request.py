"""What the engine is asked: a frozen snapshot of one place in one document, and the limits that hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from completion_engine.probability import SHIPPED, Calibration
from completion_engine.text_window import without_surrogates

if TYPE_CHECKING:  # the program's help must not load numpy
    from ngram_cache import NgramIndex

Progress = Callable[[str, int, int], None]  # what is being done, and how much of how much of it
ShouldStop = Callable[[], bool]  # whether the caller no longer wants the result
Multiline = Literal["auto", "never", "always"]
MemoryWish = Literal["auto", "on", "off"]
Surroundings = Literal["code", "comment", "string"]


class Cancellation:
    """Flags that any thread may set and the engine reads before every step."""

    __slots__ = ("_calls", "_event", "_gives_way", "instead")

    def __init__(self) -> None:
        self._event = threading.Event()
        self._gives_way = False
        self._calls: list[Callable[[], None]] = []
        self.instead: CompletionRequest | None = None  # what is wanted in place of the cancelled work

    def give_way(self) -> None:
        """Somebody else waits for the engine: the work ends with what it has once its turn is over."""
        self._gives_way = True

    @property
    def gives_way(self) -> bool:
        """Whether somebody else waits for the engine."""
        return self._gives_way

    def cancel(self, instead: CompletionRequest | None = None) -> None:
        """Ask the work to stop at its next step, because of what is asked for `instead` maybe."""
        self.instead = instead
        self._event.set()
        for call in tuple(self._calls):
            call()

    def wait(self, seconds: float) -> None:
        """Pause for so long. Raises CancelledError as soon as somebody asked for the end."""
        self._event.wait(seconds)
        self.check()

    def when_cancelled(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` when somebody asks, at once where somebody has; the result takes that back.

        It is called on the asking thread, maybe twice, and must not wait.
        """
        self._calls.append(call)
        if self.is_cancelled:
            call()
        return lambda: self._calls.remove(call)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked for the end of this work."""
        return self._event.is_set()

    def check(self) -> None:
        """Raises CancelledError once somebody asked."""
        if self.is_cancelled:
            raise CancelledError


class CancelledError(Exception):
    """The request was cancelled while the engine worked on it. Not an error: nobody waits any more."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A few lines of a file of the repository, or signatures out of it."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class RepositoryContext:
    """What the target is shown of a repository in front of a document, in this order.

    Two that are equal are one: keys and values that are cached for it stay.
    """

    repository: str
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One completion asked for.

    `prefix` and `suffix` are the document's text left and right of the cursor, with `\\n` line ends; the
    engine chooses its own window out of them. `document` is any stable name of the document (its path or
    URI): it picks the KV slot. `index` is the repository to draft from, if there is one; it calls the
    document `indexed_as`, or by the same name where that is empty. `context` is shown to the target once it
    is computed in idle time, and never waited for. Documents of one `recent_scope` draft from what was
    written in each other lately; without one a document drafts from its own alone. With `num_candidates`
    above 1 somebody waits to choose: alternatives are written until `patience_ms`. `waited_ms` of the
    deadline went by before the engine could begin: less time is left, for the same prompt. `id` names the
    request in logs. `shadow` is the share of such requests, 0 to 1, that is checked afterwards against plain
    decoding. `repository_memory` mixes what the index saw into what the target writes; `auto` does where that
    is usual for the target. A text is shown as far as it is right with a chance of at least 1 - `eagerness`,
    by the target's own estimate as `calibration` reads it; with 1 all of it is. Nothing is written where the
    cursor stands in what is named by `suppressed_in`. The place leaves this machine only where `may_leave`
    says that nothing excludes the document.
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
    temperature: float = 0.0
    seed: int = 0
    num_candidates: int = 1
    id: str = ""
    shadow: float = 0.0
    repository_memory: MemoryWish = "auto"
    eagerness: float = 1.0
    calibration: Calibration = SHIPPED
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
        """Whether both ask for one place in one text."""
        mine, theirs = ((it.document, it.prefix, it.suffix) for it in (self, other))
        return mine == theirs

    def typed_since(self, other: CompletionRequest) -> str | None:
        """What was typed in the same text since `other` was asked; None where something else was done."""
        is_behind = self.document == other.document and self.prefix.startswith(other.prefix)
        return self.prefix[len(other.prefix) :] if is_behind and self.suffix == other.suffix else None

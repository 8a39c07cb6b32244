"""What the engine is asked: a frozen snapshot of one place in one document, and the limits that hold."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal

from ngram_cache import NgramIndex

Multiline = Literal["auto", "never", "always"]


class Cancellation:
    """A flag that any thread may set and the engine reads before every step."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the work to stop at its next step."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked for the end of this work."""
        return self._event.is_set()


class CancelledError(Exception):
    """The request was cancelled while the engine worked on it. Not an error: nobody waits any more."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One completion asked for.

    `prefix` and `suffix` are the document's text left and right of the cursor, with `\\n` line ends;
    the engine chooses its own window out of them. `document` is any stable name of the document
    (its path or URI): it picks the KV slot. `index` is the repository to draft from, if there is one; it
    calls the document `indexed_as`, or by the same name where that is empty.
    With `num_candidates` above 1 somebody waits to choose: alternatives are written until `patience_ms`.
    """

    prefix: str
    suffix: str
    language: str = ""
    document: str = ""
    index: NgramIndex | None = None
    indexed_as: str = ""
    max_tokens: int = 64
    deadline_ms: float = 100.0
    patience_ms: float = 1500.0
    multiline: Multiline = "auto"
    temperature: float = 0.0
    seed: int = 0
    num_candidates: int = 1
    cancellation: Cancellation = field(default_factory=Cancellation)

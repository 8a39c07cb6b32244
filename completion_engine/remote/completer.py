"""The target on a team's servers, as the local engine is used: text around a cursor in, verified text out.

Owns one window's way there. Used on one thread.
"""

from __future__ import annotations

from typing import Any

from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.config import RemoteConfig
from completion_engine.request import Cancellation, CompletionRequest, Progress, ShouldStop
from completion_engine.stats import Completion


class RemoteCompleter:
    """Completions by a team's servers. Satisfies the engine's protocol."""

    @classmethod
    def load(
        cls,
        config: RemoteConfig,
        tokenizer: Tokenizer,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> RemoteCompleter:
        """Connect, and prove that the servers' tokenizer is `tokenizer`. Raises UserError, RemoteError."""
        raise NotImplementedError

    def complete(self, request: CompletionRequest) -> Completion:
        """The verified completion at the request's cursor. Raises RemoteError, CancelledError."""
        raise NotImplementedError

    def expect(self, request: CompletionRequest) -> None:
        """Nothing is asked that nobody waits for."""

    def idle(self, cancellation: Cancellation) -> bool:
        """Take in more of an answer that a deadline cut short. False when nothing is left."""
        raise NotImplementedError

    def open(self, language: str) -> None:
        """A document of a language is open."""

    def forget(self, document: str) -> None:
        """A document is closed."""

    def describe(self) -> dict[str, Any]:
        """For `stats` and `doctor`."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the connection."""

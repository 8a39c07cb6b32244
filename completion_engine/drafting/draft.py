"""What a drafter proposes: a chain of tokens, each with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Allowed = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class DraftToken:
    """One guessed token.

    `origin` is the kind of place it was read from (`index`, `prompt`, `recent`), `match_length` how many
    tokens of context agreed there, `share` the part of the sampled occurrences that continue like this.
    `document` and `offset` name the place in the repository index; document is -1 elsewhere.
    """

    token: int
    source: str
    origin: str
    match_length: int
    share: float
    document: int = -1
    offset: int = 0


Draft = tuple[DraftToken, ...]


class Drafter(Protocol):
    """Anything that can guess the next tokens."""

    def begin(self, prompt: Sequence[int]) -> None:
        """A new completion starts behind `prompt`."""
        ...

    def extend(self, tokens: Sequence[int]) -> None:
        """The target wrote `tokens`."""
        ...

    def drafts(self, max_tokens: int, allowed: Allowed) -> list[Draft]:
        """Chains of at most `max_tokens` that may come next; the first token of each is `allowed`."""
        ...

    def end(self) -> None:
        """The completion is over; what was written may serve the next one."""
        ...

"""The values of the next edit: hunks that the user wrote, the documents, and the edit that is proposed.

All are frozen. Lines have no line ends. Does not depend on models and the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from completion_engine.request import Cancellation

Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hunk:
    """One edit of the user: lines `old` of a document became lines `new`, which now begin at `first_line`.

    `time_s` is when it was last changed, on any clock that all hunks share.
    """

    document: str
    first_line: int
    old: Lines
    new: Lines
    time_s: float = 0.0

    @property
    def end_line(self) -> int:
        """The line after its new lines."""
        return self.first_line + len(self.new)


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal items at the beginning of two sequences, and of the others at their end."""
    shorter, start = min(len(old), len(new)), 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


@dataclass(frozen=True, slots=True)
class EditDocument:
    """The text of a document that an edit may be proposed in. `path` is its name in the repository."""

    document: str
    path: str
    language: str
    lines: Lines


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Replace the lines from `first_line` on, which read `old`, with `new`."""

    document: str
    first_line: int
    old: Lines
    new: Lines

    @property
    def end_line(self) -> int:
        """The line after the replaced ones."""
        return self.first_line + len(self.old)

    @property
    def identity(self) -> EditIdentity:
        """What a rejection remembers: the same texts at another line are the same edit."""
        return self.document, self.old, self.new


EditIdentity = tuple[str, Lines, Lines]


@dataclass(frozen=True, slots=True)
class EditRequest:
    """A request for the next edit: recent hunks, oldest first, and documents, the focused one first.

    `line` is the cursor's. Edits in `rejected` are never proposed again. `repository` names the repository.
    `is_invoked` if the user asked.
    """

    documents: Sequence[EditDocument]
    hunks: Sequence[Hunk]
    line: int = 0
    repository: str = ""
    rejected: frozenset[EditIdentity] = frozenset()
    is_invoked: bool = False
    cancellation: Cancellation = field(default_factory=Cancellation)


@dataclass(frozen=True, slots=True)
class ProposedEdit:
    """An edit, the hunk that it repeats, and how likely it is to be wanted.

    `num_examples` recent hunks made the same change. `log_odds` is the target's log p(new) - log p(old); None
    for an edit that the syntax tree alone decided.
    """

    edit: LineEdit
    repeats: Hunk
    num_examples: int
    log_odds: float | None
    probability: float


@dataclass(frozen=True, slots=True)
class EditAnswer:
    """The answer to a request: one proposal or none, and the work that it took.

    `rule` names the reason for none. `num_candidates` places matched and `num_scored` of them were scored.
    `others` are the further edits that need no model, if all were wanted; no two change the same line.
    """

    proposal: ProposedEdit | None = None
    rule: str = ""
    num_candidates: int = 0
    num_scored: int = 0
    ms: float = 0.0
    others: tuple[LineEdit, ...] = ()

"""The recent completions and proposed edits of one editor, and what the user accepted of them.

Bounded. Used on the event loop only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from completion_engine.next_edit.edits import EditAnswer, EditIdentity, Hunk
from completion_engine.request import Completion
from lsp_server.workspace.documents import (
    Document,
    DocumentSnapshot,
    LineColumn,
    index_of,
    plain_newlines,
)

NUM_RECORDS = 64
NUM_REJECTED = 256
Outcome = Literal["", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class CompletionRecord:
    """A requested completion: its cursor position and its result.

    `text` is what was returned; `outcome` is the event that prevented it, if any. `is_triggered` is False if
    the settings suppress completions there. `rank` is 0 for the best candidate at a cursor. The user accepted
    the first `num_accepted_chars` of `text` so far.
    """

    id: str
    snapshot: DocumentSnapshot
    completion: Completion
    text: str = ""
    outcome: str = ""
    is_triggered: bool = True
    rank: int = 0
    num_accepted_chars: int = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion fitted to the present document: `text`, with `\n` line ends, replaces `num_replaced`
    characters right of (line, column).

    `typed` is the beginning of the suggestion that the user typed since the request; it is left of that
    position.
    """

    id: str
    document: Document
    line: int
    column: int
    text: str
    num_replaced: int
    typed: str = ""


@dataclass(slots=True)
class RecentOffers:
    """The records of the last completions, the newest last."""

    _records: OrderedDict[str, CompletionRecord] = field(default_factory=OrderedDict)
    _num_records: int = 0

    def next_id(self) -> str:
        """Return a name for the next completion."""
        self._num_records += 1
        return str(self._num_records)

    def remember(self, record: CompletionRecord) -> None:
        """Store a completion, for acceptance and for questions about it."""
        self._records[record.id] = record
        while len(self._records) > NUM_RECORDS:
            self._records.popitem(last=False)

    def record(self, record_id: object) -> CompletionRecord | None:
        """Return a completion by its name, if it is recent."""
        return self._records.get(record_id) if isinstance(record_id, str) else None

    def last_at(self, snapshot: DocumentSnapshot) -> CompletionRecord | None:
        """Return the best candidate of the last completion for exactly this text and position."""
        for record in reversed(self._records.values()):
            if record.snapshot == snapshot and not record.rank:
                return record
        return None

    def accept(self, record_id: object, num_units: int | None = None, newline: str = "\n") -> int:
        """Record that the user accepted the first `num_units` UTF-16 units of an inserted suggestion; None
        for all. Return the number of characters that were not accepted before.

        `newline` is the line end that was inserted.
        """
        record = self.record(record_id)
        if record is None:
            return 0
        num_chars = len(record.text)
        if num_units is not None:
            inserted = record.text.replace("\n", newline)
            num_chars = len(plain_newlines(inserted[: index_of(inserted, max(0, num_units), "utf-16")]))
        num_new = max(0, num_chars - record.num_accepted_chars)
        self._records[record.id] = replace(record, num_accepted_chars=record.num_accepted_chars + num_new)
        return num_new


def fitted(
    document: Document | None, record_id: str, snapshot: DocumentSnapshot, completion: Completion
) -> Offer | None:
    """Fit the completion at `snapshot` to the present document, without the part that was typed meanwhile.

    None if nothing is left of it, or if the document changed otherwise or is closed.
    """
    if document is None:
        return None
    num_typed = document.num_chars - snapshot.num_chars
    is_same = document.version == snapshot.version and num_typed == 0
    if not (is_same or _was_typed_along(document, snapshot, completion.text, num_typed)):
        return None
    typed, text = completion.text[:num_typed], completion.text[num_typed:]
    if not text:
        return None
    line, column = _advance(snapshot.line, snapshot.column, typed)
    num_replaced = min(completion.num_replaced, len(document.content(line)) - column)
    return Offer(record_id, document, line, column, text, num_replaced, typed)


def _was_typed_along(document: Document, snapshot: DocumentSnapshot, text: str, num_typed: int) -> bool:
    """Whether the document is the snapshot with the first `num_typed` characters of `text` inserted."""
    if not 0 <= num_typed <= len(text) or snapshot.line >= len(document.lines):
        return False
    if snapshot.column > len(document.content(snapshot.line)):
        return False
    now = document.snapshot(snapshot.line, snapshot.column)
    expected = text[:num_typed] + snapshot.suffix
    num_known = min(len(expected), len(now.suffix))
    return now.prefix == snapshot.prefix and now.suffix[:num_known] == expected[:num_known]


def _advance(line: int, column: int, text: str) -> LineColumn:
    """Return the position after `text` that begins at (line, column)."""
    num_lines = text.count("\n")
    return (line + num_lines, len(text) - text.rfind("\n") - 1) if num_lines else (line, column + len(text))


@dataclass(frozen=True, slots=True)
class EditRecord:
    """The answer to one request for an edit in `uri`, given at `time_s`; `rule` is the reason if there is
    none.

    `path` is the document of the hunk that is repeated, as the repository names it.
    """

    id: str
    uri: str
    answer: EditAnswer
    time_s: float
    path: str = ""
    outcome: Outcome = ""


@dataclass(slots=True)
class Proposals:
    """The records of answers, the newest last, and the edits that are not proposed again."""

    _records: OrderedDict[str, EditRecord] = field(default_factory=OrderedDict)
    _rejected: OrderedDict[EditIdentity, None] = field(default_factory=OrderedDict)
    _num_records: int = 0

    @property
    def rejected(self) -> frozenset[EditIdentity]:
        """Return the edits that are not proposed again."""
        return frozenset(self._rejected)

    def remember(self, uri: str, answer: EditAnswer, time_s: float, path: str = "") -> EditRecord:
        """Store an answer under a new name, and return the record."""
        self._num_records += 1
        record = EditRecord(f"edit-{self._num_records}", uri, answer, time_s, path)
        self._records[record.id] = record
        while len(self._records) > NUM_RECORDS:
            self._records.popitem(last=False)
        return record

    def record(self, record_id: object) -> EditRecord | None:
        """Return a record by its name, if it is recent."""
        return self._records.get(record_id) if isinstance(record_id, str) else None

    def last_of(self, uri: str) -> EditRecord | None:
        """Return the last answer for a document."""
        return next((record for record in reversed(self._records.values()) if record.uri == uri), None)

    def accept(self, record_id: object) -> bool:
        """Record that the user applied a proposal; return whether that is new.

        Earlier answers with the same edit are dropped: the user does not pass over an edit that is applied.
        """
        if not self._decide(record_id, "accepted"):
            return False
        edits = {key: it.answer.proposal.edit for key, it in self._records.items() if it.answer.proposal}
        for key in [key for key, it in self._records.items() if not it.outcome and key in edits]:
            if edits[key] == edits[str(record_id)]:
                del self._records[key]
        return True

    def reject(self, record_id: object) -> bool:
        """Record that the user does not want a proposal; return whether that is new."""
        record = self.record(record_id)
        if record is None or not self._decide(record_id, "rejected"):
            return False
        if record.answer.proposal is not None:
            self._rejected[record.answer.proposal.edit.identity] = None
            while len(self._rejected) > NUM_REJECTED:
                self._rejected.popitem(last=False)
        return True

    def pass_over(self, hunks: Sequence[Hunk]) -> int:
        """Reject the last open proposal if the user has edited something else since; return how many were."""
        open_ones = [it for it in self._records.values() if it.answer.proposal and not it.outcome]
        return sum(self.reject(record.id) for record in open_ones if _went_on(record, hunks))

    def forget(self, uri: str) -> None:
        """Drop the records of a closed document."""
        self._records = OrderedDict((key, it) for key, it in self._records.items() if it.uri != uri)
        self._rejected = OrderedDict((edit, None) for edit in self._rejected if edit[0] != uri)

    def _decide(self, record_id: object, outcome: Outcome) -> bool:
        record = self.record(record_id)
        if record is None or record.outcome or record.answer.proposal is None:
            return False
        self._records[record.id] = replace(record, outcome=outcome)
        return True


def _went_on(record: EditRecord, hunks: Sequence[Hunk]) -> bool:
    """Return whether a hunk was written after a proposal, other than the one that it repeats."""
    proposal = record.answer.proposal
    if proposal is None:
        return False
    known = proposal.repeats.document, proposal.repeats.old
    return any(hunk.time_s > record.time_s and (hunk.document, hunk.old) != known for hunk in hunks)

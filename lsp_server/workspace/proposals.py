"""The recently proposed edits, and whether the user accepted them.

An edit that the user ignored is not proposed again. Bounded. Used on the event loop only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from completion_engine.next_edit.edits import EditAnswer, EditIdentity, Hunk

NUM_RECORDS = 64
NUM_REJECTED = 256

Outcome = Literal["", "accepted", "rejected"]


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

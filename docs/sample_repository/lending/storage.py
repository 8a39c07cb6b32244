"""Records by id, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from lending.errors import NotFoundError


class Record(Protocol):
    """Anything with an id."""

    @property
    def id(self) -> int: ...


RecordType = TypeVar("RecordType", bound=Record)


class Table(Generic[RecordType]):
    """The records of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._records: dict[int, RecordType] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[RecordType]:
        return iter(self._records.values())

    def next_id(self) -> int:
        """An id that no record has yet."""
        return max(self._records, default=0) + 1

    def get(self, record_id: int) -> RecordType:
        """The record with this id."""
        if record_id not in self._records:
            raise NotFoundError(self.kind, record_id)
        return self._records[record_id]

    def put(self, record: RecordType) -> RecordType:
        """Store a record in place of the one with its id."""
        self._records[record.id] = record
        return record

    def delete(self, record_id: int) -> None:
        """Forget a record."""
        if record_id not in self._records:
            raise NotFoundError(self.kind, record_id)
        del self._records[record_id]

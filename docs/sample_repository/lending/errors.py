"""What can go wrong at the desk."""

from __future__ import annotations


class LendingError(Exception):
    """Base of all errors of this package."""


class NotFoundError(LendingError):
    """There is no record with this id."""

    def __init__(self, kind: str, record_id: int) -> None:
        super().__init__(f"There is no {kind} with id {record_id}.")
        self.kind = kind
        self.record_id = record_id


class InvalidFieldError(LendingError):
    """A field of a request is missing or wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"The field {field!r} {reason}.")
        self.field = field
        self.reason = reason

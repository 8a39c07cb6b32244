"""What the desk keeps records of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Book:
    """A copy on the shelf."""

    id: int
    title: str
    author: str
    isbn: str
    year: int


@dataclass(frozen=True)
class Member:
    """Somebody who may borrow."""

    id: int
    name: str
    email: str
    joined_on: date


@dataclass(frozen=True)
class Loan:
    """A book that is out."""

    id: int
    book_id: int
    member_id: int
    borrowed_on: date
    due_on: date
    returned_on: date | None = None

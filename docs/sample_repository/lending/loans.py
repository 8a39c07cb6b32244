"""Requests about loans."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from lending.errors import LendingError
from lending.models import Book, Loan, Member
from lending.storage import Table
from lending.validation import required_date, required_int

LOAN_PERIOD = timedelta(days=28)


class LoanHandler:
    """Answers requests about loans."""

    def __init__(self, books: Table[Book], members: Table[Member], loans: Table[Loan]) -> None:
        self.books = books
        self.members = members
        self.loans = loans

    def list_loans(self) -> list[dict[str, Any]]:
        """All loans, by the day they are due."""
        return [asdict(loan) for loan in sorted(self.loans, key=lambda loan: loan.due_on)]

    def get_loan(self, loan_id: int) -> dict[str, Any]:
        """One loan."""
        return asdict(self.loans.get(loan_id))

    def create_loan(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Hand a book out to a member."""
        book = self.books.get(required_int(payload, "book_id"))
        member = self.members.get(required_int(payload, "member_id"))
        if self.is_out(book.id):
            raise LendingError(f"The book {book.title!r} is out.")
        borrowed_on = required_date(payload, "borrowed_on")
        loan = Loan(
            id=self.loans.next_id(),
            book_id=book.id,
            member_id=member.id,
            borrowed_on=borrowed_on,
            due_on=borrowed_on + LOAN_PERIOD,
        )
        return asdict(self.loans.put(loan))

    def return_book(self, loan_id: int, payload: dict[str, Any]) -> dict[str, Any]:
        """Take a book back."""
        loan = self.loans.get(loan_id)
        changed = replace(loan, returned_on=required_date(payload, "returned_on"))
        return asdict(self.loans.put(changed))

    def is_out(self, book_id: int) -> bool:
        """Whether somebody has the book now."""
        return any(loan.book_id == book_id and loan.returned_on is None for loan in self.loans)

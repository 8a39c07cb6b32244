"""Requests about reservations."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lending.models import Book, Member, Reservation
from lending.storage import Table
from lending.validation import required_date, required_int


class ReservationHandler:
    """Answers requests about reservations."""

    def __init__(self, books: Table[Book], members: Table[Member], reservations: Table[Reservation]) -> None:
        self.books = books
        self.members = members
        self.reservations = reservations

    def get_reservation(self, reservation_id: int) -> dict[str, Any]:
        """One reservation."""
        return asdict(self.reservations.get(reservation_id))

    def create_reservation(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Keep a book for a member."""
        book = self.books.get(required_int(payload, "book_id"))
        member = self.members.get(required_int(payload, "member_id"))
        reservation = Reservation(
            id=self.reservations.next_id(),
            book_id=book.id,
            member_id=member.id,
            reserved_on=required_date(payload, "reserved_on"),
        )
        return asdict(self.reservations.put(reservation))

    def delete_reservation(self, reservation_id: int) -> None:
        """Give a book free again."""
        self.reservations.delete(reservation_id)

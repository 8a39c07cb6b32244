"""Requests about books."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from lending.models import Book
from lending.storage import Table
from lending.validation import required_int, required_text


class BookHandler:
    """Answers requests about books."""

    def __init__(self, books: Table[Book]) -> None:
        self.books = books

    def list_books(self) -> list[dict[str, Any]]:
        """All books, by title."""
        return [asdict(book) for book in sorted(self.books, key=lambda book: book.title)]

    def get_book(self, book_id: int) -> dict[str, Any]:
        """One book."""
        return asdict(self.books.get(book_id))

    def create_book(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Add a book to the shelf."""
        book = Book(
            id=self.books.next_id(),
            title=required_text(payload, "title"),
            author=required_text(payload, "author"),
            isbn=required_text(payload, "isbn"),
            year=required_int(payload, "year"),
        )
        return asdict(self.books.put(book))

    def update_book(self, book_id: int, payload: dict[str, Any]) -> dict[str, Any]:
        """Change a book's title and author."""
        book = self.books.get(book_id)
        changed = replace(
            book,
            title=required_text(payload, "title"),
            author=required_text(payload, "author"),
        )
        return asdict(self.books.put(changed))

    def delete_book(self, book_id: int) -> None:
        """Take a book off the shelf."""
        self.books.delete(book_id)

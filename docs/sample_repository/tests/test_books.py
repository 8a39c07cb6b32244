"""Requests about books, answered."""

import pytest

from lending.books import BookHandler
from lending.errors import InvalidFieldError, NotFoundError
from lending.models import Book
from lending.storage import Table

PAYLOAD = {"title": "Emma", "author": "Jane Austen", "isbn": "9780141439587", "year": 1815}


@pytest.fixture
def handler() -> BookHandler:
    return BookHandler(Table[Book]("book"))


def test_a_created_book_can_be_read(handler: BookHandler) -> None:
    created = handler.create_book(PAYLOAD)
    assert handler.get_book(created["id"]) == {"id": 1, **PAYLOAD}


def test_books_are_listed_by_title(handler: BookHandler) -> None:
    handler.create_book({**PAYLOAD, "title": "Persuasion"})
    handler.create_book({**PAYLOAD, "title": "Emma"})
    assert [book["title"] for book in handler.list_books()] == ["Emma", "Persuasion"]


def test_a_deleted_book_is_gone(handler: BookHandler) -> None:
    created = handler.create_book(PAYLOAD)
    handler.delete_book(created["id"])
    with pytest.raises(NotFoundError):
        handler.get_book(created["id"])


@pytest.mark.parametrize("field", ["title", "author", "isbn", "year"])
def test_a_book_needs_all_its_fields(handler: BookHandler, field: str) -> None:
    with pytest.raises(InvalidFieldError):
        handler.create_book({**PAYLOAD, field: None})

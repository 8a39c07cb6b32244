"""Fields of requests, checked."""

from __future__ import annotations

from datetime import date
from typing import Any

from lending.errors import InvalidFieldError


def required_text(payload: dict[str, Any], field: str) -> str:
    """A field that must hold some text."""
    value = payload.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InvalidFieldError(field, "must be a text")
    return value.strip()


def required_int(payload: dict[str, Any], field: str) -> int:
    """A field that must hold a whole number."""
    value = payload.get(field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidFieldError(field, "must be a whole number")
    return value


def required_date(payload: dict[str, Any], field: str) -> date:
    """A field that must hold a date, as in 2025-03-01."""
    value = payload.get(field)
    if not isinstance(value, str):
        raise InvalidFieldError(field, "must be a date")
    try:
        return date.fromisoformat(value)
    except ValueError as error:
        raise InvalidFieldError(field, "must be a date") from error

"""Requests about members, answered."""

from datetime import date

import pytest

from lending.errors import InvalidFieldError, NotFoundError
from lending.members import MemberHandler
from lending.models import Member
from lending.storage import Table

PAYLOAD = {"name": "Ada", "email": "ada@example.org", "joined_on": "2025-03-01"}


@pytest.fixture
def handler() -> MemberHandler:
    return MemberHandler(Table[Member]("member"))


def test_a_created_member_can_be_read(handler: MemberHandler) -> None:
    created = handler.create_member(PAYLOAD)
    expected = {"id": 1, **PAYLOAD, "joined_on": date(2025, 3, 1)}
    assert handler.get_member(created["id"]) == expected


def test_members_are_listed_by_name(handler: MemberHandler) -> None:
    handler.create_member({**PAYLOAD, "name": "Grace"})
    handler.create_member({**PAYLOAD, "name": "Ada"})
    assert [member["name"] for member in handler.list_members()] == ["Ada", "Grace"]


def test_a_deleted_member_is_gone(handler: MemberHandler) -> None:
    created = handler.create_member(PAYLOAD)
    handler.delete_member(created["id"])
    with pytest.raises(NotFoundError):
        handler.get_member(created["id"])


@pytest.mark.parametrize("field", ["name", "email", "joined_on"])
def test_a_member_needs_all_its_fields(handler: MemberHandler, field: str) -> None:
    with pytest.raises(InvalidFieldError):
        handler.create_member({**PAYLOAD, field: None})

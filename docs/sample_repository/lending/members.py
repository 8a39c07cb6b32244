"""Requests about members."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from lending.models import Member
from lending.storage import Table
from lending.validation import required_date, required_text


class MemberHandler:
    """Answers requests about members."""

    def __init__(self, members: Table[Member]) -> None:
        self.members = members

    def list_members(self) -> list[dict[str, Any]]:
        """All members, by name."""
        return [asdict(member) for member in sorted(self.members, key=lambda member: member.name)]

    def get_member(self, member_id: int) -> dict[str, Any]:
        """One member."""
        return asdict(self.members.get(member_id))

    def create_member(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Admit somebody."""
        member = Member(
            id=self.members.next_id(),
            name=required_text(payload, "name"),
            email=required_text(payload, "email"),
            joined_on=required_date(payload, "joined_on"),
        )
        return asdict(self.members.put(member))

    def update_member(self, member_id: int, payload: dict[str, Any]) -> dict[str, Any]:
        """Change a member's name and address."""
        member = self.members.get(member_id)
        changed = replace(
            member,
            name=required_text(payload, "name"),
            email=required_text(payload, "email"),
        )
        return asdict(self.members.put(changed))

    def delete_member(self, member_id: int) -> None:
        """Say goodbye to a member."""
        self.members.delete(member_id)

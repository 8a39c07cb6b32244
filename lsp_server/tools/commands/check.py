"""What the doctor says of one thing. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckState = Literal["ok", "slow", "missing"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, what was found, and what to do if it is not `ok`."""

    name: str
    state: CheckState
    found: str
    advice: str = ""

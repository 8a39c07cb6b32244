"""What the doctor says of one thing, also where it cannot be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from completion_engine.errors import SlipstreamError

_MAX_CHARS = 300

CheckState = Literal["ok", "slow", "missing"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, what was found, and what to do if it is not `ok`."""

    name: str
    state: CheckState
    found: str
    advice: str = ""


def guarded(name: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    """What `look` finds up to where it fails, and then how it does: that is what a doctor is asked for."""
    found: list[Check] = []
    try:
        found.extend(look())
    except SlipstreamError as error:
        found.append(Check(name, "missing", error.message, error.advice))
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_CHARS]
        found.append(Check(name, "missing", f"fails: {said}", "Install Slipstream again, or report it."))
    return found

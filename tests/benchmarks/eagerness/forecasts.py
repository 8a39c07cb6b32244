"""The target's text at every position of a typist, requested once each and kept in a file.

The suggestion at a position follows from its forecast alone, whatever the eagerness. So one recording answers
all of them. Owns the recording.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from completion_engine.errors import UserError
from completion_engine.request import Forecast

Ask = Callable[[str, str], Forecast]


class Forecasts:
    """Forecasts of one file's positions: recorded in `path`, otherwise requested with `ask`."""

    def __init__(self, path: Path | None, ask: Ask) -> None:
        self._path = path
        self._ask = ask
        self._known: dict[str, Forecast] = _read(path) if path is not None and path.exists() else {}
        self.num_asked = 0

    def at(self, left: str, right: str) -> Forecast:
        """The target's text between `left` and `right`."""
        key = hashlib.blake2b(f"{left}\0{right}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        if key not in self._known:
            self.num_asked += 1
            self._known[key] = self._ask(left, right)
            self._record(key)
        return self._known[key]

    def _record(self, key: str) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"place": key, **asdict(self._known[key])}) + "\n")


def _read(path: Path) -> dict[str, Forecast]:
    known = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            ends = tuple(map(int, told["ends"]))
            probabilities, num_chars = tuple(map(float, told["probabilities"])), int(told["num_chars"])
            known[str(told["place"])] = Forecast(str(told["text"]), ends, probabilities, num_chars)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not a recording: {error!r}.", advice="Name another file.") from error
    return known

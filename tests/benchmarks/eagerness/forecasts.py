"""Everything that the target would write wherever a typist stands, each place asked once and kept in a file.

What is shown at a place follows from its forecast alone, whatever the eagerness: so one recording answers
all of them. Owns the recording. Must not know what is shown or typed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from completion_engine.errors import UserError
from completion_engine.stats import Forecast

Ask = Callable[[str, str], Forecast]


class Forecasts:
    """The forecasts of one file's places: what is recorded in `path`, else what `ask` says, recorded then."""

    def __init__(self, path: Path | None, ask: Ask) -> None:
        self._path = path
        self._ask = ask
        self._known: dict[str, Forecast] = _read(path) if path is not None and path.exists() else {}
        self.num_asked = 0

    def at(self, left: str, right: str) -> Forecast:
        """What the target writes between `left` and `right`."""
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
        raise UserError(f"{path} is no recording: {error!r}.", advice="Name another file.") from error
    return known

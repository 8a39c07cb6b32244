"""Server-sent events from bytes: the value of each `data:` line, in order, with a bound on its length.

Does not depend on the network and JSON.
"""

from __future__ import annotations

MAX_EVENT_BYTES = 256 << 10


class EventStreamError(ValueError):
    """The bytes are not a stream of events."""


class EventParser:
    """Parses bytes as they arrive. An event may be cut anywhere."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[str] = []
        self._num_bytes = 0  # in the present event

    def feed(self, data: bytes) -> list[str]:
        """Return the events that these bytes complete, in time linear in them. Raises EventStreamError."""
        first, *more = data.split(b"\n")
        self._rest += first
        self._check(len(self._rest))
        events: list[str] = []
        for part in more:
            line, self._rest = self._rest.removesuffix(b"\r"), bytearray(part)
            if (event := self._take(bytes(line))) is not None:
                events.append(event)
        self._check(len(self._rest))
        return events

    def _take(self, line: bytes) -> str | None:
        """Return the event that a line ends, if it does."""
        if not line:
            event, self._data, self._num_bytes = self._data, [], 0
            return "\n".join(event) if event else None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._num_bytes += len(line)
            self._check(self._num_bytes)
            self._data.append(value.removeprefix(b" ").decode("utf-8", errors="replace"))
        return None

    @staticmethod
    def _check(num_bytes: int) -> None:
        if num_bytes > MAX_EVENT_BYTES:
            raise EventStreamError("an event has no end")

"""Decides whether to use a team's servers, from their failures and probes.

A state machine; times are seconds of the caller's clock.
"""

from __future__ import annotations

from completion_engine.errors import RemoteError

MAX_FAILURES = 3
FIRST_PROBE_S, LAST_PROBE_S = 1.0, 60.0
FIRST_BUSY_S, LAST_BUSY_S = 0.5, 8.0


class Availability:
    """The availability of one window's servers."""

    def __init__(self) -> None:
        self.is_down = False
        self._num_failures = 0
        self._busy_s = FIRST_BUSY_S
        self._busy_until_s = 0.0
        self._probe_s = FIRST_PROBE_S

    def may_ask(self, now_s: float) -> bool:
        """Return whether a request may be sent to the servers now."""
        return not self.is_down and now_s >= self._busy_until_s

    def answered(self) -> None:
        """Record that the servers answered a request."""
        self._num_failures, self._busy_s, self._probe_s = 0, FIRST_BUSY_S, FIRST_PROBE_S

    def failed(self, fault: RemoteError, now_s: float) -> None:
        """Record a failed request. Servers without capacity get time, and do not count as down."""
        if fault.kind == "busy":
            self._busy_until_s = now_s + max(self._busy_s, fault.retry_s)
            self._busy_s = min(2 * self._busy_s, LAST_BUSY_S)
            return
        self._num_failures += 1
        self.is_down = self.is_down or fault.is_lasting or self._num_failures >= MAX_FAILURES

    def go_down(self) -> float:
        """Record that the servers are down; return the seconds until the next probe."""
        self.is_down = True
        pause_s, self._probe_s = self._probe_s, min(2 * self._probe_s, LAST_PROBE_S)
        return pause_s

    def come_back(self) -> None:
        """Record a successful probe. The next answers decide how long the servers stay in use."""
        self.is_down, self._num_failures, self._busy_until_s = False, 0, 0.0

"""How much of the event loop one window may take.

Owns the account of one window. Must not know what its messages are, nor who the others are.
"""

from __future__ import annotations

# A window leaves the loop to others for as long as it took it, and for a multiple of a turn that was long.
LONG_TURN_S = 0.005
LONG_TURN_WEIGHT = 3
# So much it may owe them.
BURST_S = 0.01


class LoopShare:
    """What one window owes to the others, as a leaky bucket."""

    def __init__(self) -> None:
        self._owed_s = 0.0
        self._last_s = 0.0

    def pause_s(self, turn_s: float, now_s: float) -> float:
        """How long to wait after a turn of `turn_s` that ended at `now_s` of a clock that never jumps.

        0 for who takes less than half of the loop in short turns, a burst apart.
        """
        left_s = max(0.0, now_s - self._last_s - turn_s)
        weight = LONG_TURN_WEIGHT if turn_s > LONG_TURN_S else 1
        self._owed_s = max(0.0, self._owed_s - left_s) + weight * turn_s
        self._last_s = now_s
        return self._owed_s if self._owed_s > BURST_S else 0.0

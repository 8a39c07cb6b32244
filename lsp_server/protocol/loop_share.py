"""How much of the event loop one window may take.

Owns the account of one window. Must not know what its messages are, nor who the others are.
"""

from __future__ import annotations

# A window that has taken this much of the loop leaves it to others for a multiple of that.
BURST_S = 0.005
LEAVE_TO_OTHERS = 3


class LoopShare:
    """What one window took and has not yet left to others, as a leaky bucket."""

    def __init__(self) -> None:
        self._taken_s = 0.0
        self._last_s = 0.0

    def pause_s(self, turn_s: float, now_s: float) -> float:
        """How long to wait after a turn of `turn_s` that ended at `now_s` of a clock that never jumps.

        0 for who takes less than a quarter of the loop, a burst apart. Short turns add up.
        """
        left_s = max(0.0, now_s - self._last_s - turn_s) / LEAVE_TO_OTHERS
        self._taken_s = max(0.0, self._taken_s - left_s) + turn_s
        self._last_s = now_s
        return self._taken_s * LEAVE_TO_OTHERS if self._taken_s > BURST_S else 0.0

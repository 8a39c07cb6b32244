"""Writing until a rule, the target or a limit ends it. The only place that knows deadlines."""

from __future__ import annotations

import time
from dataclasses import dataclass

from completion_engine.decoding.context import Finish, TextRules
from completion_engine.decoding.loop import Decoding
from completion_engine.request import Cancellation


class NoRules:
    """Writes to the end of the infill or to the limit: nothing in the text stops it."""

    def check(self, generated: str) -> object | None:  # noqa: ARG002 - see `TextRules`
        """Never stops."""
        return None

    def boundary(self, generated: str) -> int:
        """All of it counts."""
        return len(generated)


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop for reasons outside the text. Times are `time.perf_counter()` seconds.

    `pass_ms` is what the next step will take, so that the deadline is not passed in it. Behind `turn_until`
    it is somebody else's turn, if anybody waits.
    """

    max_tokens: int
    pass_ms: float = 0.0
    deadline_at: float = float("inf")
    patience_at: float = float("inf")
    turn_until: float = float("inf")

    def is_turn_over(self, cancellation: Cancellation) -> bool:
        """Whether others waited long enough."""
        return cancellation.gives_way and time.perf_counter() > self.turn_until


def run(decoding: Decoding, rules: TextRules, limits: Limits, cancellation: Cancellation) -> Finish:
    """Write until a rule, the target or a limit ends it; the drafters learn from it, whatever does.

    When the deadline would pass in the next step, the text is cut at its last sensible place; where
    there is none yet, work goes on to the first one or until patience, or the turn, ends.
    Raises CancelledError.
    """
    try:
        while True:
            finish = decoding.finish(rules, limits.max_tokens)
            if finish is not None:
                return finish
            cancellation.check()
            soon = time.perf_counter() + limits.pass_ms / 1e3
            is_turn_over = limits.is_turn_over(cancellation)
            if soon > limits.deadline_at or is_turn_over:
                num_chars = rules.boundary(decoding.written.text)
                if num_chars or is_turn_over or soon > limits.patience_at:
                    return Finish("deadline", num_chars)
            decoding.step()
    finally:
        decoding.end()

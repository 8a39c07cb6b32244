"""Writing until a rule, the target or a limit ends it. The only place that knows deadlines."""

from __future__ import annotations

import time
from dataclasses import dataclass

from completion_engine.calibration import SHIPPED, Calibration
from completion_engine.decoding.writing import Finish, TextRules, Writing
from completion_engine.prompting.prompt_choice import PromptBudget
from completion_engine.request import Cancellation, CompletionRequest

MAX_NEW_TOKENS = 256
# A completion that takes longer ends with what it has, if somebody else waits for the engine.
MAX_TURN_S = 1.0
_WARM_SHARE = 0.5  # of the deadline: whoever's prompt takes no longer is answered in time
_PROMPT_SHARE = 0.2  # of the patience: what is missing of a prompt takes no longer, or a smaller one is taken
_SOON_SHARE = 0.05  # of the patience: nor is anybody late whose prompt takes no longer
_COLD_SHARE = 0.4  # of the patience: until then an answer is written that had to wait for its prompt
_PASS_MARGIN = 1.2  # a pass takes this much longer than measured in quiet, in the deadline's view


class NoRules:
    """Writes to the end of the infill or to the limit: nothing in the text stops it."""

    def check(self, generated: str) -> object | None:  # noqa: ARG002 - see `TextRules`
        """Never stops."""
        return None

    def boundary(self, generated: str) -> int:
        """All of it counts."""
        return len(generated)

    def head(self, generated: str, num_chars: int) -> int:  # noqa: ARG002 - see `TextRules`
        """All of these count."""
        return num_chars


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop for reasons outside the text. Times are `time.perf_counter()` seconds.

    Behind `turn_until` it is somebody else's turn, if anybody waits. Text that is less likely right than
    `min_survival`, by `calibration`, is not wanted.
    """

    max_tokens: int
    deadline_at: float = float("inf")
    patience_at: float = float("inf")
    turn_until: float = float("inf")
    min_survival: float = 0.0
    calibration: Calibration = SHIPPED

    @classmethod
    def of(cls, request: CompletionRequest, max_tokens: int, begin_s: float, cold_ms: float) -> Limits:
        """The limits of a request that began at `begin_s`.

        Its prompt takes `cold_ms` to compute where most of it is missing, else 0. Where that is much of the
        deadline, the answer is late anyway: it is given time to become whole.
        """
        deadline_ms = request.deadline_ms if request.deadline_ms > 0 else float("inf")
        left_ms = max(1.0, deadline_ms - request.waited_ms)
        if cold_ms > max(_WARM_SHARE * deadline_ms, _SOON_SHARE * request.patience_ms):
            left_ms = max(left_ms, _COLD_SHARE * request.patience_ms)
        patience_ms = max(request.patience_ms, request.deadline_ms - request.waited_ms)
        deadline_at, patience_at = (begin_s + ms / 1e3 for ms in (left_ms, patience_ms))
        turn_until = begin_s + MAX_TURN_S
        min_survival, calibration = 1 - request.eagerness, request.calibration
        return cls(max_tokens, deadline_at, patience_at, turn_until, min_survival, calibration)

    def is_turn_over(self, cancellation: Cancellation) -> bool:
        """Whether others waited long enough."""
        return cancellation.gives_way and time.perf_counter() > self.turn_until


def prompt_budget(request: CompletionRequest, token_ms: float) -> PromptBudget:
    """How long a prompt may be computed while somebody waits; any time where there is no deadline."""
    if request.deadline_ms <= 0:
        return PromptBudget()
    soon_ms = _WARM_SHARE * request.deadline_ms
    return PromptBudget(max(soon_ms, _PROMPT_SHARE * request.patience_ms), token_ms, soon_ms)


def run(decoding: Writing, rules: TextRules, limits: Limits, cancellation: Cancellation) -> Finish:
    """Write until a rule, the target or a limit ends it; the drafters learn from it, whatever does.

    When the deadline would pass in the quickest next step, the text is cut at its last sensible place;
    where there is none yet, work goes on to the first one or until patience, or the turn, ends. Until then
    no step is taken that would pass the deadline where a quicker one does not.
    Raises CancelledError.
    """
    try:
        while True:
            finish = decoding.finish(rules, limits.max_tokens, limits.min_survival, limits.calibration)
            if finish is not None:
                return finish
            cancellation.check()
            now = time.perf_counter()
            soon = now + _PASS_MARGIN * decoding.next_ms / 1e3
            is_turn_over = limits.is_turn_over(cancellation)
            is_late = soon > limits.deadline_at
            if is_late or is_turn_over:
                num_chars = rules.boundary(decoding.written.text)
                if num_chars or is_turn_over or soon > limits.patience_at:
                    return Finish("deadline", num_chars)
            decoding.step(float("inf") if is_late else (limits.deadline_at - now) * 1e3 / _PASS_MARGIN)
    finally:
        decoding.end()

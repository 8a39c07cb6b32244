"""What an idle engine goes on with: a text that will be asked for, was cut short, or comes next; a prompt.

Owns the state of such work between its steps. Knows nothing of when to do it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.run import Limits
from completion_engine.decoding.task import Task
from completion_engine.decoding.writing import Finish, TextRules
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.stats import CompletionStats

Serves = Callable[[CompletionRequest], bool]

_STEP_MS = 50.0  # a key that is pressed meanwhile waits for its end
_PAUSE_SHARE = 0.1  # of a pause: who has paused for some time is likely to pause for as much more


@dataclass(slots=True)
class _Steps:
    """How long steps may take: short at first, longer the longer nobody came.

    One person's pause says nothing of others who share the engine: to these it gives way.
    """

    begun_s: float = field(default_factory=time.perf_counter)

    def next_ms(self, cancellation: Cancellation) -> float:
        """How long the next one may take."""
        paused_ms = (time.perf_counter() - self.begun_s) * 1e3
        return _STEP_MS if cancellation.gives_way else max(_STEP_MS, _PAUSE_SHARE * paused_ms)


@dataclass(slots=True)
class Unfinished:
    """Writing that goes on where an answer ended, or begins where one is asked for in a moment.

    `shown` was the answer, and all that is known; where it `is_whole`, what comes behind it is written.
    `widened` makes of the answer's task the one that is gone on with, whose prompt nobody waits for.
    """

    task: Task
    rules: TextRules
    limits: Limits
    decoding: Decoding | None = None
    steps: _Steps = field(default_factory=_Steps)
    widened: Callable[[Task], Task] | None = None
    shown: str = ""
    is_whole: bool = False

    @property
    def num_written(self) -> int:
        """Tokens that its passes wrote so far."""
        return self.decoding.stats.num_written if self.decoding else 0

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """One pass more. False when the text is whole."""
        if self.decoding is None:
            if self.widened is not None:
                self.task = self.widened(self.task)
            self.decoding = self.task.decoding(stats)
        limits = self.limits
        finish = self.decoding.finish(self.rules, limits.max_tokens, limits.min_survival, limits.calibration)
        if finish is not None:
            self.decoding.end()
            return False
        within_ms = self.steps.next_ms(cancellation)
        if self.decoding.must_prepare(within_ms):
            self.decoding.prepare(within_ms)
        else:
            self.decoding.step(within_ms)
        return True

    def serving(self) -> Serves:
        """Who needs what the next step finds, to be asked on any thread while that runs.

        That is who has typed some of what is written by now, but not who finds all that is shown there.
        """
        if self.widened is not None and (self.decoding is None or self.decoding.num_pending > 1):
            return serves_nobody
        begun, found = self.task.request, self.shown if self.is_whole else ""
        text = self.decoding.written.text if self.decoding else self.shown

        def serves(request: CompletionRequest) -> bool:
            typed = request.typed_since(begun)
            return typed is not None and typed.startswith(found) and text.startswith(typed)

        return serves

    def end(self) -> None:
        """It is not gone on with."""
        if self.decoding is not None and self.num_written:
            self.decoding.end()


class NextLine:
    """Rules that end behind the first whole line after what is shown, and where something else is written.

    Whoever accepts the suggestion and goes on as the target would is then answered without a pass.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def check(self, generated: str) -> object | None:
        """See `TextRules`."""
        is_along = generated.startswith(self._shown) or self._shown.startswith(generated)
        has_line = "\n" in generated[len(self._shown) :].lstrip()
        return None if is_along and not has_line else Finish("stop", len(generated))

    def boundary(self, generated: str) -> int:
        """See `TextRules`."""
        return len(generated)

    def head(self, generated: str, num_chars: int) -> int:  # noqa: ARG002 - see `TextRules`
        """See `TextRules`."""
        return num_chars


@dataclass(slots=True)
class Expected:
    """A place where somebody may soon write; its prompt is computed when there is nothing else to do.

    One that `is_widened` shows more than who comes soon waits for.
    """

    task: Task
    decoding: Decoding | None = None
    steps: _Steps = field(default_factory=_Steps)
    is_widened: bool = False

    @property
    def num_written(self) -> int:
        """None: a prompt is computed."""
        return 0

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """Some of the prompt more. False when it is computed."""
        if self.decoding is None:
            self.decoding = self.task.decoding(stats)
        return self.decoding.prepare(self.steps.next_ms(cancellation))

    def serving(self) -> Serves:
        """As for `Unfinished`: who stands there, if his prompt is computed."""
        return serves_nobody if self.is_widened else self.task.request.is_at

    def end(self) -> None:
        """Nothing was written, and nothing is kept."""


def serves_nobody(_request: CompletionRequest) -> bool:
    """Nobody who comes needs it."""
    return False

"""What an idle engine works on: a completion that will be asked for, was cut short, or comes next; a prompt.

Owns the state of such work between its steps. Does not depend on when there is time for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from completion_engine.decoding.ending import Finish, Limits, TextRules
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.stats import Completion, CompletionStats

RequestTest = Callable[[CompletionRequest], bool]
Widen = Callable[[PreparedRequest], PreparedRequest]

_STEP_MS = 50.0  # a key that is pressed meanwhile waits for the end of a step
_MAX_TOKENS_AFTER = 32  # that are written after a suggestion
_PAUSE_SHARE = 0.1  # share of a pause: after a long one, as long a one is likely to follow


@dataclass(slots=True)
class _StepTimes:
    """The length of steps: short at first, longer the longer the user pauses.

    Where several windows share the engine, steps stay short: the pause of one user does not predict the
    others'.
    """

    begun_s: float = field(default_factory=time.perf_counter)

    def next_ms(self, cancellation: Cancellation) -> float:
        """Return how long the next step may take."""
        paused_ms = (time.perf_counter() - self.begun_s) * 1e3
        return _STEP_MS if cancellation.gives_way else max(_STEP_MS, _PAUSE_SHARE * paused_ms)


@dataclass(slots=True)
class BackgroundWriting:
    """A completion that goes on where an answer ended, or begins before it is asked for.

    `shown` was the answer. Where it `is_complete`, the text after it is written, else the rest of it. `widen`
    turns the answer's request into one with the whole prompt, which no answer waits for.
    """

    prepared: PreparedRequest
    rules: TextRules
    limits: Limits
    decoding: Decoding | None = None
    step_times: _StepTimes = field(default_factory=_StepTimes)
    widen: Widen | None = None
    shown: str = ""
    is_complete: bool = False

    @property
    def num_written(self) -> int:
        """Tokens that passes have written so far."""
        return self.decoding.stats.num_written if self.decoding else 0

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """Run one more pass. Return False when the completion is whole."""
        if self.decoding is None:
            if self.widen is not None:
                self.prepared = self.widen(self.prepared)
            self.decoding = self.prepared.decode(stats)
        if self.decoding.finish(self.rules, self.limits) is not None:
            self.decoding.end()
            return False
        within_ms = self.step_times.next_ms(cancellation)
        if self.decoding.must_prepare(within_ms):
            self.decoding.prepare(within_ms)
        else:
            self.decoding.step(within_ms)
        return True

    def need_test(self) -> RequestTest:
        """Return which requests need the result of the next step; to be called on any thread while it runs.

        Those that have typed some of what is written by now, but not those that find all they need there.
        """
        if self.widen is not None and (self.decoding is None or self.decoding.num_pending > 1):
            return never_needed
        begun, found = self.prepared.request, self.shown if self.is_complete else ""
        text = self.decoding.written.text if self.decoding else self.shown

        def needed_by(request: CompletionRequest) -> bool:
            typed = request.typed_since(begun)
            return typed is not None and typed.startswith(found) and text.startswith(typed)

        return needed_by

    def end(self) -> None:
        """Give the work up."""
        if self.decoding is not None and self.num_written:
            self.decoding.end()


def work_after(  # noqa: PLR0913 - how an answer came about
    prepared: PreparedRequest,
    completion: Completion,
    finish: Finish,
    rules: TextRules,
    limits: Limits,
    widen: Widen,
) -> BackgroundWriting | BackgroundPrompt | None:
    """Return the work while an answer is read: the rest of one that was cut short, else the next line.

    Where the completion is suppressed, only its prompt is computed.
    """
    if finish.is_suppressed:
        return BackgroundPrompt(prepared)
    shown = completion.text
    is_unfinished = finish.reason == "deadline" or (finish.reason == "unsure" and not shown)
    if is_unfinished or not prepared.shows_all:
        rest = Limits(limits.max_tokens)
        return BackgroundWriting(
            prepared, rules, rest, widen=None if prepared.shows_all else widen, shown=shown
        )
    if not shown:
        return None
    further = Limits(completion.stats.num_tokens + _MAX_TOKENS_AFTER)
    return BackgroundWriting(prepared, NextLine(shown), further, shown=shown, is_complete=True)


class NextLine:
    """Rules that end after the first whole line after what is shown, and where the text differs from it.

    A user who accepts the suggestion and goes on as the target would is then answered without a pass.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def check(self, generated: str) -> Finish | None:
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
class BackgroundPrompt:
    """A prompt at a cursor where a request may follow soon.

    One that `is_widened` shows more than such a request waits for.
    """

    prepared: PreparedRequest
    decoding: Decoding | None = None
    step_times: _StepTimes = field(default_factory=_StepTimes)
    is_widened: bool = False

    @property
    def num_written(self) -> int:
        """Return 0: only a prompt is computed."""
        return 0

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """Compute some more of the prompt. Return False when it is computed."""
        if self.decoding is None:
            self.decoding = self.prepared.decode(stats)
        return self.decoding.prepare(self.step_times.next_ms(cancellation))

    def need_test(self) -> RequestTest:
        """As for `BackgroundWriting`: a request at the same cursor waits for this prompt."""
        return never_needed if self.is_widened else self.prepared.request.is_at

    def end(self) -> None:
        """Give the work up: what is cached stays."""


def never_needed(_request: CompletionRequest) -> bool:
    """Return False: no request needs the result."""
    return False

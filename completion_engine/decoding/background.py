"""Background work of an idle engine: writes on after an answer, prefetches a completion, or computes a
prompt.

Each object here holds the state of one work item between its steps; `completion_engine.target_engine` decides
when a step runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from completion_engine.decoding.ending import Ending, Finish, Limits, NoRules, TextRules
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest
from completion_engine.request import Cancellation, Completion, CompletionRequest, CompletionStats

RequestTest = Callable[[CompletionRequest], bool]
Widen = Callable[[PreparedRequest], PreparedRequest]

_STEP_MS = 50.0  # a request may have to wait for the end of a step
_MAX_TOKENS_AFTER = 32  # most tokens that are prefetched after a suggestion
_PAUSE_SHARE = 0.1  # share of the pause so far: a user who paused long will probably pause longer


@dataclass(slots=True)
class _StepTimes:
    """The time of each step: short at first, and longer the longer the user pauses.

    If another window waits for the engine, steps stay short.
    """

    begun_s: float = field(default_factory=time.perf_counter)

    def next_ms(self, cancellation: Cancellation) -> float:
        """Return how long the next step may take, in milliseconds."""
        paused_ms = (time.perf_counter() - self.begun_s) * 1e3
        return _STEP_MS if cancellation.gives_way else max(_STEP_MS, _PAUSE_SHARE * paused_ms)


@dataclass(slots=True)
class BackgroundWriting:
    """Writes a completion in the background: the rest of an answer, the text after it, or one not requested
    yet.

    `shown` is the text of the answer, if the request `is_answered`. If it `is_complete`, the text after it is
    written, otherwise its rest. `widen` replaces the prompt of the answer by the full prompt, which took too
    long for the answer itself.
    """

    prepared: PreparedRequest
    rules: TextRules
    limits: Limits
    decoding: Decoding | None = None
    step_times: _StepTimes = field(default_factory=_StepTimes)
    widen: Widen | None = None
    shown: str = ""
    is_complete: bool = False
    is_answered: bool = False
    _has_told: bool = False

    @property
    def num_written(self) -> int:
        """Number of tokens that passes have written so far."""
        return self.decoding.stats.num_written if self.decoding else 0

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """Run one more pass. Return False when the completion has ended."""
        if self.decoding is None:
            if self.widen is not None:
                self.prepared = self.widen(self.prepared)
            self.decoding = self.prepared.decode(stats)
        if self.decoding.finish(self.rules, self.limits) is not None:
            self.decoding.end()
            return False
        self.decoding.step(self.step_times.next_ms(cancellation))
        return True

    def is_rest_of(self, request: CompletionRequest) -> bool:
        """Return whether this is the rest of an answer at the same cursor."""
        return self.is_answered and not self.is_complete and self.prepared.request.is_at(request)

    def has_news(self, *, has_ended: bool) -> bool:
        """Return whether an answer to the request would show more by now, or something better.

        That is so once it `has_ended`, and once before, when a further line is complete.
        """
        if self.is_complete or self.decoding is None:
            return False
        text = self.decoding.written.text
        is_further_line = text.startswith(self.shown) and "\n" in text[len(self.shown) :].lstrip()
        if not has_ended and (self._has_told or not is_further_line):
            return False
        self._has_told = True
        return not self.shown.startswith(self._answer_by_now(self.decoding))

    def _answer_by_now(self, decoding: Decoding) -> str:
        """Return what an answer would show of the text so far, by its confidence too."""
        request, ending = self.prepared.request, Ending(decoding.written)
        limits = replace(self.limits, min_confidence=1 - request.eagerness)
        finish = ending.finish(decoding.tokens, decoding.probabilities, self.rules, limits)
        num_chars = finish.num_chars if finish else ending.num_shown(self.rules, limits)
        return decoding.written.text[:num_chars].rstrip()

    def need_test(self) -> RequestTest:
        """Return a test of whether a request needs the result of the next step; any thread may call the test.

        A request needs it if the text typed since matches the text written so far, and goes beyond the answer
        if that was complete. No request needs a step that computes the full prompt.
        """
        if self.widen is not None and (self.decoding is None or self.decoding.num_pending > 1):
            return never_needed
        begun, answered = self.prepared.request, self.shown if self.is_complete else ""
        text = self.decoding.written.text if self.decoding else self.shown

        def needs_result(request: CompletionRequest) -> bool:
            typed = request.typed_since(begun)
            return typed is not None and typed.startswith(answered) and text.startswith(typed)

        return needs_result

    def end(self) -> None:
        """End the work; what it wrote is kept."""
        if self.decoding is not None and self.num_written:
            self.decoding.end()


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer with all that background work goes on from."""

    prepared: PreparedRequest
    completion: Completion
    finish: Finish
    rules: TextRules
    limits: Limits

    def work(self, widen: Widen) -> BackgroundWriting | BackgroundPrompt | None:
        """Return the work after the answer: the rest of one that was cut short, otherwise the next line.

        If the completion was suppressed, only its prompt is computed.
        """
        prepared, finish, shown = self.prepared, self.finish, self.completion.text
        if finish.is_suppressed:
            return BackgroundPrompt(prepared)
        is_unfinished = finish.reason == "deadline" or (finish.reason == "unsure" and not shown)
        if is_unfinished or not prepared.shows_all:
            rest = Limits(self.limits.max_tokens, self.limits.num_spare_tokens)
            widen_or_none = None if prepared.shows_all else widen
            return BackgroundWriting(
                prepared, self.rules, rest, widen=widen_or_none, shown=shown, is_answered=True
            )
        if not shown:
            return None
        further = Limits(self.completion.stats.num_tokens + _MAX_TOKENS_AFTER)
        return BackgroundWriting(prepared, NextLine(shown), further, shown=shown, is_complete=True)


class NextLine(NoRules):
    """Rules that end after the first complete line after `shown`, or where the text differs from `shown`.

    If the user accepts the suggestion and types on as the target wrote, the next answer needs no pass.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def stop(self, generated: str) -> Finish | None:
        """See `TextRules`."""
        is_same = generated.startswith(self._shown) or self._shown.startswith(generated)
        has_line = "\n" in generated[len(self._shown) :].lstrip()
        return None if is_same and not has_line else Finish("stop", len(generated))


@dataclass(slots=True)
class BackgroundPrompt:
    """Computes a prompt at a cursor where a request may follow soon.

    With `is_widened` it is the full prompt, larger than the one that the request would use.
    """

    prepared: PreparedRequest
    decoding: Decoding | None = None
    step_times: _StepTimes = field(default_factory=_StepTimes)
    is_widened: bool = False

    @property
    def num_written(self) -> int:
        """Return 0: no token is written."""
        return 0

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """Compute some more of the prompt. Return False when it is computed."""
        if self.decoding is None:
            self.decoding = self.prepared.decode(stats)
        return self.decoding.prepare(self.step_times.next_ms(cancellation))

    def need_test(self) -> RequestTest:
        """See `BackgroundWriting.need_test`. A request at the same cursor needs the prompt unless it
        `is_widened`.
        """
        return never_needed if self.is_widened else self.prepared.request.is_at

    def end(self) -> None:
        """End the work; the cached tokens are kept."""


def never_needed(_request: CompletionRequest) -> bool:
    """Return False: no request needs the result."""
    return False

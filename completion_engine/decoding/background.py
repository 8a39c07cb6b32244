"""Background work of an idle engine: writes on after an answer, prefetches a completion, or computes a
prompt.

`BackgroundWork` chooses the next work item of an engine. Each item holds its own state between its steps, and
`completion_engine.engine` decides when a step runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from completion_engine.decoding.ending import (
    Ending,
    Finish,
    Limits,
    NextLine,
    TextRules,
    rules_at,
    suppression,
)
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.preparation import PreparedRequest, RequestPreparation
from completion_engine.prompting.prompt import Prompt
from completion_engine.request import Cancellation, Completion, CompletionRequest, CompletionStats

RequestTest = Callable[[CompletionRequest], bool]
Widen = Callable[[PreparedRequest], PreparedRequest]

_STEP_MS = 50.0  # a request may have to wait for the end of a step
_MAX_TOKENS_AFTER = 32  # most tokens that are prefetched after a suggestion
_PAUSE_SHARE = 0.1  # share of the pause so far: a user who paused long will probably pause longer


def _step_ms(begun_s: float, cancellation: Cancellation) -> float:
    """Return how long the next step may take (ms): short at first, and longer the longer the user pauses.

    If another window waits for the engine, steps stay short.
    """
    paused_ms = (time.perf_counter() - begun_s) * 1e3
    return _STEP_MS if cancellation.gives_way else max(_STEP_MS, _PAUSE_SHARE * paused_ms)


@dataclass(slots=True)
class BackgroundWriting:
    """Writes a completion in the background: the rest of an answer, the text after it, or one not requested
    yet.

    `shown` is the text of the answer, if the request `is_answered`. If it `is_complete`, the text after it is
    written, otherwise its rest. `widen` replaces the prompt by a larger one, which took too long for the
    answer itself.
    """

    prepared: PreparedRequest
    rules: TextRules
    limits: Limits
    decoding: Decoding | None = None
    begun_s: float = field(default_factory=time.perf_counter)
    widen: Widen | None = None
    shown: str = ""
    is_complete: bool = False
    is_answered: bool = False
    _has_reported: bool = False

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
        self.decoding.step(_step_ms(self.begun_s, cancellation))
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
        if not has_ended and (self._has_reported or not is_further_line):
            return False
        self._has_reported = True
        ending = Ending(self.decoding.written)
        limits = replace(self.limits, min_confidence=1 - self.prepared.request.eagerness)
        finish = ending.finish(self.decoding.tokens, self.decoding.probabilities, self.rules, limits)
        num_chars = finish.num_chars if finish else ending.num_shown(self.rules, limits)
        return not self.shown.startswith(text[:num_chars].rstrip())

    def need_test(self) -> RequestTest:
        """Return a test of whether a request needs the result of the next step; any thread may call the test.

        A request needs it if the text typed since matches the text written so far, and goes beyond the answer
        if that was complete. No request needs a step that computes a larger prompt.
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
class Answer:
    """An answer, and everything that background work continues from."""

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


@dataclass(slots=True)
class BackgroundPrompt:
    """Computes a prompt at a cursor where a request may follow soon.

    With `is_widened` it is the full prompt, larger than the one that the request would use.
    """

    prepared: PreparedRequest
    decoding: Decoding | None = None
    begun_s: float = field(default_factory=time.perf_counter)
    is_widened: bool = False

    @property
    def num_written(self) -> int:
        """Return 0: no token is written."""
        return 0

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """Compute some more of the prompt. Return False when it is computed."""
        if self.decoding is None:
            self.decoding = self.prepared.decode(stats)
        return self.decoding.prepare(_step_ms(self.begun_s, cancellation))

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


class BackgroundWork:
    """The background work of one engine: the present work item, the next one, and news about the last answer.

    Used on the engine's thread.
    """

    def __init__(self, preparation: RequestPreparation) -> None:
        self._preparation = preparation
        self._current: BackgroundWriting | BackgroundPrompt | None = None
        self._later: CompletionRequest | None = None  # prepared after the rest of an answer
        self._grown: CompletionRequest | None = None  # its answer would show more by now
        self._answer: Answer | None = None  # after which no work was chosen yet

    @property
    def current(self) -> BackgroundWriting | BackgroundPrompt | None:
        """The present work. After an answer it is chosen here: no answer waits for that."""
        if self._answer is not None:
            self._current = self._answer.work(self._preparation.with_larger_prompt)
            self._answer = None
        return self._current

    def replace(
        self, request: CompletionRequest, stats: CompletionStats, prompt: Prompt | None = None, *, waits: bool
    ) -> tuple[PreparedRequest, Decoding]:
        """Abandon the present work, then prepare a request and begin to write; see `prepare_request`."""
        self.abandon()
        prepared = self._preparation.prepare_request(request, prompt, waits=waits)
        return prepared, prepared.decode(stats)

    def follow(self, answer: Answer | PreparedRequest) -> None:
        """Continue after an answer, or compute the prompt of a request that was cancelled."""
        if isinstance(answer, Answer):
            self._answer = answer
        else:
            self._current = BackgroundPrompt(answer)

    def prefetch(self, request: CompletionRequest, stats: CompletionStats, *, writes: bool) -> None:
        """Prepare for a request that is likely soon; with `writes`, also write its completion.

        The rest of an answer at the same cursor is written first: the user looks at it.
        """
        work = self.current
        if not writes and isinstance(work, BackgroundWriting) and work.is_rest_of(request):
            self._later = request
            return
        prepared, decoding = self.replace(request, stats, waits=True)
        self._current = BackgroundPrompt(prepared, decoding)
        rules = rules_at(request)
        if writes and not suppression(rules, request):
            limits = Limits.of(request, self._preparation.max_new_tokens, time.perf_counter(), 0.0)
            self._current = BackgroundWriting(prepared, rules, limits, decoding)

    def step(self, stats: CompletionStats, cancellation: Cancellation) -> bool:
        """Run one step of the present work; return False when nothing is left.

        Raises CancelledError when the step is cut short.
        """
        if (work := self.current) is None:
            return False
        goes_on = work.step(stats, cancellation)
        if isinstance(work, BackgroundWriting) and work.has_news(has_ended=not goes_on):
            self._grown = work.prepared.request
        if goes_on:
            return True
        grown, self._current, widen = self._grown, None, self._preparation.with_whole_prompt
        if isinstance(work, BackgroundWriting) and work.is_answered and not work.prepared.shows_all:
            self._current = replace(work, decoding=None, widen=widen, _has_reported=False)
        elif self._later is not None:
            self.prefetch(self._later, stats, writes=False)
            self._grown = grown
        elif not work.prepared.shows_all:
            self._current = BackgroundPrompt(widen(work.prepared), is_widened=True)
        return self._current is not None

    def vain_test(self, cancellation: Cancellation, *, is_late: bool) -> Callable[[], bool]:
        """Return a test of whether the request that cancelled the next step does not need its result.

        Where the work `is_late`, no request does. Any thread may call the test.
        """
        work = self.current
        needed_by = never_needed if is_late or work is None else work.need_test()
        return lambda: not (cancellation.instead and needed_by(cancellation.instead))

    def take_grown(self) -> CompletionRequest | None:
        """Return the request whose answer would show more by now, once; None without news."""
        grown, self._grown = self._grown, None
        return grown

    def forget(self, document: str) -> None:
        """Abandon the work for a closed document."""
        work = self.current
        if work is not None and work.prepared.request.document == document:
            self.abandon()

    def abandon(self) -> None:
        """Give up the present work: the drafters keep what they may of it."""
        if self._current is not None:
            self._current.end()
        self._current = self._answer = self._grown = self._later = None

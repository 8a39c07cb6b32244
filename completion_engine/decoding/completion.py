"""One completion: written step by step until it ends, then built: polished text, its sources and statistics.

`run` compares the clock with the deadline before each step.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from completion_engine.cutting.cutter import Cutter, Suggestion
from completion_engine.cutting.units import is_enough
from completion_engine.decoding.ending import Ending, Finish, Limits, TextRules
from completion_engine.decoding.low_confidence_names import KnownNames, num_confident_chars
from completion_engine.probability import TokenProbability, num_scored
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import (
    Cancellation,
    Completion,
    CompletionRequest,
    CompletionSegment,
    CompletionStats,
    Forecast,
)
from ngram_cache import NgramIndex

if TYPE_CHECKING:  # a window on remote servers starts without torch
    from completion_engine.drafting.drafts import DraftToken

# The reason to show if the text is blank and no rule ended it, by finish reason.
_ENDED_AT_ONCE = {"deadline": "out-of-time", "end": "nothing-to-add"}
_READ_FROM = {"prompt": "this file", "recent": "recent suggestions"}
_IN_CONTEXT = "other files"  # drafts from the repository snippets in front of the prompt
_PASS_MARGIN = 1.2  # the deadline assumes that a pass takes this many times its measured time


class Writing(ABC):
    """A completion that is written step by step, by a local target or by servers.

    `path` is the prompt and the tokens after it. `probabilities` are those of the written tokens, as far as
    they are known, and `sources` the drafts that they were accepted from; None where the target wrote a token
    itself.
    """

    def __init__(self, prompt: Prompt, written: Written, stats: CompletionStats) -> None:
        self.written, self.stats = written, stats
        self.path = list(prompt.tokens)
        self.probabilities: list[TokenProbability] = []
        self.sources: list[DraftToken | None] = []
        self._num_prompt = len(self.path)
        self._ending = Ending(written)

    @property
    def tokens(self) -> list[int]:
        """The tokens written so far; the last step may have written some after the completion's end."""
        return self.path[self._num_prompt :]

    @property
    def num_checked(self) -> int:
        """Number of leading tokens that `finish` has looked at; drafts do not change it."""
        return self._ending.num_checked

    @property
    @abstractmethod
    def next_ms(self) -> float:
        """The least milliseconds of the next step."""

    @abstractmethod
    def step(self, within_ms: float = float("inf")) -> None:
        """Run the next step, in at most `within_ms` if a step can be that short."""

    def finish(self, rules: TextRules, limits: Limits) -> Finish | None:
        """Return the end of the completion; None to go on. See `Ending`."""
        return self._ending.finish(self.tokens, self.probabilities, rules, limits)

    def num_shown(self, rules: TextRules, limits: Limits) -> int:
        """Return the number of characters to show of the text so far. See `Ending`."""
        return self._ending.num_shown(rules, limits)

    @abstractmethod
    def end(self) -> None:
        """End the writing, once: local drafters store the completion."""


def run(writing: Writing, rules: TextRules, limits: Limits, cancellation: Cancellation) -> Finish:
    """Write until a rule, the target or a limit ends the completion.

    If even the shortest next step would miss the deadline, the text ends at its longest likely unit, or at
    the last good position if all of it may be shown. If there is none yet, writing goes on to the first one,
    or until the patience or the turn ends. Before the deadline, steps are kept short enough to meet it.
    Raises CancelledError.

    A first step always runs, as short as it can be if it seems to take longer than the patience: only a step
    shows that its estimate is wrong.
    """
    has_begun = False
    try:
        while True:
            if (finish := writing.finish(rules, limits)) is not None:
                return finish
            cancellation.check()
            now = time.perf_counter()
            soon = now + _PASS_MARGIN * writing.next_ms / 1e3
            is_turn_over = limits.is_turn_over(cancellation)
            is_late = soon > limits.deadline_at
            if is_late or is_turn_over:
                num_chars = writing.num_shown(rules, limits)
                if num_chars or is_turn_over or (has_begun and soon > limits.patience_at):
                    return Finish("deadline", num_chars)
            within_ms = (limits.deadline_at - now) * 1e3 / _PASS_MARGIN
            if is_late:
                within_ms = float("inf") if soon <= limits.patience_at else 0.0
            writing.step(within_ms)
            has_begun = True
    finally:
        writing.end()


@dataclass(frozen=True, slots=True)
class CompletionBuilder:
    """Builds the completions of one request, whose prompt begins with `num_context` tokens of its repository.

    With `scores` the tokens have probabilities, and completions are cut before low-confidence names.
    """

    request: CompletionRequest
    rules: Cutter
    tokenizer: Tokenizer
    num_context: int
    scores: bool

    def build(self, writing: Writing, finish: Finish, begin_s: float) -> Completion:
        """Return the completion of `writing`, which began at `begin_s` (`time.perf_counter()`), cut at
        `finish`.
        """
        forecast = _forecast(writing, finish)
        finish = self._before_low_confidence_names(forecast, finish)
        polishing_s, stats = time.perf_counter(), writing.stats
        suggestion = self.rules.cut(writing.written.text[: finish.num_chars])
        if suggestion.text and self.request.filters_by_confidence and not is_enough(suggestion.text):
            suggestion = Suggestion("", 0, "too-short")
        stats.num_tokens = sum(end <= finish.num_chars for end in writing.written.ends)
        stats.finish_reason = finish.reason
        sources = zip(writing.written.ends, writing.sources, strict=True)
        attribution = SourceAttribution(self.tokenizer, self.request.index, self.num_context)
        segments = attribution.segments(suggestion.text, sources)
        now_s = time.perf_counter()
        stats.ms["postprocess"] = (now_s - polishing_s) * 1e3
        stats.ms["total"] = (now_s - begin_s) * 1e3
        rule: str = suggestion.rule
        if rule == "blank":  # show what ended it, because that left it blank
            rule = finish.rule or _ENDED_AT_ONCE.get(finish.reason, rule)
        rule = rule or finish.rule
        return Completion(suggestion.text, suggestion.num_replaced, stats, segments, rule, forecast=forecast)

    def _before_low_confidence_names(self, forecast: Forecast, finish: Finish) -> Finish:
        """Return `finish`, or an earlier end before a name that probably does not exist."""
        request, names = self.request, KnownNames(self.request, self.tokenizer)
        if not self.scores or not names.can_judge:
            return finish
        num_chars = num_confident_chars(self.rules, forecast, request.eagerness, is_known=names.__contains__)
        return Finish("unsure", num_chars, "unknown-name") if num_chars < finish.num_chars else finish


def _forecast(writing: Writing, finish: Finish) -> Forecast:
    """Return the tokens that `finish` looked at, up to and including the one that ended the completion."""
    ends = tuple(writing.written.ends[: writing.num_checked])
    probabilities = writing.probabilities[: writing.num_checked]
    text = writing.written.text[: ends[-1] if ends else 0]
    is_scored = num_scored(probabilities) == len(probabilities)
    return Forecast(text, ends, tuple(one.value for one in probabilities), finish.num_chars, is_scored)


@dataclass(frozen=True, slots=True)
class _LineCount:
    """Number of line ends before token `offset` of a document in the index."""

    offset: int = 0
    num_lines: int = 0


class SourceAttribution:
    """Finds the source of each part of one completion: a drafter, with file and line, or the target."""

    def __init__(self, tokenizer: Tokenizer, index: NgramIndex | None, num_context: int = 0) -> None:
        """The first `num_context` tokens of the prompt are snippets of the repository."""
        self._tokenizer = tokenizer
        self._num_context = num_context
        self._index = index
        self._counted: dict[int, _LineCount] = {}  # by document

    def segments(
        self, text: str, written: Iterable[tuple[int, DraftToken | None]]
    ) -> tuple[CompletionSegment, ...]:
        """Return `text` in segments, cut where its source changes.

        `written` holds for each token its end in the text and the guess that it was accepted from, None for
        the target's own. Tokens beyond the text, and those that add no character, are left out.
        """
        segments: list[CompletionSegment] = []
        start = 0
        for end, guess in written:
            chunk = text[start:end]
            start = end
            if not chunk:
                continue
            segment = self._segment(chunk, guess)
            if segments and segments[-1].attribution == segment.attribution:
                segments[-1] = segments[-1].joined(chunk)
            else:
                segments.append(segment)
        return tuple(segments)

    def _segment(self, text: str, guess: DraftToken | None) -> CompletionSegment:
        if guess is None:
            return CompletionSegment(text, "target")
        if guess.read_from == "prompt" and 0 < guess.offset < self._num_context:
            return CompletionSegment(text, guess.source, _IN_CONTEXT)
        if guess.document < 0 or self._index is None:
            return CompletionSegment(text, guess.source, _READ_FROM.get(guess.read_from, ""))
        path = self._index.path_of(guess.document)
        if not path:
            return CompletionSegment(text, guess.source)
        return CompletionSegment(text, guess.source, path=path, line=self._line(self._index, guess))

    def _line(self, index: NgramIndex, guess: DraftToken) -> int:
        """Return the line, from 0, on which a guess was found; earlier counts are continued."""
        known = self._counted.get(guess.document, _LineCount())
        if known.offset > guess.offset:
            known = _LineCount()
        tokens = index.tokens_before(guess.document, guess.offset)[known.offset :]
        num_lines = known.num_lines + self._tokenizer.spell(tokens.tolist()).count(b"\n")
        self._counted[guess.document] = _LineCount(guess.offset, num_lines)
        return num_lines

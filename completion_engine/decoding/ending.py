"""When a completion ends: at a rule, an end token, a limit, or where it is too unlikely to be right."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.repeats import Stop
from completion_engine.cutting.units import MOST_LENIENT, UnitEnd, longest_likely
from completion_engine.probability import SHIPPED, TokenProbability
from completion_engine.prompting.prompt import Written
from completion_engine.prompting.prompt_choice import WARM_SHARE
from completion_engine.request import Cancellation, CompletionRequest
from completion_engine.text_window import CursorContext

MAX_NEW_TOKENS = 256
# If another window waits for the engine, a completion ends after this time with the text that it has.
MAX_TURN_S = 1.0
_SOON_SHARE = 0.05  # share of the patience: a prompt that takes less gets no extra time
_COLD_SHARE = 0.4  # share of the patience that a completion gets if its prompt was not cached
_EXPLICIT_SHARE = 0.6  # share of the patience that it gets if the user asked by a key
_SUPPRESSED = "silent"  # the value in the statistics, which clients read


class TextRules(Protocol):
    """Rules that end a text; see `completion_engine.cutting`. By default they never do."""

    def stop(self, generated: str) -> Stop | Finish | None:  # noqa: ARG002 - never
        """Return where to stop; None to go on."""
        return None

    def boundary(self, generated: str) -> int:
        """Return the number of characters before the last position at which the text can be cut well."""
        return len(generated)

    def units(self, generated: str) -> Iterable[UnitEnd]:
        """Return where the text may end if it is shown while the user types."""
        return (UnitEnd(len(generated), "line"),)

    def is_within_statement(self, generated: str) -> bool:  # noqa: ARG002 - anything is complete
        """Return whether the text so far is code without a complete statement."""
        return False


class NoRules(TextRules):
    """Rules that never end a text: the completion ends at an end token or a limit."""


def rules_at(request: CompletionRequest) -> Cutter:
    """Return the rules at a request's cursor."""
    text = request.text_before, request.text_after
    return Cutter(CursorContext(*text, request.language, request.multiline))


@dataclass(frozen=True, slots=True)
class Finish:
    """Why a completion ended, and how many characters of its text are shown."""

    reason: str
    num_chars: int
    rule: str = ""

    @property
    def is_suppressed(self) -> bool:
        """Whether the completion was suppressed before it began; see `suppression`."""
        return self.reason == _SUPPRESSED


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


def suppression(rules: Cutter, request: CompletionRequest) -> Finish | None:
    """Return the end of a completion in a comment or string where the request wants none; None elsewhere."""
    surroundings = rules.around.kind
    return Finish(_SUPPRESSED, 0, f"in-{surroundings}") if surroundings in request.suppressed_in else None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one completion. Times are `time.perf_counter()` seconds.

    After `deadline_at` the completion ends once some text can be shown, after `patience_at` in any case, and
    after `turn_until` if another window waits. With a `min_confidence` it ends with the longest unit that is
    likely enough. An incomplete statement may take `num_spare_tokens` more than `max_tokens`.
    """

    max_tokens: int
    num_spare_tokens: int = 0
    deadline_at: float = float("inf")
    patience_at: float = float("inf")
    turn_until: float = float("inf")
    min_confidence: float = 0.0

    @classmethod
    def of(cls, request: CompletionRequest, most_tokens: int, begin_s: float, cold_ms: float) -> Limits:
        """Return the limits of a request that began at `begin_s` and can write at most `most_tokens`.

        `cold_ms` is the time to compute its prompt if most of that is not cached, else 0. If this takes a
        large part of the deadline, the deadline is moved to `_COLD_SHARE` of the patience, so that an answer
        which is late anyway is not cut short too. An explicit request gets `_EXPLICIT_SHARE`.
        """
        deadline_ms = request.deadline_ms if request.deadline_ms > 0 else float("inf")
        left_ms = max(1.0, deadline_ms - request.waited_ms)
        if cold_ms > max(WARM_SHARE * deadline_ms, _SOON_SHARE * request.patience_ms):
            left_ms = max(left_ms, _COLD_SHARE * request.patience_ms)
        if request.is_explicit:
            left_ms = max(left_ms, _EXPLICIT_SHARE * request.patience_ms)
        patience_ms = max(request.patience_ms, request.deadline_ms - request.waited_ms)
        deadline_at, patience_at = (begin_s + ms / 1e3 for ms in (left_ms, patience_ms))
        turn_until = begin_s + MAX_TURN_S
        max_tokens, min_confidence = min(request.max_tokens, most_tokens), 1 - request.eagerness
        num_spare = min(max_tokens // 2, most_tokens - max_tokens)
        return cls(max_tokens, num_spare, deadline_at, patience_at, turn_until, min_confidence)

    @property
    def most_tokens(self) -> int:
        """The most tokens of the completion, spare ones included."""
        return self.max_tokens + self.num_spare_tokens

    def is_turn_over(self, cancellation: Cancellation) -> bool:
        """Return whether another window waits and this completion's turn has ended."""
        return cancellation.gives_way and time.perf_counter() > self.turn_until


class Ending:
    """Finds the token that ends one completion; looks at each token once, in order."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self._confidence = 1.0
        self._confidences: list[float] = []  # one for each checked token
        self._num_chars_at_limit = 0
        self.num_checked = 0

    def finish(
        self,
        tokens: Sequence[int],
        probabilities: Sequence[TokenProbability],
        rules: TextRules,
        limits: Limits,
    ) -> Finish | None:
        """Return the end of the completion whose `tokens` have these `probabilities`; None to go on.

        The confidence of a text is the product of its tokens' calibrated probabilities. The completion also
        ends at the first token with which no unit is likely enough any more.
        """
        ends, least = [0, *self._written.ends], limits.min_confidence**MOST_LENIENT
        while self.num_checked < len(tokens):
            at = self.num_checked
            self.num_checked += 1
            self._confidences.append(SHIPPED.of(probabilities[at].value))
            self._confidence *= self._confidences[-1]
            finish = self._finish_with(tokens[at], ends[at + 1], rules, limits)
            if self._confidence < least and (finish is None or finish.num_chars > ends[at]):
                return Finish("unsure", self.num_shown(rules, limits), "unsure")
            if finish is not None:
                return finish
        return None

    def num_shown(self, rules: TextRules, limits: Limits) -> int:
        """Return the number of characters to show of the tokens that were checked."""
        ends = self._written.ends[: self.num_checked]
        text = self._written.text[: ends[-1] if ends else 0]
        if limits.min_confidence <= 0:
            return rules.boundary(text)
        return longest_likely(rules.units(text), ends, self._confidences, limits.min_confidence)

    def _finish_with(self, token: int, num_chars: int, rules: TextRules, limits: Limits) -> Finish | None:
        """Return the end at `token`, up to which the text has `num_chars` characters; None to go on."""
        if self._written.is_end(token):
            return Finish("end", num_chars)
        stop = rules.stop(self._written.text[:num_chars])
        if stop is not None:
            return Finish("stop", stop.num_chars, stop.rule)
        if self.num_checked >= limits.max_tokens:
            return self._finish_at_limit(rules, limits, self._written.text[:num_chars])
        return None

    def _finish_at_limit(self, rules: TextRules, limits: Limits, text: str) -> Finish | None:
        """Return the end of a text of at least `limits.max_tokens` tokens; None to complete its statement.

        If the spare tokens do not complete it, they are not shown. The next request goes on with them.
        """
        if self.num_checked == limits.max_tokens:
            self._num_chars_at_limit = self.num_shown(rules, limits)
        if not rules.is_within_statement(text):
            return Finish("length", self.num_shown(rules, limits))
        return Finish("length", self._num_chars_at_limit) if self.num_checked >= limits.most_tokens else None

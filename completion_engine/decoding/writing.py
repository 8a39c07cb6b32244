"""A text being written, as limits and answers see it, and when what is written ends it. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from completion_engine.calibration import SHIPPED, Calibration
from completion_engine.decoding.chances import Chance
from completion_engine.prompting.written import Written
from completion_engine.stats import CompletionStats

if TYPE_CHECKING:  # whoever writes elsewhere needs no torch
    from completion_engine.drafting.draft import DraftToken


class TextRules(Protocol):
    """When a text is long enough; see `completion_engine.suggestions`."""

    def check(self, generated: str) -> object | None:
        """A stop with `rule` and `num_chars`, or None to go on."""
        ...

    def boundary(self, generated: str) -> int:
        """Characters up to the last sensible place to cut."""
        ...

    def head(self, generated: str, num_chars: int) -> int:
        """Characters up to the last sensible place to cut within the first `num_chars`."""
        ...


@dataclass(frozen=True, slots=True)
class Finish:
    """Why writing ended, and how many characters of the text count."""

    reason: str
    num_chars: int
    rule: str = ""


class Writing(Protocol):
    """Tokens that come step by step, whoever writes them."""

    @property
    def written(self) -> Written:
        """What they spell."""
        ...

    @property
    def stats(self) -> CompletionStats:
        """What they cost."""
        ...

    @property
    def chances(self) -> Sequence[Chance]:
        """How likely each was, as far as that is known."""
        ...

    @property
    def num_checked(self) -> int:
        """Of these the ones that `finish` has looked at."""
        ...

    @property
    def origins(self) -> Sequence[DraftToken | None]:
        """For each the draft it was accepted from; None where the target wrote it itself."""
        ...

    @property
    def next_ms(self) -> float:
        """What the next step takes at least."""
        ...

    def step(self, within_ms: float = float("inf")) -> None:
        """Write on; nothing is begun that takes longer than `within_ms` where something quicker does."""
        ...

    def finish(
        self,
        rules: TextRules,
        max_tokens: int,
        min_survival: float = 0.0,
        calibration: Calibration = SHIPPED,
    ) -> Finish | None:
        """Whether what is written ends the completion."""
        ...

    def end(self) -> None:
        """Nobody asks for more now."""
        ...


class Ending:
    """Looks at each token of one text once, in order, and says which ends it."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self._survival = 1.0
        self.num_checked = 0

    def finish(  # noqa: PLR0913 - what is written, and when that is enough
        self,
        tokens: Sequence[int],
        chances: Sequence[Chance],
        rules: TextRules,
        max_tokens: int,
        min_survival: float = 0.0,
        calibration: Calibration = SHIPPED,
    ) -> Finish | None:
        """Whether what is written ends the completion: `tokens`, of which `chances` says how likely they are.

        A text ends too before the token with which it is less likely right than `min_survival`, by
        `calibration`.
        """
        ends = [0, *self._written.ends]
        while self.num_checked < len(tokens):
            at = self.num_checked
            self.num_checked += 1
            self._survival *= calibration.of(chances[at].share)
            finish = self._finish_with(tokens[at], ends[at + 1], rules, max_tokens)
            if self._survival < min_survival and (finish is None or finish.num_chars > ends[at]):
                return Finish("unsure", rules.head(self._written.text[: ends[at + 1]], ends[at]), "unsure")
            if finish is not None:
                return finish
        return None

    def _finish_with(self, token: int, num_chars: int, rules: TextRules, max_tokens: int) -> Finish | None:
        """Whether `token`, with which the text has `num_chars`, ends it."""
        if self._written.is_end(token):
            return Finish("end", num_chars)
        stop = rules.check(self._written.text[:num_chars])
        if stop is not None:
            return Finish("stop", stop.num_chars, stop.rule)  # type: ignore[attr-defined]  # see Protocol
        if self.num_checked >= max_tokens:
            return Finish("length", rules.boundary(self._written.text[:num_chars]))
        return None

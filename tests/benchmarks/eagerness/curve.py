"""Characters saved and shown wrong, by confidence threshold: walks over forecasts.

No deadline cuts anything here. Has no access to the source of forecasts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion_engine.cutting.cutter import Cutter
from completion_engine.decoding.low_confidence_names import IsKnown, num_confident_chars
from completion_engine.probability import SHIPPED, Calibration
from completion_engine.request import Forecast
from completion_engine.text_window import CursorContext
from lsp_server.scripted_typing.typing_plan import TypingPlan
from lsp_server.scripted_typing.typist import Buffer, ShownSuggestion, Typist

ForecastAt = Callable[[str, str], Forecast]
KnowsAt = Callable[[str, str], IsKnown | None]
Show = Callable[[str, str], ShownSuggestion]


@dataclass(slots=True)
class Tally:
    """One typed stretch, or several: characters in all, not typed, and shown wrong."""

    num_chars: int = 0
    num_not_typed: int = 0
    num_wrong: int = 0
    num_shown: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.num_chars + other.num_chars,
            self.num_not_typed + other.num_not_typed,
            self.num_wrong + other.num_wrong,
            self.num_shown + other.num_shown,
        )

    def as_dict(self) -> dict[str, float]:
        """The figures that a curve is made of."""
        return {
            "num_chars": self.num_chars,
            "share_not_typed": round(self.num_not_typed / max(1, self.num_chars), 4),
            "shown_wrong_per_100": round(100 * self.num_wrong / max(1, self.num_chars), 2),
            "num_shown": self.num_shown,
        }


def shows(
    forecast_at: ForecastAt,
    language: str,
    eagerness: float,
    calibration: Calibration = SHIPPED,
    knows_at: KnowsAt | None = None,
) -> Show:
    """The suggestion between two texts with that eagerness, as the engine decides it."""

    def show(left: str, right: str) -> ShownSuggestion:
        forecast = forecast_at(left, right)
        rules = Cutter(CursorContext(left, right, language))
        knows = knows_at(left, right) if knows_at else None
        num_chars = num_confident_chars(rules, forecast, eagerness, calibration, knows)
        suggestion = rules.cut(forecast.text[:num_chars])
        return ShownSuggestion(suggestion.text, suggestion.num_replaced)

    return show


def walk(plan: TypingPlan, show: Show) -> Tally:
    """Type a plan, with the suggestion after each key."""
    typist = Typist.at_start(plan, Buffer("", ""))
    tally = Tally(plan.num_chars)
    seen = (0, "")
    while typist.next_stroke is not None:
        typist.press()
        while True:
            shown = show(typist.buffer.left, typist.buffer.right)
            if not shown.text:
                break
            tally.num_shown += 1
            seen, before = typist.wrong_part(shown), seen
            tally.num_wrong += len(seen[1]) if seen != before else 0
            if (taken := typist.consider(shown)) is None:
                break
            typist.accept(taken)
            tally.num_not_typed += len(taken.text)
    return tally

"""The screens and savings of two typists by confidence threshold: walks over forecasts.

No deadline cuts anything here. Has no access to the source of forecasts.
"""

from __future__ import annotations

from collections.abc import Callable

from completion_engine.cutting.cutter import Cutter
from completion_engine.decoding.low_confidence_names import IsKnown, num_confident_chars
from completion_engine.probability import SHIPPED, Calibration
from completion_engine.request import Forecast
from completion_engine.text_window import CursorContext
from lsp_server.scripted_typing.screen import USUAL_PACE_MS, ScreenLog, ShownSuggestion
from lsp_server.scripted_typing.typing_plan import TypingPlan
from lsp_server.scripted_typing.typist import TYPISTS, TypistName

ForecastAt = Callable[[str, str], Forecast]
KnowsAt = Callable[[str, str], IsKnown | None]
Show = Callable[[str, str], ShownSuggestion]
_ANSWER_MS = 60.0  # from a key to its suggestion
_NOTHING = ShownSuggestion("", 0)


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


def walk(plan: TypingPlan, show: Show, name: TypistName = "eager") -> ScreenLog:
    """Type a plan, with the suggestion after each key; a text stays while its beginning is typed."""
    typist = TYPISTS[name].at_start(plan)
    shown, seen = _NOTHING, typist.buffer.left
    while (step := typist.step(shown)) is not None:
        left = typist.buffer.left
        before = shown if step.taken is None else _NOTHING
        shown = _going_on(before, seen, left, show(left, typist.buffer.right))
        seen = left
        typist.see(shown if shown.text else None, max(0.0, USUAL_PACE_MS * step.pause - _ANSWER_MS))
    return typist.screen


def _going_on(shown: ShownSuggestion, seen: str, left: str, found: ShownSuggestion) -> ShownSuggestion:
    """Return the rest of what is shown where its beginning was typed after `seen`, else `found`."""
    typed = left[len(seen) :] if left.startswith(seen) else ""
    rest = shown.text[len(typed) :] if typed and shown.text.startswith(typed) else ""
    return found if not rest or found.text.startswith(rest) else ShownSuggestion(rest, shown.num_replaced)

"""Owns how much of a written text is likely enough to be shown, names that nobody knows taken into account.

Knows no tokens but their shares, and no repository but by asking whether it knows a name.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable

from completion_engine.calibration import SHIPPED, Calibration
from completion_engine.stats import Forecast
from completion_engine.suggestions.names import is_imported, names_in
from completion_engine.suggestions.stopping import StopRules

# The odds that a name is right which neither the file nor the repository holds, beside those by its shares.
_UNKNOWN_ODDS = 0.1

Knows = Callable[[str], bool]


def num_sure_chars(
    rules: StopRules,
    forecast: Forecast,
    eagerness: float,
    calibration: Calibration = SHIPPED,
    knows: Knows | None = None,
) -> int:
    """How many characters of a forecast to show, before they are polished.

    Up to the last sensible end before the token with which the text is less likely right than
    1 - `eagerness`. Without `knows`, all names count as known.
    """
    chances = [calibration.of(share) for share in forecast.shares]
    if knows is not None:
        _doubt(chances, rules, forecast, knows)
    survival, start = 1.0, 0
    for chance, end in zip(chances, forecast.ends, strict=True):
        survival *= chance
        if survival < 1 - eagerness and forecast.num_chars > start:
            return min(forecast.num_chars, rules.head(forecast.text[:end], start))
        start = end
    return forecast.num_chars


def _doubt(chances: list[float], rules: StopRules, forecast: Forecast, knows: Knows) -> None:
    """Lower the chance of each unknown name's first token, so that the whole name has what it deserves."""
    is_ended = forecast.num_chars == len(forecast.text)
    for name in names_in(rules.site, forecast.text, is_ended=is_ended):
        if name.start >= forecast.num_chars:
            return
        if knows(name.text) or (name.root and is_imported(name.root, rules.site.cursor.prefix)):
            continue
        first = bisect_right(forecast.ends, max(0, name.start))
        last = min(bisect_right(forecast.ends, name.end - 1), len(chances) - 1)
        chance = math.prod(chances[first : last + 1])
        odds = _UNKNOWN_ODDS * chance
        chances[first] *= odds / (odds + 1 - chance) / chance

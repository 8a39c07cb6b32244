"""An answer of a target that tells how sure it is: what it wrote in all, and no name that nobody knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from completion_engine.decoding.answers import answer
from completion_engine.decoding.attribution import Origins
from completion_engine.decoding.chances import num_known
from completion_engine.decoding.known_names import KnownNames
from completion_engine.decoding.writing import Finish, Writing
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import CompletionRequest
from completion_engine.stats import Completion, Forecast
from completion_engine.suggestions.doubts import num_sure_chars
from completion_engine.suggestions.stopping import StopRules


class Judged(Protocol):
    """What is asked for, and whether whoever writes tells how likely each token is."""

    @property
    def request(self) -> CompletionRequest:
        """What is asked for."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Of whoever writes."""
        ...

    @property
    def weighs(self) -> bool:
        """Whether chances are known."""
        ...

    def origins(self) -> Origins:
        """Tells where characters came from."""
        ...


def judged_answer(
    task: Judged, rules: StopRules, decoding: Writing, finish: Finish, begin: float
) -> Completion:
    """As `answer`, with its forecast, and ended before a name that is too unlikely to exist."""
    forecast = _forecast(decoding, finish)
    end = _before_doubtful_names(task, rules, forecast, finish)
    return replace(answer(task.origins(), rules, decoding, end, begin), forecast=forecast)


def _forecast(decoding: Writing, finish: Finish) -> Forecast:
    """The tokens that a decoding has looked at, the one too many included."""
    ends = tuple(decoding.written.ends[: decoding.num_checked])
    chances = decoding.chances[: decoding.num_checked]
    shares, is_weighed = tuple(chance.share for chance in chances), num_known(chances) == len(chances)
    text = decoding.written.text[: ends[-1] if ends else 0]
    return Forecast(text, ends, shares, finish.num_chars, is_weighed)


def _before_doubtful_names(task: Judged, rules: StopRules, forecast: Forecast, finish: Finish) -> Finish:
    """`finish`, or an earlier end where a name would come that nobody knows."""
    request, names = task.request, KnownNames(task.request, task.tokenizer)
    if not task.weighs or not names.can_judge:
        return finish
    num_chars = num_sure_chars(
        rules, forecast, request.eagerness, request.calibration, lambda name: name in names
    )
    return Finish("unsure", num_chars, "unknown-name") if num_chars < finish.num_chars else finish

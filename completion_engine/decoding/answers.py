"""From what is written to what is shown: the polished text, where its parts came from, and others beside it.

Owns how a completion is made of a decoding that has ended. Must not know how tokens are found.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from completion_engine.decoding.attribution import Origins
from completion_engine.decoding.candidates import decode_behind, rank_runners_up
from completion_engine.decoding.context import Finish
from completion_engine.decoding.known_names import KnownNames
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.run import Limits, run
from completion_engine.decoding.task import Task
from completion_engine.stats import Completion, CompletionStats, Forecast
from completion_engine.suggestions.doubts import num_sure_chars
from completion_engine.suggestions.stopping import StopRules
from completion_engine.suggestions.suggestion import polish


def answer(task: Task, rules: StopRules, decoding: Decoding, finish: Finish, begin: float) -> Completion:
    """The completion that a decoding amounts to; `begin` is `time.perf_counter()` at its beginning."""
    polishing = time.perf_counter()
    stats = decoding.stats
    forecast = _forecast(decoding, finish)
    finish = _before_doubtful_names(task, rules, forecast, finish)
    generated = decoding.written.text[: finish.num_chars]
    suggestion = polish(rules, generated, is_complete=True)  # `num_chars` is a sensible end already
    stats.num_tokens = sum(end <= finish.num_chars for end in decoding.written.ends)
    stats.finish_reason = finish.reason
    written = zip(decoding.written.ends, decoding.origins, strict=True)
    pieces = Origins(task.tokenizer, task.request.index, task.prompt.num_context).pieces(
        suggestion.text, written
    )
    now = time.perf_counter()
    stats.ms["postprocess"] = (now - polishing) * 1e3
    stats.ms["total"] = (now - begin) * 1e3
    # A blank text was blank because something ended it at once: that is the reason worth telling.
    rule = finish.rule or suggestion.rule if suggestion.rule in {"", "blank"} else suggestion.rule
    return Completion(suggestion.text, suggestion.num_replaced, stats, pieces, rule, forecast=forecast)


def _forecast(decoding: Decoding, finish: Finish) -> Forecast:
    """The tokens that a decoding has looked at, the one too many included."""
    ends = tuple(decoding.written.ends[: decoding.num_checked])
    shares = tuple(chance.share for chance in decoding.chances[: decoding.num_checked])
    return Forecast(decoding.written.text[: ends[-1] if ends else 0], ends, shares, finish.num_chars)


def _before_doubtful_names(task: Task, rules: StopRules, forecast: Forecast, finish: Finish) -> Finish:
    """`finish`, or an earlier end where a name would come that nobody knows."""
    request, names = task.request, KnownNames(task.request, task.tokenizer)
    if not task.context.weighs or not names.can_judge:
        return finish
    num_chars = num_sure_chars(
        rules, forecast, request.eagerness, request.calibration, lambda name: name in names
    )
    return Finish("unsure", num_chars, "unknown-name") if num_chars < finish.num_chars else finish


def other_answers(
    task: Task, rules: StopRules, first: Decoding, finish: Finish, limits: Limits
) -> Iterator[Completion]:
    """Other texts at the same place, the likeliest first, until patience ends; not all differ."""
    patient = replace(limits, deadline_at=limits.patience_at)

    def new_stats() -> CompletionStats:
        return CompletionStats(device=first.stats.device, target=first.stats.target)

    if finish.reason == "deadline":  # what the deadline cut off is the likeliest of all
        begin, first = time.perf_counter(), task.decoding(new_stats())
        finish = run(first, rules, patient, task.request.cancellation)
        yield answer(task, rules, first, finish, begin)
    for branch in rank_runners_up(task, first, finish.num_chars):
        begin = time.perf_counter()
        if begin > limits.patience_at or limits.is_turn_over(task.request.cancellation):
            return
        decoding = decode_behind(task, first, branch, new_stats())
        end = run(decoding, rules, patient, task.request.cancellation)
        if end.reason != "deadline" or end.num_chars >= decoding.written.ends[branch.num_shared]:
            yield answer(task, rules, decoding, end, begin)


def with_alternatives(shown: Completion, others: Iterable[Completion], num_candidates: int) -> Completion:
    """`shown` with the first others that differ from it and each other, `num_candidates` texts in all."""
    known = {"", shown.text}
    found: list[Completion] = []
    for other in others:
        if other.text not in known:
            known.add(other.text)
            found.append(other)
        if len(found) + 1 >= num_candidates:
            break
    return replace(shown, alternatives=tuple(found))

"""Other answers for one place: what the target would have written where it was unsure.

Owns for how long they are looked for. Must not know how tokens are found.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from completion_engine.decoding.candidates import decode_behind, rank_runners_up
from completion_engine.decoding.judged_answers import judged_answer
from completion_engine.decoding.loop import Decoding
from completion_engine.decoding.run import Limits, run
from completion_engine.decoding.task import Task
from completion_engine.decoding.writing import Finish
from completion_engine.stats import Completion, CompletionStats
from completion_engine.suggestions.stopping import StopRules


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
        yield judged_answer(task, rules, first, finish, begin)
    for branch in rank_runners_up(task, first, finish.num_chars):
        begin = time.perf_counter()
        if begin > limits.patience_at or limits.is_turn_over(task.request.cancellation):
            return
        decoding = decode_behind(task, first, branch, new_stats())
        end = run(decoding, rules, patient, task.request.cancellation)
        if end.reason != "deadline" or end.num_chars >= decoding.written.ends[branch.num_shared]:
            yield judged_answer(task, rules, decoding, end, begin)

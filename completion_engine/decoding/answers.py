"""From what is written to what is shown: the polished text, where its parts came from, and others beside it.

Owns how a completion is made of a decoding that has ended. Must not know how tokens are found.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from completion_engine.decoding.attribution import Origins
from completion_engine.decoding.writing import Finish, Writing
from completion_engine.request import CompletionRequest
from completion_engine.stats import Completion
from completion_engine.suggestions.stopping import StopRules
from completion_engine.suggestions.suggestion import polish

# Why a text is blank that no rule ended.
_ENDED_AT_ONCE = {"deadline": "out-of-time", "end": "nothing-to-add"}


def answer(origins: Origins, rules: StopRules, decoding: Writing, finish: Finish, begin: float) -> Completion:
    """The completion that a decoding amounts to; `begin` is `time.perf_counter()` at its beginning."""
    polishing = time.perf_counter()
    stats = decoding.stats
    generated = decoding.written.text[: finish.num_chars]
    suggestion = polish(rules, generated)  # `num_chars` is a sensible end already
    stats.num_tokens = sum(end <= finish.num_chars for end in decoding.written.ends)
    stats.finish_reason = finish.reason
    written = zip(decoding.written.ends, decoding.origins, strict=True)
    pieces = origins.pieces(suggestion.text, written)
    now = time.perf_counter()
    stats.ms["postprocess"] = (now - polishing) * 1e3
    stats.ms["total"] = (now - begin) * 1e3
    rule: str = suggestion.rule
    if rule == "blank":  # because something ended it at once: that is the reason worth telling
        rule = finish.rule or _ENDED_AT_ONCE.get(finish.reason, rule)
    rule = rule or finish.rule
    return Completion(suggestion.text, suggestion.num_replaced, stats, pieces, rule)


def silence(rules: StopRules, request: CompletionRequest) -> Finish | None:
    """The end of a text that is not begun: the cursor stands in what the request names by `silent_in`."""
    surroundings = rules.site.surroundings
    return Finish("silent", 0, f"in-{surroundings}") if surroundings in request.silent_in else None


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

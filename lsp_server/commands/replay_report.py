"""What a replay's answers amount to: latencies by kind, characters spared, tokens per verification.

Pure functions over answers. Must not know the server, nor how anything is printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from lsp_server.commands.player import Answer
from lsp_server.workspace.measurements import percentiles

AnswerClass = Literal["typed through", "accepted draft", "decode", "no verification"]
KINDS: tuple[AnswerClass, ...] = ("typed through", "accepted draft", "decode", "no verification")

COUNTS = (
    "num_tokens",
    "num_forwards",
    "num_drafted",
    "num_accepted",
    "num_prompt_tokens",
    "num_cached_tokens",
)


def kind_of(answer: Answer) -> AnswerClass:
    """What the target had to do: nothing, to verify a draft that was right, or to write alone.

    `no verification` is an empty answer without a pass: nothing was wanted here, or a deadline came first.
    """
    if not answer.stats.get("num_forwards"):
        return "typed through" if answer.outcome == "shown" else "no verification"
    return "accepted draft" if answer.stats["num_accepted"] else "decode"


def num_written(stats: Mapping[str, Any]) -> int:
    """Tokens that this answer's passes wrote: the drafts that were right, and one of the target's own each.

    `num_tokens` counts what was known from an earlier answer or written in the background, too.
    """
    return int(stats["num_accepted"] + stats["num_forwards"])


def summary(answers: Sequence[Answer], *, num_chars: int, num_keys: int) -> dict[str, Any]:
    """The report of one or more replays that brought `num_chars` characters into files. Times in ms.

    Without suggestions they take `num_keys` keys: fewer, as a line's indentation comes with Enter.
    """
    in_time = [answer for answer in answers if answer.outcome in {"shown", "empty"}]
    num_taken = sum(answer.num_taken_chars for answer in answers)
    num_wrong = sum(answer.num_wrong_chars for answer in answers)
    num_takes = sum(answer.how is not None for answer in answers)
    num_pressed = len(answers) - num_takes  # behind each key is a request, and behind what is taken one more
    return {
        "num_requests": len(answers),
        **{f"num_{name}": _count(answers, name) for name in ("shown", "empty", "cancelled", "failed")},
        "num_accepted": sum(answer.how == "full" for answer in answers),
        "num_partially_accepted": sum(answer.how == "word" for answer in answers),
        "num_chars": num_chars,
        "num_chars_not_typed": num_taken,
        "share_not_typed": _ratio(num_taken, num_chars),
        "num_keys": num_keys,
        "share_keys_not_pressed": _ratio(num_keys - num_pressed, num_keys),
        "share_keys_spared": _ratio(num_keys - num_pressed - num_takes, num_keys),
        "whole": _whole(in_time),
        "num_chars_shown_wrong": num_wrong,
        "shown_wrong_per_100": _ratio(100 * num_wrong, num_chars),
        "latency_ms": _latencies(in_time),
        "cancel_ms": percentiles(answer.ms for answer in answers if answer.outcome == "cancelled"),
        "tokens": _tokens(in_time),
        "answered_on": dict(Counter(answer.stats["device"] for answer in in_time if answer.stats)),
        "rules": dict(Counter(answer.why.get("rule") or "none" for answer in _empty(in_time)).most_common()),
    }


def _whole(answers: Iterable[Answer]) -> dict[str, Any]:
    """What the deadline cut of warm suggestions, and how much of their lines people type for that."""
    shown = [answer for answer in answers if answer.outcome == "shown" and not answer.is_first]
    cut = [answer for answer in shown if answer.is_cut]
    right = [answer.num_left_chars for answer in cut if answer.num_left_chars]
    return {
        "share_whole": _ratio(len(shown) - len(cut), len(shown)),
        "num_cut": len(cut),
        "num_cut_within_right_line": len(right),
        "num_chars_lost": sum(right),
    }


def _count(answers: Iterable[Answer], outcome: str) -> int:
    return sum(answer.outcome == outcome for answer in answers)


def _empty(answers: Iterable[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.outcome == "empty"]


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _latencies(answers: Sequence[Answer]) -> dict[str, Any]:
    warm = [answer for answer in answers if not answer.is_first]
    by_kind = {kind: [a.ms for a in warm if kind_of(a) == kind] for kind in KINDS}
    return {
        "warm": percentiles(answer.ms for answer in warm),
        "shown": percentiles(answer.ms for answer in warm if answer.outcome == "shown"),
        **{kind: percentiles(values) for kind, values in by_kind.items()},
        "first": percentiles(answer.ms for answer in answers if answer.is_first),
    }


def _tokens(answers: Sequence[Answer]) -> dict[str, Any]:
    all_stats = [answer.stats for answer in answers if answer.stats]
    total = {name: sum(stats[name] for stats in all_stats) for name in COUNTS}
    by_source: Counter[str] = Counter()
    for stats in all_stats:
        by_source.update(stats["accepted_by_source"])
    return {
        **total,
        "num_written": num_written(total),
        "tokens_per_verification": _ratio(num_written(total), total["num_forwards"]),
        "share_cached": _ratio(total["num_cached_tokens"], total["num_prompt_tokens"]),
        "accepted_by_source": dict(by_source),
    }

"""The report of a replay: its figures as plain JSON values, and its tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from lsp_server.commands.player import Answer
from lsp_server.commands.terminal import show_rows
from lsp_server.workspace.measurements import percentiles

AnswerClass = Literal["typed through", "accepted draft", "decode", "no verification"]
KINDS: tuple[AnswerClass, ...] = ("typed through", "accepted draft", "decode", "no verification")
_COUNTS = (
    "num_tokens", "num_forwards", "num_drafted", "num_accepted", "num_prompt_tokens", "num_cached_tokens",
)  # fmt: skip
_TYPIST_ROWS = (
    ("seconds_saved", "seconds saved, reading included", "{:.0f}"),
    ("keys_saved", "keys saved, those that accept included", "{}"),
    ("share_not_typed", "characters not typed", "{:.1%}"),
    ("chars_per_accepted", "characters for each accepted suggestion", "{:.1f}"),
    ("share_units", "shown texts that end a unit", "{:.0%}"),
    ("replaced_per_100", "texts replaced by the next key, for 100 characters", "{:.1f}"),
    ("broken_per_100", "the same, where the key was their next character", "{:.1f}"),
    ("wrong_per_100", "wrong characters shown, for 100 typed", "{:.0f}"),
    ("wrong_per_100_by_time", "wrong characters of 100 on the screen, by time", "{:.0f}"),
)


def kind_of(answer: Answer) -> AnswerClass:
    """What the target had to do: nothing, verify a draft that was right, or write alone.

    `no verification` is an empty answer without a pass: no suggestion was wanted here, or the deadline came
    first.
    """
    if not answer.stats.get("num_forwards"):
        return "typed through" if answer.outcome == "shown" else "no verification"
    return "accepted draft" if answer.stats["num_accepted"] else "decode"


def num_written(stats: Mapping[str, Any]) -> int:
    """Number of tokens that an answer's passes wrote: accepted drafts, and one of the target for each.

    `num_tokens` also counts those of an earlier answer or of background work.
    """
    return int(stats["num_accepted"] + stats["num_forwards"])


def summary(answers: Sequence[Answer], *, num_chars: int) -> dict[str, Any]:
    """The report of replays that brought `num_chars` characters into files. Times in ms."""
    in_time = [answer for answer in answers if answer.outcome in {"shown", "empty"}]
    empty = [answer for answer in in_time if answer.outcome == "empty"]
    num_taken = sum(answer.num_taken_chars for answer in answers)
    outcomes = Counter(answer.outcome for answer in answers)
    return {
        "num_requests": len(answers),
        **{f"num_{name}": outcomes[name] for name in ("shown", "empty", "cancelled", "failed")},
        "num_accepted": sum(answer.how == "full" for answer in answers),
        "num_partially_accepted": sum(answer.how == "word" for answer in answers),
        "num_chars": num_chars,
        "num_chars_not_typed": num_taken,
        "share_not_typed": ratio(num_taken, num_chars),
        "latency_ms": _latencies(in_time),
        "cancel_ms": percentiles(answer.ms for answer in answers if answer.outcome == "cancelled"),
        "tokens": _tokens(in_time),
        "answered_on": dict(Counter(answer.stats["device"] for answer in in_time if answer.stats)),
        "rules": dict(Counter(answer.why.get("rule") or "none" for answer in empty).most_common()),
    }


def ratio(part: float, whole: float) -> float:
    """`part / whole` in four digits; 0 for a `whole` of 0."""
    return round(part / whole, 4) if whole else 0.0


def _latencies(answers: Sequence[Answer]) -> dict[str, Any]:
    warm = [answer for answer in answers if not answer.is_first]
    groups: dict[str, Iterable[Answer]] = {
        "warm": warm,
        "shown": (answer for answer in warm if answer.outcome == "shown"),
        **{kind: [answer for answer in warm if kind_of(answer) == kind] for kind in KINDS},
        "first": (answer for answer in answers if answer.is_first),
    }
    return {name: percentiles(answer.ms for answer in group) for name, group in groups.items()}


def _tokens(answers: Sequence[Answer]) -> dict[str, Any]:
    all_stats = [answer.stats for answer in answers if answer.stats]
    total = {name: sum(stats[name] for stats in all_stats) for name in _COUNTS}
    by_source: Counter[str] = Counter()
    for stats in all_stats:
        by_source.update(stats["accepted_by_source"])
    return {
        **total,
        "num_written": num_written(total),
        "tokens_per_verification": ratio(num_written(total), total["num_forwards"]),
        "share_cached": ratio(total["num_cached_tokens"], total["num_prompt_tokens"]),
        "accepted_by_source": dict(by_source),
    }


def show(result: Mapping[str, Any]) -> None:
    """Print the tables for people on stdout."""
    columns = ("count", "p50", "p90", "p95", "p99", "max")
    latencies = {**result["latency_ms"], "cancelled, until answered": result["cancel_ms"]}
    rows = [
        (name, str(row["count"]), *(f"{row[column]:.1f}" for column in columns[1:]))
        for name, row in latencies.items()
        if row["count"]
    ]
    show_rows("Milliseconds from key to answer", ("", *columns), rows)
    show_rows(f"{result['target']} on {result['device']}", ("", "value"), list(facts(result).items()))
    show_typists(result["typists"])


def show_typists(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print what each scripted typist saw and saved."""
    rows = [
        (title, *(form.format(figures[name]) for figures in found.values()))
        for name, title, form in _TYPIST_ROWS
    ]
    show_rows("What two typists see", ("", *found), rows)


def facts(result: Mapping[str, Any]) -> dict[str, str]:
    """The counts of the report, in words."""
    tokens = result["tokens"]
    sources = ", ".join(f"{name} {count}" for name, count in tokens["accepted_by_source"].items() if count)
    return {
        "characters not typed": f"{result['share_not_typed']:.1%} of {result['num_chars']}",
        "requests": str(result["num_requests"]),
        "shown, empty": f"{result['num_shown']}, {result['num_empty']}",
        "accepted, by words": f"{result['num_accepted']}, {result['num_partially_accepted']}",
        "cancelled, failed": f"{result['num_cancelled']}, {result['num_failed']}",
        "tokens per verification": f"{tokens['tokens_per_verification']:.2f}",
        "prompt tokens from the cache": f"{tokens['share_cached']:.1%}",
        "accepted drafts": sources or "none",
        "empty because": ", ".join(f"{rule} {count}" for rule, count in result["rules"].items()) or "-",
    }

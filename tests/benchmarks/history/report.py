"""The report of a history's replay: its figures as plain JSON values, and the lines of its screen."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lsp_server.commands.machine_checks import processor
from lsp_server.commands.replay_report import ratio, show_typists
from lsp_server.commands.terminal import console, show_rows
from lsp_server.scripted_typing.screen import sum_of
from lsp_server.workspace.measurements import percentiles
from ngram_cache.redaction import blank_secrets
from tests.benchmarks.history.block_typing import SeenSuggestion, TypedBlock
from tests.benchmarks.history.commit_replay import HistoryRecord, ReplayedCommit

_NUM_ID_CHARS = 8
_NUM_SHOWN_CHARS = 60
NUM_EXAMPLES = 3
_COLUMNS = ("characters", "not typed", "keys saved", "median ms", "95 % ms", "shown wrong per 100")


def report_of(record: HistoryRecord) -> dict[str, Any]:
    """The report of what is known so far, as JSON values. Times in ms, from a key to its answer."""
    typed = record.typed
    read = [block for commit in record.replayed for block in commit.read]
    return {
        "repository": record.git.root.name,
        "author": record.author,
        "target": record.engine.get("target", ""),
        "device": record.engine.get("device", ""),
        "processor": processor(),
        "minutes": round((time.monotonic() - record.began) / 60, 2),
        "num_commits": len(record.replayed),
        "num_commits_chosen": record.num_chosen,
        **totals(typed),
        "typists": {"eager": seen_by(typed), "reader": seen_by(read)},
        "by_language": totals_by(lambda one: one.block.language, typed),
        "by_file": totals_by(lambda one: one.block.path, typed),
        "by_commit": [
            {
                "id": one.commit.id[:_NUM_ID_CHARS],
                "subject": blank_secrets(one.commit.subject),
                **totals(one.typed),
            }
            for one in record.replayed
        ],
        "best": best_suggestions(typed),
        "worst": worst_misses(typed),
        "left_out": dict(record.left_out.most_common()),
    }


def totals(blocks: Iterable[TypedBlock]) -> dict[str, Any]:
    """Sums and percentiles over blocks. Times in ms, from a key to its answer."""
    typed = list(blocks)
    num_chars, num_keys = sum(one.num_chars for one in typed), sum(one.num_keys for one in typed)
    seen = seen_by(typed)
    return {
        "num_blocks": len(typed),
        "num_chars": num_chars,
        "share_not_typed": seen["share_not_typed"],
        "num_keys": num_keys,
        "num_keys_saved": seen["keys_saved"],
        "share_keys_saved": ratio(seen["keys_saved"], num_keys),
        "shown_wrong_per_100": seen["wrong_per_100"],
        "num_failed": sum(one.num_failed for one in typed),
        "warm_ms": percentiles(ms for one in typed for ms in one.warm_ms),
        "first_ms": percentiles(ms for one in typed for ms in one.first_ms),
    }


def seen_by(blocks: Sequence[TypedBlock]) -> dict[str, Any]:
    """Return the figures of the screen of these blocks' typist."""
    return sum_of(one.screen for one in blocks).figures(sum(one.num_chars for one in blocks))


def totals_by(key: Callable[[TypedBlock], str], blocks: Iterable[TypedBlock]) -> dict[str, dict[str, Any]]:
    """`totals` for each group, the one with the most characters first."""
    groups: dict[str, list[TypedBlock]] = defaultdict(list)
    for typed in blocks:
        groups[key(typed)].append(typed)
    found = {name: totals(group) for name, group in groups.items()}
    return dict(sorted(found.items(), key=lambda entry: -entry[1]["num_chars"]))


def best_suggestions(blocks: Iterable[TypedBlock]) -> list[dict[str, Any]]:
    """The suggestions that saved most characters, each text once."""
    seen = (one for typed in blocks for one in typed.suggestions if one.num_saved)
    return _first_of_each(sorted(seen, key=lambda one: -one.num_saved))


def worst_misses(blocks: Iterable[TypedBlock]) -> list[dict[str, Any]]:
    """The suggestions that showed most characters that the author did not write, each text once."""
    seen = (one for typed in blocks for one in typed.suggestions if one.num_wrong and not one.num_saved)
    return _first_of_each(sorted(seen, key=lambda one: -one.num_wrong))


def _first_of_each(suggestions: Sequence[SeenSuggestion]) -> list[dict[str, Any]]:
    by_text = {one.text.strip(): one for one in reversed(suggestions)}
    chosen = sorted(by_text.values(), key=suggestions.index)[:NUM_EXAMPLES]
    return [{**asdict(one), "commit": one.commit[:_NUM_ID_CHARS]} for one in chosen]


def commit_line(commit: ReplayedCommit) -> str:
    """One line about a commit that was just typed."""
    found = totals(commit.typed)
    if not found["num_chars"]:
        return f"{commit.commit.id[:_NUM_ID_CHARS]}  no time to type it"
    return (
        f"{commit.commit.id[:_NUM_ID_CHARS]}  {found['num_chars']:5} characters, "
        f"{found['share_not_typed']:6.1%} not typed, median {found['warm_ms']['p50']:5.0f} ms  "
        f"{blank_secrets(commit.commit.subject)[:_NUM_SHOWN_CHARS]}"
    )


def _about(result: Mapping[str, Any]) -> str:
    where = f"{result['target']} on {result['device']} ({result['processor']})"
    return (
        f"{result['num_commits']} of {result['num_commits_chosen']} commits of {result['author']}, typed in "
        f"{result['minutes']:.1f} minutes with {where}."
    )


def show_report(result: Mapping[str, Any]) -> None:
    """Print the report for people, on one screen."""
    warm, first = result["warm_ms"], result["first_ms"]
    lines = [
        _about(result),
        "",
        f"Not typed     {result['share_not_typed']:.1%} of {result['num_chars']} characters",
        f"Keys saved    {result['share_keys_saved']:.1%} of {result['num_keys']}",
        f"Key to answer median {warm['p50']:.0f} ms, 95 % within {warm['p95']:.0f} ms; "
        f"at a new place {first['p50']:.0f} ms, 95 % within {first['p95']:.0f} ms",
        f"Shown wrong   {result['shown_wrong_per_100']:.0f} characters for 100 typed",
    ]
    console().print("\n".join(lines), markup=False, soft_wrap=True)
    rows = [(name, *_cells(group)) for name, group in list(result["by_language"].items())[:5]]
    show_rows("By language", ("", *_COLUMNS), rows)
    show_typists(result["typists"])
    for title, name in (("Best suggestion", "best"), ("Worst miss", "worst")):
        for one in result[name][:1]:
            shown = one["text"].strip().partition("\n")[0][:_NUM_SHOWN_CHARS]
            where = f"{one['path']} in {one['commit']}"
            console().print(f"{title}: {shown!r} in {where}", markup=False, soft_wrap=True)
    if result["left_out"]:
        counts = ", ".join(f"{count} {reason}" for reason, count in result["left_out"].items())
        console().print(f"Left out: {counts}.", markup=False, soft_wrap=True)


def _cells(group: Mapping[str, Any]) -> tuple[str, ...]:
    """The values of a group under `_COLUMNS`."""
    warm = group["warm_ms"]
    shares = (f"{group['share_not_typed']:.1%}", f"{group['share_keys_saved']:.1%}")
    times = (f"{warm['p50']:.0f}", f"{warm['p95']:.0f}")
    return (f"{group['num_chars']:,}", *shares, *times, f"{group['shown_wrong_per_100']:.0f}")

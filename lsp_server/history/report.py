"""The report of a history's replay: its figures as plain JSON values, and the lines of its screen."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lsp_server.commands.machine_checks import processor
from lsp_server.commands.replay import ratio, show_typists
from lsp_server.commands.terminal import console, show_rows
from lsp_server.history.block_typing import SeenSuggestion, TypedBlock
from lsp_server.history.commit_replay import ReplayedCommit
from lsp_server.history.replay_history import HistoryRecord
from lsp_server.scripted_typing.screen import sum_of
from lsp_server.workspace.measurements import percentiles
from ngram_cache.redaction import blank_parts, blank_secrets

_NUM_ID_CHARS = 8
_NUM_SHOWN_CHARS = 60
NUM_EXAMPLES = 3


def report_of(record: HistoryRecord) -> dict[str, Any]:
    """The report of what is known so far, as JSON values. Times in ms, from a key to its answer."""
    typed = record.typed
    pairs = same_blocks(typed, record.typed_larger)
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
        "typists": {"eager": seen_by(typed), "reader": seen_by(record.read)},
        "by_language": totals_by(lambda one: one.block.language, typed),
        "by_file": totals_by(lambda one: one.block.path, typed),
        "by_commit": [_commit_row(commit) for commit in record.replayed],
        "by_model": compared(pairs),
        "larger_model_differs": _differences(pairs),
        "best": [_example(one) for one in best_suggestions(typed)],
        "worst": [_example(one) for one in worst_misses(typed)],
        "left_out": dict(record.left_out.most_common()),
        "all_warm_ms": [round(ms, 1) for one in typed for ms in one.warm_ms],
        "all_first_ms": [round(ms, 1) for one in typed for ms in one.first_ms],
    }


def _commit_row(commit: ReplayedCommit) -> dict[str, Any]:
    about = {"id": commit.commit.id[:_NUM_ID_CHARS], "subject": blank_secrets(commit.commit.subject)}
    return {**about, **totals(commit.typed)}


def _example(seen: SeenSuggestion) -> dict[str, Any]:
    return {**asdict(seen), "commit": seen.commit[:_NUM_ID_CHARS]}


def _differences(pairs: list[tuple[TypedBlock, TypedBlock]]) -> list[dict[str, Any]]:
    """The blocks on which the larger model saved most more or less, with what it saved them by."""
    changed = sorted(pairs, key=lambda pair: -abs(pair[1].num_chars_not_typed - pair[0].num_chars_not_typed))
    return [
        {
            "path": one.block.path,
            "commit": one.block.commit.id[:_NUM_ID_CHARS],
            "text": _typed_text(one)[:400],
            "num_chars_not_typed": one.num_chars_not_typed,
            "num_chars_not_typed_larger": other.num_chars_not_typed,
        }
        for one, other in changed[:3]
        if one.num_chars_not_typed != other.num_chars_not_typed
    ]


def _typed_text(typed: TypedBlock) -> str:
    """The typed part of a block's file, without the secrets that the whole file shows."""
    text, start = typed.block.text, typed.block.start
    end = start + typed.num_chars
    return blank_parts(text[:start], text[start:end], text[end:])[1]


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


def show_report(result: dict[str, Any]) -> None:
    """Print the report for people, on one screen."""
    warm, first = result["warm_ms"], result["first_ms"]
    lines = [
        f"{result['num_commits']} of {result['num_commits_chosen']} commits of {result['author']} in "
        f"{result['repository']}, typed in {result['minutes']:.1f} min",
        f"with {result['target']} on {result['device']} ({result['processor']}).",
        "",
        f"Not typed     {result['share_not_typed']:.1%} of {result['num_chars']} characters",
        f"Keys saved    {result['share_keys_saved']:.1%} of {result['num_keys']}",
        f"Key to answer median {warm['p50']:.0f} ms, 95 % within {warm['p95']:.0f} ms; "
        f"at a new place {first['p50']:.0f} ms, 95 % within {first['p95']:.0f} ms",
        f"Shown wrong   {result['shown_wrong_per_100']:.0f} characters for 100 typed",
    ]
    console().print("\n".join(lines), markup=False, soft_wrap=True)
    columns = ("", "characters", "not typed", "keys saved", "median ms", "95 % ms", "shown wrong")
    rows = [_row(name, group) for name, group in list(result["by_language"].items())[:5]]
    show_rows("By language", columns, rows)
    show_typists(result["typists"])
    if result["by_model"]:
        rows = [_row(name, group) for name, group in result["by_model"].items()]
        show_rows("By model, on the same blocks", columns, rows)
    for title, name in (("Best suggestion", "best"), ("Worst miss", "worst")):
        for one in result[name][:1]:
            shown = one["text"].strip().partition("\n")[0][:_NUM_SHOWN_CHARS]
            where = f"{one['path']} in {one['commit']}"
            console().print(f"{title}: {shown!r} in {where}", markup=False, soft_wrap=True)
    if result["left_out"]:
        counts = ", ".join(f"{count} {reason}" for reason, count in result["left_out"].items())
        console().print(f"Left out: {counts}.", markup=False, soft_wrap=True)


def _row(name: str, group: dict[str, Any]) -> tuple[str, ...]:
    warm = group["warm_ms"]
    shares = (f"{group['share_not_typed']:.1%}", f"{group['share_keys_saved']:.1%}")
    times = (f"{warm['p50']:.0f}", f"{warm['p95']:.0f}")
    return (name, str(group["num_chars"]), *shares, *times, f"{group['shown_wrong_per_100']:.0f}")


def totals(blocks: Iterable[TypedBlock]) -> dict[str, Any]:
    """Sums and percentiles over blocks. Times in ms, from a key to its answer."""
    typed = list(blocks)
    num_chars = sum(one.num_chars for one in typed)
    num_keys = sum(one.num_keys for one in typed)
    num_not_typed = sum(one.num_chars_not_typed for one in typed)
    num_saved = sum(one.num_keys_saved for one in typed)
    num_wrong = sum(one.num_chars_wrong for one in typed)
    return {
        "num_blocks": len(typed),
        "num_chars": num_chars,
        "num_chars_not_typed": num_not_typed,
        "share_not_typed": ratio(num_not_typed, num_chars),
        "num_keys": num_keys,
        "num_keys_saved": num_saved,
        "share_keys_saved": ratio(num_saved, num_keys),
        "num_chars_shown_wrong": num_wrong,
        "shown_wrong_per_100": ratio(100 * num_wrong, num_chars),
        "num_shown": sum(one.num_shown for one in typed),
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


def best_suggestions(blocks: Iterable[TypedBlock]) -> list[SeenSuggestion]:
    """The suggestions that saved most characters, each text once."""
    seen = (one for typed in blocks for one in typed.suggestions if one.num_saved)
    return _first_of_each(sorted(seen, key=lambda one: -one.num_saved))


def worst_misses(blocks: Iterable[TypedBlock]) -> list[SeenSuggestion]:
    """The suggestions that showed most characters that the author did not write, each text once."""
    seen = (one for typed in blocks for one in typed.suggestions if one.num_wrong and not one.num_saved)
    return _first_of_each(sorted(seen, key=lambda one: -one.num_wrong))


def _first_of_each(suggestions: Sequence[SeenSuggestion]) -> list[SeenSuggestion]:
    by_text = {one.text.strip(): one for one in reversed(suggestions)}
    chosen = sorted(by_text.values(), key=suggestions.index)
    return chosen[:NUM_EXAMPLES]


def same_blocks(
    blocks: Sequence[TypedBlock], others: Sequence[TypedBlock]
) -> list[tuple[TypedBlock, TypedBlock]]:
    """The blocks that two models typed to the same character, in pairs."""
    found = {_identity(typed): typed for typed in others}
    return [(typed, found[_identity(typed)]) for typed in blocks if _identity(typed) in found]


def _identity(typed: TypedBlock) -> tuple[str, str, int, int]:
    return typed.block.commit.id, typed.block.path, typed.block.start, typed.num_chars


def compared(pairs: Sequence[tuple[TypedBlock, TypedBlock]]) -> Mapping[str, Any]:
    """The totals of both models on the same blocks, by model; empty when there is none."""
    if not pairs:
        return {}
    (first, second), *_ = pairs
    return {
        first.model: totals(one for one, _ in pairs),
        second.model: totals(other for _, other in pairs),
    }

"""What typed blocks amount to: totals by any key, the best and the worst suggestions, and two models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lsp_server.commands.replay_report import ratio
from lsp_server.history.block_typing import SeenSuggestion, TypedBlock
from lsp_server.scripted_typing.screen import sum_of
from lsp_server.workspace.measurements import percentiles

NUM_EXAMPLES = 3


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

"""A picture of ways of drafting: time per token with each, with the policy, and in hindsight."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.drafting.replay import NOTHING
from tests.benchmarks.plot import INK, draw_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POLICY, _ARM, _ORACLE = "#1f8a70", "#8a63d2", "#d0762b"


def write_drafting_plot(found: Mapping[str, Any], path: Path) -> None:
    """Draw milliseconds per token of every way of drafting, slowest first, then of hindsight.

    Among ways that differ only in their widths, the one that may choose is shown. Raises what `check_plot`
    raises.
    """
    widest = max(len(row["widths"]) for row in found["arms"])
    free = [row for row in found["arms"] if len(row["widths"]) == widest or row["name"] == NOTHING]
    policy = next(row for row in free if row["name"] == found["policy"])
    arms = [(row, INK if row["name"] == NOTHING else _ARM) for row in free if row is not policy]
    oracles = [(row, _ORACLE) for row in found["oracles"]]
    shown = [*_slowest_first(arms), (policy | {"name": f"policy: {policy['name']}"}, _POLICY), *oracles]

    def draw(axes: Axes) -> None:
        for height, (row, colour) in zip(range(len(shown), 0, -1), shown, strict=True):
            ms = row["ms_per_token"]
            axes.hlines(height, 0, ms, color=colour, linewidth=7, alpha=0.35)
            axes.plot(ms, height, "o", color=colour, markersize=9)
            label = f"{ms:.1f} ms, {row['tokens_per_pass']:.2f} tokens/pass"
            axes.text(1.02, height, label, va="center", color=colour, transform=axes.get_yaxis_transform())
        axes.set_yticks(list(range(len(shown), 0, -1)), [row["name"] for row, _ in shown])
        axes.set_xlim(0, 1.05 * max(row["ms_per_token"] for row, _ in shown))
        axes.set_xlabel("milliseconds per token over all prompts, replayed", color=INK)

    title = f"{found['target']} on {found['device']}: {found['num_prompts']} prompts, "
    draw_picture(path, len(shown), title + f"{found['num_tokens']} tokens", draw)


def _slowest_first(rows: list[tuple[Mapping[str, Any], str]]) -> list[tuple[Mapping[str, Any], str]]:
    return sorted(rows, key=lambda shown: -shown[0]["ms_per_token"])

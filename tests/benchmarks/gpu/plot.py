"""The picture of a GPU run: milliseconds per token of each way to decode, against the floor of the memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.plot import INK, draw_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#d0762b", "#8a63d2")
_OURS = "#1f8a70"


def write_gpu_plot(found: Mapping[str, Any], path: Path) -> None:
    """One line for each model and way, and a mark where nothing that reads all weights can be faster.

    Raises what `check_plot` raises.
    """
    rows = [line for row in found["geometries"] if "absent" not in row for line in _lines(row)]
    draw_picture(path, len(rows), f"Plain decoding with random weights on {found['machine']}", _drawer(rows))


def _lines(row: Mapping[str, Any]) -> list[tuple[str, float, float, str]]:
    """Name, milliseconds, floor and colour of each way to run a model."""
    name, floor = f"{row['name']} {row['dtype']}", row["floor_ms"]
    others = zip(row.get("peers", {}).items(), _COLOURS, strict=False)
    return [
        *((f"{name}: {peer}", ms, floor, colour) for (peer, ms), colour in others),
        (f"{name}: Slipstream", row["plain_ms"], floor, _OURS),
    ]


def _drawer(rows: list[tuple[str, float, float, str]]) -> Any:
    def draw(axes: Axes) -> None:
        heights = range(len(rows), 0, -1)
        for height, (_, ms, floor, colour) in zip(heights, rows, strict=True):
            axes.barh(height, ms, color=colour, height=0.5)
            axes.vlines(floor, height - 0.4, height + 0.4, color=INK, linewidth=2)
            label = f"{ms:.2f} ms, {floor / ms:.0%}"
            axes.text(1.02, height, label, va="center", color=colour, transform=axes.get_yaxis_transform())
        axes.set_yticks(list(heights), [name for name, *_ in rows])
        axes.set_xlabel("milliseconds per token; the upright mark is the floor", color=INK)

    return draw

"""Pictures of measurements; here the comparison with peers. Needs matplotlib, which is an extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from completion_engine.errors import MachineError, UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SUFFIXES = (".svg", ".png", ".pdf")
# Equally far from white and from the near-black of dark pages: contrast 4.3 to both.
INK = "#7a7a7a"
_COLOURS = {"transformers": "#d0762b", "llama.cpp": "#8a63d2", "Slipstream": "#1f8a70"}
_ROW_INCHES = 0.42


def check_plot(path: Path) -> None:
    """Say before a long measurement that its picture cannot be drawn.

    Raises UserError for a file that cannot be written, MachineError where matplotlib is missing.
    """
    if path.suffix not in _SUFFIXES:
        raise UserError(f"{path} is not a picture.", advice=f"Choose a name in {', '.join(_SUFFIXES)}.")
    if not path.absolute().parent.is_dir():
        raise UserError(f"There is no folder {path.absolute().parent}.", advice="Create it first.")
    if importlib.util.find_spec("matplotlib") is None:
        raise MachineError(
            "matplotlib is not installed, so there can be no picture.",
            advice="Install the extra `bench` of slipstream-completion, or leave --plot out.",
        )


def write_plot(found: Mapping[str, Any], path: Path) -> None:
    """Draw milliseconds per token of each peer: a dot for the median, a bar from quartile to quartile."""
    rows = [row for row in found["peers"] if row["ms_per_token"]]

    def draw(axes: Axes) -> None:
        _draw(axes, rows)
        axes.set_xlabel("milliseconds per token: median and quartiles over prompts", color=INK)

    draw_picture(path, len(rows), _title(found), draw)


def draw_picture(path: Path, num_rows: int, title: str, draw: Callable[[Axes], None]) -> None:
    """A picture of `num_rows` lines, one below the other; the same figures give the same file.

    Raises what `check_plot` raises.
    """
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"font.size": 11, "svg.hashsalt": "slipstream", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(9.0, 1.3 + _ROW_INCHES * num_rows), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        draw(axes)
        _finish(axes, num_rows)
        figure.suptitle(title, color=INK, fontsize=11)
        dated = {"Date": None} if path.suffix == ".svg" else None
        try:
            figure.savefig(path, transparent=True, dpi=150, metadata=dated)
        except OSError as error:
            raise UserError(
                f"{path} cannot be written: {error.strerror}.", advice="Choose another place."
            ) from error


def _title(found: Mapping[str, Any]) -> str:
    return (
        f"{found['target']} ({found['dtype']}) on {found['device']}: "
        f"{found['num_prompts']} prompts, {found['tokens_asked']} tokens each"
    )


def _draw(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    heights = range(len(rows), 0, -1)
    widest = max((row["ms_per_token"]["high"] for row in rows), default=1.0)
    for height, row in zip(heights, rows, strict=True):
        time = row["ms_per_token"]
        colour = _COLOURS.get(row["name"].split()[0], INK)
        axes.hlines(height, time["low"], time["high"], color=colour, linewidth=7, alpha=0.35)
        axes.plot(time["median"], height, "o", color=colour, markersize=9)
        label = f"{time['median']:.1f} ms, {row['tokens_per_pass']:.2f} tokens/pass"
        axes.text(1.02, height, label, va="center", color=colour, transform=axes.get_yaxis_transform())
    axes.set_yticks(list(heights), [row["name"] for row in rows])
    axes.set_xlim(0, widest * 1.05)


def _finish(axes: Axes, num_rows: int) -> None:
    axes.set_ylim(0.4, num_rows + 0.6)
    axes.tick_params(colors=INK, length=0)
    axes.grid(axis="x", color=INK, alpha=0.25, linewidth=0.8)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)

"""A picture of how far a drafter's guesses go. Needs matplotlib, which is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.plot import check_plot

_INK = "#7a7a7a"  # equally far from white and from the near-black of dark pages
_COLOUR = "#1f8a70"


def write_acceptance_plot(survival: Sequence[float], title: str, path: Path) -> None:
    """Draw the part of drafts that are right to each depth, 1 first.

    Raises what `check_plot` raises.
    """
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    depths = range(1, len(survival) + 1)
    with rc_context({"font.size": 11, "svg.hashsalt": "slipstream", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.plot(depths, survival, "o-", color=_COLOUR, linewidth=2, markersize=7)
        for depth, share in zip(depths, survival, strict=True):
            axes.annotate(
                f"{share:.2f}", (depth, share), (0, 9), textcoords="offset points", ha="center", color=_COLOUR
            )
        axes.set_xticks(list(depths))
        axes.set_ylim(0, 1)
        axes.set_xlabel("drafted tokens", color=_INK)
        axes.set_ylabel("drafts that are right so far", color=_INK)
        axes.set_title(title, color=_INK, fontsize=11)
        axes.tick_params(colors=_INK, length=0)
        axes.grid(axis="y", color=_INK, alpha=0.25, linewidth=0.8)
        for spine in axes.spines.values():
            spine.set_visible(False)
        figure.savefig(path, transparent=True, metadata={"Date": None})  # the same figures, the same file

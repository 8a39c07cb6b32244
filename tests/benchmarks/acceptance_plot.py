"""A picture of a trained drafter's acceptance by depth: `python -m tests.benchmarks.acceptance_plot FOLDER`.

Needs matplotlib, which is an extra.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from completion_engine.errors import UserError
from tests.benchmarks.command_line import run
from tests.benchmarks.plot import INK, check_plot

_COLOUR = "#1f8a70"
_PICTURE = "acceptance.svg"
_IMAGE = f"![Acceptance by depth]({_PICTURE})"
_ROW = re.compile(r"^\| \d+ \| [\d,]+ \| [\d.]+ \| ([\d.]+) \| [\d.]+ \|$", re.MULTILINE)
_TABLE = "| depth | guesses |"


def acceptance_plot(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `scripts.distillation` wrote.")],
) -> None:
    """Draw the figures of a drafter's card, and show the picture in the card."""
    check_plot(folder / _PICTURE)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    survival = [float(share) for share in _ROW.findall(text)]
    if not survival:
        raise UserError(f"{folder} has no card with figures.", advice="Name a trained drafter.")
    title = next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
    write_acceptance_plot(survival, title, folder / _PICTURE)
    if _IMAGE not in text:
        card.write_text(text.replace(_TABLE, f"{_IMAGE}\n\n{_TABLE}", 1), encoding="utf-8")


def write_acceptance_plot(survival: Sequence[float], title: str, path: Path) -> None:
    """Draw the share of drafts that are right to each depth, 1 first.

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
        axes.set_xlabel("drafted tokens", color=INK)
        axes.set_ylabel("drafts that are right so far", color=INK)
        axes.set_title(title, color=INK, fontsize=11)
        axes.tick_params(colors=INK, length=0)
        axes.grid(axis="y", color=INK, alpha=0.25, linewidth=0.8)
        for spine in axes.spines.values():
            spine.set_visible(False)
        figure.savefig(path, transparent=True, metadata={"Date": None})  # the same figures, the same file


if __name__ == "__main__":
    run(acceptance_plot)

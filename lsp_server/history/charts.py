"""Plots as inline SVG: a histogram of latencies, and horizontal bars. Pure: figures in, markup out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from html import escape

WIDTH = 720
_EDGES_MS = (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_PLOT_HEIGHT = 160
_ROW_HEIGHT = 24
_NAME_WIDTH = 240
_BAR_WIDTH = 360


def latency_histogram(warm_ms: Sequence[float], first_ms: Sequence[float]) -> str:
    """Shares of answers by time in steps of 1, 2 and 5, at a new place beside those that follow a key."""
    series = (("warm", _shares(warm_ms)), ("first", _shares(first_ms)))
    top = max((share for _, shares in series for share in shares), default=0.0) or 1.0
    step = WIDTH / len(_EDGES_MS)
    parts: list[str] = []
    for number, edge in enumerate(_EDGES_MS):
        left = number * step
        for place, (name, shares) in enumerate(series):
            height = _PLOT_HEIGHT * shares[number] / top
            x, y, width = left + 6 + place * (step - 12) / 2, 20 + _PLOT_HEIGHT - height, (step - 14) / 2
            parts.append(
                f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
            )
            if shares[number] >= 0.01:
                label = f"{100 * shares[number]:.0f} %"
                parts.append(f'<text class="small" x="{x + width / 2:.1f}" y="{y - 4:.1f}">{label}</text>')
        parts.append(f'<text x="{left:.1f}" y="{_PLOT_HEIGHT + 38}">{_moment(edge)}</text>')
    parts.append(f'<line x1="0" x2="{WIDTH}" y1="{_PLOT_HEIGHT + 20}" y2="{_PLOT_HEIGHT + 20}"/>')
    return _svg(_PLOT_HEIGHT + 50, parts, "Share of answers by milliseconds from key to answer")


def _moment(ms: int) -> str:
    return f"{ms // 1000} s" if ms >= 1000 else f"{ms} ms" if ms else ""


def _shares(values: Sequence[float]) -> list[float]:
    counts = [0] * len(_EDGES_MS)
    for value in values:
        counts[bisect_right(_EDGES_MS, max(0.0, value)) - 1] += 1
    return [count / len(values) if values else 0.0 for count in counts]


def share_bars(rows: Mapping[str, tuple[float, str]], title: str) -> str:
    """One bar for each name: its share from 0 to 1, and a note to the right of it."""
    parts: list[str] = []
    for number, (name, (share, note)) in enumerate(rows.items()):
        y = number * _ROW_HEIGHT
        width = _BAR_WIDTH * min(1.0, max(0.0, share))
        shown = name if len(name) <= 34 else f"\N{HORIZONTAL ELLIPSIS}{name[-33:]}"
        parts.append(f'<text class="name" x="{_NAME_WIDTH - 8}" y="{y + 16}">{_text(shown)}</text>')
        parts.append(f'<rect class="track" x="{_NAME_WIDTH}" y="{y + 4}" width="{_BAR_WIDTH}" height="16"/>')
        parts.append(f'<rect class="warm" x="{_NAME_WIDTH}" y="{y + 4}" width="{width:.1f}" height="16"/>')
        note_x = _NAME_WIDTH + _BAR_WIDTH + 8
        parts.append(f'<text class="note" x="{note_x}" y="{y + 16}">{_text(note)}</text>')
    return _svg(len(rows) * _ROW_HEIGHT, parts, title)


def _text(text: str) -> str:
    return escape(
        "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    )


def _svg(height: int, parts: Sequence[str], title: str) -> str:
    label = escape(title)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}"><title>{label}</title>'
        f"{''.join(parts)}</svg>"
    )

"""The page of a history's replay, with its charts: one HTML file that loads nothing else and runs no script.

Everything from the repository is escaped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_NUM_BARS = 12
_NUM_SUBJECT_CHARS = 70
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { --ink: #1f2328; --paper: #ffffff; --soft: #59636e; --line: #d1d9e0; --tint: #f6f8fa;
  --warm: #0969da; --first: #bf8700; --bad: #cf222e; --good: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9198a1;
  --line: #3d444d; --tint: #151b23; --warm: #4493f8; --first: #d29922; --bad: #f85149; --good: #3fb950; } }
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif; max-width: 760px;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
p.about, .small-print { color: var(--soft); margin-top: .3rem; }
.figures { display: grid; grid-template-columns: repeat(4, 1fr); gap: .7rem; margin: 1.5rem 0; }
.figures div { border: 1px solid var(--line); border-radius: 8px; padding: .7rem; }
.figures b { display: block; font-size: 1.5rem; } .figures span { color: var(--soft); font-size: .8rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 12px system-ui; text-anchor: middle; }
svg text.small { font-size: 10px; fill: var(--soft); } svg text.name { text-anchor: end; }
svg text.note { text-anchor: start; fill: var(--soft); } svg line { stroke: var(--line); }
.warm { fill: var(--warm); } .first { fill: var(--first); } .track { fill: var(--tint); }
.key { color: var(--soft); font-size: .85rem; } .key i { display: inline-block; width: .8em; height: .8em; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 8px; padding: .7rem;
  overflow-x: auto; font-size: .8rem; margin: .3rem 0 0; }
pre .shown { color: var(--warm); font-weight: 600; } pre .wrong { color: var(--bad); }
pre .wanted { color: var(--good); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: right; }
td:first-child, th:first-child { text-align: left; overflow-wrap: anywhere; }
figure { margin: 0 0 1.2rem; } figcaption { color: var(--soft); font-size: .85rem; }
"""
WIDTH = 720
_EDGES_MS = (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_PLOT_HEIGHT = 160
_ROW_HEIGHT = 24
_NAME_WIDTH = 240
_BAR_WIDTH = 360


def page_of(result: Mapping[str, Any]) -> str:
    """The page of a report."""
    title = f"{result['repository']}: your commits, typed with Slipstream"
    parts = [
        _head(result, title),
        _section("Milliseconds from key to answer", _latencies(result)),
        _section("Characters not typed, by language", _bars(result["by_language"])),
        _section("Characters not typed, by file", _bars(result["by_file"])),
        _section("Three best suggestions", "".join(_best(one) for one in result["best"])),
        _section("Three worst misses", "".join(_worst(one) for one in result["worst"])),
        _section("What the larger model changes", _models(result)),
        _section("Commits", _table({_commit_name(one): one for one in result["by_commit"]}, "Commit")),
        _section("Left out", _left_out(result["left_out"])),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _text(text: object) -> str:
    shown = (one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in str(text))
    return escape("".join(shown))


def _section(title: str, body: str) -> str:
    return f"<h2>{_text(title)}</h2>{body}" if body else ""


def _head(result: Mapping[str, Any], title: str) -> str:
    about = (
        f"{result['num_commits']} of {result['num_commits_chosen']} commits of {result['author']}, typed in "
        f"{result['minutes']:.1f} minutes with {result['target']} on {result['device']} "
        f"({result['processor']})."
    )
    warm = result["warm_ms"]
    figures = {
        f"{result['share_not_typed']:.1%}": f"of {result['num_chars']:,} characters not typed",
        f"{result['share_keys_saved']:.1%}": f"of {result['num_keys']:,} keys saved",
        f"{warm['p50']:.0f} ms": f"from key to answer; 95 % within {warm['p95']:.0f} ms",
        f"{result['shown_wrong_per_100']:.0f}": "characters shown wrong for 100 typed",
    }
    tiles = "".join(
        f"<div><b>{_text(name)}</b><span>{_text(note)}</span></div>" for name, note in figures.items()
    )
    return f'<h1>{_text(title)}</h1><p class="about">{_text(about)}</p><div class="figures">{tiles}</div>'


def _latencies(result: Mapping[str, Any]) -> str:
    warm, first = result["all_warm_ms"], result["all_first_ms"]
    swatch = '<i style="background: var(--{})"></i>'
    key = (
        f"{swatch.format('warm')} after a key: {len(warm):,} answers, median "
        f"{result['warm_ms']['p50']:.0f} ms "
        f"&#160; {swatch.format('first')} at a new place: {len(first):,} answers, median "
        f"{result['first_ms']['p50']:.0f} ms"
    )
    return f'{latency_histogram(warm, first)}<p class="key">{key}</p>'


def _bars(groups: Mapping[str, Mapping[str, Any]]) -> str:
    shown = {
        name: (group["share_not_typed"], f"{group['share_not_typed']:.0%} of {group['num_chars']:,}")
        for name, group in list(groups.items())[:_NUM_BARS]
    }
    num_more = len(groups) - len(shown)
    more = f'<p class="small-print">and {num_more} more</p>' if num_more else ""
    return share_bars(shown, "Share of characters not typed") + more


def _caption(one: Mapping[str, Any], note: str) -> str:
    sources = f", from {', '.join(one['sources'])}" if one["sources"] else ""
    return f"<figcaption>{_text(one['path'])} in {_text(one['commit'])}: {_text(note + sources)}</figcaption>"


def _best(one: Mapping[str, Any]) -> str:
    code = f'{_text(one["before"])}<span class="shown">{_text(one["text"])}</span>'
    note = f"{one['num_saved']} characters, after {one['ms']:.0f} ms"
    return f"<figure>{_caption(one, note)}<pre>{code}</pre></figure>"


def _worst(one: Mapping[str, Any]) -> str:
    shown = f'{_text(one["before"])}<span class="wrong">{_text(one["text"])}</span>'
    wanted = f'{_text(one["before"])}<span class="wanted">{_text(one["wanted"])}</span>'
    note = f"{one['num_wrong']} characters shown that you did not write; below it what you wrote"
    return f"<figure>{_caption(one, note)}<pre>{shown}</pre><pre>{wanted}</pre></figure>"


def _models(result: Mapping[str, Any]) -> str:
    if not result["by_model"]:
        return ""
    (first, _), (larger, _) = result["by_model"].items()
    blocks = "".join(
        f"<figure><figcaption>{_text(one['path'])} in {_text(one['commit'])}: "
        f"{one['num_chars_not_typed']} characters not typed with {_text(first)}, "
        f"{one['num_chars_not_typed_larger']} with {_text(larger)}</figcaption>"
        f"<pre>{_text(one['text'])}</pre></figure>"
        for one in result["larger_model_differs"]
    )
    return f"{_table(result['by_model'], 'On the same blocks')}{blocks}"


def _table(groups: Mapping[str, Mapping[str, Any]], name: str) -> str:
    heads = (name, "characters", "not typed", "keys saved", "median ms", "95 % ms", "shown wrong per 100")
    rows = [
        (
            title, f"{group['num_chars']:,}",
            f"{group['share_not_typed']:.1%}", f"{group['share_keys_saved']:.1%}",
            f"{group['warm_ms']['p50']:.0f}", f"{group['warm_ms']['p95']:.0f}",
            f"{group['shown_wrong_per_100']:.0f}",
        )
        for title, group in groups.items()
    ]  # fmt: skip
    head = "".join(f"<th>{_text(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _commit_name(one: Mapping[str, Any]) -> str:
    return f"{one['id']} {one['subject'][:_NUM_SUBJECT_CHARS]}"


def _left_out(left_out: Mapping[str, int]) -> str:
    counts = ", ".join(f"{count} {_text(reason)}" for reason, count in left_out.items())
    return f"<p>{counts}.</p>" if counts else ""


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


def _svg(height: int, parts: Sequence[str], title: str) -> str:
    label = escape(title)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}"><title>{label}</title>'
        f"{''.join(parts)}</svg>"
    )

"""The report of a history's replay: its figures as plain JSON values, the lines of its screen, and its page.

The page is one HTML file that loads nothing and runs no script. Everything from the repository is escaped.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from lsp_server.commands.machine_checks import processor
from lsp_server.commands.replay import ratio, show_typists
from lsp_server.commands.terminal import console, show_rows
from lsp_server.history.block_typing import SeenSuggestion, TypedBlock
from lsp_server.history.commit_replay import HistoryRecord, ReplayedCommit
from lsp_server.scripted_typing.screen import sum_of
from lsp_server.workspace.measurements import percentiles
from ngram_cache.redaction import blank_secrets

_NUM_ID_CHARS = 8
_NUM_SHOWN_CHARS = 60
_NUM_ROWS = 12  # rows of a table of files or languages on the page
NUM_EXAMPLES = 3
_COLUMNS = ("characters", "not typed", "keys saved", "median ms", "95 % ms", "shown wrong per 100")
_EDGES_MS = (0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


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
        "all_warm_ms": [round(ms, 1) for one in typed for ms in one.warm_ms],
        "all_first_ms": [round(ms, 1) for one in typed for ms in one.first_ms],
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


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --warm: #2f81f7; --first: #bf8700; --bad: #cf222e; --good: #1a7f37; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 760px; margin: 2rem auto; padding: 0 1rem; }
p { opacity: .75; } figure { margin: 0 0 1.2rem; } b { font-size: 1.3rem; }
pre { border: 1px solid #8888; border-radius: 8px; padding: .7rem; overflow-x: auto; font-size: .8rem; }
.shown { color: var(--warm); } .wrong { color: var(--bad); } .wanted { color: var(--good); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { border-bottom: 1px solid #8884; padding: .3rem .5rem; text-align: right; }
td:first-child, th:first-child { text-align: left; overflow-wrap: anywhere; }
i { display: block; height: .5em; background: var(--warm); } i.first { background: var(--first); }
"""


def page_of(result: Mapping[str, Any]) -> str:
    """The page of a report."""
    title = f"{result['repository']}: your commits, typed with Slipstream"
    commits = {f"{one['id']} {one['subject'][:_NUM_SHOWN_CHARS]}": one for one in result["by_commit"]}
    left_out = ", ".join(f"{count} {reason}" for reason, count in result["left_out"].items())
    sections = {
        "Milliseconds from key to answer": latency_histogram(result["all_warm_ms"], result["all_first_ms"]),
        "Characters not typed, by language": _table(result["by_language"], "Language"),
        "Characters not typed, by file": _table(result["by_file"], "File"),
        "Three best suggestions": "".join(map(_best, result["best"])),
        "Three worst misses": "".join(map(_worst, result["worst"])),
        "Commits": _table(commits, "Commit", num_rows=len(commits)),
        "Left out": f"<p>{_text(left_out)}.</p>" if left_out else "",
    }
    warm = result["warm_ms"]
    figures = {
        f"{result['share_not_typed']:.1%}": f"of {result['num_chars']:,} characters not typed",
        f"{result['share_keys_saved']:.1%}": f"of {result['num_keys']:,} keys saved",
        f"{warm['p50']:.0f} ms": f"from key to answer; 95 % within {warm['p95']:.0f} ms",
        f"{result['shown_wrong_per_100']:.0f}": "characters shown wrong for 100 typed",
    }
    head = "".join(f"<b>{_text(name)}</b> {_text(note)}<br>" for name, note in figures.items())
    body = "".join(f"<h2>{name}</h2>{content}" for name, content in sections.items() if content)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body><h1>{_text(title)}</h1>"
        f"<p>{_text(_about(result))}</p>{head}{body}</body></html>\n"
    )


def _text(text: object) -> str:
    shown = (one if one.isprintable() or one in "\n\t" else "\N{REPLACEMENT CHARACTER}" for one in str(text))
    return escape("".join(shown))


def _best(one: Mapping[str, Any]) -> str:
    note = f"{one['num_saved']} characters, after {one['ms']:.0f} ms"
    return _example(one, note, ("shown", one["text"]))


def _worst(one: Mapping[str, Any]) -> str:
    note = f"{one['num_wrong']} characters shown that you did not write; below it what you wrote"
    return _example(one, note, ("wrong", one["text"]), ("wanted", one["wanted"]))


def _example(one: Mapping[str, Any], note: str, *texts: tuple[str, str]) -> str:
    sources = f", from {', '.join(one['sources'])}" if one["sources"] else ""
    caption = f"{one['path']} in {one['commit']}: {note}{sources}"
    before = _text(one["before"])
    shown = "".join(f'<pre>{before}<span class="{kind}">{_text(text)}</span></pre>' for kind, text in texts)
    return f"<figure><figcaption>{_text(caption)}</figcaption>{shown}</figure>"


def _table(groups: Mapping[str, Mapping[str, Any]], name: str, num_rows: int = _NUM_ROWS) -> str:
    """A row for each group, with a bar for the share that was not typed."""
    head = "".join(f"<th>{_text(each)}</th>" for each in (name, *_COLUMNS))
    rows = [
        f"<tr><td>{_text(title)}{_bar(group['share_not_typed'])}</td>"
        f"{''.join(f'<td>{_text(cell)}</td>' for cell in _cells(group))}</tr>"
        for title, group in list(groups.items())[:num_rows]
    ]
    more = f"<p>and {len(groups) - num_rows} more</p>" if len(groups) > num_rows else ""
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>{more}"


def latency_histogram(warm_ms: Sequence[float], first_ms: Sequence[float]) -> str:
    """Shares of answers by time, with a bar each for those that follow a key and those at a new place."""
    rows = []
    for number, (low, warm, first) in enumerate(
        zip(_EDGES_MS, _shares(warm_ms), _shares(first_ms), strict=True), 1
    ):
        span = f"{low} to {_EDGES_MS[number]} ms" if number < len(_EDGES_MS) else f"{low} ms or more"
        cells = f"<td>{warm:.0%}</td><td>{first:.0%}</td>"
        rows.append(f"<tr><td>{span}{_bar(warm)}{_bar(first, 'first')}</td>{cells}</tr>")
    return f"<table><tr><th></th><th>after a key</th><th>at a new place</th></tr>{''.join(rows)}</table>"


def _bar(share: float, kind: str = "") -> str:
    return f'<i class="{kind}" style="width: {100 * min(1.0, max(0.0, share)):.1f}%"></i>'


def _shares(values: Sequence[float]) -> list[float]:
    counts = [0] * len(_EDGES_MS)
    for value in values:
        counts[bisect_right(_EDGES_MS, max(0.0, value)) - 1] += 1
    return [count / len(values) if values else 0.0 for count in counts]

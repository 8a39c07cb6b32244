"""Snippets of other files that share rare names with the text around a cursor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from completion_engine.context.outline import SourceFile, brings_names_in
from completion_engine.request import Snippet

_NUM_LINES, _STEP = 12, 4
_MAX_SNIPPETS = 3
_MAX_SHARED = 0.5  # share of a snippet's lines that may be visible in the document already
_MAX_LINE_CHARS = 200
_WORD = re.compile(r"[^\W\d]\w{2,}")


def similar_snippets(
    sources: Sequence[SourceFile], rarities: Mapping[str, float], seen: str, max_chars: int
) -> list[Snippet]:
    """Return the snippets with the highest scores, at most one per file, the best last.

    Snippets that are mostly `seen` are left out.
    """
    known = {line.strip() for line in seen.split("\n")}
    best = [found for source in sources if (found := _best_snippet(source, rarities, known)) is not None]
    snippets: list[Snippet] = []
    left = max_chars
    for _, snippet in sorted(best, key=lambda it: -it[0]):
        cost = len(snippet.path) + len(snippet.text)
        if cost <= left and len(snippets) < _MAX_SNIPPETS:
            snippets.append(snippet)
            left -= cost
    return snippets[::-1]


def _best_snippet(
    source: SourceFile, rarities: Mapping[str, float], known: set[str]
) -> tuple[float, Snippet] | None:
    names = [
        set() if brings_names_in(line) else {name for name in _WORD.findall(line) if name in rarities}
        for line in source.lines
    ]
    best, best_start = 0.0, -1
    for start in range(0, len(names), _STEP):
        score = sum(rarities[name] for name in set().union(*names[start : start + _NUM_LINES]))
        if score > best and not _is_known(source.lines[start : start + _NUM_LINES], known):
            best, best_start = score, start
    if best_start < 0:
        return None
    lines = source.lines[best_start : best_start + _NUM_LINES]
    text = "\n".join(line[:_MAX_LINE_CHARS] for line in lines).strip("\n")
    return best, Snippet(source.path, text)


def _is_known(lines: Sequence[str], known: set[str]) -> bool:
    texts = [line.strip() for line in lines if line.strip()]
    return sum(line in known for line in texts) > _MAX_SHARED * len(texts)

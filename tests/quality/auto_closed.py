"""The share of whole lines after an editor has closed the brackets that are open at the cursor.

    python -m tests.quality.auto_closed [--prompts N] [--seed N] [LANGUAGE FOLDER]

The rest of the line takes the place of what a target writes: it does not see those brackets.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from completion_engine.cutting.cutter import Cutter
from completion_engine.text_window import CursorContext
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.releases import ENDINGS

_LANGUAGES = ("python", "typescript", "javascript", "rust", "go", "c")
_ENDINGS = {
    **ENDINGS,
    "markdown": (".md",),
    "latex": (".tex",),
    "html": (".html",),
    "typescriptreact": (".tsx",),
    "javascriptreact": (".jsx",),
}
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_KINDS = ("whole", "doubled", "less", "other")
_MAX_CHARS = 60_000
_MIN_LINE_CHARS = 6
_CHARS_A_CHECK = 3


def closers(line: str, num_typed: int) -> str:
    """The editor's text after the cursor, if the line closes all of it; otherwise empty."""
    waiting: list[str] = []
    found, fewest = "", 0
    for at, char in enumerate(line):
        if at == num_typed:
            found, fewest = "".join(reversed(waiting)), len(waiting)
        if char in _PAIRS:
            waiting.append(_PAIRS[char])
        elif waiting and char == waiting[-1]:
            waiting.pop()
        fewest = min(fewest, len(waiting))
    return "" if fewest else found


def line_with(prefix: str, written: str, rest: str, suffix: str, language: str) -> str:
    """The cursor's line, and what a suggestion adds below it, once a target's text is accepted."""
    rules = Cutter(CursorContext(prefix, rest + suffix, language))
    ends = range(_CHARS_A_CHECK, len(written) + _CHARS_A_CHECK, _CHARS_A_CHECK)
    stop = next((stop for end in ends if (stop := rules.stop(written[:end]))), None)
    shown = rules.cut(written[: stop.num_chars if stop else len(written)])
    return rules.around.line_prefix + shown.text + rest[shown.num_replaced :]


def places(root: Path, endings: tuple[str, ...], seed: int = 7) -> Iterator[tuple[str, str, str, str]]:
    """Cursors after open brackets in files under `root`: prefix, rest, original text, suffix."""
    files = sorted(path for path in root.rglob("*") if path.suffix in endings and path.is_file())
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    while files:
        lines = rng.choice(files).read_text(errors="replace")[:_MAX_CHARS].replace("\r", "").split("\n")
        at = rng.randrange(len(lines))
        line = lines[at]
        if len(line.strip()) < _MIN_LINE_CHARS:
            continue
        end = rng.randrange(len(line) - len(line.lstrip()) + 1, len(line))
        if rest := closers(line, end):
            head = "\n".join([*lines[:at], line[:end]])
            yield head, rest, line[end:], "\n" + "\n".join(lines[at + 1 :])


def measured(language: str, root: Path, num_places: int, seed: int = 7) -> dict[str, object]:
    """Number of lines that come out as they were, with doubled brackets, with less, with other text."""
    counts: Counter[str] = Counter()
    drawn = places(root, tuple(_ENDINGS[language]), seed)
    for prefix, rest, written, suffix in (next(drawn) for _ in range(num_places)):
        whole = (prefix[prefix.rfind("\n") + 1 :] + written).rstrip()
        counts[_kind(line_with(prefix, written, rest, suffix, language).rstrip(), whole, rest)] += 1
    return {"language": language, "num_places": num_places, **{kind: counts[kind] for kind in _KINDS}}


def _kind(found: str, whole: str, rest: str) -> str:
    if found.startswith(whole):
        return "doubled" if found != whole else "whole"
    return "less" if found.endswith(rest) and whole.startswith(found.removesuffix(rest)) else "other"


def main() -> None:
    """Print one JSON object a language."""
    parser = argparse.ArgumentParser()
    parser.add_argument("language", nargs="?")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    for language in [asked.language] if asked.language else _LANGUAGES:
        root = asked.folder or released_sources(language)
        row = measured(language, root, asked.prompts, asked.seed)
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

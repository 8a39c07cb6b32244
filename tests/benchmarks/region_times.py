"""Time to find the region of a cursor in a large file.

Run as `python -m tests.benchmarks.region_times`.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.surroundings import forget_texts
from completion_engine.cutting.tree import load_grammar
from completion_engine.text_window import CursorContext
from lsp_server.commands.terminal import show_figures
from lsp_server.workspace.documents import Document
from tests.benchmarks.command_line import Json, run
from tests.benchmarks.released_sources import released_sources
from tests.quality.everyday.cases import written_cases

_MIN_CHARS = 3_000_000
_ENDINGS = {
    "html": (".html", ".xhtml"),
    "markdown": (".md",),
    "php": (".php",),
    "python": (".py",),
    "vue": (".vue",),
}
_SEED = 5
_TYPED = "total = add(left,\n    right)\n"


def large_text(language: str, examples: Path) -> str:
    """A file of three million characters: example files after each other, again and again."""
    files = sorted(path for path in examples.rglob("*") if path.suffix in _ENDINGS[language])
    texts = [path.read_text("utf-8", "replace").replace("\r", "") for path in files]
    written = {case.file: case for case in written_cases() if case.language == language}
    texts += [case.prefix + case.truth + case.suffix for case in written.values()]
    joined = "\n".join(texts)
    return joined * (1 + _MIN_CHARS // len(joined))


def times_ms(language: str, text: str, num_cursors: int) -> tuple[list[float], list[float]]:
    """The milliseconds of processor time in which the rules are prepared at random cursors.

    First those of a cursor in an unknown part of the file, then those of each key that is typed there.
    """
    document = Document("file:///large", language, 1, text)
    generator = random.Random(_SEED)  # noqa: S311 - a reproducible draw, not a secret
    load_grammar(language)
    first: list[float] = []
    typed: list[float] = []
    for _ in range(num_cursors):
        line = generator.randrange(len(document.lines))
        column = generator.randrange(len(document.content(line)) + 1)
        snapshot = document.snapshot(line, column)
        forget_texts()
        first.append(_time_ms(CursorContext(snapshot.prefix, snapshot.suffix, language)))
        for end in range(1, 1 + len(_TYPED)):
            cursor = CursorContext(snapshot.prefix + _TYPED[:end], snapshot.suffix, language)
            typed.append(_time_ms(cursor))
    return first, typed


def _time_ms(cursor: CursorContext) -> float:
    begin = time.thread_time()
    rules = Cutter(cursor)
    assert rules.around.kind
    return (time.thread_time() - begin) * 1e3


def region_times(
    *,
    cursors: Annotated[int, typer.Option("--cursors", min=1, help="Cursors in each file.")] = 500,
    json: Json = False,
) -> None:
    """Times to find the region of a cursor in a file of 3 MB, in an unknown part of it and while typing."""
    examples = released_sources("examples")
    figures: dict[str, float] = {}
    for language in _ENDINGS:
        first, typed = times_ms(language, large_text(language, examples), cursors)
        for name, found in (("first", first), ("typed", typed)):
            p50, p99 = np.percentile(found, [50, 99])
            figures |= {
                f"{language}_{name}_ms_p50": round(p50, 2),
                f"{language}_{name}_ms_p99": round(p99, 2),
            }
    show_figures({"bench": "region_times", **figures}, json=json, title="Regions in files of 3 MB")


if __name__ == "__main__":
    run(region_times)

"""How much of what people wrote comes through the rules that end and clean suggestions.

`python -m tests.quality.rules [--prompts N] [LANGUAGE]...`: at positions of recent releases, what stood there
takes the place of what a target writes. A line is lost where less or something else of it would be shown.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from completion_engine.suggestions.cursor_context import CursorContext
from completion_engine.suggestions.stopping import StopRules
from completion_engine.suggestions.suggestion import Suggestion, polish
from lsp_server.tools.bench.accepting import Place
from lsp_server.tools.bench.prompts import Sample, from_folder
from lsp_server.tools.bench.released_sources import released_sources
from lsp_server.tools.bench.releases import ENDINGS

_LANGUAGES = ("python", "typescript", "javascript", "rust", "go", "c")
_MAX_CHARS = 600  # of what stood there, behind a cursor that stands before a block
_SEEDS = {"lines": 0, "blocks": 5}


def shown(prefix: str, suffix: str, language: str, written: str) -> Suggestion:
    """What would be shown of a text that a target writes between two others."""
    rules = StopRules(CursorContext(prefix, suffix, language))
    stop = rules.check(written)
    num_chars = stop.num_chars if stop else rules.boundary(written)
    return polish(rules, written[:num_chars], is_complete=True)


def is_line_shown(sample: Sample) -> bool:
    """Whether the rest of the line comes through, where it is written and then the line ends."""
    text = shown(sample.prefix, sample.suffix, sample.language, sample.expected + "\n").text
    return text.partition("\n")[0].rstrip() == sample.expected.rstrip()


def is_block_shown(sample: Sample) -> bool:
    """Whether the block that begins with the line comes through: its first line at least, nothing else."""
    place = Place.hole_at(sample)
    whole = sample.prefix + sample.expected + sample.suffix
    truth = whole[len(place.left) :][:_MAX_CHARS]
    text = shown(place.left, place.right, sample.language, truth).text
    return truth.startswith(text) and len(text) >= len(truth.partition("\n")[0].rstrip())


def measured(languages: Sequence[str], num_samples: int) -> Iterator[dict[str, object]]:
    """A row for each language."""
    for language in languages:
        root, endings = released_sources(language), ENDINGS[language]
        lines = from_folder(root, num_samples, _SEEDS["lines"], endings)
        blocks = from_folder(root, num_samples, _SEEDS["blocks"], endings)
        yield {
            "language": language,
            "num_lines": len(lines),
            "lines_lost": [sample.name for sample in lines if not is_line_shown(sample)],
            "num_blocks": len(blocks),
            "blocks_lost": [sample.name for sample in blocks if not is_block_shown(sample)],
        }


def main() -> None:
    """Print one JSON object a language."""
    parser = argparse.ArgumentParser()
    parser.add_argument("languages", nargs="*", default=_LANGUAGES)
    parser.add_argument("--prompts", type=int, default=200)
    asked = parser.parse_args()
    for row in measured(asked.languages, asked.prompts):
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

"""The share of human code that passes the rules that end and clean suggestions.

    python -m tests.quality.rules [--prompts N] [--cuts] [LANGUAGE]...

At positions of recent releases, the original text takes the place of a target's text. A line is lost where
less or something else of it would be shown. With `--cuts` each line is ended early too, wherever `eagerness`
might: is the file then no worse to parse?
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from completion_engine.cutting.cutter import Cutter, Suggestion
from completion_engine.text_window import CursorContext
from lsp_server.commands.local_engine import Sample
from tests.benchmarks.accepting.holes import Place
from tests.benchmarks.judging import parses_as_well
from tests.benchmarks.released_sources import released_sources
from tests.benchmarks.releases import ENDINGS
from tests.benchmarks.samples import from_folder

_LANGUAGES = ("python", "typescript", "javascript", "rust", "go", "c")
_MAX_CHARS = 600  # characters of the original text, at a cursor before a block
_SEEDS = {"lines": 0, "blocks": 5}


def shown(prefix: str, suffix: str, language: str, written: str) -> Suggestion:
    """The suggestion of a target's text between two others."""
    rules = Cutter(CursorContext(prefix, suffix, language))
    stop = rules.stop(written)
    num_chars = stop.num_chars if stop else rules.boundary(written)
    return rules.cut(written[:num_chars])


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


def heads(rules: Cutter, sample: Sample) -> list[str]:
    """All that may be shown of the rest of a line, but for all of it."""
    written = sample.expected + "\n"
    ends = {unit.num_chars for unit in rules.units(written)}
    texts = (rules.cut(written[:end]).text for end in sorted(ends))
    return [text for text in texts if text and text != sample.expected]


def before_open(rules: Cutter, text: str) -> str:
    """The text up to the first bracket or string that it leaves open, blocks that it begins left alone."""
    num_before = len(rules.around.before)
    for entry in rules.around.scan(text)[1]:
        start = entry.start - num_before
        begins_block = entry.mark == "{" and not text[start + 1 :].strip()
        if start >= 0 and not begins_block and entry.kind != "comment":
            return text[:start].rstrip()
    return text


def cuts(samples: Sequence[Sample]) -> dict[str, int]:
    """Lines ended early: the number that parse, and the same for lines that end before their open parts."""
    counts: Counter[str] = Counter()
    for sample in samples:
        rules = Cutter(CursorContext(sample.prefix, sample.suffix, sample.language))
        for text in heads(rules, sample):
            closed = before_open(rules, text)
            counts["num_cut"] += 1
            counts["num_chars"] += len(text)
            counts["num_open"] += closed != text
            counts["num_parsed"] += parses_as_well(sample, text)
            counts["num_chars_closed"] += len(closed)
            counts["num_parsed_closed"] += bool(closed) and parses_as_well(sample, closed)
    return dict(counts)


def measured(languages: Sequence[str], num_samples: int, *, has_cuts: bool) -> Iterator[dict[str, object]]:
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
            **(cuts(lines) if has_cuts else {}),
        }


def main() -> None:
    """Print one JSON object a language."""
    parser = argparse.ArgumentParser()
    parser.add_argument("languages", nargs="*", default=_LANGUAGES)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--cuts", action="store_true")
    asked = parser.parse_args()
    for row in measured(asked.languages, asked.prompts, has_cuts=asked.cuts):
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

"""What a suggestion is worth: beside the line that a person wrote, and to whoever parses the file.

Knows text and grammars; no engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from tree_sitter import Node

from completion_engine.grammars import new_parser, parse_within
from lsp_server.tools.bench.prompts import Sample

_MAX_PARSE_S = 5.0


@dataclass(slots=True)
class QualityReport:
    """Judgements of one way of asking, over positions of one language."""

    name: str
    num_positions: int = 0
    num_exact: int = 0
    num_shown: int = 0
    num_parsed: int = 0
    num_prompt_tokens: int = 0
    similarities: list[float] = field(default_factory=list)

    def add(self, sample: Sample, suggested: str, num_prompt_tokens: int = 0) -> None:
        """Count one answer. Its first line is compared; all of it stands in the file that is parsed."""
        expected = sample.expected.rstrip()
        line = suggested.split("\n", maxsplit=1)[0].rstrip()
        self.num_positions += 1
        self.num_shown += bool(suggested)
        self.num_exact += line == expected
        self.num_parsed += parses_as_well(sample, suggested)
        self.num_prompt_tokens += num_prompt_tokens
        self.similarities.append(SequenceMatcher(None, line, expected, autojunk=False).ratio())

    def as_dict(self) -> dict[str, Any]:
        """One JSON object. `parses` counts what was shown alone."""
        count = max(1, self.num_positions)
        num_empty = self.num_positions - self.num_shown
        return {
            "name": self.name,
            "num_positions": self.num_positions,
            "num_shown": self.num_shown,
            "exact": round(self.num_exact / count, 3),
            "similarity": round(sum(self.similarities) / count, 3),
            "parses": round((self.num_parsed - num_empty) / max(1, self.num_shown), 3),
            "prompt_tokens": round(self.num_prompt_tokens / count),
        }


def parses_as_well(sample: Sample, suggested: str) -> bool:
    """Whether a file with a suggestion has no more errors than with what stood there; nothing has as few."""
    if not suggested:
        return True
    with_truth = sample.prefix + sample.expected + sample.suffix
    return _num_errors(sample.prefix + suggested + sample.suffix, sample) <= _num_errors(with_truth, sample)


def _num_errors(text: str, sample: Sample) -> int:
    """Errors in the tree of a text; none where there is no grammar."""
    parser = new_parser(sample.language)
    tree = parse_within(parser, text.encode("utf-8", "replace"), _MAX_PARSE_S) if parser else None
    num_errors, waiting = 0, [tree.root_node] if tree is not None else []
    while waiting:
        node: Node = waiting.pop()
        num_errors += node.is_error or node.is_missing
        waiting += [child for child in node.children if child.has_error]
    return num_errors

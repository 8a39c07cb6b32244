"""The quality of a suggestion: compared with the original line, and for a parser of the file.

Uses text and grammars; no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tree_sitter import Node, Tree

from completion_engine.grammars import new_parser, parse_within
from lsp_server.commands.local_engine import Sample

_MAX_PARSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """One suggestion at one position. Its first line is compared; all of it is parsed, in its file.

    It is whole as far as it goes if it leaves no more errors than the original, or if an equally long part of
    the original leaves more too.
    """

    is_shown: bool
    is_exact: bool
    similarity: float
    is_no_worse_to_parse: bool
    num_prompt_tokens: int = 0
    num_bits: float = 0.0
    is_whole_as_far: bool = False


def judge(sample: Sample, suggested: str, num_prompt_tokens: int = 0, num_bits: float = 0.0) -> Judgement:
    """Compare a suggestion with the original text, which the target found unlikely by `num_bits`."""
    expected = sample.expected.rstrip()
    line = suggested.split("\n", maxsplit=1)[0].rstrip()
    return Judgement(
        bool(suggested),
        line == expected,
        round(SequenceMatcher(None, line, expected, autojunk=False).ratio(), 4),
        parses_as_well(sample, suggested),
        num_prompt_tokens,
        num_bits,
        is_whole_as_far(sample, suggested),
    )


def summary(judgements: Sequence[Judgement]) -> dict[str, Any]:
    """One JSON object. `parses` and `whole` count what was shown alone."""
    count = max(1, len(judgements))
    shown = [found for found in judgements if found.is_shown]
    num_prompt_tokens = sum(found.num_prompt_tokens for found in judgements)
    return {
        "num_positions": len(judgements),
        "num_shown": len(shown),
        "exact": round(sum(found.is_exact for found in judgements) / count, 3),
        "similarity": round(sum(found.similarity for found in judgements) / count, 3),
        "parses": round(sum(found.is_no_worse_to_parse for found in shown) / max(1, len(shown)), 3),
        "whole": round(sum(found.is_whole_as_far for found in shown) / max(1, len(shown)), 3),
        "bits": round(sum(found.num_bits for found in judgements) / count, 2),
        "prompt_tokens": round(num_prompt_tokens / count),
    }


def parses_as_well(sample: Sample, suggested: str) -> bool:
    """Whether the file has no more errors with the suggestion than with the original."""
    return not suggested or _num_errors(sample, suggested) <= _num_errors(sample, sample.expected)


def is_whole_as_far(sample: Sample, suggested: str) -> bool:
    """As `parses_as_well`, compared with the original cut at the same length if the line is not whole."""
    as_much = sample.expected[: len(suggested.partition("\n")[0])]
    return parses_as_well(sample, suggested) or not parses_as_well(sample, as_much)


def tree_of(text: str, language: str) -> Tree | None:
    """The tree of a text; None where there is no grammar, or where it takes too long."""
    parser = new_parser(language)
    return parse_within(parser, text.encode("utf-8", "replace"), _MAX_PARSE_S) if parser else None


def _num_errors(sample: Sample, written: str) -> int:
    """Errors in the tree of a file with what is written at its cursor; none where there is no grammar."""
    tree = tree_of(sample.prefix + written + sample.suffix, sample.language)
    num_errors, waiting = 0, [tree.root_node] if tree is not None else []
    while waiting:
        node: Node = waiting.pop()
        num_errors += node.is_error or node.is_missing
        waiting += [child for child in node.children if child.has_error]
    return num_errors

"""Judges the rules of this tree on texts that a target wrote before, in seconds and without the model.

    python -m tests.quality.everyday.texts record FILE [--kind KIND] [--random N]
    python -m tests.quality.everyday.texts judge FILE [--kind KIND] [--random N]

The target writes on after the rules end a text, so that other rules can be judged on it too. Two trees that
judge one file differ by their rules only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from completion_engine.config import EngineConfig
from completion_engine.cutting.cutter import Cutter
from completion_engine.cutting.repeats import Stop
from completion_engine.decoding.ending import Finish
from completion_engine.engine import CompletionEngine
from completion_engine.load_engine import load_engine
from completion_engine.request import CompletionRequest
from completion_engine.text_window import CursorContext
from tests.benchmarks.json_lines import JsonLines
from tests.quality.everyday.__main__ import Results, add_positions, chosen, print_case, print_table
from tests.quality.everyday.cases import CursorCase
from tests.quality.everyday.judging import Accepted

_MAX_TOKENS = 64  # the default setting
_NUM_SPARE_TOKENS = 32  # in which a first statement may become complete
_NUM_CHARS_MORE = 40  # text after the end that the rules found


class LateRules:
    """Rules that end a text `_NUM_CHARS_MORE` characters after the real ones do."""

    def __init__(self, rules: Cutter) -> None:
        self._rules = rules
        self._end = -1

    def stop(self, generated: str) -> Stop | Finish | None:
        """Return the end of the text once enough follows the real rules' end."""
        if self._end < 0 and self._rules.stop(generated):
            self._end = len(generated) + _NUM_CHARS_MORE
        return Stop("single-line", len(generated)) if 0 <= self._end <= len(generated) else None

    def boundary(self, generated: str) -> int:
        """Return the length of the text."""
        return len(generated)

    def head(self, generated: str, num_chars: int) -> int:
        """Return `num_chars`."""
        return num_chars

    def is_within_statement(self, generated: str) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True)
class WrittenText:
    """The text of at most `_MAX_TOKENS` tokens, and the rest of a few more if that limit cut it.

    `ends` are the lengths of both together after each token of the rest; files that were recorded before lack
    them.
    """

    text: str
    is_cut: bool
    rest: str = ""
    ends: tuple[int, ...] = ()


def record(engine: CompletionEngine, cases: Sequence[CursorCase], path: Path) -> None:
    """Append what the engine's target writes at each position that the file lacks, one JSON line each."""
    known, lines = texts(path), JsonLines(path)
    for case in cases:
        if case.key in known:
            continue
        request = CompletionRequest(case.prefix, case.suffix, case.language, case.file)
        rules = LateRules(Cutter(CursorContext(case.prefix, case.suffix, case.language)))
        decoding = engine.write(request, rules, _MAX_TOKENS + _NUM_SPARE_TOKENS)
        written = cut(decoding.written.text, decoding.written.ends[: decoding.num_checked])
        lines.add({"key": case.key, **asdict(written)})


def cut(text: str, ends: Sequence[int]) -> WrittenText:
    """Return the record of a text whose tokens end at `ends`."""
    at = ends[min(len(ends), _MAX_TOKENS) - 1] if ends else 0
    further = tuple(ends[_MAX_TOKENS:])
    return WrittenText(text[:at], bool(further), text[at : ends[-1]] if further else "", further)


def texts(path: Path) -> dict[str, WrittenText]:
    """The text at each position of a file."""
    return {row.pop("key"): WrittenText(**row) for row in map(dict, JsonLines(path).objects)}


def accepted(case: CursorCase, written: WrittenText) -> Accepted:
    """Return what this tree's rules show of a text."""
    rules = Cutter(CursorContext(case.prefix, case.suffix, case.language))
    shown = rules.cut((written.text + written.rest)[: _end(rules, written)])
    return Accepted(shown.text, shown.num_replaced)


def _end(rules: Cutter, written: WrittenText) -> int:
    """Return where a text ends, by the same rules as in `completion_engine.decoding.ending`."""
    text, num_chars = written.text + written.rest, len(written.text)
    for end in (num_chars, *written.ends[:_NUM_SPARE_TOKENS]):
        if stop := rules.stop(text[:end]):
            return stop.num_chars
        if written.is_cut and not rules.is_within_statement(text[:end]):
            return rules.boundary(text[:end])
    has_ended = not written.is_cut or 0 < len(written.ends) < _NUM_SPARE_TOKENS
    return len(text) if has_ended else rules.boundary(written.text)


def judge(cases: Sequence[CursorCase], path: Path, results: Results) -> None:
    """Count the answers at all positions of a file, and print those that spoil their document."""
    known = texts(path)
    for case in cases:
        if case.key in known:
            answer = accepted(case, known[case.key])
            if found := results.add(case, answer):
                print_case(case, answer, found)


def main() -> None:
    """Record texts, or print each spoiled position as a JSON line and then the table by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["record", "judge"])
    parser.add_argument("file", type=Path)
    add_positions(parser, num_random=141)
    asked = parser.parse_args()
    cases = chosen(asked)
    if asked.action == "record":
        record(load_engine(EngineConfig(target=asked.target)), cases, asked.file)
        return
    results = Results()
    judge(cases, asked.file, results)
    num_missing = len(cases) - results.num_cases.total() // 2  # each counts by kind and by language
    print_table(results, sorted({case.kind for case in cases}), num_missing)


if __name__ == "__main__":
    main()

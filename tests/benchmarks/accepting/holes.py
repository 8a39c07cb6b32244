"""Accepts suggestion after suggestion, as a trusting user does, and finds doubled text: what then stands
twice.

Places are holes of some lines in real files. At each one every suggestion is accepted whole until none comes;
Enter is pressed where a line is done. A line counts as repeated where it is the same as the one above it or
as the one below the cursor; a bracket where the file then has more closing brackets that nothing opened, and
still has when the place is done: within a string that goes on, a grammar takes anything for code.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest
from lsp_server.commands.local_engine import Sample
from lsp_server.workspace.settings import Settings
from ngram_cache import NgramIndex
from tests.benchmarks.json_lines import JsonLines
from tests.benchmarks.judging import tree_of
from tests.benchmarks.samples import Position, repository_index

_MAX_HOLE_LINES = 10
_MAX_ACCEPTED = 12
_EAGERNESS = Settings().eagerness
_WORDS = re.compile(r"\w.*\w")
_MIN_LINE_CHARS = 8  # shorter ones, as `else:`, are rightly written again
_CLOSERS = {")": "(", "]": "[", "}": "{"}
# The bracket that each of these opens.
_OPENERS = {opener: opener for opener in _CLOSERS.values()} | {"${": "{", "#{": "{", "$(": "("}


@dataclass(slots=True)
class Place:
    """The text left and right of a cursor, and what went wrong there so far."""

    left: str
    right: str
    num_accepted: int = 0
    repeated_lines: list[str] = field(default_factory=list)
    _suspects: list[tuple[int, str]] = field(default_factory=list)

    @property
    def repeated_brackets(self) -> list[str]:
        """Texts that left brackets which nothing opened, unless what was accepted later opened them."""
        return [text for _, text in self._suspects]

    @classmethod
    def hole_at(cls, sample: Sample) -> Place:
        """The cursor where the sample's line begins; the line and what follows of its block are gone."""
        start = sample.prefix.rfind("\n") + 1
        rest = (sample.prefix[start:] + sample.expected + sample.suffix).split("\n")
        indent = _indent(rest[0])
        num_lines = 1
        while num_lines < min(_MAX_HOLE_LINES, len(rest)) and _belongs(rest[num_lines], indent):
            num_lines += 1
        return cls(sample.prefix[:start] + indent, "\n" + "\n".join(rest[num_lines:]))

    @property
    def line(self) -> str:
        """The cursor's line up to the cursor."""
        return self.left[self.left.rfind("\n") + 1 :]

    def accept(self, text: str, num_replaced: int, language: str) -> None:
        """Take a suggestion, and look at what it repeats."""
        num_open = num_unopened(self.left + self.right, language)
        begin = len(self.left) - len(self.line)
        self.left, self.right = self.left + text, self.right[num_replaced:]
        self.num_accepted += 1
        self.repeated_lines += self._repeated(begin)
        num_left = num_unopened(self.left + self.right, language)
        self._suspects = [(num, by) for num, by in self._suspects if num <= num_left]
        if num_left > num_open:
            self._suspects.append((num_left, text))

    def _repeated(self, begin: int) -> list[str]:
        """Lines from offset `begin` on that are the line above, and the last where it is the one below."""
        lines = [line.strip() for line in self.left[:begin].split("\n") if line.strip()][-1:]
        rest_of_line, _, below = self.right.partition("\n")
        written = (self.left[begin:] + rest_of_line).split("\n")
        lines += [line.strip() for line in written if line.strip()]
        same = [one for one, other in pairwise(lines) if one == other]
        following = next((line.strip() for line in below.split("\n") if line.strip()), "")
        if lines and lines[-1] == following:
            same.append(following)
        return [line for line in same if len(line) >= _MIN_LINE_CHARS and _WORDS.search(line)]

    def press_enter(self) -> None:
        """A new line, as far in as the editor would put it."""
        deeper = "    " if self.line.rstrip().endswith((":", "{", "(", "[")) else ""
        tab = "\t" if "\n\t" in self.left else deeper
        self.left += "\n" + _indent(self.line) + (tab if deeper else "")


def num_unopened(text: str, language: str) -> int:
    """Closing brackets that nothing opened, each kind by itself; without those in strings and comments."""
    tree = tree_of(text, language)
    num_open, num_found = dict.fromkeys(_CLOSERS.values(), 0), 0
    waiting = [tree.root_node] if tree is not None else []
    while waiting:
        node = waiting.pop()
        waiting += reversed(node.children)
        if node.type in _OPENERS and not node.is_missing:
            num_open[_OPENERS[node.type]] += 1
        elif node.type in _CLOSERS and not node.is_missing:
            opener = _CLOSERS[node.type]
            num_found += num_open[opener] == 0
            num_open[opener] = max(0, num_open[opener] - 1)
    return num_found


def measure_accepting(
    engine: CompletionEngine,
    positions: Sequence[Position],
    results: JsonLines,
    progress: Callable[[int, int], None],
    until_s: float = float("inf"),
) -> None:
    """Add the places that `results` does not hold yet; no place is begun `until_s`."""
    model = engine.describe()["target"]
    known = {(found["model"], found["place"]) for found in results.objects}
    projects: dict[Path, NgramIndex] = {}
    for num_done, (_, sample, root) in enumerate(positions):
        if (model, sample.name) not in known:
            if time.monotonic() >= until_s:
                return
            project = root / sample.document.partition("/")[0]
            if project not in projects:
                projects[project] = repository_index(project, engine.tokenizer.encode_many)
            place = _written(engine, sample, projects[project])
            results.add(
                {
                    "model": model,
                    "language": sample.language,
                    "place": sample.name,
                    "num_accepted": place.num_accepted,
                    "repeated_lines": place.repeated_lines,
                    "repeated_brackets": place.repeated_brackets,
                }
            )
        progress(num_done + 1, len(positions))


def _written(engine: CompletionEngine, sample: Sample, index: NgramIndex) -> Place:
    """The place after every suggestion there was accepted."""
    place = Place.hole_at(sample)
    while place.num_accepted < _MAX_ACCEPTED:
        request = CompletionRequest(
            place.left,
            place.right,
            sample.language,
            sample.document,
            index=index,
            indexed_as=sample.document.partition("/")[2],
            deadline_ms=0,
            patience_ms=float("inf"),
            eagerness=_EAGERNESS,
        )
        completion = engine.complete(request)
        if completion.text:
            place.accept(completion.text, completion.num_replaced, sample.language)
        elif place.line.strip():
            place.press_enter()
        else:
            break
    engine.forget(sample.document)
    return place


def accepting_rows(results: JsonLines) -> list[dict[str, Any]]:
    """A row for each model: the accepted suggestions, and the doubled lines and brackets."""
    rows = []
    for model in sorted({found["model"] for found in results.objects}):
        places = [found for found in results.objects if found["model"] == model]
        rows.append(
            {
                "model": model,
                "num_places": len(places),
                "num_accepted": sum(found["num_accepted"] for found in places),
                "repeated_lines": [line for found in places for line in found["repeated_lines"]],
                "repeated_brackets": [text for found in places for text in found["repeated_brackets"]],
            }
        )
    return rows


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _belongs(line: str, indent: str) -> bool:
    """Whether a line lies at least as deep as its block."""
    return not line.strip() or len(_indent(line)) >= len(indent)

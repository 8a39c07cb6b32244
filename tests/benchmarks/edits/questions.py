"""Replays the hunks of a release one after the other, and records what is scored after each.

The proposer's own search and scores are recorded, so that every threshold is computed from one recording.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from completion_engine.next_edit.candidates import MAX_RECENT_HUNKS, Candidate, find_candidates, restores
from completion_engine.next_edit.decision import Evidence
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk
from completion_engine.next_edit.occurrences import OldName
from completion_engine.next_edit.proposer import EditProposer
from tests.benchmarks.edits.changes import Change, ChangedFile, changed_files, is_right, num_examples
from tests.benchmarks.edits.release_pairs import ReleasePair
from tests.benchmarks.released_sources import unpacked

_MAX_LOGGED = 12  # hunks of each document, as the log of edits keeps them


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate and its score. `hunk` is the change that it makes a part of, -1 for a wrong one."""

    key: str
    hunk: int
    distance: int
    evidence: Evidence
    restores: bool
    ms: float


@dataclass(frozen=True, slots=True)
class Question:
    """The candidates after hunk `done` of a file, as the proposer orders them, and the hunks still to come.

    `repeats` names those that repeat an earlier one, with the number of examples before this question.
    """

    package: str
    language: str
    file: str
    done: int
    is_last: bool
    candidates: tuple[Scored, ...]
    repeats: dict[int, int]


class Recording:
    """The recorded questions of one package; a further one is written to `file` at once."""

    def __init__(self, pair: ReleasePair, file: Path, max_scored: int) -> None:
        """Read what `file` holds, up to `max_scored` questions with candidates."""
        self.questions: list[Question] = []
        self._file, self._max_scored = file, max_scored
        for line in file.read_text("utf-8").splitlines() if file.is_file() else []:
            if self.num_scored < max_scored:
                self.questions.append(read(line))
        self._further = islice(_steps(pair), len(self.questions), None)

    @property
    def num_scored(self) -> int:
        """Number of questions with candidates."""
        return sum(bool(question.candidates) for question in self.questions)

    def record(self, make_proposer: Callable[[], EditProposer]) -> bool:
        """Record up to the next question with candidates; returns whether there was another one."""
        num_scored = self.num_scored
        while num_scored < self._max_scored and (step := next(self._further, None)) is not None:
            question = replace(step.question, candidates=tuple(_scored(step, make_proposer())))
            with self._file.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(asdict(question))}\n")
            self.questions.append(question)
            if question.candidates:
                return True
        return False


def read(line: str) -> Question:
    """A question as it was written."""
    values: dict[str, Any] = json.loads(line)
    candidates = tuple(map(_read_scored, values.pop("candidates")))
    repeats = {int(hunk): number for hunk, number in values.pop("repeats").items()}
    return Question(**values, candidates=candidates, repeats=repeats)


def _read_scored(values: dict[str, Any]) -> Scored:
    evidence = values.pop("evidence")
    return Scored(**values, evidence=Evidence(**{**evidence, "old_name": OldName(evidence["old_name"])}))


@dataclass(frozen=True, slots=True)
class _Step:
    """A request after a hunk, its question without candidates, and the later changes.

    They begin `shift` lines later than in the old file.
    """

    request: EditRequest
    question: Question
    later: tuple[tuple[int, Change], ...]
    shift: int

    def hunk_of(self, candidate: Candidate) -> int:
        """The number of the change that a candidate makes a part of, or -1."""
        right = (at for at, it in self.later if is_right(candidate.edit, it, it.start + self.shift))
        return next(right, -1)


def _steps(pair: ReleasePair) -> Iterator[_Step]:
    before, after = (unpacked((release,)) / release.project for release in (pair.before, pair.after))
    recent: list[Hunk] = []
    for changed in changed_files(before, after, pair.language):
        yield from _steps_in(pair, changed, recent)


def _steps_in(pair: ReleasePair, changed: ChangedFile, recent: list[Hunk]) -> Iterator[_Step]:
    lines, shift, own = list(changed.old), 0, list[Hunk]()
    numbered = tuple(enumerate(changed.changes))
    for done, change in numbered:
        hunk = change.as_hunk(changed.name, shift)
        lines[change.start + shift : change.end + shift] = change.new
        shift += len(change.new) - len(change.old)
        recent.append(hunk)
        own.append(hunk)
        logged = [*recent[:-1][-MAX_RECENT_HUNKS:], hunk] if len(recent) > 1 else [hunk]
        document = EditDocument(changed.name, changed.name, pair.language, tuple(lines))
        request = EditRequest([document], logged, hunk.first_line, pair.before.project)
        later = numbered[done + 1 :]
        earlier = [*own[-_MAX_LOGGED:], *recent[-MAX_RECENT_HUNKS - len(own) : -len(own)]]
        repeats = {at: number for at, it in later if (number := num_examples(it, earlier))}
        question = Question(pair.name, pair.language, changed.name, done, not later, (), repeats)
        yield _Step(request, question, later, shift)


def _scored(step: _Step, proposer: EditProposer) -> Iterator[Scored]:
    begin_s, request = time.perf_counter(), step.request
    for candidate, evidence in proposer.scored(request, find_candidates(request)):
        yield Scored(
            f"{zlib.crc32(repr(candidate.edit.identity).encode()):08x}",
            step.hunk_of(candidate),
            candidate.distance,
            evidence,
            any(restores(candidate.edit, hunk) for hunk in request.hunks),
            (time.perf_counter() - begin_s) * 1e3,
        )
        begin_s = time.perf_counter()

"""Replays the hunks of a release one after the other, asks after each, and records what was scored.

The proposer's own search and scores are recorded, so that every threshold is computed from one recording.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from completion_engine.next_edit.bindings import OldName
from completion_engine.next_edit.candidates import MAX_RECENT_HUNKS, Candidate, find_candidates, restores
from completion_engine.next_edit.decision import Evidence
from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk
from completion_engine.next_edit.proposer import EditProposer
from tests.benchmarks.edits.changes import ChangedFile, changed_files, is_right, num_examples
from tests.benchmarks.edits.release_pairs import ReleasePair
from tests.benchmarks.released_sources import unpacked

_MAX_LOGGED = 12  # hunks of each document, as the log of edits keeps them


@dataclass(frozen=True, slots=True)
class Scored:
    """One scored candidate of one ask. `hunk` is the change that it makes a part of, -1 for a wrong one."""

    key: str
    hunk: int
    distance: int
    evidence: Evidence
    restores: bool
    ms: float


@dataclass(frozen=True, slots=True)
class Ask:
    """The candidates after hunk `done` of a file, as the proposer orders them, and the hunks still to come.

    `repeats` names those that repeat an earlier one, with the number of examples before this ask.
    """

    package: str
    language: str
    file: str
    done: int
    is_last: bool
    candidates: tuple[Scored, ...]
    repeats: dict[int, int]


def recorded(
    pair: ReleasePair, make_proposer: Callable[[], EditProposer], max_scored_asks: int, file: Path
) -> list[Ask]:
    """The asks of one package; read from `file` where it was recorded there before."""
    if file.is_file():
        return [read(line) for line in file.read_text("utf-8").splitlines()]
    asks = list(_asks(pair, make_proposer(), max_scored_asks))
    file.write_text("".join(f"{json.dumps(asdict(ask))}\n" for ask in asks), "utf-8")
    return asks


def read(line: str) -> Ask:
    """An ask as it was written."""
    values: dict[str, Any] = json.loads(line)
    candidates = tuple(map(_read_scored, values.pop("candidates")))
    repeats = {int(hunk): number for hunk, number in values.pop("repeats").items()}
    return Ask(**values, candidates=candidates, repeats=repeats)


def _read_scored(values: dict[str, Any]) -> Scored:
    evidence = values.pop("evidence")
    return Scored(**values, evidence=Evidence(**{**evidence, "old_name": OldName(evidence["old_name"])}))


def _asks(pair: ReleasePair, proposer: EditProposer, max_scored_asks: int) -> Iterator[Ask]:
    before, after = (unpacked((release,)) / release.project for release in (pair.before, pair.after))
    recent: list[Hunk] = []
    room = max_scored_asks
    for changed in changed_files(before, after, pair.language):
        for ask in _asks_in(pair, changed, recent, proposer):
            room -= bool(ask.candidates)
            yield ask
            if room <= 0:
                return


def _asks_in(
    pair: ReleasePair, changed: ChangedFile, recent: list[Hunk], proposer: EditProposer
) -> Iterator[Ask]:
    lines, shift, own = list(changed.old), 0, list[Hunk]()
    for done, change in enumerate(changed.changes):
        hunk = change.as_hunk(changed.name, shift)
        lines[change.start + shift : change.end + shift] = change.new
        shift += len(change.new) - len(change.old)
        recent.append(hunk)
        own.append(hunk)
        logged = [*recent[:-1][-MAX_RECENT_HUNKS:], hunk] if len(recent) > 1 else [hunk]
        document = EditDocument(changed.name, changed.name, pair.language, tuple(lines))
        request = EditRequest([document], logged, hunk.first_line, pair.before.project)
        later = list(enumerate(changed.changes))[done + 1 :]
        earlier = [*own[-_MAX_LOGGED:], *recent[-MAX_RECENT_HUNKS - len(own) : -len(own)]]
        repeats = {at: number for at, it in later if (number := num_examples(it, earlier))}

        def hunk_of(candidate: Candidate, shift: int = shift, later: Any = later) -> int:
            return next((at for at, it in later if is_right(candidate.edit, it, it.start + shift)), -1)

        scored = tuple(_scored(request, proposer, hunk_of))
        is_last = done == len(changed.changes) - 1
        yield Ask(pair.name, pair.language, changed.name, done, is_last, scored, repeats)


def _scored(
    request: EditRequest, proposer: EditProposer, hunk_of: Callable[[Candidate], int]
) -> Iterator[Scored]:
    begin_s = time.perf_counter()
    for candidate, evidence in proposer.scored(request, find_candidates(request)):
        yield Scored(
            f"{zlib.crc32(repr(candidate.edit.identity).encode()):08x}",
            hunk_of(candidate),
            candidate.distance,
            evidence,
            any(restores(candidate.edit, hunk) for hunk in request.hunks),
            (time.perf_counter() - begin_s) * 1e3,
        )
        begin_s = time.perf_counter()

"""The hunks between two releases, in the order of their files, and which of them repeat an earlier one.

Owns what counts as a repetition and as a right proposal. Uses no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from completion_engine.next_edit.edits import Hunk, LineEdit, Lines
from completion_engine.next_edit.substitutions import changed_cores
from tests.benchmarks.releases import ENDINGS

MAX_LINES = 4_000  # lines of a file; longer ones are generated
MAX_HUNKS = 60  # hunks of a file; one with more was rewritten
MAX_HUNK_LINES = 60  # the log of edits keeps no longer ones


@dataclass(frozen=True, slots=True)
class Change:
    """Lines `start` to `end` of the old file became `new`."""

    start: int
    end: int
    old: Lines
    new: Lines

    def as_hunk(self, document: str, shift: int) -> Hunk:
        """The hunk of the user who made this change after those above it moved it by `shift` lines."""
        return Hunk(document, self.start + shift, self.old, self.new)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of both releases and its changes from top to bottom."""

    name: str
    old: Lines
    changes: tuple[Change, ...]


def changed_files(before: Path, after: Path, language: str) -> Iterator[ChangedFile]:
    """The files that two releases share and that differ, by name."""
    for path in sorted(after.rglob("*")):
        name = path.relative_to(after)
        twin = before / name
        if path.suffix not in ENDINGS[language] or not (path.is_file() and twin.is_file()):
            continue
        old, new = (tuple(it.read_text("utf-8", "replace").split("\n")) for it in (twin, path))
        if old == new or max(len(old), len(new)) > MAX_LINES:
            continue
        changes = tuple(_changes(old, new))
        if len(changes) <= MAX_HUNKS:
            yield ChangedFile(name.as_posix(), old, changes)


def _changes(old: Lines, new: Lines) -> Iterator[Change]:
    for tag, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield Change(start, end, old[start:end], new[first:last])


def num_examples(change: Change, earlier: Sequence[Hunk]) -> int:
    """Number of earlier hunks that made every change of this one; 0 where it changes no name or number."""
    wanted = _cores(change.as_hunk("", 0))
    if not wanted or not change.old:
        return 0
    return sum(wanted <= _cores(hunk) for hunk in earlier)


def _cores(hunk: Hunk) -> frozenset[tuple[str, str]]:
    cores = changed_cores(hunk)
    return frozenset(core for core in cores if any(char.isalnum() for side in core for char in side))


def is_right(edit: LineEdit, change: Change, first_line: int) -> bool:
    """Whether an edit within a change, whose lines begin at `first_line` now, brings about a part of it."""
    start, end = edit.first_line - first_line, edit.end_line - first_line
    if start < 0 or end > len(change.old):
        return False
    if len(change.old) == len(change.new) and len(edit.old) == len(edit.new):
        pairs = zip(edit.old, edit.new, change.new[start:end], strict=True)
        return all(new in (old, wanted) for old, new, wanted in pairs)
    return all(line in change.new for line in edit.new if line not in edit.old)

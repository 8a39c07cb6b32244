"""Lines that a recent edit may also change: lines that hold the old side of a substitution, the nearest
first.

Owns the search in open documents and what is never proposed. Pure and bounded. Does not depend on models.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from completion_engine.next_edit.edits import EditDocument, EditRequest, Hunk, LineEdit, Lines
from completion_engine.next_edit.substitutions import (
    Substitution,
    exchanged_beginning,
    is_unfinished,
    substitutions_of,
)

MAX_RECENT_HUNKS = 8
MAX_CANDIDATES = 24  # that are ordered; few of them are scored
_MAX_MATCHES = 64  # matches of one substitution in one document
_IMPORTS = ("import", "from", "use")
_MAX_SEARCHED_CHARS = 2_000_000  # characters of all documents together


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where the substitutions of the hunk `repeats` apply, and how far it is.

    `distance` counts lines from the cursor; every line of another document is farther than all of this one.
    It `is_next` if the user goes from one occurrence to the next: the two last hunks exchanged the same
    beginning of a line in this document, and no line between them and this one still has it.
    """

    edit: LineEdit
    repeats: Hunk
    num_examples: int
    distance: int
    is_next: bool = False


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One substitution of a recent hunk, and how many recent hunks made the same change."""

    substitution: Substitution
    hunk: Hunk
    num_examples: int


def find_candidates(request: EditRequest) -> list[Candidate]:
    """Return the places where a recent hunk may be repeated, the nearest first."""
    hunks = request.hunks[-MAX_RECENT_HUNKS:]
    patterns = _patterns(hunks, is_invoked=request.is_invoked)
    found: dict[tuple[str, int, Lines], Candidate] = {}
    room = _MAX_SEARCHED_CHARS
    for rank, document in enumerate(request.documents):
        text = "\n".join(document.lines)
        room -= len(text)
        if room < 0:
            break
        starts = _line_starts(document.lines)
        for hunk in reversed(hunks):
            own = [pattern for pattern in patterns if pattern.hunk is hunk]
            edits = list(_edits(document, text, starts, own))
            following = _following([edit for edit, _ in edits], hunks) if hunk is hunks[-1] else []
            for edit, num_examples in edits:
                if not is_unwanted(edit, request):
                    distance = abs(edit.first_line - request.line) + (rank << 24)
                    key = edit.document, edit.first_line, edit.new
                    candidate = Candidate(edit, hunk, num_examples, distance, edit in following)
                    found.setdefault(key, candidate)
    return sorted(found.values(), key=lambda candidate: candidate.distance)[:MAX_CANDIDATES]


def _patterns(hunks: Sequence[Hunk], *, is_invoked: bool) -> list[_Pattern]:
    """Return the patterns of recent hunks, without what a later hunk took back and names that are typed."""
    made = [(hunk, substitutions_of(hunk)) for hunk in hunks]
    patterns: list[_Pattern] = []
    for at, (hunk, substitutions) in enumerate(made):
        later = {one.core for _, others in made[at:] for one in others}
        for one in substitutions:
            num_examples = sum(any(one.core == it.core for it in others) for _, others in made)
            is_typed = num_examples == 1 and not is_invoked and is_unfinished(*one.core)
            if one.is_undone_by not in later and not is_typed:
                patterns.append(_Pattern(one, hunk, num_examples))
    return patterns


def _edits(
    document: EditDocument, text: str, starts: Sequence[int], patterns: Sequence[_Pattern]
) -> Iterator[tuple[LineEdit, int]]:
    """Yield the edits that the patterns of one hunk make in a document, all of a line together."""
    matches: list[tuple[int, _Pattern]] = []
    for pattern in patterns:
        matches += [(at, pattern) for at in _places(text, pattern.substitution)]
    by_line: dict[int, list[tuple[int, _Pattern]]] = {}
    for at, pattern in sorted(matches, key=lambda match: (match[0], -len(match[1].substitution.old))):
        by_line.setdefault(_line_of(starts, at), []).append((at, pattern))
    for first, here in by_line.items():
        end = max(_line_of(starts, at + len(pattern.substitution.old)) for at, pattern in here) + 1
        old = document.lines[first:end]
        new = tuple(_applied("\n".join(old), starts[first], here).split("\n"))
        if new == ("",):
            new = ()  # whole lines go away with their ends
        if new != old:
            num_examples = max(pattern.num_examples for _, pattern in here)
            yield LineEdit(document.document, first, old, new), num_examples


def _following(edits: Sequence[LineEdit], hunks: Sequence[Hunk]) -> list[LineEdit]:
    """Return the edits in one document that are next after the two last hunks, one above and one below."""
    made = {(hunk.document, exchanged_beginning(hunk)) for hunk in hunks[-2:]}
    if len(hunks) < 2 or len(made) > 1:
        return []
    ((document, beginning),) = made
    alike = [edit for edit in edits if edit.document == document and exchanged_beginning(edit) == beginning]
    first, end = (pick(hunk.first_line for hunk in hunks[-2:]) for pick in (min, max))
    above = [edit for edit in alike if edit.first_line < first]
    below = [edit for edit in alike if edit.first_line > end]
    # Which imports follow depends on the names that they import: see `import_edits`.
    is_known = beginning is None or beginning[0][0] in _IMPORTS
    is_whole = not is_known and len(above) + len(below) == len(alike)
    return [*above[-1:], *below[:1]] if is_whole else []


def _applied(text: str, offset: int, matches: Sequence[tuple[int, _Pattern]]) -> str:
    """Apply matches, ordered by place with the longest first; one inside another is left out."""
    parts: list[str] = []
    done = 0
    for at, pattern in matches:
        start, one = at - offset, pattern.substitution
        if start >= done:
            parts += [text[done:start], one.new]
            done = start + len(one.old)
    return "".join([*parts, text[done:]])


def _places(text: str, one: Substitution) -> Iterator[int]:
    """Yield where the old side stands as whole tokens, and not within text that reads as the new side."""
    inside = one.new.find(one.old)
    at = text.find(one.old)
    for _ in range(_MAX_MATCHES):
        if at < 0:
            return
        end = at + len(one.old)
        is_done = inside >= 0 and text.startswith(one.new, at - inside) and at >= inside
        if not is_done and not _joins(text, at) and not _joins(text, end):
            yield at
        at = text.find(one.old, at + 1)


def _joins(text: str, at: int) -> bool:
    """Return whether a word goes on across a place."""
    return 0 < at < len(text) and _is_word(text[at - 1]) and _is_word(text[at])


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def is_unwanted(edit: LineEdit, request: EditRequest) -> bool:
    """Return whether an edit was rejected, or gives back text that the user just replaced."""
    return _was_rejected(edit, request) or any(restores(edit, hunk) for hunk in request.hunks)


def _was_rejected(edit: LineEdit, request: EditRequest) -> bool:
    """Return whether a rejected edit is this one, or a part of it because its lines have grown since."""
    old, new = "\n".join(edit.old), "\n".join(edit.new)
    return any(
        document == edit.document and "\n".join(before) in old and "\n".join(after) in new
        for document, before, after in request.rejected
    )


def restores(edit: LineEdit, hunk: Hunk) -> bool:
    """Return whether an edit within a hunk brings back lines that the hunk took away."""
    overlaps = (
        edit.document == hunk.document
        and edit.first_line < max(hunk.end_line, hunk.first_line + 1)
        and hunk.first_line < edit.end_line
    )
    return overlaps and any(line in hunk.old and line not in edit.old for line in edit.new if line.strip())


def _line_starts(lines: Lines) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return starts


def _line_of(starts: Sequence[int], at: int) -> int:
    return bisect_right(starts, at) - 1

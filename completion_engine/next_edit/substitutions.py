"""What a hunk changed: the texts that it replaced, each with enough of its line to be found again.

Pure functions of text, bounded in time by the length of a hunk. Does not depend on documents and models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from completion_engine.next_edit.edits import Hunk, LineEdit, common_ends

MAX_HUNK_TOKENS = 600  # a longer hunk is rarely one that is repeated
# Pairs of equal tokens, which each step of a comparison visits. All of 228 hunks of five releases have
# fewer than 4,000.
_MAX_EQUAL_PAIRS = 8_000
_MAX_PATTERNS = 8
_MAX_CONTEXT_TOKENS = 12
_MIN_NAME_CHARS = 3
_NEAR = 2  # blocks with at most this many tokens between them are one change too
_TOKEN = re.compile(r"\w+|[^\S\n]+|[^\w\s]|\n")
_NAME = re.compile(r"[^\W\d]\w*")

Tokens = list[str]


@dataclass(frozen=True, slots=True)
class Substitution:
    """Replace `old` with `new`. `core` is the changed part of both, without the context that finds it."""

    old: str
    new: str
    core: tuple[str, str]

    @property
    def is_undone_by(self) -> tuple[str, str]:
        """The core of the substitution that takes this one back."""
        return self.core[1], self.core[0]


@dataclass(frozen=True, slots=True)
class _Block:
    """Tokens `first` to `end` of the old text became tokens `new_first` to `new_end` of the new one."""

    first: int
    end: int
    new_first: int
    new_end: int

    def texts(self, old: Tokens, new: Tokens) -> tuple[str, str]:
        """Return both texts."""
        return "".join(old[self.first : self.end]), "".join(new[self.new_first : self.new_end])


def substitutions_of(hunk: Hunk) -> list[Substitution]:
    """Return the substitutions of a hunk: whole changes first, then their parts; none for a long hunk."""
    old, new, blocks = _compared(hunk)
    found: dict[tuple[str, str], Substitution] = {}
    for block in _with_merged(blocks):
        core = block.texts(old, new)
        if any(side.strip() for side in core):
            pattern = _in_context(old, block, core)
            if pattern is not None:
                found.setdefault((pattern.old, pattern.new), pattern)
    return list(found.values())[:_MAX_PATTERNS]


def changed_cores(hunk: Hunk | LineEdit) -> list[tuple[str, str]]:
    """Return the changed parts of a hunk or an edit alone, in their order: (removed, inserted)."""
    old, new, blocks = _compared(hunk)
    return [block.texts(old, new) for block in blocks]


def written_spans(hunk: Hunk) -> list[tuple[int, int]]:
    """Return the spans of a hunk's new text, in bytes of UTF-8, that it wrote."""
    _, new, blocks = _compared(hunk)
    ends = [0, *accumulate(len(token.encode("utf-8", "replace")) for token in new)]
    return [(ends[block.new_first], ends[block.new_end]) for block in blocks]


def exchanged_at(edit: Hunk | LineEdit) -> list[tuple[tuple[str, str], int, int]]:
    """Return the names that an edit exchanges, each with its bytes in the old and the new text."""
    old, new, blocks = _compared(edit)
    if len(old) == len(new):
        blocks = [_Block(at, at + 1, at, at + 1) for at in range(len(old)) if old[at] != new[at]]
    olds, news = ([0, *accumulate(len(it.encode("utf-8", "replace")) for it in side)] for side in (old, new))
    found = [(block.texts(old, new), olds[block.first], news[block.new_first]) for block in blocks]
    return [it for it in found if all(map(is_name, it[0]))]


def exchanged_names(edit: Hunk | LineEdit) -> frozenset[tuple[str, str]]:
    """Return the names that an edit exchanges, (old, new); empty if it changes anything else."""
    old, new = tokens_of("\n".join(edit.old)), tokens_of("\n".join(edit.new))
    pairs = frozenset((one, other) for one, other in zip(old, new, strict=False) if one != other)
    is_all = len(old) == len(new) and all(is_name(name) for pair in pairs for name in pair)
    return pairs if is_all else frozenset()


def exchanged_beginning(edit: Hunk | LineEdit) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return what a changed line began with up to the end of its change, and what it begins with now.

    None for other than one line, and where something was only inserted.
    """
    if not len(edit.old) == len(edit.new) == 1:
        return None
    old, new = (tuple(tokens_of(side[0].lstrip())) for side in (edit.old, edit.new))
    start, end = common_ends(old, new)
    return (old[: len(old) - end], new[: len(new) - end]) if start < len(old) - end else None


def tokens_of(text: str) -> Tokens:
    """Return names, numbers, blanks, line ends and single marks of a text."""
    return _TOKEN.findall(text)


def is_name(token: str) -> bool:
    """Return whether a token is a name or a keyword."""
    return _NAME.fullmatch(token) is not None


def is_unfinished(old: str, new: str) -> bool:
    """Return whether a name looks as one does before its last word is typed."""
    return is_name(new) and new.endswith("_") and not old.endswith("_")


def _compared(hunk: Hunk | LineEdit) -> tuple[Tokens, Tokens, list[_Block]]:
    """Return the old and the new tokens, and the blocks that differ.

    There are none if the comparison would take more than a few milliseconds.
    """
    old, new = (tokens_of("\n".join(side)) for side in (hunk.old, hunk.new))
    if max(len(old), len(new)) > MAX_HUNK_TOKENS:
        return old, new, []
    numbers = Counter(new)
    num_pairs = sum(numbers[token] for token in old)
    return old, new, _changed(old, new) if num_pairs <= _MAX_EQUAL_PAIRS else []


def _changed(old: Tokens, new: Tokens) -> list[_Block]:
    """Return the blocks that differ. Blanks between two changes belong to them."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    blocks = [_Block(*at) for tag, *at in matcher.get_opcodes() if tag != "equal"]
    joined: list[_Block] = []
    for block in blocks:
        if joined and all(token.isspace() for token in old[joined[-1].end : block.first]):
            joined[-1] = _Block(joined[-1].first, block.end, joined[-1].new_first, block.new_end)
        else:
            joined.append(block)
    return joined


def _with_merged(blocks: Sequence[_Block]) -> Iterator[_Block]:
    """Yield runs of near blocks as one, the longest run first, then each block."""
    start = 0
    for at in range(1, len(blocks) + 1):
        if at == len(blocks) or blocks[at].first - blocks[at - 1].end > _NEAR:
            if at - start > 1:
                first, last = blocks[start], blocks[at - 1]
                yield _Block(first.first, last.end, first.new_first, last.new_end)
            start = at
    yield from blocks


def _in_context(old: Tokens, block: _Block, core: tuple[str, str]) -> Substitution | None:
    """Return the substitution with as many tokens around the block as make it specific; None if too few."""
    before, after = block.first, block.end
    while not _is_specific(old[before:after], is_insertion=block.first == block.end):
        if after - before >= _MAX_CONTEXT_TOKENS + block.end - block.first:
            return None
        grows_left = before > 0 and old[before - 1] != "\n"
        grows_right = after < len(old) and old[after] != "\n"
        if not (grows_left or grows_right):
            return None
        if grows_left and (block.first - before <= after - block.end or not grows_right):
            before -= 1
        else:
            after += 1
    left, right = "".join(old[before : block.first]), "".join(old[block.end : after])
    return Substitution(f"{left}{core[0]}{right}", f"{left}{core[1]}{right}", core)


def _is_specific(tokens: Sequence[str], *, is_insertion: bool) -> bool:
    """Return whether few places hold these tokens: a name of some length, and company where nothing goes."""
    num_visible = sum(not token.isspace() for token in tokens)
    has_name = any(is_name(token) and len(token) >= _MIN_NAME_CHARS for token in tokens)
    return has_name and num_visible >= (2 if is_insertion else 1)

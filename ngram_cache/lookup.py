"""The result of a lookup: a tree of likely next tokens, built from the occurrences of a match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from operator import itemgetter
from typing import NamedTuple

MAX_OCCURRENCES = 64
MAX_DEPTH = 64
LIVE_BUFFER = -1


class DraftNode(NamedTuple):
    """One drafted token and its evidence.

    `parent` is the index of the parent in `Lookup.nodes`, -1 for a first token; `depth` is 0 for first
    tokens. `num_occurrences` sampled occurrences of the matched context continue through this node. The most
    recent one is in `document` (-1 for a live buffer) at token `offset`. `match_length` is the number of
    matched context tokens of these occurrences; it is smaller than the lookup's own if they come from the
    shorter match. `probability` estimates that the whole path to this node is right.
    """

    token: int
    parent: int
    depth: int
    num_occurrences: int
    document: int
    offset: int
    match_length: int = 0
    probability: float = 0.0


@dataclass(frozen=True, slots=True)
class Lookup:
    """The continuations of a context.

    `match_length` is the length of the longest suffix of the context that occurs, 0 for none.
    `num_occurrences` is exact up to `MAX_OCCURRENCES` stored occurrences, and an estimate from a sample
    above. `nodes` are the most probable ones, best first; a parent comes before its children.
    """

    match_length: int
    num_occurrences: int
    nodes: tuple[DraftNode, ...]


NOTHING = Lookup(0, 0, ())


@dataclass(frozen=True, slots=True)
class Successors:
    """The tokens that followed the longest suffix of a context that occurs; `match_length` is its length.

    `counts` maps tokens to the number of sampled occurrences they followed; `num_occurrences` is as in
    `Lookup`.
    """

    match_length: int
    num_occurrences: int
    counts: Mapping[int, int]

    @classmethod
    def none(cls) -> Successors:
        """Return an empty result."""
        return cls(0, 0, {})


FEW_OCCURRENCES = 4


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The largest tree of a lookup."""

    max_nodes: int
    max_depth: int


def shorter_match(length: int, num_occurrences: int) -> int:
    """Return the match length to blend with the longest one; 0 if the longest has enough evidence."""
    shorter = max(1, length // 2)
    return shorter if num_occurrences < FEW_OCCURRENCES and shorter < length else 0


Occurrence = tuple[bytes, int, int]
"""One place where a match goes on: the continuation, the document, the offset of its first token.

The continuation is held as segments store it, so that only what is drafted gets decoded: big-endian words
of token + 1, the first token last, 0 beyond the end of the document.
"""

_NOTHING_FOLLOWS = (b"\0\0\0\0", b"")
_NO_OCCURRENCES: list[Occurrence] = []  # never written to


def counted(occurrences: list[Occurrence]) -> dict[int, int]:
    """Return how many occurrences precede each token, the lowest token first."""
    groups = _by_word(occurrences, 0)
    return {int.from_bytes(word, "big") - 1: len(groups[word]) for word in sorted(groups)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The occurrences of the longest match, the additional ones of a shorter match, and both lengths."""

    longest: list[Occurrence]
    shorter: list[Occurrence]
    longest_length: int
    shorter_length: int = 0


# Pseudo-counts of unseen tokens, for the longest match and for the shorter one.
_ESCAPE = 0.9
_SHORTER_ESCAPE = 2.0


class _Branch(NamedTuple):
    """A node that may be added to the tree, with the occurrences through it, most recent first.

    Ordered by probability, then by the order in which they were found.
    """

    negative_probability: float
    number: int
    word: bytes
    parent: int
    depth: int
    longest: list[Occurrence]
    shorter: list[Occurrence]


def grow_tree(evidence: Evidence, limits: TreeLimits) -> tuple[DraftNode, ...]:
    """Return the most probable nodes within `limits`, best first.

    A child's probability given its parent is (c + e * p') / (n + e): c of n occurrences of the longest match,
    and the shorter match's estimate p' with the weight e of an unseen occurrence (one escape level of PPM).
    As e < 1, the longest match decides, and the shorter one breaks its ties.
    """
    nodes: list[DraftNode] = []
    heap: list[_Branch] = []
    numbers = count()
    recent_first = itemgetter(1, 2)
    longest = sorted(evidence.longest, key=recent_first, reverse=True)
    shorter = sorted(evidence.shorter, key=recent_first, reverse=True)
    top = _Branch(-1.0, -1, b"", -1, -1, longest, shorter)
    while len(nodes) < limits.max_nodes:
        if top.depth + 1 < limits.max_depth:
            for branch in _branches(top, len(nodes) - 1, numbers):
                heappush(heap, branch)
        if not heap:
            break
        top = heappop(heap)
        nodes.append(_drafted(top, evidence))
    return tuple(nodes)


def _drafted(branch: _Branch, evidence: Evidence) -> DraftNode:
    negative_probability, _, word, parent, depth, longest, shorter = branch
    _, document, offset = longest[0] if longest else shorter[0]
    return DraftNode(
        int.from_bytes(word, "big") - 1,
        parent,
        depth,
        len(longest) or len(shorter),
        document,
        offset + depth,
        evidence.longest_length if longest else evidence.shorter_length,
        -negative_probability,
    )


def _branches(node: _Branch, parent: int, numbers: Iterator[int]) -> Iterator[_Branch]:
    """Yield the children of a node that is at `parent` in the tree.

    Among equally probable ones, those of the longest match come first, then the most recent.
    """
    depth = node.depth + 1
    num_longest, num_shorter = len(node.longest), len(node.shorter)
    rest = num_longest + num_shorter + _SHORTER_ESCAPE
    shorter = _by_word(node.shorter, depth) if num_shorter else {}
    for word, occurrences in _by_word(node.longest, depth).items():
        others = shorter.pop(word, _NO_OCCURRENCES)
        probability = (len(occurrences) + len(others)) / rest
        probability = (len(occurrences) + _ESCAPE * probability) / (num_longest + _ESCAPE)
        negative = node.negative_probability * probability
        yield _Branch(negative, next(numbers), word, parent, depth, occurrences, others)
    for word, others in shorter.items():
        probability = len(others) / rest
        if num_longest:
            probability = _ESCAPE * probability / (num_longest + _ESCAPE)
        negative = node.negative_probability * probability
        yield _Branch(negative, next(numbers), word, parent, depth, [], others)


def _by_word(occurrences: list[Occurrence], depth: int) -> dict[bytes, list[Occurrence]]:
    """Group occurrences by the word that follows at `depth`; those at an end are left out."""
    first, last = -4 * (depth + 1), (-4 * depth) or None
    if len(occurrences) == 1:
        word = occurrences[0][0][first:last]
        return {} if word in _NOTHING_FOLLOWS else {word: occurrences}
    groups: dict[bytes, list[Occurrence]] = {}
    for occurrence in occurrences:
        word = occurrence[0][first:last]
        if word in groups:
            groups[word].append(occurrence)
        else:
            groups[word] = [occurrence]
    for nothing in _NOTHING_FOLLOWS:
        groups.pop(nothing, None)
    return groups

"""The answer of a lookup, and the tree that is made from its evidence."""

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
    """One drafted token and the evidence for it.

    `parent` is the index of the parent in `Lookup.nodes`, -1 for a child of the root; `depth` is 0 for
    the first drafted token. `num_occurrences` sampled ones of the matched context continue through this
    node. `document` is the most recent one of them (-1: the live buffer itself), and the token stands
    at `offset` in it. `match_length` is the length of the matched context that this number speaks of,
    shorter than the lookup's own where the node comes from a shorter match. `probability` estimates
    that the whole path down to this node holds.
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

    `match_length` is the longest suffix of the context that occurs, 0 when none does. Up to `MAX_OCCURRENCES`
    stored occurrences `num_occurrences` is exact, beyond it is an estimate from a sample. `nodes` are the
    best by probability, best first; a parent comes before its children.
    """

    match_length: int
    num_occurrences: int
    nodes: tuple[DraftNode, ...]


NOTHING = Lookup(0, 0, ())


@dataclass(frozen=True, slots=True)
class Successors:
    """The tokens that followed the longest suffix of a context that occurs, which is `match_length` long.

    `counts` holds the number of sampled occurrences that each token followed; `num_occurrences` as in
    `Lookup`.
    """

    match_length: int
    num_occurrences: int
    counts: Mapping[int, int]

    @classmethod
    def none(cls) -> Successors:
        """Nothing is known to follow."""
        return cls(0, 0, {})


FEW_OCCURRENCES = 4


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """How large an answer may get and how short a match may be."""

    max_nodes: int
    max_depth: int
    min_match: int = 1


def shorter_match(length: int, num_occurrences: int, min_match: int) -> int:
    """The match length to blend with the longest one; 0 when that one has evidence enough."""
    shorter = max(min_match, length // 2)
    return shorter if num_occurrences < FEW_OCCURRENCES and shorter < length else 0


Occurrence = tuple[bytes, int, int]
"""One place where a match goes on: the continuation, the document, the offset of its first token.

The continuation is held as segments store it, so that only what is drafted gets decoded: big-endian words
of token + 1, the first token last, 0 beyond the end of the document.
"""

_NOTHING_FOLLOWS = (b"\0\0\0\0", b"")
_NO_OCCURRENCES: list[Occurrence] = []  # never written to


def counted(occurrences: list[Occurrence]) -> dict[int, int]:
    """Number of occurrences before each token, the lowest token first."""
    groups = _by_word(occurrences, 0)
    return {int.from_bytes(word, "big") - 1: len(groups[word]) for word in sorted(groups)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Occurrences of the longest match and the further ones of a shorter match, with both lengths."""

    longest: list[Occurrence]
    shorter: list[Occurrence]
    longest_length: int
    shorter_length: int = 0


# Pseudo-occurrences of "something else" beside those of the longest match and of the shorter one.
_ESCAPE = 0.9
_SHORTER_ESCAPE = 2.0


class _Branch(NamedTuple):
    """A node that may be drafted, with the occurrences that pass through it, most recent first.

    Ordered as nodes are drafted: the most probable first, of equal ones the one that was found first.
    """

    negative_probability: float
    number: int
    word: bytes
    parent: int
    depth: int
    longest: list[Occurrence]
    shorter: list[Occurrence]


def grow_tree(evidence: Evidence, limits: TreeLimits) -> tuple[DraftNode, ...]:
    """The most probable nodes within `limits`, best first.

    A child's probability given its parent is (c + e * p') / (n + e): c of n longest-match occurrences,
    the shorter match's estimate p' with the weight e of an unseen occurrence (one escape level of PPM).
    As e < 1, the longest match decides wherever it has anything to say, the shorter one among its ties.
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
    """The children of a node that is at `parent` in the tree.

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
    """Occurrences by the word that follows at `depth`, without those that nothing follows."""
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

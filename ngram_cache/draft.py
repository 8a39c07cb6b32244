"""Owns the answer of a lookup and how evidence becomes a tree. Knows no index, no text, no tokenizer."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from operator import attrgetter, itemgetter

MAX_OCCURRENCES = 64
MAX_DEPTH = 64
LIVE_BUFFER = -1


@dataclass(frozen=True, slots=True)
class DraftNode:
    """One drafted token and the evidence for it.

    `parent` is the index of the parent in `Lookup.nodes`, -1 for a child of the root; `depth` is 0 for
    the first drafted token. `count` sampled occurrences of the matched context continue through this
    node. `document` is the most recent one of them (-1: the live buffer itself), and the token stands
    at `offset` in it. `match_length` is the length of the matched context that the count speaks of,
    shorter than the lookup's own where the node comes from a shorter match. `probability` estimates
    that the whole path down to this node holds.
    """

    token: int
    parent: int
    depth: int
    count: int
    document: int
    offset: int
    match_length: int = 0
    probability: float = 0.0


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is known about the continuation of a context.

    `match_length` is the longest suffix of the context that occurs, 0 when none does. Up to
    `MAX_OCCURRENCES` stored occurrences `num_occurrences` is exact, beyond it is an estimate from a
    sample. `nodes` are the best by probability, best first; a parent comes before its children.
    """

    match_length: int
    num_occurrences: int
    nodes: tuple[DraftNode, ...]


NOTHING = Lookup(0, 0, ())

FEW_OCCURRENCES = 4


@dataclass(frozen=True, slots=True)
class Limits:
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


@dataclass(frozen=True, slots=True)
class Evidence:
    """Occurrences of the longest match and the further ones of a shorter match, with both lengths."""

    longest: list[Occurrence]
    shorter: list[Occurrence]
    longest_length: int
    shorter_length: int = 0


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How far counts are trusted: pseudo-occurrences that speak for "something else"."""

    escape: float = 0.9
    shorter_escape: float = 2.0


@dataclass(slots=True)
class _Branch:
    """A node that may be drafted, with the occurrences that pass through it, most recent first."""

    word: bytes
    parent: int
    depth: int
    longest: list[Occurrence]
    shorter: list[Occurrence]
    probability: float

    @property
    def newest(self) -> Occurrence:
        return self.longest[0] if self.longest else self.shorter[0]

    @property
    def rank(self) -> tuple[float, bool, int, int]:
        """Sorts siblings: most probable first, ties to the longest match, then to the most recent."""
        _, document, offset = self.newest
        return -self.probability, not self.longest, -document, -offset


def grow_tree(
    evidence: Evidence, limits: Limits, smoothing: Smoothing = Smoothing()
) -> tuple[DraftNode, ...]:
    """The most probable nodes within `limits`, best first.

    A child's probability given its parent is (c + e * p') / (n + e): c of n longest-match occurrences,
    the shorter match's estimate p' with the weight e of an unseen occurrence (one escape level of PPM).
    As e < 1, the longest match decides wherever it has anything to say, the shorter one among its ties.
    """
    if limits.max_nodes < 1:
        return ()
    nodes: list[DraftNode] = []
    heap: list[tuple[float, int, _Branch]] = []
    num_pushed = 0
    recent_first = itemgetter(1, 2)
    top = _Branch(
        b"",
        -1,
        -1,
        sorted(evidence.longest, key=recent_first, reverse=True),
        sorted(evidence.shorter, key=recent_first, reverse=True),
        1.0,
    )
    while True:
        if top.depth + 1 < limits.max_depth:
            for branch in _branches(top, len(nodes) - 1, smoothing)[: limits.max_nodes]:
                heapq.heappush(heap, (-branch.probability, num_pushed, branch))
                num_pushed += 1
        if not heap or len(nodes) == limits.max_nodes:
            return tuple(nodes)
        top = heapq.heappop(heap)[2]
        nodes.append(_drafted(top, evidence))


def _drafted(branch: _Branch, evidence: Evidence) -> DraftNode:
    _, document, offset = branch.newest
    is_longest = bool(branch.longest)
    return DraftNode(
        int.from_bytes(branch.word, "big") - 1,
        branch.parent,
        branch.depth,
        len(branch.longest) or len(branch.shorter),
        document,
        offset + branch.depth,
        evidence.longest_length if is_longest else evidence.shorter_length,
        branch.probability,
    )


def _branches(node: _Branch, parent: int, smoothing: Smoothing) -> list[_Branch]:
    """The children of a node that stands at `parent` in the tree, best first."""
    depth = node.depth + 1
    first, last = -4 * (depth + 1), (-4 * depth) or None
    num_longest = len(node.longest)
    num_all = num_longest + len(node.shorter)
    groups: dict[bytes, tuple[list[Occurrence], list[Occurrence]]] = {}
    for which, occurrences in enumerate((node.longest, node.shorter)):
        for occurrence in occurrences:
            word = occurrence[0][first:last]
            if word in groups:
                groups[word][which].append(occurrence)
            else:
                groups[word] = ([occurrence], []) if which == 0 else ([], [occurrence])
    for nothing in _NOTHING_FOLLOWS:
        groups.pop(nothing, None)
    branches = []
    for word, (longest, shorter) in groups.items():
        probability = (len(longest) + len(shorter)) / (num_all + smoothing.shorter_escape)
        if num_longest:
            probability = (len(longest) + smoothing.escape * probability) / (num_longest + smoothing.escape)
        branches.append(_Branch(word, parent, depth, longest, shorter, node.probability * probability))
    branches.sort(key=attrgetter("rank"))
    return branches

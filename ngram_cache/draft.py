"""Owns the answer of a lookup and how evidence becomes a tree. Knows no index, no text, no tokenizer."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

MAX_OCCURRENCES = 256
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


Row = TypeVar("Row", bytes, tuple[int, ...])
Occurrence = tuple[Row, int, int]


@dataclass(slots=True)
class Evidence:
    """Equal continuations counted together.

    `num_longest` of the `num_all` occurrences follow the longest match, the others a shorter one.
    `document` and `offset` say where the most recent of the longest ones starts.
    """

    tokens: tuple[int, ...]
    num_longest: int
    num_all: int
    document: int
    offset: int


def weigh(
    longest: Iterable[Occurrence[Row]],
    shorter: Iterable[Occurrence[Row]],
    decode: Callable[[Row], tuple[int, ...]],
) -> list[Evidence]:
    """Count equal continuations. An occurrence is (continuation, document, offset of its first token).

    `shorter` are the occurrences of a shorter match that are not among `longest`.
    """
    counted: dict[Row, list[int]] = {}
    for row, document, offset in longest:
        seen = counted.get(row)
        if seen is None:
            counted[row] = [1, 1, document, offset]
            continue
        seen[0] += 1
        seen[1] += 1
        if (document, offset) > (seen[2], seen[3]):
            seen[2:] = document, offset
    only_shorter: dict[Row, list[int]] = {}
    for row, document, offset in shorter:
        seen = counted.get(row)
        if seen is not None:
            seen[1] += 1
            continue
        seen = only_shorter.setdefault(row, [0, 0, document, offset])
        seen[1] += 1
        if (document, offset) > (seen[2], seen[3]):
            seen[2:] = document, offset
    counted.update(only_shorter)
    return [Evidence(decode(row), *numbers) for row, numbers in counted.items()]


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How far counts are trusted: `escape` pseudo-occurrences speak for "something else"."""

    escape: float = 0.5
    shorter_escape: float = 2.0


@dataclass(slots=True)
class _Branch:
    """A node that may be drafted, with the evidence that passes through it."""

    token: int
    parent: int
    depth: int
    rows: list[Evidence]
    num_longest: int
    num_all: int
    newest: Evidence
    probability: float


def grow_tree(
    evidence: list[Evidence],
    match_lengths: tuple[int, int],
    limits: Limits,
    smoothing: Smoothing = Smoothing(),
) -> tuple[DraftNode, ...]:
    """The most probable nodes within `limits`, best first.

    `match_lengths` are the longest match and the shorter one it is blended with. A child's probability
    given its parent is (c + e * p') / (n + e): c of n longest-match occurrences, the shorter match's
    estimate p' with the weight e of an unseen occurrence (one escape level of PPM). As e < 1, the
    longest match decides wherever it has anything to say, the shorter one among its ties.
    """
    if not evidence or limits.max_nodes < 1:
        return ()
    longest_length, shorter_length = match_lengths
    nodes: list[DraftNode] = []
    heap: list[tuple[float, int, _Branch]] = []
    num_pushed = 0
    rows, parent, depth, reached = evidence, -1, 0, 1.0
    while True:
        if depth < limits.max_depth:
            for branch in _branches(rows, parent, depth, reached, smoothing):
                heapq.heappush(heap, (-branch.probability, num_pushed, branch))
                num_pushed += 1
        if not heap:
            break
        best = heapq.heappop(heap)[2]
        nodes.append(_drafted(best, longest_length if best.num_longest else shorter_length))
        if len(nodes) == limits.max_nodes:
            break
        rows, parent, depth, reached = best.rows, len(nodes) - 1, best.depth + 1, best.probability
    return tuple(nodes)


def _drafted(branch: _Branch, match_length: int) -> DraftNode:
    count = branch.num_longest or branch.num_all
    newest, depth = branch.newest, branch.depth
    return DraftNode(
        branch.token,
        branch.parent,
        depth,
        count,
        newest.document,
        newest.offset + depth,
        match_length,
        branch.probability,
    )


def _branches(
    rows: list[Evidence], parent: int, depth: int, reached: float, smoothing: Smoothing
) -> list[_Branch]:
    """The children of one node, most probable first, ties to the most recent."""
    groups: dict[int, list[Evidence]] = {}
    num_longest = num_all = 0
    for row in rows:
        num_longest += row.num_longest
        num_all += row.num_all
        if depth < len(row.tokens):
            groups.setdefault(row.tokens[depth], []).append(row)
    branches = []
    for token, members in groups.items():
        count, count_all, newest = _totals(members)
        shorter = count_all / (num_all + smoothing.shorter_escape)
        probability = shorter
        if num_longest:
            probability = (count + smoothing.escape * shorter) / (num_longest + smoothing.escape)
        branches.append(
            _Branch(token, parent, depth, members, count, count_all, newest, reached * probability)
        )
    if len(branches) > 1:
        branches.sort(key=_rank, reverse=True)
    return branches


def _totals(members: list[Evidence]) -> tuple[int, int, Evidence]:
    if len(members) == 1:
        only = members[0]
        return only.num_longest, only.num_all, only
    newest = max(members, key=_recency)
    return sum(row.num_longest for row in members), sum(row.num_all for row in members), newest


def _recency(row: Evidence) -> tuple[bool, int, int]:
    return row.num_longest > 0, row.document, row.offset


def _rank(branch: _Branch) -> tuple[float, bool, int, int]:
    return (branch.probability, *_recency(branch.newest))

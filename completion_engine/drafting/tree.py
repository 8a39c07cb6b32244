"""One tree of the drafts of all sources: the probability of each guess, the order of rows, and its true path.

Pure functions of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from completion_engine.drafting.drafts import Draft, DraftToken


class OddsOf(Protocol):
    """The `odds` of a token against all tokens that are not guessed."""

    def __call__(self, guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        """Return the `odds` of its guesses at this depth; `is_first` marks a source's first choice."""
        ...


_CUT = -2  # the parent of guesses that are cut off for their depth


class Candidate(NamedTuple):  # one is made for every guess of every pass: tuples are made fastest
    """A token of the merged tree, with all guesses of it.

    `probability` estimates that the target accepts this token when the path above is true, `path_probability`
    that it accepts the whole path to it.
    """

    token: int
    parent: int
    depth: int
    guesses: tuple[DraftToken, ...]
    probability: float
    path_probability: float


def merge(drafts: Sequence[Draft], odds_of: OddsOf, max_depth: int) -> list[Candidate]:
    """Return the candidates of all drafts, parents before children; equal tokens after equal paths are one.

    Siblings exclude each other: each has its share of the total `odds`, and one part is left for other
    tokens.
    """
    at_of: dict[tuple[int, int], int] = {}
    nodes: list[tuple[int, int, int]] = []
    guesses: list[list[DraftToken]] = []
    first_choices: set[int] = set()
    for draft in drafts:
        merged: list[int] = []
        parents: set[int] = set()
        for guess in draft:
            parent = merged[guess.parent] if guess.parent >= 0 else -1
            depth = nodes[parent][2] + 1 if parent >= 0 else 0
            if depth >= max_depth or parent == _CUT:
                merged.append(_CUT)
                continue
            at = at_of.setdefault((parent, guess.token), len(nodes))
            if at == len(nodes):
                nodes.append((guess.token, parent, depth))
                guesses.append([guess])
            else:
                guesses[at].append(guess)
            merged.append(at)
            if parent not in parents:
                parents.add(parent)
                first_choices.add(at)
    odds = [
        odds_of(of_node, node[2], is_first=at in first_choices)
        for at, (of_node, node) in enumerate(zip(guesses, nodes, strict=True))
    ]
    return _with_probabilities(nodes, guesses, odds)


def _with_probabilities(
    nodes: Sequence[tuple[int, int, int]], guesses: Sequence[list[DraftToken]], odds: Sequence[float]
) -> list[Candidate]:
    total: dict[int, float] = {}
    for (_, parent, _), weight in zip(nodes, odds, strict=True):
        total[parent] = total.get(parent, 1.0) + weight
    of_paths: list[float] = []
    found: list[Candidate] = []
    for (token, parent, depth), of_node, weight in zip(nodes, guesses, odds, strict=True):
        probability = weight / total[parent]
        of_paths.append(probability * of_paths[parent] if parent >= 0 else probability)
        found.append(Candidate(token, parent, depth, tuple(of_node), probability, of_paths[-1]))
    return found


def true_path(
    tokens: Sequence[int], parents: Sequence[int], root: int, pick_after: Callable[[int], int | None]
) -> list[int]:
    """Return the rows that are true after row `root`, in order: each holds the pick after its parent.

    `tokens` and `parents` [num_rows] make a tree in which siblings differ in their tokens.
    """
    child_of = {(parent, token): row for row, (parent, token) in enumerate(zip(parents, tokens, strict=True))}
    path: list[int] = []
    row: int | None = root
    while row is not None and (pick := pick_after(row)) is not None:
        if (row := child_of.get((row, pick))) is not None:
            path.append(row)
    return path


def by_branch(candidates: Sequence[Candidate]) -> list[int]:
    """Return the branch of each candidate; branch 0 is the most promising.

    A branch is a path that goes on with the child that promises most tokens; other children begin branches
    of their own. So the first n branches are connected, and are the n that promise most.
    """
    promise = [candidate.path_probability for candidate in candidates]
    best_child: dict[int, int] = {}
    for at in range(len(candidates) - 1, -1, -1):
        if at in best_child:
            promise[at] += promise[best_child[at]]
        rival = best_child.get(candidates[at].parent)
        if rival is None or promise[at] >= promise[rival]:
            best_child[candidates[at].parent] = at
    beginnings = [
        at
        for at, candidate in enumerate(candidates)
        if candidate.parent < 0 or best_child[candidate.parent] != at
    ]
    rank = {at: branch for branch, at in enumerate(sorted(beginnings, key=lambda at: -promise[at]))}
    branches: list[int] = []
    for at, candidate in enumerate(candidates):
        branches.append(rank[at] if at in rank else branches[candidate.parent])
    return branches


def grow(order: Sequence[int], branches: Sequence[int], max_branches: int) -> list[int]:
    """Return the candidates in `order`, likeliest first, of the most promising `max_branches` branches.

    Any beginning of the result is a tree too: the probability only falls along a path.
    """
    return [at for at in order if branches[at] < max_branches]


def by_probability(candidates: Sequence[Candidate]) -> list[int]:
    """Return all candidates, the likeliest first, a parent before its equally likely child."""
    negatives = [-candidate.path_probability for candidate in candidates]
    return sorted(range(len(candidates)), key=negatives.__getitem__)


def in_branch_order(candidates: Sequence[Candidate], chosen: Sequence[int]) -> list[int]:
    """Return the chosen candidates, each path as long as it can be: the best child comes first."""
    children: dict[int, list[int]] = {}
    for at in chosen:  # best first
        children.setdefault(candidates[at].parent, []).append(at)
    ordered: list[int] = []
    waiting = list(reversed(children.get(-1, [])))
    while waiting:
        at = waiting.pop()
        ordered.append(at)
        waiting.extend(reversed(children.get(at, [])))
    return ordered


@dataclass(frozen=True, slots=True)
class Verdict:
    """`written` holds the target's tokens: those of the true rows in `path`, then one of its own.

    `path` lists the rows that are true after the first one, in order.
    """

    written: tuple[int, ...]
    path: tuple[int, ...]

    @property
    def num_accepted(self) -> int:
        """Number of drafted tokens that are true."""
        return len(self.path)


def verify(tokens: Sequence[int], parents: Sequence[int], picked: Sequence[int]) -> Verdict:
    """Walk a drafted tree along the target's picks.

    Row 0 is the last written token, the others are drafted; `parents` as in `LanguageModel.forward`. Siblings
    differ in their tokens. `picked[row]` is the target's token after that row. A child of a true row is true
    if it holds the pick; without such a child the pick itself ends the walk (greedy case of Leviathan et al.
    2022; trees: Miao et al. 2023).
    """
    if not len(tokens) == len(parents) == len(picked):
        raise ValueError(f"{len(tokens)} rows, {len(parents)} parents, {len(picked)} picks")
    path = true_path(tokens, parents, 0, picked.__getitem__)
    return Verdict(tuple(picked[row] for row in (0, *path)), tuple(path))

"""Merges the drafts of all drafters into one tree, orders its rows, and finds the accepted path through it.

The `weight` of a token is relative: its probability is `weight / (1 + sum(sibling_weights))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from completion_engine.drafting.drafts import Draft, DraftToken


class WeightOf(Protocol):
    """Returns the weight of a token against all tokens that no drafter proposed in its position."""

    def __call__(self, guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        """Return the `weight` of a token that all of `guesses` propose; `is_first` marks a drafter's first
        choice.
        """
        ...


_CUT = -2  # represents a node that is deeper than allowed, so that its descendants are left out too


class Candidate(NamedTuple):  # one is made for every guess of every pass: tuples are made fastest
    """A token of the merged tree, with the guesses of all drafters that propose it there.

    `probability` is the estimated probability that the target accepts this token if it accepts the tokens
    before it, `path_probability` that it accepts this token and all before it. `parent` is an index in the
    list of candidates, -1 for the first tokens.
    """

    token: int
    parent: int
    depth: int
    guesses: tuple[DraftToken, ...]
    probability: float
    path_probability: float


def merge(drafts: Sequence[Draft], weight_of: WeightOf, max_depth: int) -> list[Candidate]:
    """Return the candidates of all drafts, parents before children; equal paths become one.

    Siblings exclude each other, so a candidate's probability is its `weight` / (1 + the sum of all
    siblings' weights). The 1 represents all tokens that no drafter proposed.
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
    weights = [
        weight_of(of_node, node[2], is_first=at in first_choices)
        for at, (of_node, node) in enumerate(zip(guesses, nodes, strict=True))
    ]
    return _with_probabilities(nodes, guesses, weights)


def _with_probabilities(
    nodes: Sequence[tuple[int, int, int]], guesses: Sequence[list[DraftToken]], weights: Sequence[float]
) -> list[Candidate]:
    total: dict[int, float] = {}
    for (_, parent, _), weight in zip(nodes, weights, strict=True):
        total[parent] = total.get(parent, 1.0) + weight
    of_paths: list[float] = []
    found: list[Candidate] = []
    for (token, parent, depth), of_node, weight in zip(nodes, guesses, weights, strict=True):
        probability = weight / total[parent]
        of_paths.append(probability * of_paths[parent] if parent >= 0 else probability)
        found.append(Candidate(token, parent, depth, tuple(of_node), probability, of_paths[-1]))
    return found


def child_rows(tokens: Sequence[int], parents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the row of each (parent row, token) in a tree whose siblings have different tokens."""
    return {(parent, token): row for row, (parent, token) in enumerate(zip(parents, tokens, strict=True))}


def accepted_path(
    tokens: Sequence[int], parents: Sequence[int], root: int, pick_after: Callable[[int], int | None]
) -> list[int]:
    """Return the accepted rows after row `root`, in order: each holds the target's pick after its parent.

    `tokens` and `parents` [num_rows] form a tree in which siblings have different tokens. `pick_after` is
    called with `root` and then with each accepted row; None ends the path.
    """
    child_of = child_rows(tokens, parents)
    path: list[int] = []
    row: int | None = root
    while row is not None and (pick := pick_after(row)) is not None:
        if (row := child_of.get((row, pick))) is not None:
            path.append(row)
    return path


def by_branch(candidates: Sequence[Candidate]) -> list[int]:
    """Return the branch number of each candidate; branch 0 has the most expected tokens.

    A branch continues with the child that has the most expected tokens after it; each other child begins a
    branch of its own. A branch never has more expected tokens than the branch it starts from, so the first n
    branches form a tree.
    """
    # Expected accepted tokens from a candidate on, along its own branch.
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


def within_branches(order: Sequence[int], branches: Sequence[int], max_branches: int) -> list[int]:
    """Return the candidates of the first `max_branches` branches, in the given `order`, likeliest first.

    Every prefix of the result is a tree too, because path probabilities never grow from parent to child.
    """
    return [at for at in order if branches[at] < max_branches]


def by_probability(candidates: Sequence[Candidate]) -> list[int]:
    """Return all candidates by path probability, the likeliest first; ties keep parents before children."""
    negatives = [-candidate.path_probability for candidate in candidates]
    return sorted(range(len(candidates)), key=negatives.__getitem__)


def depth_first(candidates: Sequence[Candidate], chosen: Sequence[int]) -> list[int]:
    """Return the chosen candidates in depth-first order, likelier siblings first.

    `chosen` lists the likeliest candidates first.
    """
    children: dict[int, list[int]] = {}
    for at in chosen:
        children.setdefault(candidates[at].parent, []).append(at)
    ordered: list[int] = []
    waiting = list(reversed(children.get(-1, [])))
    while waiting:
        at = waiting.pop()
        ordered.append(at)
        waiting.extend(reversed(children.get(at, [])))
    return ordered


def verify(tokens: Sequence[int], parents: Sequence[int], picked: Sequence[int]) -> list[int]:
    """Return the accepted rows of a drafted tree in order, without row 0.

    Row 0 is the last written token, the others are drafted; `parents` as in `LanguageModel.forward`. Siblings
    have different tokens. `picked[row]` is the target's token after that row. A child of an accepted row is
    accepted if its token is the pick after that row. The first pick that no child holds ends the path and is
    written as the target's own token (greedy case of Leviathan et al. 2022; trees: Miao et al. 2023).
    """
    if not len(tokens) == len(parents) == len(picked):
        raise ValueError(f"{len(tokens)} rows, {len(parents)} parents, {len(picked)} picks")
    return accepted_path(tokens, parents, 0, picked.__getitem__)

"""One tree out of the drafts of all sources: what each guess is worth, and the order of its rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from completion_engine.drafting.draft import Draft, DraftToken


class OddsOf(Protocol):
    """What speaks for a token against all that nobody guessed."""

    def __call__(self, guesses: Sequence[DraftToken], depth: int, *, is_first: bool) -> float:
        """From who guessed it, how deep, and whether it is anybody's first choice there."""
        ...


_CUT = -2  # the parent of what was cut off for its depth


class Candidate(NamedTuple):  # one is made for every guess of every pass: tuples are made fastest
    """A guessed token of the merged tree, with all that was said for it.

    `survival` estimates that the target writes the whole path down to here, `chance` that it writes this
    token when the path above is true.
    """

    token: int
    parent: int
    depth: int
    guesses: tuple[DraftToken, ...]
    chance: float
    survival: float


def merge(drafts: Sequence[Draft], odds_of: OddsOf, max_depth: int) -> list[Candidate]:
    """Candidates of all drafts, parents before children; equal tokens behind equal paths are one.

    Siblings exclude each other: each has its odds' part of all odds, one part being left for other tokens.
    """
    at_of: dict[tuple[int, int], int] = {}
    places: list[tuple[int, int, int]] = []
    guesses: list[list[DraftToken]] = []
    first_choices: set[int] = set()
    for draft in drafts:
        merged: list[int] = []
        parents: set[int] = set()
        for guess in draft:
            parent = merged[guess.parent] if guess.parent >= 0 else -1
            depth = places[parent][2] + 1 if parent >= 0 else 0
            if depth >= max_depth or parent == _CUT:
                merged.append(_CUT)
                continue
            at = at_of.setdefault((parent, guess.token), len(places))
            if at == len(places):
                places.append((guess.token, parent, depth))
                guesses.append([guess])
            else:
                guesses[at].append(guess)
            merged.append(at)
            if parent not in parents:
                parents.add(parent)
                first_choices.add(at)
    odds = [
        odds_of(said, place[2], is_first=at in first_choices)
        for at, (said, place) in enumerate(zip(guesses, places, strict=True))
    ]
    return _valued(places, guesses, odds)


def _valued(
    places: Sequence[tuple[int, int, int]], guesses: Sequence[list[DraftToken]], odds: Sequence[float]
) -> list[Candidate]:
    total: dict[int, float] = {}
    for (_, parent, _), weight in zip(places, odds, strict=True):
        total[parent] = total.get(parent, 1.0) + weight
    survivals: list[float] = []
    found: list[Candidate] = []
    for (token, parent, depth), said, weight in zip(places, guesses, odds, strict=True):
        chance = weight / total[parent]
        survival = chance * survivals[parent] if parent >= 0 else chance
        survivals.append(survival)
        found.append(Candidate(token, parent, depth, tuple(said), chance, survival))
    return found


def true_path(
    tokens: Sequence[int], parents: Sequence[int], root: int, pick_behind: Callable[[int], int | None]
) -> list[int]:
    """The rows that are true behind row `root`, in order: each carries what is picked behind its parent.

    `tokens` and `parents` [num_rows] make a tree in which siblings differ in their tokens.
    """
    child_of = {(parent, token): row for row, (parent, token) in enumerate(zip(parents, tokens, strict=True))}
    path: list[int] = []
    row: int | None = root
    while row is not None and (pick := pick_behind(row)) is not None:
        if (row := child_of.get((row, pick))) is not None:
            path.append(row)
    return path


def by_branch(candidates: Sequence[Candidate]) -> list[int]:
    """The branch of each candidate, the most promising branch being 0.

    A branch is a path that goes on with the child that promises most tokens; other children begin branches
    of their own. So the first n branches hang together, and are the n branches that promise most.
    """
    promise = [candidate.survival for candidate in candidates]
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
    """Of the candidates in `order`, likeliest first, those in the most promising `max_branches` branches.

    Any beginning of the result is a tree too: survival only falls along a path.
    """
    return [at for at in order if branches[at] < max_branches]


def by_survival(candidates: Sequence[Candidate]) -> list[int]:
    """All candidates, the likeliest first; a parent stands before its equally likely child."""
    survivals = [-candidate.survival for candidate in candidates]
    return sorted(range(len(candidates)), key=survivals.__getitem__)


def in_branch_order(candidates: Sequence[Candidate], chosen: Sequence[int]) -> list[int]:
    """The chosen candidates so that each path runs on as long as it can: the best child comes first."""
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

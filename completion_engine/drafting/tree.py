"""One tree out of the drafts of all sources: what each guess is worth, and the order of its rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from completion_engine.drafting.draft import Draft, DraftToken

Estimate = Callable[[Sequence[DraftToken]], float]
_MOST = 0.98  # siblings exclude each other: their chances add up to no more than this


@dataclass(frozen=True, slots=True)
class Candidate:
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


def merge(drafts: Sequence[Draft], estimate: Estimate, max_depth: int) -> list[Candidate]:
    """Candidates of all drafts, parents before children; equal tokens behind equal paths are one."""
    at_of: dict[tuple[int, int], int] = {}
    guesses: list[list[DraftToken]] = []
    places: list[tuple[int, int, int]] = []
    for draft in drafts:
        merged: list[int] = []
        for guess in draft:
            parent = merged[guess.parent] if guess.parent >= 0 else -1
            depth = places[parent][2] + 1 if parent >= 0 else 0
            if depth >= max_depth or parent == -2:
                merged.append(-2)
                continue
            at = at_of.setdefault((parent, guess.token), len(places))
            if at == len(places):
                places.append((guess.token, parent, depth))
                guesses.append([])
            guesses[at].append(guess)
            merged.append(at)
    return _valued(places, guesses, estimate)


def _valued(
    places: list[tuple[int, int, int]], guesses: list[list[DraftToken]], estimate: Estimate
) -> list[Candidate]:
    chances = [estimate(said) for said in guesses]
    total: dict[int, float] = {}
    for (_, parent, _), chance in zip(places, chances, strict=True):
        total[parent] = total.get(parent, 0.0) + chance
    found: list[Candidate] = []
    for (token, parent, depth), said, chance in zip(places, guesses, chances, strict=True):
        fair = chance * min(1.0, _MOST / max(total[parent], 1e-9))
        above = found[parent].survival if parent >= 0 else 1.0
        found.append(Candidate(token, parent, depth, tuple(said), fair, above * fair))
    return found


def grow(candidates: Sequence[Candidate], max_nodes: int, max_lanes: int) -> list[int]:
    """The likeliest candidates, best first, that hang together in at most `max_lanes` branches.

    Any beginning of the result is a tree too: survival only falls along a path.
    """
    order = sorted(range(len(candidates)), key=lambda at: -candidates[at].survival)
    taken: set[int] = {-1}
    has_child: set[int] = set()
    chosen: list[int] = []
    num_lanes = 1
    for at in order:
        if len(chosen) == max_nodes:
            break
        parent = candidates[at].parent
        if parent not in taken:
            continue
        if parent in has_child:
            if num_lanes == max_lanes:
                continue
            num_lanes += 1
        has_child.add(parent)
        taken.add(at)
        chosen.append(at)
    return chosen


def in_lane_order(candidates: Sequence[Candidate], chosen: Sequence[int]) -> list[int]:
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

"""The parts of a step on the device do what a plain walk over lists does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from completion_engine.drafting.tree import verify
from completion_engine.gpu.passes import PassInputs, PassShape

NUM_ROWS, LENGTH, MOST = 16, 15, 8
NUM_SPAN_TOKENS, CAPACITY = 24, 56
BEAMS, BREADTH = 3, 4
SEEDS = range(25)
WEIGHTS = [length / (length + 4) for length in range(MOST + 1)]


@dataclass(frozen=True)
class Guess:
    """A candidate as the plain walk finds it."""

    token: int
    parent: int
    place: int
    survival: float


def longest_run(text: Sequence[int], last: int) -> tuple[int, int]:
    """Length and last place of the longest earlier run of what ends at `last`; the latest of the longest.

    A run in a span counts for two tokens less.
    """
    best = (0, 0)
    for place in range(last):
        length = 0
        while (
            length < MOST
            and last - length >= NUM_SPAN_TOKENS
            and place >= length
            and text[place - length] == text[last - length]
        ):
            length += 1
        if text[place + 1] >= 0:
            best = max(best, (length - 2 * (place < NUM_SPAN_TOKENS), place))
    return best if best[0] > 0 else (0, 0)


def candidates(text: Sequence[int], last: int, search: Search) -> list[Guess]:
    """What may be drafted: the search's tree, siblings of the text's tokens believed less, then the text."""
    length, place = longest_run(text, last)
    chain = []
    while length and len(chain) < LENGTH and place + 1 + len(chain) <= last:
        if (token := text[place + 1 + len(chain)]) < 0:
            break
        chain.append(token)
    found: list[Guess] = []
    beams = [(-1, 1.0)]
    end, survival_of_end, hits = -1, 1.0, 0
    for depth in range(search.num_depths):
        grown = []
        is_along = hits == depth < len(chain)
        weight = WEIGHTS[min(length + depth, MOST)] if is_along else 0.0
        hit = None
        for beam, (parent, survival) in enumerate(beams):
            for rank in range(BREADTH):
                token = int(search.tokens[depth][beam][rank])
                share = float(search.shares[depth][beam][rank])
                on = is_along and parent == end
                is_hit = on and token == chain[depth]
                share = share * (1 - weight if on else 1) + (weight if is_hit else 0)
                guess = Guess(token, parent, place + 1 + depth if is_hit else -1, survival * share)
                hit = len(found) if is_hit else hit
                grown.append((len(found), guess.survival))
                found.append(guess)
        beams = [grown[at] for at in search.chosen[depth]]
        if hit is not None:
            end, survival_of_end, hits = hit, found[hit].survival, depth + 1
    for depth, token in enumerate(chain[hits:], hits):
        survival_of_end *= WEIGHTS[min(length + depth, MOST)]
        found.append(Guess(token, end, place + 1 + depth, survival_of_end))
        end = len(found) - 1
    return found


class Search:
    """What a drafter may have found: random tokens of few, siblings differing, with random shares."""

    def __init__(self, generator: torch.Generator, num_depths: int, num_tokens: int) -> None:
        size = (num_depths, BEAMS, BREADTH)
        self.num_depths = num_depths
        self.tokens = torch.stack(
            [torch.randperm(num_tokens, generator=generator)[:BREADTH] for _ in range(num_depths * BEAMS)]
            or [torch.zeros(BREADTH, dtype=torch.int64)]
        )[: num_depths * BEAMS].view(size)
        self.shares = torch.rand(size, generator=generator) / BREADTH
        self.chosen = torch.stack(
            [
                torch.randperm(BREADTH * (BEAMS if depth else 1), generator=generator)[:BEAMS]
                for depth in range(num_depths)
            ]
            or [torch.zeros(BEAMS, dtype=torch.int64)]
        )[:num_depths]


@dataclass(frozen=True)
class Case:
    """Everything that a step starts from, on the device, and the same as lists."""

    text: list[int]
    last: int
    search: Search
    start: Any
    on_device: Any
    found: Any
    outcome: Any
    inputs: PassInputs


@pytest.fixture(params=SEEDS)
def case(request: pytest.FixtureRequest, device: torch.device) -> Case:
    """Random text of few tokens, with spans before it; a search of some depth, sometimes none."""
    from completion_engine.gpu import launch_step
    from completion_engine.gpu.launch_step import Found

    generator = torch.Generator().manual_seed(request.param)
    num_tokens = 5 + request.param % 3
    num_written = int(torch.randint(1, CAPACITY - NUM_ROWS, (), generator=generator))
    text = torch.randint(0, num_tokens, (NUM_SPAN_TOKENS + CAPACITY,), generator=generator)
    text[:NUM_SPAN_TOKENS][torch.rand(NUM_SPAN_TOKENS, generator=generator) < 0.2] = -1
    text[[0, NUM_SPAN_TOKENS - 1]] = -1
    search = Search(generator, request.param % 5, num_tokens)
    weights = torch.tensor(WEIGHTS, device=device)
    start = launch_step.Start.empty(torch.zeros(1, 8, device=device))
    start.inputs.send(
        [11, 12, 13, num_written - 1, NUM_ROWS, 0, 0, 0, int(text[NUM_SPAN_TOKENS + num_written - 1]), 0]
    )
    inputs = PassInputs.empty(PassShape(NUM_ROWS, is_tree=True, wants_logits=True), device)
    inputs.numbers.fill_(7)  # whatever an earlier step left
    return Case(
        text.tolist(),
        NUM_SPAN_TOKENS + num_written - 1,
        search,
        start,
        launch_step.Text(text.to(device), NUM_SPAN_TOKENS, weights),
        Found(search.tokens.to(device), search.shares.to(device), search.chosen.to(device)),
        launch_step.StepOutcome.empty(torch.zeros(NUM_ROWS, num_tokens, device=device), num_tokens),
        inputs,
    )


def run_draft(case: Case) -> None:
    """The inputs and the places of a step's draft."""
    from completion_engine.gpu import launch_step

    at = launch_step.Candidates.empty(case.found, LENGTH, case.on_device)
    launch_step.run_score(case.start, case.on_device, case.found, at)
    launch_step.run_build_tree(case.start, at, case.inputs, case.outcome)


def rows_of(case: Case) -> list[tuple[tuple[int, ...], int]]:
    """The tokens on the way to each row, and its place in the text; checks what else the inputs hold."""
    inputs, num_used = case.inputs, int(case.inputs.num_used)
    assert inputs.numbers[:4].tolist() == case.start.inputs.numbers[:4].tolist()
    rows = []
    for row in range(num_used):
        depth = int(inputs.depths[row])
        way = inputs.ancestors[row, : depth + 1].tolist()
        assert way[0] == 0
        assert way[-1] == row
        if row:
            parent = way[-2]
            assert parent < row
            assert inputs.ancestors[parent, :depth].tolist() == way[:-1]
        rows.append((tuple(inputs.tokens[way].tolist()), int(case.outcome.places[row])))
    idle = slice(num_used, None)
    assert not inputs.tokens[idle].any()
    assert not inputs.depths[idle].any()
    assert not inputs.ancestors[idle].any()
    return rows


def test_the_likeliest_candidates_are_drafted_and_true_ones_accepted(
    case: Case, device: torch.device
) -> None:
    run_draft(case)
    check_draft(case)
    check_accepted(case, device)


def check_draft(case: Case) -> None:
    """The rows are the likeliest of all candidates."""
    found = candidates(case.text, case.last, case.search)
    order = sorted(range(len(found)), key=lambda at: -found[at].survival)[: NUM_ROWS - 1]
    ways: dict[int, tuple[int, ...]] = {-1: (case.text[case.last],)}
    for at, guess in enumerate(found):
        ways[at] = (*ways[guess.parent], guess.token)
    wanted = [(ways[-1], -1), *((ways[at], found[at].place) for at in order)]
    assert sorted(rows_of(case)) == sorted(wanted)


def check_accepted(case: Case, device: torch.device) -> None:
    """The true rows are those that a plain walk accepts, and what the next step starts from follows them."""
    from completion_engine.gpu import launch_step

    num_used = int(case.inputs.num_used)
    tokens, depths = case.inputs.tokens[:num_used].tolist(), case.inputs.depths.tolist()
    parents = [int(case.inputs.ancestors[row, depths[row] - 1]) if row else -1 for row in range(num_used)]
    generator = torch.Generator().manual_seed(case.last)
    picked = torch.randint(0, 5, (NUM_ROWS,), generator=generator).tolist()
    for row in range(num_used - 1, 0, -1):
        if torch.rand((), generator=generator) < 0.6:
            picked[parents[row]] = tokens[row]
    states = torch.arange(NUM_ROWS * 8.0, device=device).view(NUM_ROWS, 8)
    after = launch_step.Start.empty(states)
    launch_step.run_accept(
        case.inputs, torch.tensor(picked, device=device), states, case.on_device, after, case.outcome
    )
    path = [0, *verify(tokens, parents, picked[:num_used])]
    written = [picked[row] for row in path]
    num_true, next_token, num_rows, *others = case.outcome.record.tolist()
    assert (num_true, next_token, num_rows) == (len(path), written[-1], num_used)
    assert others[1:num_true] == written[:-1]
    assert others[NUM_ROWS : NUM_ROWS + num_true] == case.outcome.places[path].tolist()
    assert case.outcome.sources.tolist() == [*path, *range(num_true, NUM_ROWS)]
    assert case.on_device.tokens[case.last + 1 : case.last + 1 + num_true].tolist() == written
    assert after.inputs.numbers[:4].tolist() == [11, 12, 13, case.last - NUM_SPAN_TOKENS + num_true]
    assert after.inputs.tokens.tolist() == [next_token]
    assert torch.equal(after.state[0], states[path[-1]])

"""Launching the kernels of a distilled drafter and of whole steps on the device, and their static buffers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton
from torch import Tensor

from completion_engine.gpu.kernels import draft, step
from completion_engine.gpu.launch import EXACT, HEAD_OPTIONS, Ranking
from completion_engine.gpu.passes import PassInputs, PassShape

LOOK_BLOCK = 128  # places of the text that one program looks at, each with the tokens before it
BUILD_OPTIONS = EXACT | {"num_warps": 8}  # it compares all candidates with each other
FIND_OPTIONS = EXACT | {"num_warps": 16}  # a program holds a whole row of logits in its registers


@dataclass(frozen=True, slots=True)
class Text:
    """Tokens to look up in: `num_span_tokens` of spans, then what is written, by position; -1 is nothing.

    weights [longest + 1] float32 are the text's weight after a run of that length.
    """

    tokens: Tensor
    num_span_tokens: int
    weights: Tensor

    @property
    def spans(self) -> Tensor:
        """[num_span_tokens]."""
        return self.tokens[: self.num_span_tokens]

    @property
    def written(self) -> Tensor:
        """[capacity]."""
        return self.tokens[self.num_span_tokens :]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may be drafted: a block for each depth of a search, then `length` of text that is looked up.

    Each [num_candidates]; see `kernels.step.score`. `row_of` is work space.
    """

    tokens: Tensor
    parents: Tensor
    places: Tensor
    survivals: Tensor
    chances: Tensor
    row_of: Tensor
    best: Tensor
    num_depths: int
    block: int
    length: int

    @classmethod
    def empty(cls, found: Found, length: int, text: Text) -> Candidates:
        """For what a search finds [num_depths, num_beams, breadth], beside `length` tokens of `text`."""
        device, (num_depths, num_beams, breadth) = text.tokens.device, found.tokens.shape
        block = triton.next_power_of_2(num_beams * breadth)
        count = num_depths * block + length
        num_best = triton.cdiv(len(text.tokens), LOOK_BLOCK)

        def whole(size: int) -> Tensor:
            return torch.zeros(size, dtype=torch.int64, device=device)

        survivals, chances = (torch.zeros(count, device=device) for _ in range(2))
        tokens, parents, places, row_of = (whole(count) for _ in range(4))
        best = whole(num_best)
        return cls(tokens, parents, places, survivals, chances, row_of, best, num_depths, block, length)


@dataclass(frozen=True, slots=True)
class Start:
    """What a step starts from: the inputs of one row, and the target's state before it [1, hidden_size]."""

    inputs: PassInputs
    state: Tensor

    @classmethod
    def empty(cls, states: Tensor) -> Start:
        """A start without content; `states` [.., hidden_size] gives the type of a state."""
        shape = PassShape(1, is_tree=False, wants_logits=False)
        return cls(PassInputs.empty(shape, states.device), torch.zeros_like(states[:1]))

    def copy_(self, other: Start) -> None:
        """Become the other."""
        self.inputs.numbers.copy_(other.inputs.numbers)
        self.state.copy_(other.state)


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The result of a step: `record` [3 + 4 * num_rows] and `sources` [num_rows] as in `kernels.step.accept`.

    `ranking` ranks the tokens after each row. Its record follows the other one in `numbers`, which the host
    reads. Places and shares of the rows, each [num_rows], are its draft; `matched` is work space.
    """

    numbers: Tensor
    record: Tensor
    ranking: Ranking
    sources: Tensor
    places: Tensor
    chances: Tensor
    matched: Tensor

    @classmethod
    def empty(cls, logits: Tensor, num_tokens: int) -> StepOutcome:
        """Buffers for passes with logits [num_rows, vocab_size]. The first `num_tokens` of a row count."""
        ranking, num_rows, device = Ranking.empty(logits, num_tokens), len(logits), logits.device
        length = 3 + 4 * num_rows
        numbers, sources, places, matched = (
            torch.zeros(size, dtype=torch.int64, device=device)
            for size in (length + len(ranking.record), num_rows, num_rows, num_rows)
        )
        record, ranked = numbers[:length], replace(ranking, record=numbers[length:])
        return cls(numbers, record, ranked, sources, places, torch.zeros(num_rows, device=device), matched)


def run_score(start: Start, text: Text, found: Found, at: Candidates) -> None:
    """All candidates: those of the search, and the text after the longest matching run."""
    inputs, size, most = start.inputs.numbers, len(text.tokens), len(text.weights) - 1
    _, num_beams, breadth = found.tokens.shape
    num_best, rounded = len(at.best), triton.next_power_of_2
    step.look_up[(num_best,)](
        inputs, text.tokens, at.best, text.num_span_tokens, size, most, rounded(most), LOOK_BLOCK, **EXACT
    )
    step.score[(1,)](
        inputs, text.tokens, at.best, text.weights, found.tokens, found.shares, found.chosen,
        at.tokens, at.parents, at.places, at.survivals, at.chances,
        num_best, rounded(num_best), text.num_span_tokens, size, most, at.length, rounded(at.length),
        at.num_depths, num_beams, rounded(num_beams), breadth, at.block, **HEAD_OPTIONS,
    )  # fmt: skip


def run_build_tree(start: Start, at: Candidates, inputs: PassInputs, outcome: StepOutcome) -> None:
    """Write the likeliest candidates into the inputs of a pass, after the row of `start`."""
    count = len(at.tokens)
    step.build_tree[(1,)](
        start.inputs.numbers, inputs.numbers, at.tokens, at.parents, at.places, at.survivals, at.chances,
        at.row_of, outcome.places, outcome.chances,
        count, triton.next_power_of_2(count), at.num_depths, at.block, inputs.num_rows, **BUILD_OPTIONS,
    )  # fmt: skip


def run_accept(  # noqa: PLR0913 - every buffer by itself
    inputs: PassInputs, picked: Tensor, states: Tensor, text: Text, after: Start, outcome: StepOutcome
) -> None:
    """The true rows; `picked` and states [num_rows, ..] are the target's.

    Also the inputs of the next step.
    """
    size = states.shape[1]
    step.accept[(1,)](
        inputs.numbers, picked, states, outcome.places, outcome.chances, outcome.matched, outcome.sources,
        text.tokens, after.inputs.numbers, after.state, outcome.record,
        text.num_span_tokens, inputs.num_rows, size, triton.next_power_of_2(size), **HEAD_OPTIONS,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Beams:
    """Paths that go on at the next depth, each [num_beams]: tokens, rows before them, probabilities."""

    tokens: Tensor
    sources: Tensor
    survivals: Tensor

    @classmethod
    def empty(cls, num_beams: int, device: torch.device) -> Beams:
        """Tokens 0 after row 0."""
        tokens, sources = (torch.zeros(num_beams, dtype=torch.int64, device=device) for _ in range(2))
        return cls(tokens, sources, torch.zeros(num_beams, device=device))


@dataclass(frozen=True, slots=True)
class Found:
    """The likeliest tokens of each beam at one depth, or at all depths.

    tokens and shares [num_beams, breadth], and the places of those that go on, `chosen` [num_beams]; for all
    depths each is [num_depths, ..].
    """

    tokens: Tensor
    shares: Tensor
    chosen: Tensor

    @classmethod
    def nothing(cls, device: torch.device) -> Found:
        """The result of a search of no depth, by one beam."""
        ids = torch.zeros(1, 1, 1, dtype=torch.int64, device=device)
        return cls(ids[:0], torch.zeros(1, 1, 1, device=device)[:0], ids[:0, :, 0])


def run_join_inputs(  # noqa: PLR0913 - every buffer by itself
    inputs: PassInputs,
    beams: Beams,
    embedding: tuple[Tensor, Tensor],
    states: tuple[Tensor, Tensor],
    eps: float,
    result: Tensor,
    *,
    is_first: bool,
) -> None:
    """Embeddings and states, each with its norm, into result [num_rows, 2 * hidden_size]."""
    size = states[0].shape[1]
    draft.join_inputs[(inputs.num_rows,)](
        inputs.numbers, beams.tokens, beams.sources, *embedding, *states, result, eps,
        size, triton.next_power_of_2(size), is_first, **EXACT,
    )  # fmt: skip


def run_turn_queries(  # noqa: PLR0913 - as above
    inputs: PassInputs, parts: Tensor, bias: Tensor, cos: Tensor, sin: Tensor, queries: Tensor, depth: int
) -> None:
    """Turn the product `parts` into queries [num_rows, num_heads, head_size] at this depth."""
    num_parts, num_rows, _ = parts.shape
    _, num_heads, head_size = queries.shape
    draft.turn_queries[(num_rows, num_heads)](
        inputs.numbers, parts, bias, cos, sin, queries, num_rows, depth,
        num_parts, num_heads, head_size, **HEAD_OPTIONS,
    )  # fmt: skip


def run_find_best(logits: Tensor, ids: Tensor, temperature: float, found: Found) -> None:
    """The likeliest of logits [num_beams, num_tokens] float32, by their ids [num_tokens]."""
    num_rows, num_tokens = logits.shape
    draft.find_best[(num_rows,)](
        logits, ids, found.tokens, found.shares, temperature,
        num_tokens, found.tokens.shape[1], triton.next_power_of_2(num_tokens), **FIND_OPTIONS,
    )  # fmt: skip


def run_choose_beams(found: Found, beams: Beams, *, is_first: bool) -> None:
    """Which of `found` go on, into `beams`."""
    num_beams, breadth = found.tokens.shape
    draft.choose_beams[(1,)](
        found.tokens, found.shares, found.chosen, beams.tokens, beams.sources, beams.survivals,
        num_beams, breadth, triton.next_power_of_2(num_beams * breadth), is_first, **HEAD_OPTIONS,
    )  # fmt: skip

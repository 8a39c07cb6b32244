"""Launching the kernels of a step that stays on the device, and what they have in memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from completion_engine.gpu.kernels import step
from completion_engine.gpu.launch import EXACT, HEAD_OPTIONS
from completion_engine.gpu.launch_draft import Found
from completion_engine.gpu.passes import Packet, PassShape

LOOK_BLOCK = 1024  # places of the text that one program looks at
PLANT_OPTIONS = EXACT | {"num_warps": 8}  # it compares all candidates with each other


@dataclass(frozen=True, slots=True)
class Text:
    """Tokens to look up in: `num_clip` of clips, then those that are written, by position; -1 is nothing.

    weights [longest + 1] float32 tell how much to believe what stands behind a run of so many same tokens.
    """

    tokens: Tensor
    num_clip: int
    weights: Tensor

    @property
    def clips(self) -> Tensor:
        """[num_clip]."""
        return self.tokens[: self.num_clip]

    @property
    def written(self) -> Tensor:
        """[capacity]."""
        return self.tokens[self.num_clip :]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may be drafted: a block for each depth of a search, then `length` of text that is looked up.

    Each [num_candidates]; see `kernels.step.appraise`. `row_of` is work space.
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
    """What a step starts from: a packet of one row, and the target's state before it [1, hidden_size]."""

    packet: Packet
    state: Tensor

    @classmethod
    def empty(cls, states: Tensor) -> Start:
        """`states` [.., hidden_size] tells what a state looks like."""
        shape = PassShape(1, is_tree=False, wants_logits=False)
        return cls(Packet.empty(shape, states.device), torch.zeros_like(states[:1]))

    def copy_(self, other: Start) -> None:
        """Become the other."""
        self.packet.told.copy_(other.packet.told)
        self.state.copy_(other.state)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step came to: `record` [3 + 3 * num_rows] and `sources` [num_rows] as in `kernels.step.settle`.

    Places and chances of the rows, each [num_rows], are what it drafted; `matched` is work space.
    """

    record: Tensor
    sources: Tensor
    places: Tensor
    chances: Tensor
    matched: Tensor

    @classmethod
    def empty(cls, num_rows: int, device: torch.device) -> Outcome:
        """For passes of so many rows."""
        record, sources, places, matched = (
            torch.zeros(size, dtype=torch.int64, device=device)
            for size in (3 + 3 * num_rows, num_rows, num_rows, num_rows)
        )
        return cls(record, sources, places, torch.zeros(num_rows, device=device), matched)


def run_appraise(start: Start, text: Text, found: Found, at: Candidates) -> None:
    """All candidates: what the search found, and what follows the longest run of the same text."""
    told, size, most = start.packet.told, len(text.tokens), len(text.weights) - 1
    _, num_beams, breadth = found.tokens.shape
    num_best = len(at.best)
    step.look_up[(num_best,)](told, text.tokens, at.best, text.num_clip, size, most, LOOK_BLOCK, **EXACT)
    step.appraise[(1,)](
        told, text.tokens, at.best, text.weights, found.tokens, found.shares, found.chosen,
        at.tokens, at.parents, at.places, at.survivals, at.chances,
        num_best, triton.next_power_of_2(num_best), text.num_clip, size, most, at.length,
        at.num_depths, num_beams, triton.next_power_of_2(num_beams), breadth, at.block, **HEAD_OPTIONS,
    )  # fmt: skip


def run_plant(start: Start, at: Candidates, packet: Packet, outcome: Outcome) -> None:
    """The likeliest candidates into the packet of a pass, behind the row of `start`."""
    count = len(at.tokens)
    step.plant[(1,)](
        start.packet.told, packet.told, at.tokens, at.parents, at.places, at.survivals, at.chances, at.row_of,
        outcome.places, outcome.chances,
        count, triton.next_power_of_2(count), at.num_depths, at.block, packet.num_rows, **PLANT_OPTIONS,
    )  # fmt: skip


def run_settle(  # noqa: PLR0913 - every buffer by itself
    packet: Packet, picked: Tensor, states: Tensor, text: Text, after: Start, outcome: Outcome
) -> None:
    """Which rows are true, `picked` and states [num_rows, ..] being the target's; what comes after."""
    size = states.shape[1]
    step.settle[(1,)](
        packet.told, picked, states, outcome.places, outcome.chances, outcome.matched, outcome.sources,
        text.tokens, after.packet.told, after.state, outcome.record,
        text.num_clip, packet.num_rows, size, triton.next_power_of_2(size), **HEAD_OPTIONS,
    )  # fmt: skip

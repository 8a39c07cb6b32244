"""Weights as the kernels read them: their form in memory, and how a product with them is cut into programs.

A form is the weights' own type, bytes, or blocks of levels as files hold them. Rounds weights that come as
plain numbers. Touches weights alone; inputs and sums stay as they are, so in every form a row's result is the
same beside any number of rows. A cut depends on the weight's shape and on the machine, never on the number of
rows, because its parts decide in which order a row's sum runs. Has no access to kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from completion_engine.gpu import blocks
from completion_engine.gpu.blocks import STEP, Form
from completion_engine.target_model.gguf_blocks import QuantisedWeight
from completion_engine.target_model.llama_family import FamilyModel

Bits = Literal[16, 8]  # the setting for weights that come as plain numbers
PLAIN, BYTES = Form(16), Form(8)
_MAX_BYTE = 127
_SMALLEST_SCALE = 1e-12
_OUTPUTS_AT_ONCE = 2048  # being rounded, so that float32 copies stay small
_PROGRAMS_PER_PROCESSOR = 2  # meant to keep enough loads under way; to be measured on a GPU
_MAX_PARTS = 8  # the reader adds each of them
_INPUT_BLOCK = 128
_COLUMN_BLOCKS = (128, 64, 32)
# bytes of weights that a program loads at once, with 4 steps under way; to be measured too
_STEP_BYTES = 8192
_WIDE_COLUMNS = 64  # outputs of a program with many rows; more would not leave room for the rows


@dataclass(frozen=True, slots=True)
class Weight:
    """A matrix [num_outputs, num_inputs].

    `levels` holds it in 16 bits or more as it is, and in bytes as int8 of that shape, with float32 `scales`
    [num_outputs]. In blocks, levels and scales are laid out as in `gpu.blocks`.
    """

    levels: Tensor
    scales: Tensor | None
    form: Form
    num_outputs: int
    num_inputs: int

    @property
    def num_bytes(self) -> int:
        """Memory that a pass reads."""
        return self.levels.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def dense(self, dtype: torch.dtype) -> Tensor:
        """The numbers of the levels, [num_outputs, num_inputs]."""
        if self.scales is None:
            return self.levels.to(dtype)
        if self.form.block:
            return blocks.unpack(self.levels, self.scales, self.form, self.num_inputs).to(dtype)
        return (self.levels.float() * self.scales[:, None]).to(dtype)

    def rows(self, outputs: Tensor) -> Weight:
        """The weights of some outputs [num_rows]; a copy."""
        at = 1 if self.form.block else 0
        scales = None if self.scales is None else self.scales.index_select(-1, outputs)
        levels = self.levels.index_select(at, outputs)
        return replace(self, levels=levels, scales=scales, num_outputs=len(outputs))


def joined(weights: Sequence[Weight]) -> list[Weight]:
    """Weights that read the same inputs, in their order; those of one form that follow each other as one."""
    found: list[Weight] = []
    for weight in weights:
        if found and found[-1].form == weight.form:
            weight = _beside(found.pop(), weight)  # noqa: PLW2901 - takes the place of both
        found.append(weight)
    return found


def _beside(left: Weight, right: Weight) -> Weight:
    levels = torch.cat([left.levels, right.levels], 1 if left.form.block else 0)
    if left.scales is None or right.scales is None:
        scales = None
    else:
        scales = torch.cat([left.scales, right.scales], -1)
    return replace(left, levels=levels, scales=scales, num_outputs=left.num_outputs + right.num_outputs)


def as_in_file(weight: QuantisedWeight, device: torch.device) -> Weight:
    """A weight with the levels and scales of its file, on `device`."""
    form = Form.of(weight)
    levels, scales = blocks.pack_file(weight, form, device)
    num_outputs, num_inputs = weight.levels.shape
    return Weight(levels, scales, form, num_outputs, num_inputs)


def read_weight(model: FamilyModel, index: int, part: str, bits: Bits, device: torch.device) -> Weight:
    """A layer's weight, named as in `LayerParts`: as its file quantises it, otherwise in `bits`.

    With 16 bits it is the number that the file means.
    """
    found = model.quantised(index, (part,)) if bits < 16 else []
    return as_in_file(found[0], device) if found else hold(model.product(index, part).to(device), bits)


def read_head(model: FamilyModel, bits: Bits, device: torch.device) -> Weight:
    """The head, as its file quantises it, otherwise in `bits`."""
    found = model.quantised_head if bits < 16 else []
    return as_in_file(found[0], device) if found else hold(model.head.to(device), bits)


def hold(weight: Tensor, bits: Bits = 16) -> Weight:
    """`weight` [num_outputs, num_inputs] in `bits` bits, on its device."""
    weight = weight.detach()
    num_outputs, num_inputs = weight.shape
    if bits == 16:
        return Weight(weight.contiguous(), None, PLAIN, num_outputs, num_inputs)
    rounded = [_in_bytes(part.float()) for part in torch.split(weight, _OUTPUTS_AT_ONCE)]
    levels, scales = (torch.cat(found) for found in zip(*rounded, strict=True))
    return Weight(levels, scales, BYTES, num_outputs, num_inputs)


def _in_bytes(weight: Tensor) -> tuple[Tensor, Tensor]:
    scales = (weight.abs().amax(-1) / _MAX_BYTE).clamp_min(_SMALLEST_SCALE)
    return (weight / scales[:, None]).round().to(torch.int8), scales


@dataclass(frozen=True, slots=True)
class Tiles:
    """One product's cut: `part_inputs` is a whole number of `input_block`s."""

    column_block: int
    input_block: int
    part_inputs: int
    num_warps: int = 4
    num_stages: int = 4

    @property
    def wide(self) -> Tiles:
        """The cut for many rows, whose sums run in the same order.

        A program then computes four blocks of rows, and reads a tile of weights once for all of them.
        """
        return replace(self, column_block=_WIDE_COLUMNS, num_warps=8, num_stages=3)

    def num_parts(self, num_inputs: int) -> int:
        """Parts of the sum over the inputs."""
        return -(-num_inputs // self.part_inputs)


def tiles_for(weight: Weight, num_processors: int, *, is_whole: bool = False, num_beside: int = 0) -> Tiles:
    """A cut that fills the machine with programs; `is_whole` keeps the inputs in one part.

    The wider a block of outputs, the fewer instructions a weight takes; narrow ones are for small products.
    `num_beside` outputs of other weights are computed at the same time.
    """
    smallest = min(_INPUT_BLOCK, max(16, 1 << (weight.num_inputs - 1).bit_length()))
    input_block = STEP if weight.form.block else smallest
    num_blocks = -(-weight.num_inputs // input_block)
    most_parts = 1 if is_whole else min(_MAX_PARTS, num_blocks)
    wanted, num_outputs = _PROGRAMS_PER_PROCESSOR * num_processors, weight.num_outputs + num_beside

    def fills(columns: int) -> bool:
        return -(-num_outputs // columns) * most_parts >= wanted

    widest = _STEP_BYTES * 8 // (weight.form.bits * _INPUT_BLOCK)
    fitting = (columns for columns in _COLUMN_BLOCKS if columns <= widest and fills(columns))
    column_block = next(fitting, _COLUMN_BLOCKS[-1])
    parts = max(1, min(most_parts, round(wanted / -(-num_outputs // column_block))))
    # A block of 32 inputs for 32 outputs is 512 bytes or more, 16 for each thread of two warps.
    num_warps = 2 if weight.form.block and column_block == _COLUMN_BLOCKS[-1] else 4
    return Tiles(column_block, input_block, -(-num_blocks // parts) * input_block, num_warps)


@dataclass(frozen=True, slots=True)
class TiledWeight:
    """A weight, and how its product is cut."""

    weight: Weight
    tiles: Tiles

    @classmethod
    def of(cls, weight: Weight, num_processors: int, *, is_whole: bool = False) -> TiledWeight:
        """The weight, cut for a machine."""
        return cls(weight, tiles_for(weight, num_processors, is_whole=is_whole))

    @classmethod
    def together(cls, weights: Sequence[Weight], num_processors: int) -> tuple[TiledWeight, ...]:
        """Weights of the same inputs, in their order, in as few products as their forms allow.

        All are cut into the same parts.
        """
        found = joined(weights)
        num_outputs = sum(weight.num_outputs for weight in found)
        cuts = [
            tiles_for(weight, num_processors, num_beside=num_outputs - weight.num_outputs) for weight in found
        ]
        largest = max(zip(found, cuts, strict=True), key=lambda pair: pair[0].num_outputs)[1]
        parts = (replace(cut, part_inputs=largest.part_inputs) for cut in cuts)
        return tuple(cls(weight, cut) for weight, cut in zip(found, parts, strict=True))

    @property
    def num_parts(self) -> int:
        """Parts of the sum over the inputs."""
        return self.tiles.num_parts(self.weight.num_inputs)
